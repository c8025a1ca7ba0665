// All providers and their channels, built once from provider files and the environment.
//
// A channel exists where the operator gave a key under the vendor's own variable name (or, for a server that needs
// none, an address). The built-in provider answers at an address this process tells.

import { systemClock } from '../base/clock.ts'
import type { Price } from '../base/price.ts'
import { Secret } from '../base/secret.ts'
import { openClient } from '../http/outgoing.ts'
import type { PrivateHosts } from '../http/private-hosts.ts'
import { noPrivateHosts } from '../http/private-hosts.ts'
import type { Road } from '../http/road.ts'
import type { WrittenAddress } from '../http/written-address.ts'
import { BadAddress, isPrivate, readAddress, roadTo } from '../http/written-address.ts'
import type { Channels, Fleet } from './channels.ts'
import { nameChannels, openChannels } from './channels.ts'
import type { Provider } from './provider.ts'
import { parseProvider, ProviderFileError } from './provider.ts'
import type { OpenedKey, SigningParts } from './signing.ts'
import { foundKey, openKey } from './signing.ts'

export interface Channel extends OpenedKey {
  readonly id: string
  readonly providerId: string
  readonly baseUrl: string
  /** How that address is reached; the key goes nowhere else. */
  readonly road: Road
}

export interface CatalogueParts {
  readonly files: readonly { readonly name: string; readonly text: string }[]
  readonly env: Readonly<Record<string, string | undefined>>
  /** Where built-in providers answer; undefined leaves them out. */
  readonly builtInUrl: string | undefined
  /** Hosts that files of providers may lead to although they are private. */
  readonly privateHosts?: PrivateHosts
  /** The way out of channels that have no proxy of their own, but for those whose hosts are private. */
  readonly proxy?: Secret | undefined
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
  const { privateHosts = noPrivateHosts, proxy } = parts
  const signing = parts.signing ?? { send: openClient({ privateHosts }).send, dateMs: systemClock.dateMs }
  let channels: Channels | undefined
  const proxyOf = (id: string): Secret | undefined => channels?.channelNamed(id)?.road.proxy
  for (const { name, text } of parts.files) {
    const provider = parseProvider(text, name)
    if (provider.builtIn && parts.builtInUrl === undefined) continue
    // A later folder may replace a provider that we ship.
    providers.set(provider.id, provider)
    const listed = channelsFromEnvironment(provider, name, { ...parts, signing, privateHosts, proxy, proxyOf })
    fleets.set(provider.id, { providerId: provider.id, tags: provider.tags, listed })
  }
  channels = openChannels([...fleets.values()])
  return { ...channels, providers, prices: () => pricesOf(providers) }
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

interface ChannelParts extends Required<Omit<CatalogueParts, 'files'>> {
  /** Of the channel of that id, as the rules have it now. */
  proxyOf(id: string): Secret | undefined
}

function channelsFromEnvironment(provider: Provider, file: string, parts: ChannelParts): readonly Channel[] {
  const { env, signing, privateHosts } = parts
  const found = addressOf(provider, file, parts)
  if (found === undefined) return []
  const { address, isOwn } = found
  const { connectMs, tlsMs } = provider.times
  const keys = keysOf(provider, env)
  if (keys.length === 0 && provider.keyless && isOwn) keys.push('')
  const proxy = isPrivate(address, privateHosts) ? undefined : parts.proxy
  const channels = [...nameChannels(provider.id, keys)].map(([key, id]) => {
    const road = orSay(found.writtenAt, () => roadTo(address, { isOwn, privateHosts }))
    const sign = key === '' ? unsigned(provider.sign) : provider.sign
    const bound = { ...signing, env, origin: road.origin, proxy: () => parts.proxyOf(id) }
    const opened = openKey(new Secret(key), sign, bound)
    if (opened === undefined) {
      const names = `${provider.keyEnv}, or the variable that stands for it`
      throw new ProviderFileError(`${file}: ${names}, does not hold a key of the kind that is needed`)
    }
    const timed = { ...road, connectMs, tlsMs, ...(proxy !== undefined && { proxy }) }
    return [key, { id, providerId: provider.id, baseUrl: address.base, road: timed, ...opened }] as const
  })
  const byKey = new Map<string, Channel>(channels)
  return keys.map(key => byKey.get(key)!)
}

interface FoundAddress {
  readonly address: WrittenAddress
  /** For who must mend it. */
  readonly writtenAt: string
  /** The operator, or this process, says that it is there. */
  readonly isOwn: boolean
}

/** Undefined where it is not known. */
function addressOf(provider: Provider, file: string, { env, builtInUrl }: ChannelParts): FoundAddress | undefined {
  const moved = env[provider.baseUrlEnv]?.trim()
  const text = moved || (provider.builtIn ? `${builtInUrl}/v1` : filledAddress(provider.baseUrl, env))
  if (text === undefined) return undefined
  const writtenAt = moved ? provider.baseUrlEnv : `${file}: "baseUrl"`
  const isOwn = Boolean(moved) || provider.builtIn
  return { address: orSay(writtenAt, () => readAddress(text)), writtenAt, isOwn }
}

function orSay<T>(writtenAt: string, read: () => T): T {
  try {
    return read()
  } catch (fault) {
    throw fault instanceof BadAddress ? new ProviderFileError(`${writtenAt} ${fault.message}`) : fault
  }
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
