// Sorts the targets of a model name into groups, in the order in which they are tried: by priority, and inside a priority
// targets that need no translation first. Plans are computed once for each list of targets.

import type { TargetOption } from './target-option.ts'
import type { ChannelTier, PooledChannel } from './weighted-pool.ts'
import { ChannelPool, getPool } from './weighted-pool.ts'

/** One target inside a group. */
export interface PlannedTarget {
  readonly target: TargetOption
  readonly pool: ChannelPool
  /** The channels of all targets of the name. Open breakers may block at most half of them. */
  readonly allChannels: ChannelPool
  /** The tiers of channels that belong to this group. */
  readonly tiers: readonly ChannelTier[]
  /** Its part of the calls of its group, from 0 to 1. */
  readonly share: number
}

/** Targets of the same rank. The policy decides among them. */
export interface PlanGroup {
  readonly targets: readonly PlannedTarget[]
  /** Running sums of the weights, for weighted draws. */
  readonly sums: Float64Array
  readonly priceMax: number
  readonly channelCount: number
  /** The same targets grouped by price, the cheapest first; empty when all have the same price. */
  readonly byPrice: readonly PlanGroup[]
}

export interface RoutePlan {
  readonly groups: readonly PlanGroup[]
}

/** One channel of one target in the plan. */
export interface PlannedChannel {
  readonly plannedTarget: PlannedTarget
  readonly pooled: PooledChannel
}

const plans = new WeakMap<readonly TargetOption[], RoutePlan>()

export function getPlan(options: readonly TargetOption[]): RoutePlan {
  let plan = plans.get(options)
  if (plan === undefined) plans.set(options, (plan = buildPlan(options)))
  return plan
}

function buildPlan(options: readonly TargetOption[]): RoutePlan {
  const weighted = options.filter(({ weight }) => weight > 0)
  const sorted = weighted.toSorted(compareRank)
  const groups: TargetOption[][] = []
  for (const option of sorted) {
    const last = groups.at(-1)
    if (last === undefined || compareRank(last[0]!, option) !== 0) groups.push([option])
    else last.push(option)
  }
  const whole = poolAll(options)
  const usual = groups.map(members => buildGroup(members, whole, pool => pool.tiers))
  // Weight 0 comes last: first single channels without weight, then targets without weight.
  const spare = groups.map(members => buildGroup(members, whole, ({ spare }) => (spare === undefined ? [] : [spare])))
  const unweighted = options
    .filter(({ weight }) => !(weight > 0))
    .toSorted(compareRank)
    .map(option => buildGroup([option], whole, ({ tiers, spare }) => (spare === undefined ? tiers : [...tiers, spare])))
  return { groups: [...usual, ...spare, ...unweighted].filter(({ targets }) => targets.length > 0) }
}

const compareRank = (a: TargetOption, b: TargetOption): number =>
  a.priority - b.priority || Number(a.needsTranslation) - Number(b.needsTranslation)

/** Every channel of these targets once, also when several targets use it. */
function poolAll(options: readonly TargetOption[]): ChannelPool {
  const [first] = options
  if (first === undefined || options.every(({ channels }) => channels === first.channels))
    return getPool(first?.channels ?? [])
  return new ChannelPool([
    ...new Map(options.flatMap(({ channels }) => channels.map(channel => [channel.id, channel]))).values(),
  ])
}

function buildGroup(
  options: readonly TargetOption[],
  whole: ChannelPool,
  tiersOf: (pool: ChannelPool) => readonly ChannelTier[],
): PlanGroup {
  const members = options.flatMap(option => {
    const pool = getPool(option.channels)
    const tiers = tiersOf(pool)
    return tiers.length === 0 ? [] : [{ target: option, pool, allChannels: whole, tiers }]
  })
  const prices = [...new Set(members.map(({ target }) => target.price))].sort((a, b) => a - b)
  const group = addShares(members)
  if (prices.length < 2) return group
  const byPrice = prices.map(price => addShares(members.filter(({ target }) => target.price === price)))
  return { ...group, byPrice }
}

function addShares(members: readonly Omit<PlannedTarget, 'share'>[]): PlanGroup {
  let total = 0
  const weights = members.map(({ target }) => (target.weight > 0 ? target.weight : 1))
  const sums = Float64Array.from(weights, weight => (total += weight))
  const entries = members.map((member, index) => ({ ...member, share: weights[index]! / total }))
  let channelCount = 0
  for (const { tiers } of entries) for (const tier of tiers) channelCount += tier.channels.length
  const priceMax = Math.max(0, ...members.map(({ target }) => target.price))
  return { targets: entries, sums, priceMax, channelCount, byPrice: [] }
}
