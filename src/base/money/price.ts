// The price of a model as data: rates, and cases in which other rates apply. Provider files and operators use the same
// format, which parsePrice() checks.
//
// {"input": "2.50", "output": "15", "cacheRead": "0.25",
//  "cases": [{"inputAbove": 271999, "input": "5", "output": "22.50"}, {"class": "priority", "input": "5"},
//            {"hours": ["16:30", "00:30"], "output": "7.50"}, {"from": "2027-01-01", "input": "2"}]}
//
// Rates are decimal texts in USD for a million tokens; fees such as perRequest and perSearch are USD for one item. The
// field "currency" may name another currency together with its fixed exchange rate. A case lists the rates that differ;
// if several cases apply, later ones win. A bucket without a rate uses the rate of another one (see `fallbackBuckets`).

import type { Nanos, NanosPerMillion } from './money.ts'
import { formatShare, formatUsd, parseUsd } from './money.ts'
import type { Bucket, Unit } from './usage.ts'
import { buckets } from './usage.ts'

/** The field of a price that holds the fee of each unit. */
export const unitFees = {
  searches: 'perSearch',
  images: 'perImage',
  characters: 'perCharacter',
  seconds: 'perSecond',
  fileSearches: 'perFileSearch',
  codeSessions: 'perCodeSession',
  groundedCalls: 'perGroundedCall',
} as const satisfies Record<Unit, string>

/** The singular name of each unit, for the lines of a bill. */
export const unitNames = {
  searches: 'search',
  images: 'image',
  characters: 'character',
  seconds: 'second',
  fileSearches: 'file search',
  codeSessions: 'code session',
  groundedCalls: 'grounded call',
} as const

/** A bucket without a rate uses the rate of the first of these buckets that has one: an omission makes nothing free. */
export const fallbackBuckets: Readonly<Record<Bucket, readonly Bucket[]>> = {
  input: [],
  cacheRead: ['input'],
  cacheWrite: ['input'],
  cacheWrite1h: ['cacheWrite', 'input'],
  inputAudio: ['input'],
  cacheReadAudio: ['inputAudio', 'cacheRead', 'input'],
  inputImage: ['input'],
  cacheReadImage: ['inputImage', 'cacheRead', 'input'],
  toolUse: ['input'],
  output: [],
  reasoning: ['output'],
  outputAudio: ['output'],
  outputImage: ['output'],
}

export const fees = ['perRequest', ...Object.values(unitFees)] as const

export type Fee = (typeof fees)[number]

export type Rates = Readonly<Partial<Record<Bucket, NanosPerMillion> & Record<Fee, Nanos>>>

export interface PriceCase {
  /** The requested class of service: `priority`, `flex`, `batch`. */
  readonly class?: string
  /** More input tokens than this, cached ones included. */
  readonly inputAbove?: number
  /** Minutes of the day in UTC, first included, last excluded; may cross midnight. */
  readonly hours?: readonly [from: number, to: number]
  /** Start of validity, in milliseconds since 1970. */
  readonly fromMs?: number
  readonly rates: Rates
}

export interface Price {
  readonly rates: Rates & { readonly input: NanosPerMillion; readonly output: NanosPerMillion }
  readonly cases: readonly PriceCase[]
  /** The currency of the source, if it is not USD. `rates` are in USD in any case. */
  readonly currency?: Currency
  /** The source of a price that was written by hand. */
  readonly source?: string
  /** Tools and request fields that cost nothing beyond the rates and fees above. */
  readonly included?: readonly string[]
}

export interface Currency {
  readonly code: string
  readonly unitsPerUsd: string
}

/** Throws an error that says what is wrong with a price. */
export type FailPrice = (problem: string) => never

const RATE_FIELDS = [...buckets, ...fees] as const
const CONDITION_FIELDS = ['class', 'inputAbove', 'hours', 'from'] as const

/**
 * A dollar for a token, a thousand dollars for a call. A higher price is a typing error, and its bills could overflow.
 */
const RATE_MAX = 1_000_000n * 1_000_000_000n
const FEE_MAX = 1_000n * 1_000_000_000n
/** billing/price.ts uses one bit of a number for each case. */
const CASES_MAX = 24
const TOKENS_MAX = 1_000_000_000
const INCLUDED_MAX = 100

type Json = Readonly<Record<string, unknown>>

