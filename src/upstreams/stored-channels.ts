// Opens a channel that an operator has configured at run time. Such an operator may have fewer rights than the person who
// sets the environment. So the address may be in a private network only if the environment allows it, a credential is
// never a file name, and it is used only for the origin that it was entered for.

import { bounds } from '../base/bounds.ts'
import { HintedError, hintOf } from '../base/hints.ts'
import { Secret } from '../base/secrets/secret.ts'
import { buildNetworkPath, InvalidAddress, isPrivate, parseOperatorAddress } from '../http/address/operator-address.ts'
import type { StoredChannel } from '../store/rules/rules.ts'
import { correctAddress } from './base-url.ts'
import type { Channel } from './channel.ts'
import type { ChannelParts, ProviderAddress, ProviderSource } from './environment-channels.ts'
import { addressOf, withoutSigning } from './environment-channels.ts'
import { compileOverrides } from './overrides.ts'
import { ProviderFileError } from './provider.ts'
import { isSendable, openKey } from './signing.ts'
import type { ChannelTimeouts } from './timeouts.ts'
import { parseChannelTimeouts } from './timeouts.ts'

/** Says in a sentence why a channel cannot be used. */
export class UnusableChannel extends HintedError {}

/** Throws an UnusableChannel. */
export function openStoredChannel(
  stored: StoredChannel,
  source: ProviderSource | undefined,
  parts: ChannelParts,
): Channel {
  if (source === undefined) throw new UnusableChannel(hintOf('channel_no_provider'))
  const { provider } = source
  const { id } = stored
  const { address, trust } = channelAddress(stored.baseUrl, source, parts)
  if (stored.credentialLost) throw new UnusableChannel(hintOf('channel_credential_lost'), 'credential')
  if (stored.credential === null && !provider.keyless)
    throw new UnusableChannel(hintOf('channel_no_credential'), 'credential')
  if (stored.credential !== null && stored.origin !== address.origin) {
    throw new UnusableChannel(hintOf('channel_other_origin', { before: stored.origin ?? 'null', now: address.origin }))
  }
  const road = orFail(() => buildNetworkPath(address, { trust, privateHosts: parts.privateHosts }))
  const { env, signing, privateHosts } = parts
  const proxy = isPrivate(address, privateHosts) ? undefined : parts.proxy
  const signingParts = { ...signing, env, origin: road.origin, proxy: () => parts.proxyOf(id), readsFiles: false }
  const sign = stored.credential === null ? withoutSigning(provider.sign) : provider.sign
  if (stored.credential !== null && !isSendable(stored.credential)) {
    throw new UnusableChannel(hintOf('channel_credential_text', { max: bounds.credentialCharsMax }), 'credential')
  }
  const opened = openKey(stored.credential ?? new Secret(''), sign, signingParts)
  if (opened === undefined) throw new UnusableChannel(hintOf('channel_credential_form'), 'credential')
  const times = parseTimes(stored)
  const { connectMs, tlsMs } = { ...provider.times, ...times }
  const overrides = compileOverrides(stored.headers, stored.parameters)
  return {
    id,
    providerId: provider.id,
    baseUrl: address.base,
    networkPath: { ...road, connectMs, tlsMs, ...(proxy !== undefined && { proxy }) },
    ...opened,
    ...(overrides !== undefined && { overrides }),
    ...(Object.keys(times).length > 0 && { timeouts: times }),
  }
}

/** The channel's own address, or its provider's. Throws an UnusableChannel if there is none or it is not allowed. */
export function channelAddress(
  baseUrl: string | null,
  source: ProviderSource,
  parts: Pick<ChannelParts, 'env' | 'builtInUrl' | 'privateHosts'>,
): ProviderAddress {
  return orFail(() => {
    const located = baseUrl === null ? addressOf(source, parts) : ownAddress(baseUrl, source)
    if (located === undefined)
      throw new UnusableChannel(hintOf('channel_address_unknown', { provider: source.provider.name }), 'baseUrl')
    buildNetworkPath(located.address, { trust: located.trust, privateHosts: parts.privateHosts })
    return located
  })
}

const ownAddress = (baseUrl: string, { provider }: ProviderSource): ProviderAddress => ({
  address: correctAddress(parseOperatorAddress(baseUrl), provider),
  writtenAt: 'its address',
  trust: 'listed',
})

function parseTimes({ times }: StoredChannel): ChannelTimeouts {
  return parseChannelTimeouts(times, problem => {
    throw new UnusableChannel(hintOf('channel_stored_times', { problem }))
  })
}

/** Turns address and provider file errors into an UnusableChannel. */
function orFail<T>(read: () => T): T {
  try {
    return read()
  } catch (fault) {
    if (fault instanceof InvalidAddress)
      throw new UnusableChannel(hintOf('channel_base_url', { problem: fault.hint }), 'baseUrl')
    if (!(fault instanceof ProviderFileError)) throw fault
    throw new UnusableChannel(hintOf('definition_invalid', { problem: fault.message }))
  }
}
