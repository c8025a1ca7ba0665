// Usage and price to money, and the most that a call can come to.
//
// A bill is the sum of its lines, multiplied by the tier and rounded up once. Which cases of a price apply depends on
// the class of service, on the moment the call was admitted and on how long its input was; the whole call is billed
// at the rates of its tier.

import { assert } from '../base/assert.ts'
import type { Line, Nanos, NanosPerMillion } from '../base/money/money.ts'
import { BILLION, bill, eachAsRate, noMoney } from '../base/money/money.ts'
import type { Fee, Price, PriceCase, Rates } from '../base/money/price.ts'
import { fees, neighbours, tokensAreFree, unitFees, unitNames } from '../base/money/price.ts'
import type { Bucket, Unit, Units, Usage } from '../base/money/usage.ts'
import { buckets, inputBuckets, inputTokens, outputBuckets, units } from '../base/money/usage.ts'

/** What a call is billed by, pinned when it is admitted. */
export interface Priced {
  readonly price: Price
  readonly version: number
  /** The tier's multiplier. */
  readonly perMille: bigint
  /** The class that the caller asked for; undefined for the standard one, whatever it was called. */
  readonly serviceClass: string | undefined
  readonly atMs: number
}

/** Undefined: free of charge, as the provider's data says. */
export type PricedOrFree = Priced | undefined

/** Fees are written as their rate for a million, so that every line of a bill reads alike. */
export interface CostLine extends Line {
  readonly what: Bucket | 'request' | (typeof unitNames)[Unit]
}

export interface Bill {
  readonly amount: Nanos
  readonly lines: readonly CostLine[]
}

/** What callers write for the class that is served when nothing is asked for. */
const STANDARD = ['auto', 'default', 'standard', 'standard_only', 'on_demand']
/** Never dearer than the standard class, whose rates they have where a price does not name them. */
const NEVER_DEARER = ['flex', 'batch']

/** The class as a price names it; undefined for the standard one. */
export function classOf(asked: string | undefined): string | undefined {
  return asked === undefined || STANDARD.includes(asked) ? undefined : asked
}

/** Whether the price of this class is known. One that may be dearer and has no case is not, and is not served. */
export function hasClass(price: Price, serviceClass: string | undefined): boolean {
  const named = classOf(serviceClass)
  return named === undefined || NEVER_DEARER.includes(named) || price.cases.some(one => one.class === named)
}

/** Whether it says what a search costs, be it nothing: each one, or a call with any. */
export const hasSearch = ({ rates }: Price): boolean =>
  rates.perSearch !== undefined || rates.perGroundedCall !== undefined

/** Whether it says what one of these costs, be it nothing. */
export const hasUnit = ({ rates }: Price, unit: Unit): boolean => rates[unitFees[unit]] !== undefined

/**
 * Whether it says what a call comes to that is counted in these units besides its tokens: by one of them, or by tokens.
 * A price that has only what another kind of call is counted in would make this one free.
 */
export function hasBasis(price: Price, counted: Units | undefined): boolean {
  return !tokensAreFree(price) || hasFee(price, counted)
}

/** Whether it has a fee for one of these units. */
export function hasFee(price: Price, counted: Units | undefined): boolean {
  return units.some(unit => counted?.[unit] !== undefined && (price.rates[unitFees[unit]] ?? 0n) > 0n)
}

const noBill: Bill = { amount: noMoney, lines: [] }

/** `served` is the class that the answer names. It can make a bill smaller than what was asked for, never larger. */
export function billOf(usage: Usage, priced: PricedOrFree, served?: string): Bill {
  if (priced === undefined) return noBill
  const asked = billAs(usage, priced)
  const serviceClass = classOf(served)
  if (served === undefined || serviceClass === priced.serviceClass || !hasClass(priced.price, served)) return asked
  const other = billAs(usage, { ...priced, serviceClass })
  return other.amount < asked.amount ? other : asked
}

function billAs(usage: Usage, priced: Priced): Bill {
  const rates = ratesFor(priced, inputTokens(usage))
  const lines: CostLine[] = []
  for (const what of buckets) {
    const count = usage[what]
    if (count) lines.push({ what, count, rate: rates[what] })
  }
  for (const unit of units) {
    const count = usage[unit]
    const each = rates[unitFees[unit]]
    if (count && (each > 0n || unit === 'searches')) {
      lines.push({ what: unitNames[unit], count, rate: eachAsRate(each) })
    }
  }
  if (lines.length === 0) return noBill // where nothing is charged there is no fee either
  if (rates.perRequest > 0n) lines.push({ what: 'request', count: 1, rate: eachAsRate(rates.perRequest) })
  return { amount: bill(lines, priced.perMille), lines }
}

export interface CallSize {
  /** Bytes of text, or more where not all input is in the request. */
  readonly inputTokensMax: number
  /** The cap on one choice: the caller's, or the model's own. */
  readonly outputTokensMax: number
  /** Where that cap is not on what the model thinks: how much one choice may think on top. */
  readonly thoughtTokensMax?: number
  readonly choices: number
  readonly searchesMax: number
  /** What else is counted one by one. */
  readonly units?: Units | undefined
  /** No input is heard or seen, so that its rates need not be feared. */
  readonly textOnly?: boolean
}

/**
 * The most a call can cost, by the limits we know. A token of a byte-level vocabulary is at least a byte long, so a
 * body of text bounds its own input; nothing bounds the output but its cap. Every token is taken at the dearest rate
 * that could still apply, also that of the standard class: a provider may serve it instead of the one asked for.
 */