export function parsePrice(value: unknown, fail: FailPrice): Price {
  const known = [...RATE_FIELDS, 'cases', 'currency', 'source', 'included']
  const json = readObject(value, { what: '"price"', known }, fail)
  const money = json.currency === undefined ? usd : readCurrency(json.currency, fail)
  const rates = readRates(json, { path: 'price', unitsPerUsd: money.unitsPerUsd }, fail)
  const { input, output } = rates
  if (input === undefined || output === undefined) {
    return fail(`"price.${input === undefined ? 'input' : 'output'}" must be given, as a decimal text such as "0.15"`)
  }
  const cases = json.cases ?? []
  if (!Array.isArray(cases)) return fail('"price.cases" must be a list')
  if (cases.length > CASES_MAX) fail(`"price.cases" may hold ${CASES_MAX} cases`)
  const { source } = json
  const isSource = typeof source === 'string' && source !== '' && source.length <= 500
  if (source !== undefined && !isSource) fail('"price.source" must be a text of at most 500 characters')
  return {
    rates: { ...rates, input, output },
    cases: cases.map((entry: unknown, index) =>
      readCase(entry, { path: `price.cases[${index}]`, unitsPerUsd: money.unitsPerUsd }, fail),
    ),
    ...(money.currency !== undefined && { currency: money.currency }),
    ...(isSource && { source }),
    ...(json.included !== undefined && { included: parseIncluded(json.included, '"price.included"', fail) }),
  }
}

/** Sorts the names of tools and fields, so that equal lists have equal texts. */
export function parseIncluded(value: unknown, what: string, fail: FailPrice): readonly string[] {
  const isName = (name: unknown): boolean => typeof name === 'string' && /^[\x21-\x7e]{1,64}$/.test(name)
  const isList = Array.isArray(value) && value.length <= INCLUDED_MAX && value.every(isName)
  if (!isList) return fail(`${what} must be a list of at most ${INCLUDED_MAX} names of tools or fields, such as "mcp"`)
  return [...new Set(value as readonly string[])].sort()
}

/** Whether some combination of cases makes a call free, tokens and units included. */
export function canBeFree(price: Price): boolean {
  return canTokensBeFree(price) && !Object.values(unitFees).some(fee => (price.rates[fee] ?? 0n) > 0n)
}

/** Whether some combination of cases makes input and output tokens free. */
export function canTokensBeFree({ rates, cases }: Price): boolean {
  const all = [rates, ...cases.map(priceCase => priceCase.rates)]
  return all.some(({ input }) => input === 0n) && all.some(({ output }) => output === 0n)
}

/**
 * The canonical text of a price: equal prices have equal texts, and parsePrice() reads the text back as the same price.
 * Its rates are in USD, so a currency is marked as already converted.
 */
export function priceText({ rates, cases, currency, source, included }: Price): string {
  return JSON.stringify({
    ...rateTexts(rates),
    ...(cases.length > 0 && { cases: cases.map(priceCase => caseText(priceCase)) }),
    ...(currency && { currency: { code: currency.code, unitsPerUsd: currency.unitsPerUsd, converted: true } }),
    ...(source !== undefined && { source }),
    ...(included && { included }),
  })
}

/** Rates as texts in USD, multiplied by `perMille` thousandths (a tier's discount or surcharge). */
export function rateTexts(rates: Rates, perMille = 1000n): Record<string, string> {
  const texts: Record<string, string> = {}
  for (const field of RATE_FIELDS) {
    const rate = rates[field]
    if (rate !== undefined) texts[field] = formatShare(rate, perMille)
  }
  return texts
}

/** A case in the format of a price file. */
export function caseText({ rates, ...when }: PriceCase, perMille = 1000n): Record<string, unknown> {
  return {
    ...(when.class !== undefined && { class: when.class }),
    ...(when.inputAbove !== undefined && { inputAbove: when.inputAbove }),
    ...(when.hours && { hours: when.hours.map(timeText) }),
    ...(when.fromMs !== undefined && { from: new Date(when.fromMs).toISOString().slice(0, 10) }),
    ...rateTexts(rates, perMille),
  }
}

interface RateContext {
  readonly path: string
  /** In billionths; undefined for USD. */
  readonly unitsPerUsd: bigint | undefined
}

function readRates(json: Json, { path, unitsPerUsd }: RateContext, fail: FailPrice): Rates {
  const rates: Partial<Record<(typeof RATE_FIELDS)[number], bigint>> = {}
  for (const field of RATE_FIELDS) {
    const text = json[field]
    if (text === undefined) continue
    const isFee = (fees as readonly string[]).includes(field)
    const written: bigint | undefined = typeof text === 'string' ? parseUsd(text) : undefined
    if (written === undefined) {
      const unit = isFee ? 'an amount' : 'an amount per million tokens'
      return fail(`"${path}.${field}" must be ${unit} as a decimal text of at most nine decimals, such as "0.15"`)
    }
    const rate = unitsPerUsd === undefined ? written : (written * 1_000_000_000n + unitsPerUsd - 1n) / unitsPerUsd
    const rateMax = isFee ? FEE_MAX : RATE_MAX
    if (rate > rateMax) fail(`"${path}.${field}" must not be more than ${formatUsd(rateMax as Nanos)} USD`)
    rates[field] = rate
  }
  return rates as Rates
}

