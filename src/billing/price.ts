// Computes the bill of a call from its usage and price, and the most that a call can cost.
//
// A bill is the sum of its lines, multiplied by the tier's multiplier and rounded up once. Which cases of a price apply
// depends on the service class, on the time when the call was admitted and on the length of its input; the whole call is
// billed at the rates of these cases.

import { assert } from '../base/assert.ts'
import type { BillLine, Nanos, NanosPerMillion } from '../base/money/money.ts'
import { BILLION, bill, noMoney, rateOfEach } from '../base/money/money.ts'
import type { Fee, Price, PriceCase, Rates } from '../base/money/price.ts'
import { canTokensBeFree, fallbackBuckets, fees, unitFees, unitNames } from '../base/money/price.ts'
import type { Bucket, Unit, Units, Usage } from '../base/money/usage.ts'
import { buckets, inputBuckets, inputTokens, outputBuckets, units } from '../base/money/usage.ts'

/** The price that a call is billed by. It is fixed when the call is admitted. */
export interface CallPrice {
  readonly price: Price
  readonly version: number
  /** The tier's multiplier. */
  readonly perMille: bigint
  /** The service class that the caller asked for; undefined: the standard class, under any of its names. */
  readonly serviceClass: string | undefined
  readonly atMs: number
}

/** Undefined: the provider file says that the model is free. */
export type CallPriceOrFree = CallPrice | undefined

/** Fees are written as a rate per million, so that all lines of a bill have the same form. */
export interface CostLine extends BillLine {
  readonly what: Bucket | 'request' | (typeof unitNames)[Unit]
}

export interface Bill {
  readonly amount: Nanos
  readonly lines: readonly CostLine[]
}

/** Names that callers use for the standard service class. */
const STANDARD = ['auto', 'default', 'standard', 'standard_only', 'on_demand']
/** Classes that never cost more than the standard class. If a price does not name them, they have its rates. */
const NEVER_DEARER = ['flex', 'batch']

/** The service class as prices name it; undefined for the standard class. */
export function normalizeServiceClass(serviceClass: string | undefined): string | undefined {
  return serviceClass === undefined || STANDARD.includes(serviceClass) ? undefined : serviceClass
}

/** Whether the price of this class is known. A class that may cost more and has no case of its own is not served. */
export function hasClass(price: Price, serviceClass: string | undefined): boolean {
  const named = normalizeServiceClass(serviceClass)
  return named === undefined || NEVER_DEARER.includes(named) || price.cases.some(one => one.class === named)
}

/** Whether the price names a fee for searches, which may be 0: for each search, or for a call with any search. */
export const hasSearch = ({ rates }: Price): boolean =>
  rates.perSearch !== undefined || rates.perGroundedCall !== undefined

/** Whether the price names a fee for this unit, which may be 0. */
export const hasUnit = ({ rates }: Price, unit: Unit): boolean => rates[unitFees[unit]] !== undefined

/**
 * Whether the price can bill a call that is counted in these units besides its tokens: it charges for tokens or for one
 * of the units. A price with fees for other units only would make the call free.
 */
export function hasBasis(price: Price, counted: Units | undefined): boolean {
  return !derive(price).canTokensBeFree || hasFee(price, counted)
}

/** Whether the price has a fee for one of these units. */
export function hasFee(price: Price, counted: Units | undefined): boolean {
  return units.some(unit => counted?.[unit] !== undefined && (price.rates[unitFees[unit]] ?? 0n) > 0n)
}

const noBill: Bill = { amount: noMoney, lines: [] }

/** `served`: the service class that the answer names. It can make the bill smaller than the requested class, not larger. */
export function computeBill(usage: Usage, priced: CallPriceOrFree, served?: string): Bill {
  if (priced === undefined) return noBill
  const asked = billAs(usage, priced)
  const serviceClass = normalizeServiceClass(served)
  if (served === undefined || serviceClass === priced.serviceClass || !hasClass(priced.price, served)) return asked
  const other = billAs(usage, { ...priced, serviceClass })
  return other.amount < asked.amount ? other : asked
}

