// The channels of all providers: what each is called, how one is found, and what an operator has said of it.
//
// A channel whose key is in the environment is named by its credential and not by its place in the list of keys: what
// is kept at it, and what an operator says of it, stays with the credential when the list is put into another order.
// One that is laid down by an operator has an id of its own, and keeps it when its credential is replaced.

import { createHash } from 'node:crypto'
import { textId } from '../base/ids.ts'
import type { Secret } from '../base/secrets/secret.ts'
import type { ChannelRow } from '../store/rules/rules.ts'
import type { Channel } from './channel.ts'

export interface Channels {
  /** Those of a provider that may be used, in the order of their keys. */
  channelsOf(providerId: string): readonly Channel[]
  /** All of all providers, those that are disabled, too. */
  all(): readonly Channel[]
  /**
   * By its name, or by the place of its key in the list, which was its name in earlier versions. Also one that is
   * disabled: what it keeps can still be asked for.
   */
  channelNamed(id: string): Channel | undefined
  /** The same; and where its credential is gone and its provider has one alone, that one: a key that was renewed. */
  heirOf(id: string): Channel | undefined
  /** What is said of it, with its provider's tags. */
  ruleOf(id: string): ChannelRow
  /** From the next look-up on. */
  setRules(rows: readonly ChannelRow[]): void
}

const FINGERPRINT_CHARS = 6
/** For a credential whose fingerprint is another's, too. */
const FINGERPRINT_CHARS_MAX = 9

/** From which nobody learns anything of the key. */
export function channelId(providerId: string, key: string, chars = FINGERPRINT_CHARS): string {
  if (key === '') return `${providerId}#open`
  const digest = createHash('sha256').update(`${providerId}\n${key}`).digest()
  return `${providerId}#${textId('', digest.readUIntBE(0, 6)).slice(-chars)}`
}

/** All that is shown of a credential. */
export const fingerprintOf = (providerId: string, credential: Secret): string =>
  channelId(providerId, credential.reveal()).split('#')[1]!

/** The names of the channels of a provider, of each of its keys. */
export function nameChannels(providerId: string, keys: readonly string[]): ReadonlyMap<string, string> {
  const names = new Map<string, string>()
  const taken = new Set<string>()
  for (const key of new Set(keys)) {
    const short = channelId(providerId, key)
    const name = taken.has(short) ? channelId(providerId, key, FINGERPRINT_CHARS_MAX) : short
    names.set(key, name)
    taken.add(name)
  }
  return names
}

/** The channels of one provider. */
export interface Fleet {
  readonly providerId: string
  readonly tags: readonly string[]
  /** As their keys are listed: a key that stands there twice is one channel. */
  readonly listed: readonly Channel[]
}

const plain: Omit<ChannelRow, 'channel' | 'tags'> = {
  disabled: false,
  weight: 1,
  priority: 0,
  requestsPerMinute: null,
  tokensPerMinute: null,
  concurrency: null,
  proxy: null,
  foreignIds: false,
}

/** The same, where there may be others at any time. */
export interface LiveChannels extends Channels {
  setFleets(fleets: readonly Fleet[]): void
}

export function openChannels(first: readonly Fleet[] = []): LiveChannels {
  const proxied = new WeakMap<Channel, Channel>()
  let fleets = first
  let rows: readonly ChannelRow[] = []
  let byProvider = new Map<string, Fleet>()
  let everyOne: readonly Channel[] = []
  let byId = new Map<string, Channel>()
  let rules = new Map<string, ChannelRow>()
  let usable = new Map<string, readonly Channel[]>()

  function ruleOf(id: string): ChannelRow {
    return rules.get(id) ?? { channel: id, ...plain, tags: byProvider.get(providerOf(id))?.tags ?? [] }
  }

  function renew(): void {
    byProvider = new Map(fleets.map(fleet => [fleet.providerId, fleet]))
    everyOne = fleets.flatMap(({ listed }) => [...new Set(listed)])
    const given = new Map(rows.map(row => [row.channel, row]))
    rules = new Map(
      everyOne.map(({ id, providerId }) => {
        const row = given.get(id) ?? { channel: id, ...plain, tags: [] }
        return [id, { ...row, tags: [...new Set([...byProvider.get(providerId)!.tags, ...row.tags])] }]
      }),
    )
    byId = new Map(everyOne.map(channel => [channel.id, byProxy(channel, rules.get(channel.id)!.proxy)]))
    usable = new Map(
      fleets.map(({ providerId, listed }) => {
        const ids = [...new Set(listed.map(({ id }) => id))]
        return [providerId, ids.filter(id => !ruleOf(id).disabled).map(id => byId.get(id)!)]
      }),
    )
  }

  /** Whoever has connections by its road must find it to be the same as before. */
  function byProxy(channel: Channel, proxy: Secret | null): Channel {
    if (proxy === null) return channel
    const known = proxied.get(channel)
    if (known?.road.proxy === proxy) return known
    const moved = { ...channel, road: { ...channel.road, proxy } }
    proxied.set(channel, moved)
    return moved
  }

  function channelNamed(id: string): Channel | undefined {
    const place = Number(/^[^#]+#([1-9]\d{0,3})$/.exec(id)?.[1])
    const name = byId.has(id) ? id : byProvider.get(providerOf(id))?.listed[place - 1]?.id
    return name === undefined || ruleOf(name).proxyLost ? undefined : byId.get(name)
  }

  renew()
  return {
    channelsOf: providerId => usable.get(providerId) ?? [],
    all: () => everyOne,
    channelNamed,
    heirOf(id) {
      const named = channelNamed(id)
      if (named !== undefined) return named
      const [only, ...others] = everyOne.filter(({ providerId }) => providerId === providerOf(id))
      return only !== undefined && others.length === 0 ? channelNamed(only.id) : undefined
    },
    ruleOf,
    setRules(given) {
      rows = given
      renew()
    },
    setFleets(given) {
      fleets = given
      renew()
    },
  }
}

/** No provider has a `#` in its id. */
const providerOf = (channel: string): string => channel.slice(0, Math.max(0, channel.indexOf('#')))
