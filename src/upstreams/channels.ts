// The channels of all providers: their ids, lookups, and the rules that operators have configured for them.
//
// The id of a channel from the environment is derived from its credential, not from its position in the list of keys. So
// its rules, and what is stored at its upstream, stay with the credential when the order of the list changes. A channel
// that an operator configures has its own id, and keeps it when its credential is replaced.

import { createHash } from 'node:crypto'
import { textId } from '../base/ids.ts'
import type { Secret } from '../base/secrets/secret.ts'
import type { ChannelRow } from '../store/rules/rules.ts'
import type { Channel } from './channel.ts'

export interface Channels {
  /** The enabled channels of a provider, in the order of their keys. */
  channelsOf(providerId: string): readonly Channel[]
  /** All channels of all providers, including disabled ones. */
  all(): readonly Channel[]
  /**
   * Finds a channel by its id, or by the position of its key in the list, which was its id in earlier versions. Also
   * finds disabled channels, because what is stored at their upstream can still be fetched.
   */
  findChannel(id: string): Channel | undefined
  /** The same; if the channel is gone and its provider has only one channel, returns that one: its key was renewed. */
  findOrSuccessor(id: string): Channel | undefined
  /** The rules of a channel, with the tags of its provider. */
  rulesOf(id: string): ChannelRow
  /** Replaces the rules, from the next lookup on. */
  setRules(rows: readonly ChannelRow[]): void
}

const FINGERPRINT_CHARS = 6
/** For a credential whose short fingerprint is already used by another. */
const FINGERPRINT_CHARS_MAX = 9

/** The id does not reveal anything about the key. */
export function channelId(providerId: string, key: string, chars = FINGERPRINT_CHARS): string {
  if (key === '') return `${providerId}#open`
  const digest = createHash('sha256').update(`${providerId}\n${key}`).digest()
  return `${providerId}#${textId('', digest.readUIntBE(0, 6)).slice(-chars)}`
}

/** The only thing that is shown of a credential. */
export const fingerprintOf = (providerId: string, credential: Secret): string =>
  channelId(providerId, credential.reveal()).split('#')[1]!

/** The channel id for each key of a provider. */
export function channelIds(providerId: string, keys: readonly string[]): ReadonlyMap<string, string> {
  const ids = new Map<string, string>()
  const taken = new Set<string>()
  for (const key of new Set(keys)) {
    const short = channelId(providerId, key)
    const id = taken.has(short) ? channelId(providerId, key, FINGERPRINT_CHARS_MAX) : short
    ids.set(key, id)
    taken.add(id)
  }
  return ids
}

/** The channels of one provider. */
export interface ProviderChannels {
  readonly providerId: string
  readonly tags: readonly string[]
  /** In the order of their keys. A key that is listed twice is one channel. */
  readonly listed: readonly Channel[]
}

const defaultRules: Omit<ChannelRow, 'channel' | 'tags'> = {
  disabled: false,
  weight: 1,
  priority: 0,
  requestsPerMinute: null,
  tokensPerMinute: null,
  concurrency: null,
  proxy: null,
  foreignIds: false,
}

/** Channels that can be replaced at any time. */
export interface LiveChannels extends Channels {
  setProviders(fleets: readonly ProviderChannels[]): void
}

export function openChannels(first: readonly ProviderChannels[] = []): LiveChannels {
  const withProxies = new WeakMap<Channel, Channel>()
  let fleets = first
  let rows: readonly ChannelRow[] = []
  let byProvider = new Map<string, ProviderChannels>()
  let allChannels: readonly Channel[] = []
  let byId = new Map<string, Channel>()
  let rules = new Map<string, ChannelRow>()
  let usable = new Map<string, readonly Channel[]>()

  function ruleOf(id: string): ChannelRow {
    return rules.get(id) ?? { channel: id, ...defaultRules, tags: byProvider.get(providerOf(id))?.tags ?? [] }
  }

  function rebuild(): void {
    byProvider = new Map(fleets.map(fleet => [fleet.providerId, fleet]))
    allChannels = fleets.flatMap(({ listed }) => [...new Set(listed)])
    const configured = new Map(rows.map(row => [row.channel, row]))
    rules = new Map(
      allChannels.map(({ id, providerId }) => {
        const row = configured.get(id) ?? { channel: id, ...defaultRules, tags: [] }
        return [id, { ...row, tags: [...new Set([...byProvider.get(providerId)!.tags, ...row.tags])] }]
      }),
    )
    byId = new Map(allChannels.map(channel => [channel.id, withProxy(channel, rules.get(channel.id)!.proxy)]))
    usable = new Map(
      fleets.map(({ providerId, listed }) => {
        const ids = [...new Set(listed.map(({ id }) => id))]
        return [providerId, ids.filter(id => !ruleOf(id).disabled).map(id => byId.get(id)!)]
      }),
    )
  }

  /** Returns the same object for the same proxy, because connections are pooled by the network path object. */
  function withProxy(channel: Channel, proxy: Secret | null): Channel {
    if (proxy === null) return channel
    const known = withProxies.get(channel)
    if (known?.networkPath.proxy === proxy) return known
    const proxied = { ...channel, networkPath: { ...channel.networkPath, proxy } }
    withProxies.set(channel, proxied)
    return proxied
  }

  function channelNamed(id: string): Channel | undefined {
    const position = Number(/^[^#]+#([1-9]\d{0,3})$/.exec(id)?.[1])
    const currentId = byId.has(id) ? id : byProvider.get(providerOf(id))?.listed[position - 1]?.id
    return currentId === undefined || ruleOf(currentId).proxyLost ? undefined : byId.get(currentId)
  }

  rebuild()
  return {
    channelsOf: providerId => usable.get(providerId) ?? [],
    all: () => allChannels,
    findChannel: channelNamed,
    findOrSuccessor(id) {
      const channel = channelNamed(id)
      if (channel !== undefined) return channel
      const [only, ...others] = allChannels.filter(({ providerId }) => providerId === providerOf(id))
      return only !== undefined && others.length === 0 ? channelNamed(only.id) : undefined
    },
    rulesOf: ruleOf,
    setRules(newRows) {
      rows = newRows
      rebuild()
    },
    setProviders(newFleets) {
      fleets = newFleets
      rebuild()
    },
  }
}

/** The provider id in a channel id. A provider id has no `#`. */
const providerOf = (channel: string): string => channel.slice(0, Math.max(0, channel.indexOf('#')))