function billAs(usage: Usage, priced: CallPrice): Bill {
  const rates = ratesFor(priced, usage.longestInput ?? inputTokens(usage))
  const lines: CostLine[] = []
  for (const what of buckets) {
    const count = usage[what]
    if (count) lines.push({ what, count, rate: rates[what] })
  }
  for (const unit of units) {
    const count = usage[unit]
    const each = rates[unitFees[unit]]
    if (count && (each > 0n || unit === 'searches')) {
      lines.push({ what: unitNames[unit], count, rate: rateOfEach(each) })
    }
  }
  if (lines.length === 0) return noBill // without any usage there is no fee per request either
  if (rates.perRequest > 0n) lines.push({ what: 'request', count: 1, rate: rateOfEach(rates.perRequest) })
  return { amount: bill(lines, priced.perMille), lines }
}

export interface CallSize {
  /** The bytes of the text, or more when not all input is in the request. */
  readonly inputTokensMax: number
  /** The maximum for one choice: the caller's, or the model's own. */
  readonly outputTokensMax: number
  /** How many reasoning tokens one choice may use on top, where outputTokensMax does not include them. */
  readonly thoughtTokensMax?: number
  readonly choices: number
  readonly searchesMax: number
  /** Other units that are counted one by one. */
  readonly units?: Units | undefined
  /** The input has no audio and no images, so that their rates cannot apply. */
  readonly textOnly?: boolean
}

/** The most output tokens that all choices together can have. */
export const outputTokensOf = ({ outputTokensMax, thoughtTokensMax = 0, choices }: CallSize): number =>
  (outputTokensMax + thoughtTokensMax) * choices

/**
 * The most that a call can cost. A token is at least one byte long, so the bytes of a text bound its input tokens; the
 * output is bounded by its maximum only. Every token counts at the highest rate that could apply, also of the standard
 * class, because a provider may serve it instead of the requested class.
 */
export function upperBound(size: CallSize, priced: CallPriceOrFree): Nanos {
  if (priced === undefined) return noMoney
  const highest = highestFor(priced, size)
  const output = { count: size.outputTokensMax * size.choices, rate: highest.output }
  const lines = fixedLines(size, highest)
  lines.push(thoughtLine(size, highest), output)
  return bill(lines, priced.perMille)
}

/** The part of the upper bound for the input and for fees that do not depend on the answer. */
export function inputBound(size: CallSize, priced: CallPriceOrFree): Nanos {
  return priced === undefined ? noMoney : bill(fixedLines(size, highestFor(priced, size)), priced.perMille)
}

/** The largest output maximum, up to that of `size`, whose upper bound fits into `available`; 0 if none fits. */
export function affordableOutput(size: CallSize, priced: CallPriceOrFree, available: Nanos): number {
  if (priced === undefined) return size.outputTokensMax
  const highest = highestFor(priced, size)
  let fixed = 0n
  for (const { count, rate } of [...fixedLines(size, highest), thoughtLine(size, highest)])
    fixed += BigInt(count) * rate
  const room = available * BILLION - fixed * priced.perMille
  if (room < 0n) return 0
  const each = BigInt(size.choices) * highest.output * priced.perMille
  const affordable = each === 0n ? BigInt(size.outputTokensMax) : room / each
  return affordable < size.outputTokensMax ? Number(affordable) : size.outputTokensMax
}

function fixedLines(size: CallSize, highest: HighestRates): BillLine[] {
  const lines: BillLine[] = [{ count: size.inputTokensMax, rate: size.textOnly ? highest.text : highest.input }]
  if (highest.perRequest > 0n) lines.push({ count: 1, rate: rateOfEach(highest.perRequest) })
  if (size.searchesMax > 0) lines.push({ count: size.searchesMax, rate: rateOfEach(highest.perSearch) })
  if (size.units === undefined) return lines // most calls have none, and bigint multiplication is slow
  for (const unit of units) lines.push({ count: size.units[unit] ?? 0, rate: rateOfEach(highest[unitFees[unit]]) })
  return lines
}

const thoughtLine = ({ thoughtTokensMax = 0, choices }: CallSize, highest: HighestRates): BillLine => ({
  count: thoughtTokensMax * choices,
  rate: highest.output,
})

const BYTES_PER_TOKEN = 4

/**
 * Our own token count, for a provider that reports none or an implausible one; the record says `estimated`. It counts
 * bytes, not characters: a Chinese character is three bytes and most of a token. For an answer, `bytes` are the
 * equivalent bytes of prose: digits, punctuation and other scripts were converted before.
 */
export const estimateTokens = (bytes: number): number => Math.ceil(bytes / BYTES_PER_TOKEN)

