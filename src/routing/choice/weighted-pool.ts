// Prepares the channels of one target for weighted draws: grouped into tiers by priority, each with running sums of
// weights, so that a draw among a thousand channels costs ten comparisons. Pools are built once for each channel list.

import type { ChannelOption } from './target-option.ts'

export interface PooledChannel {
  readonly channel: ChannelOption
  /** Its part of the calls of its tier, from 0 to 1. */
  readonly share: number
}

/** Up to this many channels are checked for each call. For more, the result of a check is cached for a moment. */
const UNCACHED_MAX = 16
const CACHE_MS = 100
const CACHED_MODELS_MAX = 64

/** Channels of the same priority. */
export class ChannelTier {
  readonly channels: readonly PooledChannel[]
  /** Running sums of the shares; the last one is their total. */
  readonly sums: Float64Array
  /** By model, because a channel can be blocked for one model only. */
  readonly #available = new Map<string, AvailableChannels>()

  constructor(channels: readonly PooledChannel[]) {
    let total = 0
    this.channels = channels
    this.sums = Float64Array.from(channels, ({ share }) => (total += share))
  }

  /** The channels that were available a moment ago. Undefined for small tiers, where nothing is cached. */
  availableAt(nowMs: number, model = ''): ChannelTier | undefined {
    if (this.channels.length <= UNCACHED_MAX) return undefined
    const cached = this.#available.get(model)
    if (cached !== undefined && nowMs >= cached.atMs && nowMs - cached.atMs < CACHE_MS) return cached.tier
    const subject = { accountId: 0, model }
    const tier = new ChannelTier(
      this.channels.filter(({ channel }) => channel.health.stateFor(0, nowMs, subject) === 'available'),
    )
    if (cached === undefined && this.#available.size >= CACHED_MODELS_MAX) this.#available.clear()
    this.#available.set(model, { tier, atMs: nowMs })
    return tier
  }
}

interface AvailableChannels {
  readonly tier: ChannelTier
  readonly atMs: number
}

/** Open breakers block at most this part of a model's channels. */
const BLOCKED_PERCENT_MAX = 50

/** All channels of one target. */
export class ChannelPool {
  /** The lowest priority number first. */
  readonly tiers: readonly ChannelTier[]
  /** Channels without weight, which are used only when no other can take the call. */
  readonly spare: ChannelTier | undefined
  readonly #channels: readonly ChannelOption[]
  readonly #byId: ReadonlyMap<string, ChannelOption>
  #exemptUntilMs = -Infinity
  #exemptAtMs = -Infinity

  constructor(channels: readonly ChannelOption[]) {
    this.#channels = channels
    this.#byId = new Map(channels.map(channel => [channel.id, channel]))
    const weighted = channels.filter(({ weight }) => weight > 0)
    const priorities = [...new Set(weighted.map(({ priority }) => priority))].sort((a, b) => a - b)
    this.tiers = priorities.map(wanted => buildTier(weighted.filter(({ priority }) => priority === wanted)))
    const spare = channels.filter(({ weight }) => !(weight > 0))
    this.spare = spare.length > 0 ? buildTier(spare) : undefined
  }

  get size(): number {
    return this.#channels.length
  }

  channel(id: string): ChannelOption | undefined {
    return this.#byId.get(id)
  }

  /**
   * Channels whose breaker ends before this time may be used although it is open. They are as many as needed to keep
   * the blocked channels at half of all.
   */
  exemptUntilMs(nowMs: number): number {
    const ageMs = nowMs - this.#exemptAtMs
    if (this.#channels.length > UNCACHED_MAX && ageMs >= 0 && ageMs < CACHE_MS) return this.#exemptUntilMs
    const ends: number[] = []
    for (const { health } of this.#channels) {
      const remainingMs = health.breakerOpenMs(nowMs)
      if (remainingMs !== undefined) ends.push(nowMs + remainingMs)
    }
    const excess = ends.length - Math.floor((this.#channels.length * BLOCKED_PERCENT_MAX) / 100)
    this.#exemptUntilMs = excess <= 0 ? -Infinity : ends.sort((a, b) => a - b)[excess - 1]!
    this.#exemptAtMs = nowMs
    return this.#exemptUntilMs
  }
}

function buildTier(channels: readonly ChannelOption[]): ChannelTier {
  const weightOf = ({ weight }: ChannelOption): number => (weight > 0 ? weight : 1)
  const total = channels.reduce((sum, channel) => sum + weightOf(channel), 0)
  return new ChannelTier(channels.map(channel => ({ channel, share: weightOf(channel) / total })))
}

const pools = new WeakMap<readonly ChannelOption[], ChannelPool>()

export function getPool(channels: readonly ChannelOption[]): ChannelPool {
  let pool = pools.get(channels)
  if (pool === undefined) pools.set(channels, (pool = new ChannelPool(channels)))
  return pool
}

/** The index that `chance` (0 to 1) falls on when each index has its weight: a binary search in the running sums. */
export function drawIndex(sums: Float64Array, chance: number): number {
  const wanted = chance * sums[sums.length - 1]!
  let low = 0
  for (let high = sums.length - 1; low < high; ) {
    const middle = (low + high) >> 1
    if (sums[middle]! > wanted) high = middle
    else low = middle + 1
  }
  return low
}
