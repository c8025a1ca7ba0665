// Sorts the targets of a model name into groups, in the order in which they are tried: by priority, and inside a priority
// targets that need no translation first. Plans are computed once for each list of targets.

import type { Option } from './option.ts'
import type { PooledSeat, Tier } from './weighted-pool.ts'
import { Pool, poolOf } from './weighted-pool.ts'

/** One target inside a group. */
export interface Entry {
  readonly option: Option
  readonly pool: Pool
  /** The channels of all targets of the name. Open breakers may block at most half of them. */
  readonly whole: Pool
  /** The tiers of channels that belong to this group. */
  readonly tiers: readonly Tier[]
  /** Its part of the calls of its group, from 0 to 1. */
  readonly share: number
}

/** Targets of the same rank. The policy decides among them. */
export interface Group {
  readonly entries: readonly Entry[]
  /** Running sums of the weights, for weighted draws. */
  readonly sums: Float64Array
  readonly priceMax: number
  readonly seats: number
  /** The same targets grouped by price, the cheapest first; empty when all have the same price. */
  readonly byPrice: readonly Group[]
}

export interface Plan {
  readonly groups: readonly Group[]
}

/** One channel of one target in the plan. */
export interface Candidate {
  readonly entry: Entry
  readonly pooled: PooledSeat
}

const plans = new WeakMap<readonly Option[], Plan>()

export function planOf(options: readonly Option[]): Plan {
  let plan = plans.get(options)
  if (plan === undefined) plans.set(options, (plan = buildPlan(options)))
  return plan
}

function buildPlan(options: readonly Option[]): Plan {
  const weighted = options.filter(({ weight }) => weight > 0)
  const sorted = weighted.toSorted(compareRank)
  const groups: Option[][] = []
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
  return { groups: [...usual, ...spare, ...unweighted].filter(({ entries }) => entries.length > 0) }
}

const compareRank = (a: Option, b: Option): number =>
  a.priority - b.priority || Number(a.translates) - Number(b.translates)

/** Every channel of these targets once, also when several targets use it. */
function poolAll(options: readonly Option[]): Pool {
  const [first] = options
  if (first === undefined || options.every(({ seats }) => seats === first.seats)) return poolOf(first?.seats ?? [])
  return new Pool([...new Map(options.flatMap(({ seats }) => seats.map(seat => [seat.id, seat]))).values()])
}

function buildGroup(options: readonly Option[], whole: Pool, tiersOf: (pool: Pool) => readonly Tier[]): Group {
  const members = options.flatMap(option => {
    const pool = poolOf(option.seats)
    const tiers = tiersOf(pool)
    return tiers.length === 0 ? [] : [{ option, pool, whole, tiers }]
  })
  const prices = [...new Set(members.map(({ option }) => option.price))].sort((a, b) => a - b)
  const group = addShares(members)
  if (prices.length < 2) return group
  const byPrice = prices.map(price => addShares(members.filter(({ option }) => option.price === price)))
  return { ...group, byPrice }
}

function addShares(members: readonly Omit<Entry, 'share'>[]): Group {
  let total = 0
  const weights = members.map(({ option }) => (option.weight > 0 ? option.weight : 1))
  const sums = Float64Array.from(weights, weight => (total += weight))
  const entries = members.map((member, index) => ({ ...member, share: weights[index]! / total }))
  let seats = 0
  for (const { tiers } of entries) for (const tier of tiers) seats += tier.seats.length
  const priceMax = Math.max(0, ...members.map(({ option }) => option.price))
  return { entries, sums, priceMax, seats, byPrice: [] }
}
