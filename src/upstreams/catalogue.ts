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
  /** Hosts that files of providers may lead to although they are private. */
  readonly privateHosts?: PrivateHosts
  /** The way out of channels that have no proxy of their own, but for those whose hosts are private. */
  readonly proxy?: Secret | undefined
  /** What it takes to sign where a key alone is not enough; by default the clock and the network of this machine. */
  readonly signing?: Pick<SigningParts, 'send' | 'dateMs'>
}

export interface ProxyRow {
  /** The channel's id. */
  readonly channel: string
  readonly proxy: string | null
}

export interface Catalogue {
  readonly providers: ReadonlyMap<string, Provider>
  channelsOf(providerId: string): readonly Channel[]
  /** From now on the proxies of channels that have their own are these. */
  setProxies(rows: readonly ProxyRow[]): void
  /** Every price that is known, by the name that callers use for its model. */
  prices(): ReadonlyMap<string, Price>
}

export function buildCatalogue(parts: CatalogueParts): Catalogue {
  const providers = new Map<string, Provider>()
  const channels = new Map<string, readonly Channel[]>()
  const exits = new Map<string, Exit>()
  const { privateHosts = noPrivateHosts, proxy } = parts
  const signing = parts.signing ?? { send: openClient({ privateHosts }).send, dateMs: systemClock.dateMs }
  for (const { name, text } of parts.files) {
    const provider = parseProvider(text, name)
    if (provider.builtIn && parts.builtInUrl === undefined) continue
    // A later folder may replace a provider that we ship.
    providers.set(provider.id, provider)
    channels.set(
      provider.id,
      channelsFromEnvironment(provider, name, { ...parts, signing, privateHosts, proxy, exits }),
    )
  }
  return {
    providers,
    channelsOf: id => channels.get(id) ?? [],
    setProxies(rows) {
      const own = new Map(rows.map(row => [row.channel, row.proxy ?? undefined]))
      for (const [id, list] of channels) {
        channels.set(id, list.map(channel => leavingBy(channel, exits.get(channel.id)!, own.get(channel.id))))
      }
    },
    prices: () => pricesOf(providers),
  }
}

/** By which proxy a channel is left, with what must be fetched to sign for it. */
interface Exit {
  /** Where the channel has none of its own. */
  readonly usual: Secret | undefined
  own: string | undefined
  proxy: Secret | undefined
}

/** The same channel where nothing changes, so that what is known of its road stays known. */
function leavingBy(channel: Channel, exit: Exit, own: string | undefined): Channel {
  if (own === exit.own) return channel
  const proxy = own === undefined ? exit.usual : new Secret(own)
  exit.own = own
  exit.proxy = proxy
  const { proxy: _before, ...road } = channel.road
  return { ...channel, road: { ...road, ...(proxy !== undefined && { proxy }) } }
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
  readonly exits: Map<string, Exit>
}

function channelsFromEnvironment(provider: Provider, file: string, parts: ChannelParts): readonly Channel[] {
  const { env, signing, privateHosts, exits } = parts
  const found = addressOf(provider, file, parts)
  if (found === undefined) return []
  const { address, isOwn } = found
  const keys = keysOf(provider, env)
  if (keys.length === 0 && provider.keyless && isOwn) keys.push('')
  return keys.map((key, index) => {
    const id = `${provider.id}#${index + 1}`
    const road = orSay(found.writtenAt, () => roadTo(address, { isOwn, privateHosts }))
    const usual = isPrivate(address, privateHosts) ? undefined : parts.proxy
    const exit: Exit = { usual, own: undefined, proxy: usual }
    exits.set(id, exit)
    const sign = key === '' ? unsigned(provider.sign) : provider.sign
    const { origin } = address
    const opened = openKey(new Secret(key), sign, { ...signing, env, origin, proxy: () => exit.proxy })
    if (opened === undefined) {
      const names = `${provider.keyEnv}, or the variable that stands for it`
      throw new ProviderFileError(`${file}: ${names}, does not hold a key of the kind that is needed`)
    }
    return {
      ...{ id, providerId: provider.id, baseUrl: address.base },
      road: { ...road, ...(usual !== undefined && { proxy: usual }) },
      ...opened,
    }
  })
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

/** Several keys may be given with commas between: each is a channel, tried in this order. JSON is one key. */
function listOf(value: string | undefined): string[] {
  const text = value?.trim() ?? ''
  if (text.startsWith('{')) return [text]
  return text
    .split(',')
    .map(key => key.trim())
    .filter(key => key !== '')
}
