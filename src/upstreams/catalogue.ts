// All providers and their channels, built once from provider files and the environment.
//
// A channel exists where the operator gave a key under the vendor's own variable name (or, for a server that needs
// none, an address). The built-in provider answers at an address this process tells.

import { systemClock } from '../base/clock.ts'
import type { Price } from '../base/price.ts'
import { Secret } from '../base/secret.ts'
import { openClient } from '../http/outgoing.ts'
import type { Road } from '../http/road.ts'
import type { Channels, Fleet } from './channels.ts'
import { nameChannels, openChannels } from './channels.ts'
import type { Provider } from './provider.ts'
import { parseProvider, ProviderFileError } from './provider.ts'
import type { Sign, SigningParts } from './signing.ts'
import { foundKey, openKey } from './signing.ts'

export interface Channel {
  readonly id: string
  readonly providerId: string
  readonly baseUrl: string
  /** How that address is reached; the key goes nowhere else. */
  readonly road: Road
  /** How each dialect is signed. */
  readonly signs: Readonly<Record<string, Sign>>
  readonly key: Secret
}

export interface CatalogueParts {
  readonly files: readonly { readonly name: string; readonly text: string }[]
  readonly env: Readonly<Record<string, string | undefined>>
  /** Where built-in providers answer; undefined leaves them out. */
  readonly builtInUrl: string | undefined
  /** What it takes to sign where a key alone is not enough; by default the clock and the network of this machine. */
  readonly signing?: Pick<SigningParts, 'send' | 'dateMs'>
}

export interface Catalogue extends Channels {
  readonly providers: ReadonlyMap<string, Provider>
  /** Every price that is known, by the name that callers use for its model. */
  prices(): ReadonlyMap<string, Price>
}

export function buildCatalogue(parts: CatalogueParts): Catalogue {
  const providers = new Map<string, Provider>()
  const fleets = new Map<string, Fleet>()
  const signing = parts.signing ?? { send: openClient().send, dateMs: systemClock.dateMs }
  for (const { name, text } of parts.files) {
    const provider = parseProvider(text, name)
    if (provider.builtIn && parts.builtInUrl === undefined) continue
    // A later folder may replace a provider that we ship.
    providers.set(provider.id, provider)
    const listed = channelsFromEnvironment(provider, name, { ...parts, signing })
    fleets.set(provider.id, { providerId: provider.id, tags: provider.tags, listed })
  }
  return { ...openChannels([...fleets.values()]), providers, prices: () => pricesOf(providers) }
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

type ChannelParts = Required<Omit<CatalogueParts, 'files'>>

function channelsFromEnvironment(provider: Provider, file: string, parts: ChannelParts): readonly Channel[] {
  const { env, signing } = parts
  const moved = env[provider.baseUrlEnv]?.trim().replace(/\/+$/, '')
  if (moved && !/^https?:\/\/[^\s?#@]+$/.test(moved)) {
    throw new ProviderFileError(`${provider.baseUrlEnv} must be an http(s) address without a query`)
  }
  const baseUrl = moved || (provider.builtIn ? `${parts.builtInUrl}/v1` : filledAddress(provider.baseUrl, env))
  if (baseUrl === undefined) return []
  const keys = keysOf(provider, env)
  if (keys.length === 0 && provider.keyless && (moved || provider.builtIn)) keys.push('')
  const channels = [...nameChannels(provider.id, keys)].map(([key, id]) => {
    const sign = key === '' ? unsigned(provider.sign) : provider.sign
    const opened = openKey(new Secret(key), sign, { env, ...signing })
    if (opened === undefined) {
      const names = `${provider.keyEnv}, or the variable that stands for it`
      throw new ProviderFileError(`${file}: ${names}, does not hold a key of the kind that is needed`)
    }
    const road = { origin: new URL(baseUrl).origin, permitted: true }
    return [key, { id, providerId: provider.id, baseUrl, road, ...opened }] as const
  })
  const byKey = new Map<string, Channel>(channels)
  return keys.map(key => byKey.get(key)!)
}

const unsigned = (sign: Provider['sign']): Provider['sign'] =>
  Object.fromEntries(Object.keys(sign).map(dialect => [dialect, 'none']))

/** With the operator's variables in it; undefined where one of them is missing. */
function filledAddress(baseUrl: string, env: CatalogueParts['env']): string | undefined {
  let missing = false
  const filled = baseUrl.replace(/\{(\w+)\}/g, (_, name: string) => {
    const value = env[name]?.trim() ?? ''
    if (value !== '' && !/^[A-Za-z0-9._-]+$/.test(value)) {
      throw new ProviderFileError(`${name} must be a name that can stand in an address`)
    }
    missing ||= value === ''
    return value
  })
  return missing ? undefined : filled
}

/** Under the provider's own variable, else under the names that the vendor's tools read. */
function keysOf({ keyEnv, sign }: Provider, env: CatalogueParts['env']): string[] {
  const own = listOf(env[keyEnv])
  if (own.length > 0) return own
  const found = Object.values(sign).map(way => foundKey(way, env)).find(key => key !== undefined)
  return found === undefined ? [] : [found]
}

/** Several keys may be given with commas between: each is a channel. JSON is one key. */
function listOf(value: string | undefined): string[] {
  const text = value?.trim() ?? ''
  if (text.startsWith('{')) return [text]
  return text
    .split(',')
    .map(key => key.trim())
    .filter(key => key !== '')
}