export function upperBound(size: CallSize, priced: PricedOrFree): Nanos {
  if (priced === undefined) return noMoney
  const top = topFor(priced, size)
  const output = { count: size.outputTokensMax * size.choices, rate: top.output }
  return bill([...fixedLines(size, top), thoughtLine(size, top), output], priced.perMille)
}

/** The part of the bound that is for the input, and for what a call costs whatever it says. */
export function inputBound(size: CallSize, priced: PricedOrFree): Nanos {
  return priced === undefined ? noMoney : bill(fixedLines(size, topFor(priced, size)), priced.perMille)
}

/** The largest cap on the output, up to that of `size`, whose bound fits; 0 if none does. */
export function affordableOutput(size: CallSize, priced: PricedOrFree, available: Nanos): number {
  if (priced === undefined) return size.outputTokensMax
  const top = topFor(priced, size)
  let fixed = 0n
  for (const { count, rate } of [...fixedLines(size, top), thoughtLine(size, top)]) fixed += BigInt(count) * rate
  const room = available * BILLION - fixed * priced.perMille
  if (room < 0n) return 0
  const each = BigInt(size.choices) * top.output * priced.perMille
  const most = each === 0n ? BigInt(size.outputTokensMax) : room / each
  return most < size.outputTokensMax ? Number(most) : size.outputTokensMax
}

function fixedLines(size: CallSize, top: Top): readonly Line[] {
  const lines: Line[] = [
    { count: size.inputTokensMax, rate: size.textOnly ? top.text : top.input },
    { count: 1, rate: eachAsRate(top.perRequest) },
    { count: size.searchesMax, rate: eachAsRate(top.perSearch) },
  ]
  if (size.units === undefined) return lines // as of most calls, and money is slow to multiply
  for (const unit of units) lines.push({ count: size.units[unit] ?? 0, rate: eachAsRate(top[unitFees[unit]]) })
  return lines
}

const thoughtLine = ({ thoughtTokensMax = 0, choices }: CallSize, top: Top): Line => ({
  count: thoughtTokensMax * choices,
  rate: top.output,
})

const BYTES_PER_TOKEN = 4

/**
 * A count of our own, for where the provider reported none that can be believed. Bytes and not characters: a Chinese
 * character is three bytes and most of a token. Of an answer they are bytes of prose, to which numbers, signs and other
 * scripts were converted. Marked as estimated in the record.
 */
export const estimateTokens = (bytes: number): number => Math.ceil(bytes / BYTES_PER_TOKEN)

type Fees = Readonly<Record<Fee, Nanos>>

type FullRates = Readonly<Record<Bucket, NanosPerMillion>> & Fees

/** The dearest of the rates that stand in one place of a price. */
interface Top extends Fees {
  readonly text: NanosPerMillion
  readonly input: NanosPerMillion
  readonly output: NanosPerMillion
}

/** What follows from a price and is worked out once. */
interface Sheet {
  /** By which cases apply, each a bit. */
  readonly rates: Map<number, FullRates>
  readonly base: Top
  readonly cases: readonly Top[]
}

const sheets = new WeakMap<Price, Sheet>()

function sheetOf(price: Price): Sheet {
  let sheet = sheets.get(price)
  if (sheet === undefined) {
    sheet = { rates: new Map(), base: topOf(price.rates), cases: price.cases.map(one => topOf(one.rates)) }
    sheets.set(price, sheet)
  }
  return sheet
}

function ratesFor(priced: Priced, input: number): FullRates {
  const { price } = priced
  let applying = 0
  for (let index = 0; index < price.cases.length; index++) {
    if (mayApply(price.cases[index]!, priced, input)) applying |= 1 << index
  }
  const { rates } = sheetOf(price)
  let full = rates.get(applying)
  if (full === undefined) {
    full = fullRates(price, applying)
    rates.set(applying, full)
  }
  return full
}

/** Whether a case applies to a call of this much input, or could to one of at most this much. */
function mayApply(one: PriceCase, { serviceClass, atMs }: Priced, input: number): boolean {
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
    const named = [bucket, ...neighbours[bucket]].find(one => stated[one] !== undefined)
    assert(named !== undefined, 'a price names input and output')
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

/** Neighbours of an input are inputs, and of a text are texts, so what is not stated cannot be dearer. */
function topOf(rates: Rates): Top {
  const dearest = (some: readonly Bucket[]): NanosPerMillion =>
    some.reduce((most, bucket) => dearer(most, rates[bucket] ?? most), 0n as NanosPerMillion)
  return {
    text: dearest(textBuckets),
    input: dearest(inputBuckets),
    output: dearest(outputBuckets),
    ...feesOf(rates),
  }
}

const dearer = <T extends bigint>(one: T, other: T): T => (one > other ? one : other)

function dearerOf(top: Top, one: Top): Top {
  const dearest: Record<string, bigint> = {}
  for (const name in top) dearest[name] = dearer(top[name as keyof Top], one[name as keyof Top] as Nanos)
  return dearest as unknown as Top
}

/** A case that could apply may make a call cheaper; the bound takes the dearer of with and without it. */
function topFor(priced: Priced, { inputTokensMax }: CallSize): Top {
  const { base, cases } = sheetOf(priced.price)
  let top = base
  for (let index = 0; index < cases.length; index++) {
    const one = cases[index]!
    if (!mayApply(priced.price.cases[index]!, priced, inputTokensMax)) continue
    top = dearerOf(top, one)
  }
  return top
}
