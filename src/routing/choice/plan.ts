// The options of a name in the order in which they come into question, made once for each list of options: by
// priority, inside a priority first those that need no translation, then by their weights.

import type { Option } from './option.ts'
import type { PooledSeat, Tier } from './weighted-pool.ts'
import { Pool, poolOf } from './weighted-pool.ts'

export interface Entry {
  readonly option: Option
  readonly pool: Pool
  /** Of all options of the name: breakers may hold half of those closed. */
  readonly whole: Pool
  /** The tiers that come into question in its group. */
  readonly tiers: readonly Tier[]
  /** Of what its group gets. */
  readonly share: number
}

/** Options among which a policy decides. */
export interface Group {
  readonly entries: readonly Entry[]
  /** Of the weights up to each. */
  readonly sums: Float64Array
  readonly priceMax: number
  readonly seats: number
  /** The same, the cheapest first; empty where all cost the same. */
  readonly byPrice: readonly Group[]
}

export interface Plan {
  readonly groups: readonly Group[]
}

/** One channel of one option, with what it should get of the calls of its group. */
export interface Candidate {
  readonly entry: Entry
  readonly pooled: PooledSeat
}

const plans = new WeakMap<readonly Option[], Plan>()

export function planOf(options: readonly Option[]): Plan {
  let plan = plans.get(options)
  if (plan === undefined) plans.set(options, (plan = makePlan(options)))
  return plan
}

function makePlan(options: readonly Option[]): Plan {
  const weighted = options.filter(({ weight }) => weight > 0)
  const ranks = weighted.toSorted(byRank)
  const groups: Option[][] = []
  for (const option of ranks) {
    const last = groups.at(-1)
    if (last === undefined || byRank(last[0]!, option) !== 0) groups.push([option])
    else last.push(option)
  }
  const whole = wholeOf(options)
  const usual = groups.map(members => groupOf(members, whole, pool => pool.tiers))
  // What has no weight comes last of all: channels first, and then whole options.
  const spare = groups.map(members => groupOf(members, whole, ({ spare }) => (spare === undefined ? [] : [spare])))
  const idle = options
    .filter(({ weight }) => !(weight > 0))
    .toSorted(byRank)
    .map(option => groupOf([option], whole, ({ tiers, spare }) => (spare === undefined ? tiers : [...tiers, spare])))
  return { groups: [...usual, ...spare, ...idle].filter(({ entries }) => entries.length > 0) }
}

const byRank = (one: Option, other: Option): number =>
  one.priority - other.priority || Number(one.translates) - Number(other.translates)

/** Each channel once, in however many options it stands. */
function wholeOf(options: readonly Option[]): Pool {
  const [first] = options
  if (first === undefined || options.every(({ seats }) => seats === first.seats)) return poolOf(first?.seats ?? [])
  return new Pool([...new Map(options.flatMap(({ seats }) => seats.map(seat => [seat.id, seat]))).values()])
}

function groupOf(options: readonly Option[], whole: Pool, tiersOf: (pool: Pool) => readonly Tier[]): Group {
  const members = options.flatMap(option => {
    const pool = poolOf(option.seats)
    const tiers = tiersOf(pool)
    return tiers.length === 0 ? [] : [{ option, pool, whole, tiers }]
  })
  const prices = [...new Set(members.map(({ option }) => option.price))].sort((one, other) => one - other)
  const group = withShares(members)
  if (prices.length < 2) return group
  const byPrice = prices.map(price => withShares(members.filter(({ option }) => option.price === price)))
  return { ...group, byPrice }
}

function withShares(members: readonly Omit<Entry, 'share'>[]): Group {
  let total = 0
  const weights = members.map(({ option }) => (option.weight > 0 ? option.weight : 1))
  const sums = Float64Array.from(weights, weight => (total += weight))
  const entries = members.map((member, at) => ({ ...member, share: weights[at]! / total }))
  let seats = 0
  for (const { tiers } of entries) for (const tier of tiers) seats += tier.seats.length
  const priceMax = Math.max(0, ...members.map(({ option }) => option.price))
  return { entries, sums, priceMax, seats, byPrice: [] }
}
