// A channel that an operator laid down while calls go on. Whoever does that need not be who sets the environment: its
// address may lead into a private network only where the environment says so, its credential is no name of a file, and
// is used for nothing but the place that it was given for.

import { bounds } from '../base/bounds.ts'
import { Secret } from '../base/secrets/secret.ts'
import { BadAddress, isPrivate, readAddress, roadTo } from '../http/address/operator-address.ts'
import type { StoredChannel } from '../store/rules/rules.ts'
import { meantAddress } from './base-url.ts'
import type { Channel } from './channel.ts'
import type { ChannelParts, FoundAddress, Source } from './environment-channels.ts'
import { addressOf, unsigned } from './environment-channels.ts'
import { compileOverrides } from './overrides.ts'
import { ProviderFileError } from './provider.ts'
import { isSendable, openKey } from './signing.ts'
import type { ChannelTimes } from './timeouts.ts'
import { parseChannelTimes } from './timeouts.ts'

/** Why a channel cannot be used, in a sentence. */
export class Unusable extends Error {}

/** Throws an Unusable where it cannot be. */
export function openStored(stored: StoredChannel, source: Source | undefined, parts: ChannelParts): Channel {
  if (source === undefined) throw new Unusable('There is no such provider.')
  const { provider } = source
  const { id } = stored
  const { address, trust } = placeOf(stored.baseUrl, source, parts)
  if (stored.credentialLost) throw new Unusable('Its credential cannot be read any more. Give it again.')
  if (stored.credential === null && !provider.keyless) throw new Unusable('It has no credential. Give it one.')
  if (stored.credential !== null && stored.origin !== address.origin) {
    throw new Unusable(`Its credential was given for ${stored.origin}, and not for ${address.origin}. Give it again.`)
  }
  const road = orSay(() => roadTo(address, { trust, privateHosts: parts.privateHosts }))
  const { env, signing, privateHosts } = parts
  const proxy = isPrivate(address, privateHosts) ? undefined : parts.proxy
  const bound = { ...signing, env, origin: road.origin, proxy: () => parts.proxyOf(id), readsFiles: false }
  const sign = stored.credential === null ? unsigned(provider.sign) : provider.sign
  if (stored.credential !== null && !isSendable(stored.credential)) {
    throw new Unusable(`A credential is visible characters, or JSON: ${bounds.credentialCharsMax} of them at most.`)
  }
  const opened = openKey(stored.credential ?? new Secret(''), sign, bound)
  if (opened === undefined) throw new Unusable('Its credential is not of the kind that its provider needs.')
  const times = timesOf(stored)
  const { connectMs, tlsMs } = { ...provider.times, ...times }
  const overrides = compileOverrides(stored.headers, stored.parameters)
  return {
    ...{ id, providerId: provider.id, baseUrl: address.base },
    road: { ...road, connectMs, tlsMs, ...(proxy !== undefined && { proxy }) },
    ...opened,
    ...(overrides !== undefined && { overrides }),
    ...(Object.keys(times).length > 0 && { times }),
  }
}

/** Its own address, or its provider's. Throws an Unusable where there is none that may be used. */
export function placeOf(
  baseUrl: string | null,
  source: Source,
  parts: Pick<ChannelParts, 'env' | 'builtInUrl' | 'privateHosts'>,
): FoundAddress {
  return orSay(() => {
    const found = baseUrl === null ? addressOf(source, parts) : ownAddress(baseUrl, source)
    if (found === undefined) throw new Unusable(`Nobody knows where ${source.provider.name} is. Give an address.`)
    roadTo(found.address, { trust: found.trust, privateHosts: parts.privateHosts })
    return found
  })
}

const ownAddress = (baseUrl: string, { provider }: Source): FoundAddress => ({
  address: meantAddress(readAddress(baseUrl), provider),
  writtenAt: 'its address',
  trust: 'listed',
})

function timesOf({ times }: StoredChannel): ChannelTimes {
  return parseChannelTimes(times, problem => {
    throw new Unusable(`Its times cannot be used: ${problem}.`)
  })
}

function orSay<T>(read: () => T): T {
  try {
    return read()
  } catch (fault) {
    if (fault instanceof BadAddress) throw new Unusable(`Its address ${fault.message}.`)
    throw fault instanceof ProviderFileError ? new Unusable(fault.message) : fault
  }
}
