// All providers and their channels, built once from provider files and the environment.
//
// A channel exists where the operator gave a key under the vendor's own variable name (or, for a server that needs
// none, an address). The built-in provider answers at an address this process tells.

import type { Price } from '../base/price.ts'
import { Secret } from '../base/secret.ts'
import type { Provider } from './provider.ts'
import { parseProvider, ProviderFileError } from './provider.ts'
import type { Signer } from './signing.ts'
import { isSigner } from './signing.ts'

export interface Channel {
  readonly id: string
  readonly providerId: string
  readonly baseUrl: string
  readonly sign: Signer
  readonly key: Secret
}

export interface CatalogueParts {
  readonly files: readonly { readonly name: string; readonly text: string }[]
  readonly env: Readonly<Record<string, string | undefined>>
  /** Where built-in providers answer; undefined leaves them out. */
  readonly builtInUrl: string | undefined
}

export interface Catalogue {
  readonly providers: ReadonlyMap<string, Provider>
  channelsOf(providerId: string): readonly Channel[]
  /** Every price that is known, by the name that callers use for its model. */
  prices(): ReadonlyMap<string, Price>
}

export function buildCatalogue(parts: CatalogueParts): Catalogue {
  const providers = new Map<string, Provider>()
  const channels = new Map<string, readonly Channel[]>()
  for (const { name, text } of parts.files) {
    const provider = parseProvider(text, name)
    if (provider.builtIn && parts.builtInUrl === undefined) continue
    // A later folder may replace a provider that we ship.
    providers.set(provider.id, provider)
    channels.set(provider.id, channelsFromEnvironment(provider, name, parts))
  }
  return { providers, channelsOf: id => channels.get(id) ?? [], prices: () => pricesOf(providers) }
}

function pricesOf(providers: ReadonlyMap<string, Provider>): ReadonlyMap<string, Price> {
  const prices = new Map<string, Price>()
  for (const { id, free, models } of providers.values()) {
    for (const model of models.values()) {
      if (model.price !== undefined && !free) prices.set(`${id}/${model.id}`, model.price)
    }
  }
  return prices
}

function channelsFromEnvironment(provider: Provider, file: string, parts: CatalogueParts): readonly Channel[] {
  if (!isSigner(provider.sign)) throw new ProviderFileError(`${file}: "sign" is not a way we know: ${provider.sign}`)
  const keys = listOf(parts.env[provider.keyEnv])
  const moved = parts.env[provider.baseUrlEnv]?.trim().replace(/\/+$/, '')
  if (moved && !/^https?:\/\/[^\s?#@]+$/.test(moved)) {
    throw new ProviderFileError(`${provider.baseUrlEnv} must be an http(s) address without a query`)
  }
  if (keys.length === 0 && provider.keyless && (moved || provider.builtIn)) keys.push('')
  const baseUrl = moved || (provider.builtIn ? `${parts.builtInUrl}/v1` : provider.baseUrl)
  return keys.map((key, index) => ({
    id: `${provider.id}#${index + 1}`,
    providerId: provider.id,
    baseUrl,
    sign: key === '' ? 'none' : (provider.sign as Signer),
    key: new Secret(key),
  }))
}

/** Several keys may be given with commas between: each is a channel, tried in this order. */
function listOf(value: string | undefined): string[] {
  return (value ?? '')
    .split(',')
    .map(key => key.trim())
    .filter(key => key !== '')
}
