// Computes what a past call would have cost at another price or with another multiplier, from the usage in its record
// and with the same function that billed it.
//
// A record contains neither the multiplier nor the service class of the bill. Both are derived from the lines of the bill
// and its amount; a call for which this is not possible is counted and left out.

import type { BillLine, Nanos, NanosPerMillion } from '../base/money/money.ts'
import { bill, findMultiplier, parseUsd } from '../base/money/money.ts'
import type { Price } from '../base/money/price.ts'
import { unitFees, unitNames } from '../base/money/price.ts'
import type { Bucket, Unit, Usage } from '../base/money/usage.ts'
import { buckets, units } from '../base/money/usage.ts'
import type { CallPrice, CostLine } from './price.ts'
import { computeBill } from './price.ts'

/** The bill of a call as its record has it. */
export interface BilledCall {
  readonly atMs: number
  /** The whole amount, including what the account could not pay. */
  readonly amount: bigint
  /** Undefined: the call was free. */
  readonly price: Price | undefined
  /** JSON of lines: [what, count, USD per million]; null when nothing was used. */
  readonly lines: string | null
  /** Whether the call used any tokens. */
  readonly used: boolean
  /** The current multiplier of the key's tier; undefined when the key no longer exists. */
  readonly perMille: bigint | undefined
}

/** The change to test: another price, or another multiplier. */
export type Proposal = { readonly price: Price } | { readonly perMille: bigint }

/** Why the cost of a call cannot be recomputed. */
export const backtestSkipReasons = {
  was_free: 'the call was free, so its record does not contain its whole usage',
  price_gone: 'the price of its bill cannot be read',
  billed_otherwise: 'its charge does not follow from its price, for instance after a crash',
  multiplier_unknown: 'several multipliers fit its bill, and the one of its tier is not among them',
  class_unknown: 'several service classes fit its bill, and they differ at the new price',
  units_uncounted: 'the new price has a fee for units that were not counted under the old price',
} as const

export type BacktestSkipReason = keyof typeof backtestSkipReasons

/** The cost of the call under the proposal, or why it cannot be computed. */
export function recompute(call: BilledCall, proposal: Proposal): bigint | BacktestSkipReason {
  if (call.lines === null) return recomputeWithoutLines(call, proposal)
  const lines = readLines(call.lines)
  if (lines === undefined) return 'price_gone'
  const perMille = multiplierOf(lines, call)
  if (perMille === undefined) return 'billed_otherwise'
  if (perMille === 'several') return 'multiplier_unknown'
  if ('perMille' in proposal) return bill(lines, proposal.perMille)
  const { price: from } = call
  return from === undefined ? 'price_gone' : recomputeAtPrice(call, { lines, perMille, from, to: proposal.price })
}

/** A call without lines that was charged nothing costs nothing again. */
function recomputeWithoutLines({ amount, used, price }: BilledCall, proposal: Proposal): bigint | BacktestSkipReason {
  if (amount !== 0n) return 'billed_otherwise'
  return used && price === undefined && 'price' in proposal ? 'was_free' : 0n
}

function readLines(text: string): readonly CostLine[] | undefined {
  try {
    return (JSON.parse(text) as [CostLine['what'], number, string][]).map(([what, count, usd]) => {
      const rate: bigint | undefined = parseUsd(usd)
      if (rate === undefined || !Number.isSafeInteger(count)) throw new Error('invalid line')
      return { what, count, rate: rate as NanosPerMillion }
    })
  } catch {
    return undefined
  }
}

/** The multiplier of the bill: the one of the key's tier if it fits, else the only one that fits. */
function multiplierOf(lines: readonly BillLine[], { amount, perMille }: BilledCall): bigint | 'several' | undefined {
  const fits = perMille !== undefined && bill(lines, perMille) === amount
  return fits ? perMille : findMultiplier(lines, amount)
}

interface Repricing {
  readonly lines: readonly CostLine[]
  readonly perMille: bigint
  readonly from: Price
  readonly to: Price
}

function recomputeAtPrice({ atMs }: BilledCall, { lines, perMille, from, to }: Repricing): bigint | BacktestSkipReason {
  if (hasUncounted(from, to)) return 'units_uncounted'
  const usage = usageOf(lines)
  const priced = (price: Price, serviceClass: string | undefined): CallPrice => ({
    price,
    version: 0,
    perMille,
    serviceClass,
    atMs,
  })
  // A class that the old price does not name was billed as the standard class, and is again.
  const classes = new Set([undefined, ...from.cases.map(one => one.class)])
  const fitting = [...classes].filter(one => areEqual(computeBill(usage, priced(from, one)).lines, lines))
  const [amount, ...others] = new Set(fitting.map(one => computeBill(usage, priced(to, one)).amount))
  if (amount === undefined) return 'billed_otherwise'
  return others.length > 0 ? 'class_unknown' : amount
}

/** Whether the new price has a fee for units that the old price had no fee for: those left no line, so no count. */
const hasUncounted = (from: Price, to: Price): boolean =>
  units.some(unit => unit !== 'searches' && feeOf(to, unit) > 0n && feeOf(from, unit) === 0n)

/** The highest fee for a unit among all cases of a price. */
const feeOf = (price: Price, unit: Unit): Nanos =>
  [price.rates, ...price.cases.map(one => one.rates)].reduce<Nanos>((highest, rates) => {
    const fee = rates[unitFees[unit]] ?? (0n as Nanos)
    return fee > highest ? fee : highest
  }, 0n as Nanos)

function usageOf(lines: readonly CostLine[]): Usage {
  const usage: Partial<Record<Bucket | Unit, number>> = {}
  for (const { what, count } of lines) {
    const unit = units.find(one => unitNames[one] === what)
    if (unit !== undefined) usage[unit] = count
    else if ((buckets as readonly string[]).includes(what)) usage[what as Bucket] = count
  }
  return { input: 0, output: 0, ...usage }
}

const areEqual = (lines: readonly CostLine[], others: readonly CostLine[]): boolean =>
  lines.length === others.length &&
  lines.every(({ what, count, rate }, index) => {
    const other = others[index]!
    return what === other.what && count === other.count && rate === other.rate
  })