function readCase(value: unknown, context: RateContext, fail: FailPrice): PriceCase {
  const { path } = context
  const json = readObject(value, { what: `"${path}"`, known: [...CONDITION_FIELDS, ...RATE_FIELDS] }, fail)
  if (!CONDITION_FIELDS.some(field => json[field] !== undefined)) fail(`"${path}" must say when it applies`)
  const rates = readRates(json, context, fail)
  if (Object.keys(rates).length === 0) fail(`"${path}" must say what differs`)
  const { class: serviceClass, inputAbove, hours, from } = json
  if (serviceClass !== undefined && !(typeof serviceClass === 'string' && /^[a-z0-9_-]{1,40}$/.test(serviceClass))) {
    return fail(`"${path}.class" must be a name such as "priority"`)
  }
  const isCount = Number.isSafeInteger(inputAbove) && (inputAbove as number) >= 0
  if (inputAbove !== undefined && !(isCount && (inputAbove as number) <= TOKENS_MAX)) {
    return fail(`"${path}.inputAbove" must be a number of tokens`)
  }
  return {
    ...(serviceClass !== undefined && { class: serviceClass as string }),
    ...(inputAbove !== undefined && { inputAbove: inputAbove as number }),
    ...(hours !== undefined && { hours: readHours(hours, path, fail) }),
    ...(from !== undefined && { fromMs: readDay(from, path, fail) }),
    rates,
  }
}

function readHours(value: unknown, path: string, fail: FailPrice): readonly [number, number] {
  const [from, to] = Array.isArray(value) && value.length === 2 ? value.map(minuteOfDay) : []
  if (from !== undefined && to !== undefined && from !== to) return [from, to]
  return fail(`"${path}.hours" must be two different times of the day in UTC, such as ["16:30", "00:30"]`)
}

function minuteOfDay(value: unknown): number | undefined {
  const match = typeof value === 'string' ? /^([01]\d|2[0-3]):([0-5]\d)$/.exec(value) : null
  return match ? Number(match[1]) * 60 + Number(match[2]) : undefined
}

const timeText = (minute: number): string =>
  `${String(Math.floor(minute / 60)).padStart(2, '0')}:${String(minute % 60).padStart(2, '0')}`

function readDay(value: unknown, path: string, fail: FailPrice): number {
  const ms = typeof value === 'string' && /^\d{4}-\d\d-\d\d$/.test(value) ? Date.parse(value) : Number.NaN
  // Date.parse moves a day that does not exist (2027-02-30) to one that does.
  if (!Number.isNaN(ms) && new Date(ms).toISOString().startsWith(value as string)) return ms
  return fail(`"${path}.from" must be a day, such as "2027-01-31"`)
}

interface ParsedCurrency {
  readonly unitsPerUsd: bigint | undefined
  readonly currency?: Currency
}

const usd: ParsedCurrency = { unitsPerUsd: undefined }

function readCurrency(value: unknown, fail: FailPrice): ParsedCurrency {
  const json = readObject(value, { what: '"price.currency"', known: ['code', 'unitsPerUsd', 'converted'] }, fail)
  const { code, unitsPerUsd, converted } = json
  const isCode = typeof code === 'string' && /^[A-Z]{3}$/.test(code) && code !== 'USD'
  if (!isCode) return fail('"price.currency.code" must be three letters, such as "CNY"')
  const units: bigint | undefined = typeof unitsPerUsd === 'string' ? parseUsd(unitsPerUsd) : undefined
  if (units === undefined || units === 0n) {
    return fail('"price.currency.unitsPerUsd" must be a decimal text above zero, such as "7.10"')
  }
  if (converted !== undefined && converted !== true) fail('"price.currency.converted" may only be true')
  return { unitsPerUsd: converted ? undefined : units, currency: { code, unitsPerUsd: unitsPerUsd as string } }
}

/** Checks that a value is a JSON object without unknown fields: a misspelt rate must not count as an absent one. */
function readObject(
  value: unknown,
  { what, known }: { what: string; known: readonly string[] },
  fail: FailPrice,
): Json {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return fail(`${what} must be an object`)
  const unknownField = Object.keys(value).find(field => !known.includes(field))
  return unknownField === undefined ? (value as Json) : fail(`${what} has an unknown field "${unknownField}"`)
}
