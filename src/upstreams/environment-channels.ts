// The channels whose keys are in the environment: under the vendor's own variable name, or, for a server that needs no
// key, an address.

import { Secret } from '../base/secrets/secret.ts'
import type { Trust, WrittenAddress } from '../http/address/operator-address.ts'
import { BadAddress, isPrivate, readAddress, roadTo } from '../http/address/operator-address.ts'
import type { PrivateHosts } from '../http/address/private-hosts.ts'
import { meantAddress } from './base-url.ts'
import type { Channel } from './channel.ts'
import { nameChannels } from './channels.ts'
import type { Provider } from './provider.ts'
import { ProviderFileError } from './provider.ts'
import type { SigningParts } from './signing.ts'
import { foundKey, openKey } from './signing.ts'

type Env = Readonly<Record<string, string | undefined>>

/** What every channel is made with, wherever its key comes from. */
export interface ChannelParts {
  readonly env: Env
  readonly builtInUrl: string | undefined
  readonly privateHosts: PrivateHosts
  readonly proxy: Secret | undefined
  readonly signing: Pick<SigningParts, 'send' | 'dateMs'>
  /** Of the channel of that id, as the rules have it now. */
  proxyOf(id: string): Secret | undefined
}

/** One that was laid down here, and how far the environment is its own. */
export interface Source {
  readonly provider: Provider
  /** For who must mend it. */
  readonly file: string
  /** Its keys and its address may stand in the environment; else nothing there is looked at. */
  readonly hasEnvironment: boolean
}

export function foundChannels({ provider, file, hasEnvironment }: Source, parts: ChannelParts): readonly Channel[] {
  if (!hasEnvironment) return []
  const { env, signing, privateHosts } = parts
  const found = addressOf({ provider, file, hasEnvironment }, parts)
  if (found === undefined) return []
  const { address, trust } = found
  const { connectMs, tlsMs } = provider.times
  const keys = keysOf(provider, env)
  if (keys.length === 0 && provider.keyless && trust === 'own') keys.push('')
  const proxy = isPrivate(address, privateHosts) ? undefined : parts.proxy
  const channels = [...nameChannels(provider.id, keys)].map(([key, id]) => {
    const road = orSay(found.writtenAt, () => roadTo(address, { trust, privateHosts }))
    const sign = key === '' ? unsigned(provider.sign) : provider.sign
    const bound = { ...signing, env, origin: road.origin, proxy: () => parts.proxyOf(id), readsFiles: true }
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

export interface FoundAddress {
  readonly address: WrittenAddress
  /** For who must mend it. */
  readonly writtenAt: string
  readonly trust: Trust
}

/** Where a provider's channels go that have no address of their own; undefined where that is not known. */
export function addressOf(source: Source, { env, builtInUrl }: Pick<ChannelParts, 'env' | 'builtInUrl'>) {
  const { provider, file, hasEnvironment } = source
  const writtenIn = `${file}: "baseUrl"`
  const read = (text: string, writtenAt: string, trust: Trust): FoundAddress => ({
    address: orSay(writtenAt, () => readAddress(text)),
    writtenAt,
    trust,
  })
  const meant = ({ address, ...found }: FoundAddress): FoundAddress => ({
    ...found,
    address: meantAddress(address, provider),
  })
  if (!hasEnvironment) return read(provider.baseUrl, writtenIn, 'listed')
  const moved = env[provider.baseUrlEnv]?.trim()
  if (moved) return meant(read(moved, provider.baseUrlEnv, 'own'))
  const text = provider.builtIn ? `${builtInUrl}/v1` : filledAddress(provider.baseUrl, env)
  return text === undefined ? undefined : read(text, writtenIn, provider.builtIn ? 'own' : 'file')
}

function orSay<T>(writtenAt: string, read: () => T): T {
  try {
    return read()
  } catch (fault) {
    throw fault instanceof BadAddress ? new ProviderFileError(`${writtenAt} ${fault.message}`) : fault
  }
}

/** For a channel without a key. */
export const unsigned = (sign: Provider['sign']): Provider['sign'] =>
  Object.fromEntries(Object.keys(sign).map(dialect => [dialect, 'none']))

/** With the operator's variables in it; undefined where one of them is missing. */
function filledAddress(baseUrl: string, env: Env): string | undefined {
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
function keysOf({ keyEnv, sign }: Provider, env: Env): string[] {
  const own = listOf(env[keyEnv])
  if (own.length > 0) return own
  const found = Object.values(sign)
    .map(way => foundKey(way, env))
    .find(key => key !== undefined)
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
