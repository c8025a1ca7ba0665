// Builds the channels that are configured by environment variables: a key under the vendor's own variable name or, for a
// server that needs no key, an address.

import { Secret } from '../base/secrets/secret.ts'
import type { AddressTrust, OperatorAddress } from '../http/address/operator-address.ts'
import { buildNetworkPath, InvalidAddress, isPrivate, parseOperatorAddress } from '../http/address/operator-address.ts'
import type { PrivateHosts } from '../http/address/private-hosts.ts'
import { correctAddress } from './base-url.ts'
import type { Channel } from './channel.ts'
import { channelIds } from './channels.ts'
import type { Provider } from './provider.ts'
import { ProviderFileError } from './provider.ts'
import type { SigningParts } from './signing.ts'
import { findVendorKey, isSendable, openKey, sendsKey } from './signing.ts'

type Env = Readonly<Record<string, string | undefined>>

/** What every channel is built with, wherever its key comes from. */
export interface ChannelParts {
  readonly env: Env
  readonly builtInUrl: string | undefined
  readonly privateHosts: PrivateHosts
  readonly proxy: Secret | undefined
  readonly signing: Pick<SigningParts, 'send' | 'dateMs'>
  /** The current proxy of a channel, by its rules. */
  proxyOf(id: string): Secret | undefined
}

/** A provider definition, and whether it may use the environment. */
export interface ProviderSource {
  readonly provider: Provider
  /** Where the definition is written, for error messages. */
  readonly file: string
  /** Whether its keys and address may come from the environment. */
  readonly hasEnvironment: boolean
}

export function buildEnvironmentChannels(
  { provider, file, hasEnvironment }: ProviderSource,
  parts: ChannelParts,
): readonly Channel[] {
  if (!hasEnvironment) return []
  const { env, signing, privateHosts } = parts
  const located = addressOf({ provider, file, hasEnvironment }, parts)
  if (located === undefined) return []
  const { address, trust } = located
  const { connectMs, tlsMs } = provider.times
  const keys = keysOf(provider, env)
  if (keys.length === 0 && provider.keyless && trust === 'own') keys.push('')
  const proxy = isPrivate(address, privateHosts) ? undefined : parts.proxy
  const channels = [...channelIds(provider.id, keys)].map(([key, id]) => {
    const path = orFail(located.writtenAt, () => buildNetworkPath(address, { trust, privateHosts }))
    const sign = key === '' ? withoutSigning(provider.sign) : provider.sign
    const signingParts = { ...signing, env, origin: path.origin, proxy: () => parts.proxyOf(id), readsFiles: true }
    const opened = openKey(new Secret(key), sign, signingParts)
    if (opened === undefined) {
      throw new ProviderFileError(
        `${file}: the key in ${provider.keyEnv} (or in the vendor's own variable) does not have the format that "sign" needs`,
      )
    }
    const road = { ...path, connectMs, tlsMs, ...(proxy !== undefined && { proxy }) }
    return [key, { id, providerId: provider.id, baseUrl: address.base, networkPath: road, ...opened }] as const
  })
  const byKey = new Map<string, Channel>(channels)
  return keys.map(key => byKey.get(key)!)
}

export interface ProviderAddress {
  readonly address: OperatorAddress
  /** Where the address is written, for error messages. */
  readonly writtenAt: string
  readonly trust: AddressTrust
}

/** The address of a provider's channels that have none of their own; undefined when it is unknown. */
export function addressOf(source: ProviderSource, { env, builtInUrl }: Pick<ChannelParts, 'env' | 'builtInUrl'>) {
  const { provider, file, hasEnvironment } = source
  const inFile = `${file}: "baseUrl"`
  const read = (text: string, writtenAt: string, trust: AddressTrust): ProviderAddress => ({
    address: orFail(writtenAt, () => parseOperatorAddress(text)),
    writtenAt,
    trust,
  })
  if (!hasEnvironment) return read(provider.baseUrl, inFile, 'listed')
  const fromEnv = env[provider.baseUrlEnv]?.trim()
  if (fromEnv) {
    const entered = read(fromEnv, provider.baseUrlEnv, 'own')
    return { ...entered, address: correctAddress(entered.address, provider) }
  }
  const text = provider.builtIn ? `${builtInUrl}/v1` : fillVariables(provider.baseUrl, env)
  return text === undefined ? undefined : read(text, inFile, provider.builtIn ? 'own' : 'file')
}

/** Turns a BadAddress into a ProviderFileError that names where the address is written. */
function orFail<T>(writtenAt: string, read: () => T): T {
  try {
    return read()
  } catch (fault) {
    throw fault instanceof InvalidAddress ? new ProviderFileError(`${writtenAt} ${fault.message}`) : fault
  }
}

/** The signing methods of a channel without a key: none for each dialect. */
export const withoutSigning = (sign: Provider['sign']): Provider['sign'] =>
  Object.fromEntries(Object.keys(sign).map(dialect => [dialect, 'none']))

/** Replaces variables in braces by their values; undefined when one of them is not set. */
function fillVariables(baseUrl: string, env: Env): string | undefined {
  let isMissing = false
  const filled = baseUrl.replace(/\{(\w+)\}/g, (_, name: string) => {
    const value = env[name]?.trim() ?? ''
    if (value !== '' && !/^[A-Za-z0-9._-]+$/.test(value)) {
      throw new ProviderFileError(
        `${name} is used in an address and may contain only letters, digits, dots, dashes and underscores`,
      )
    }
    isMissing ||= value === ''
    return value
  })
  return isMissing ? undefined : filled
}

/** Keys in the provider's own variable, else in the variables that the vendor's tools read. */
function keysOf({ keyEnv, sign }: Provider, env: Env): string[] {
  const own = listOf(env[keyEnv])
  if (sendsKey(sign) && !own.every(key => isSendable(new Secret(key)))) {
    throw new ProviderFileError(
      `${keyEnv} must be a key of visible ASCII characters, without quotes around it, or several with commas between them`,
    )
  }
  if (own.length > 0) return own
  const found = Object.values(sign)
    .map(method => findVendorKey(method, env))
    .find(key => key !== undefined)
  return found === undefined ? [] : [found]
}

/** A comma separates several keys, each of which is a channel. JSON is one key. */
function listOf(value: string | undefined): string[] {
  const text = value?.trim() ?? ''
  if (text.startsWith('{')) return [text]
  return text
    .split(',')
    .map(key => key.trim())
    .filter(key => key !== '')
}
