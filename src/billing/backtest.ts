// What calls of the past would have cost at another price, or with another multiplier: worked out from what their
// records say was used, by the same bill that they were settled with.
//
// A record does not tell the multiplier nor the class of service that its call was billed by. Both follow from what it
// does tell, the lines of its bill and what they came to; where they do not, the call is counted and left out.

import type { Line, Nanos, NanosPerMillion } from '../base/money/money.ts'
import { BILLION, bill, parseUsd } from '../base/money/money.ts'
import type { Price } from '../base/money/price.ts'
import { unitFees, unitNames } from '../base/money/price.ts'
import type { Bucket, Unit, Usage } from '../base/money/usage.ts'
import { buckets, units } from '../base/money/usage.ts'
import type { CostLine, Priced } from './price.ts'
import { billOf } from './price.ts'

/** What a record tells of the bill of its call. */
export interface BilledCall {
  readonly atMs: number
  /** All that it came to, also what its account could not pay. */
  readonly amount: bigint
  /** Undefined: it was free. */
  readonly price: Price | undefined
  /** JSON: [what, how many, USD for a million of it]; null where nothing was used. */
  readonly lines: string | null
  /** Whether any tokens were used. */
  readonly used: boolean
  /** What the tier of its key asks now; undefined where there is no such key any more. */
  readonly perMille: bigint | undefined
}

/** What is tried: another price, or another multiplier. */
export type Proposal = { readonly price: Price } | { readonly perMille: bigint }

/** Why a call cannot be worked out anew. */
export const unknowns = {
  was_free: 'it was free, so what it used is not told in full',
  price_gone: 'the price that it was billed by cannot be read',
  billed_otherwise: 'what it was charged does not follow from its price, for instance after a crash',
  multiplier_unknown: 'more than one multiplier could have made its bill, and that of its tier is none of them',
  class_unknown: 'more than one class of service could have made its bill, and they differ at the new price',
  units_uncounted: 'the new price has a fee for what was not counted at the old one',
} as const

export type Unknown = keyof typeof unknowns

/** What it would have come to, or why nobody knows. */
export function recompute(call: BilledCall, proposal: Proposal): bigint | Unknown {
  if (call.lines === null) return recomputeNothing(call, proposal)
  const lines = readLines(call.lines)
  if (lines === undefined) return 'price_gone'
  const perMille = multiplierOf(lines, call)
  if (perMille === undefined) return 'billed_otherwise'
  if (perMille === 'several') return 'multiplier_unknown'
  if ('perMille' in proposal) return bill(lines, proposal.perMille)
  const { price: from } = call
  return from === undefined ? 'price_gone' : atPrice(call, { lines, perMille, from, to: proposal.price })
}

/** Where nothing was charged for nothing, nothing is. */
function recomputeNothing({ amount, used, price }: BilledCall, proposal: Proposal): bigint | Unknown {
  if (amount !== 0n) return 'billed_otherwise'
  return used && price === undefined && 'price' in proposal ? 'was_free' : 0n
}

function readLines(text: string): readonly CostLine[] | undefined {
  try {
    return (JSON.parse(text) as [CostLine['what'], number, string][]).map(([what, count, usd]) => {
      const rate: bigint | undefined = parseUsd(usd)
      if (rate === undefined || !Number.isSafeInteger(count)) throw new Error('no line')
      return { what, count, rate: rate as NanosPerMillion }
    })
  } catch {
    return undefined
  }
}

/** The multiplier of the bill: that of the key's tier where it fits, else the only one that does. */
function multiplierOf(lines: readonly Line[], { amount, perMille }: BilledCall): bigint | 'several' | undefined {
  const fits = (one: bigint): boolean => bill(lines, one) === amount
  if (perMille !== undefined && fits(perMille)) return perMille
  let sum = 0n
  for (const { count, rate } of lines) sum += BigInt(count) * rate
  if (sum === 0n) return amount === 0n ? 'several' : undefined
  const most = (amount * BILLION) / sum
  // What was not charged at all says nothing of a multiplier.
  if (most === 0n || !fits(most)) return undefined
  return fits(most - 1n) ? 'several' : most
}

interface Repricing {
  readonly lines: readonly CostLine[]
  readonly perMille: bigint
  readonly from: Price
  readonly to: Price
}

function atPrice({ atMs }: BilledCall, { lines, perMille, from, to }: Repricing): bigint | Unknown {
  if (hasUncounted(from, to)) return 'units_uncounted'
  const usage = usageOf(lines)
  const priced = (price: Price, serviceClass: string | undefined): Priced => ({
    ...{ price, version: 0, perMille, serviceClass, atMs },
  })
  // What the old price does not name was billed as the standard class, and is again.
  const classes = new Set([undefined, ...from.cases.map(one => one.class)])
  const fitting = [...classes].filter(one => isSame(billOf(usage, priced(from, one)).lines, lines))
  const [amount, ...others] = new Set(fitting.map(one => billOf(usage, priced(to, one)).amount))
  if (amount === undefined) return 'billed_otherwise'
  return others.length > 0 ? 'class_unknown' : amount
}

/** A fee that was not there left no line, and so no count. Searches always leave one. */
const hasUncounted = (from: Price, to: Price): boolean =>
  units.some(unit => unit !== 'searches' && feeOf(to, unit) > 0n && feeOf(from, unit) === 0n)

const feeOf = (price: Price, unit: Unit): Nanos =>
  [price.rates, ...price.cases.map(one => one.rates)].reduce<Nanos>((most, rates) => {
    const fee = rates[unitFees[unit]] ?? (0n as Nanos)
    return fee > most ? fee : most
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

const isSame = (some: readonly CostLine[], others: readonly CostLine[]): boolean =>
  some.length === others.length &&
  some.every(({ what, count, rate }, at) => {
    const other = others[at]!
    return what === other.what && count === other.count && rate === other.rate
  })