type Fees = Readonly<Record<Fee, Nanos>>

type FullRates = Readonly<Record<Bucket, NanosPerMillion>> & Fees

/** The highest rates of one part of a price: its base rates or one case. */
interface HighestRates extends Fees {
  readonly text: NanosPerMillion
  readonly input: NanosPerMillion
  readonly output: NanosPerMillion
}

/** Values derived from a price, computed once. */
interface DerivedRates {
  /** By the cases that apply, as a bit set. */
  readonly rates: Map<number, FullRates>
  readonly base: HighestRates
  readonly cases: readonly HighestRates[]
  readonly canTokensBeFree: boolean
}

const derived = new WeakMap<Price, DerivedRates>()

function derive(price: Price): DerivedRates {
  let known = derived.get(price)
  if (known === undefined) {
    known = {
      rates: new Map(),
      base: highestOf(price.rates),
      cases: price.cases.map(one => highestOf(one.rates)),
      canTokensBeFree: canTokensBeFree(price),
    }
    derived.set(price, known)
  }
  return known
}

function ratesFor(priced: CallPrice, input: number): FullRates {
  const { price } = priced
  let applying = 0
  for (let index = 0; index < price.cases.length; index++) {
    if (mayApply(price.cases[index]!, priced, input)) applying |= 1 << index
  }
  const { rates } = derive(price)
  let full = rates.get(applying)
  if (full === undefined) {
    full = fullRates(price, applying)
    rates.set(applying, full)
  }
  return full
}

/** Whether a case applies to a call with this many input tokens, or could apply to one with at most this many. */
function mayApply(one: PriceCase, { serviceClass, atMs }: CallPrice, input: number): boolean {
  if (one.class !== undefined && one.class !== serviceClass) return false
  if (one.inputAbove !== undefined && input <= one.inputAbove) return false
  if (one.fromMs !== undefined && atMs < one.fromMs) return false
  if (one.hours === undefined) return true
  const minute = Math.floor(atMs / 60_000) % 1_440
  const [from, to] = one.hours
  return from < to ? minute >= from && minute < to : minute >= from || minute < to
}

function fullRates(price: Price, applying: number): FullRates {
  let stated: Rates = price.rates
  price.cases.forEach((one, index) => {
    if (applying & (1 << index)) stated = { ...stated, ...one.rates }
  })
  const full: Partial<Record<Bucket, NanosPerMillion>> = {}
  for (const bucket of buckets) {
    const named = [bucket, ...fallbackBuckets[bucket]].find(one => stated[one] !== undefined)
    assert(named !== undefined, 'a price must name input and output rates')
    full[bucket] = stated[named]!
  }
  return { ...(full as Record<Bucket, NanosPerMillion>), ...feesOf(stated) }
}

function feesOf(rates: Rates): Fees {
  const named: Partial<Record<Fee, Nanos>> = {}
  for (const fee of fees) named[fee] = rates[fee] ?? noMoney
  return named as Fees
}

const textBuckets = inputBuckets.filter(bucket => !/Audio|Image/.test(bucket))

/** A kind without a rate has the rate of a neighbour of the same group, so that it cannot be higher than these. */
function highestOf(rates: Rates): HighestRates {
  const highest = (group: readonly Bucket[]): NanosPerMillion =>
    group.reduce((most, bucket) => larger(most, rates[bucket] ?? most), 0n as NanosPerMillion)
  return {
    text: highest(textBuckets),
    input: highest(inputBuckets),
    output: highest(outputBuckets),
    ...feesOf(rates),
  }
}

const larger = <T extends bigint>(a: T, b: T): T => (a > b ? a : b)

function mergeHighest(a: HighestRates, b: HighestRates): HighestRates {
  const highest: Record<string, bigint> = {}
  for (const name in a) highest[name] = larger(a[name as keyof HighestRates], b[name as keyof HighestRates] as Nanos)
  return highest as unknown as HighestRates
}

/** A case that could apply may also make a call cheaper. So the bound takes the higher rate of with and without it. */
function highestFor(priced: CallPrice, { inputTokensMax }: CallSize): HighestRates {
  const { base, cases } = derive(priced.price)
  let highest = base
  for (let index = 0; index < cases.length; index++) {
    if (mayApply(priced.price.cases[index]!, priced, inputTokensMax)) highest = mergeHighest(highest, cases[index]!)
  }
  return highest
}
