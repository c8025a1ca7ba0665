// The price of a model as data: rates, and cases in which other rates apply. Provider files, the management interface and
// the command line use one format. Its fields are described once here: parsePrice(), its error texts and the schema in
// the OpenAPI document all come from these descriptions.
//
// {"input": "2.50", "output": "15", "cacheRead": "0.25",
//  "cases": [{"inputAbove": 271999, "input": "5", "output": "22.50"}, {"class": "priority", "input": "5"},
//            {"hours": ["16:30", "00:30"], "output": "7.50"}, {"from": "2027-01-01", "input": "2"}]}
//
// Rates are decimal texts in USD for a million tokens; fees such as perRequest and perSearch are USD for one item. The
// field "currency" may name another currency together with its fixed exchange rate. A case lists the rates that differ;
// if several cases apply, later ones win. A bucket without a rate uses the rate of another one (see `fallbackBuckets`).

import type { Hint } from '../hints.ts'
import { hintOf } from '../hints.ts'
import { nearestName } from '../text/nearest-name.ts'
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

/** Throws an error that says what is wrong with a price. `field` is the path of the field, such as `price.input`. */
export type FailPrice = (problem: string, field: string, hint: Hint) => never

type Fail = (problem: Hint, field: string) => never

const failWith =
  (fail: FailPrice): Fail =>
  (problem, field) =>
    fail(problem.text, field, problem)

/** One field of the format. */
interface PriceField<T> {
  /** What is allowed, to complete the sentence "The field must be …". */
  readonly allowed: Hint
  /** The same as a JSON Schema. */
  readonly schema: PriceSchema
  /** Undefined: the value is not allowed. */
  read(value: unknown): T | undefined
}

export type PriceSchema = Readonly<Record<string, unknown>>

/**
 * A dollar for a token, a thousand dollars for a call. A higher price is a typing error, and its bills could overflow.
 */
const RATE_MAX = 1_000_000n * 1_000_000_000n
const FEE_MAX = 1_000n * 1_000_000_000n
/** billing/price.ts uses one bit of a number for each case. */
const CASES_MAX = 24
const TOKENS_MAX = 1_000_000_000
const INCLUDED_MAX = 100
const SOURCE_CHARS_MAX = 500

interface TextForm<T> {
  readonly pattern: RegExp
  readonly example: string
  read(text: string): T | undefined
}

type TextFieldCode = 'price_rate' | 'price_fee' | 'price_class' | 'price_currency' | 'price_units'

function textField<T>(code: TextFieldCode, { pattern, example, read }: TextForm<T>): PriceField<T> {
  const allowed = hintOf(code, { example })
  const what = allowed.text.replace(/, such as .*/, '')
  const description = `${what[0]!.toUpperCase()}${what.slice(1)}.`
  return {
    allowed,
    schema: { type: 'string', pattern: pattern.source, description, examples: [example] },
    read: value => (typeof value === 'string' && pattern.test(value) ? read(value) : undefined),
  }
}

const DECIMAL = /^\d{1,9}(\.\d{1,9})?$/
const TIME = /^([01]\d|2[0-3]):([0-5]\d)$/
const NAME = /^[\x21-\x7e]{1,64}$/

const amount: TextForm<bigint> = { pattern: DECIMAL, example: '0.15', read: parseUsd }
const rateField = textField('price_rate', amount)
const feeField = textField('price_fee', amount)

const fieldsNamed = <Name extends string, T>(names: readonly Name[], field: PriceField<T>) =>
  Object.fromEntries(names.map(name => [name, field])) as Readonly<Record<Name, PriceField<T>>>

const rateFields = { ...fieldsNamed(buckets, rateField), ...fieldsNamed(fees, feeField) }
const RATE_FIELDS = [...buckets, ...fees] as const

/** When a case applies. */
const conditionFields = {
  /** The requested class of service. */
  class: textField('price_class', { pattern: /^[a-z0-9_+-]{1,40}$/, example: 'priority', read: text => text }),
  /** More input tokens than this, cached ones included. */
  inputAbove: {
    allowed: hintOf('price_tokens', { max: TOKENS_MAX }),
    schema: {
      type: 'integer',
      minimum: 0,
      maximum: TOKENS_MAX,
      description: 'Applies to calls with more input tokens than this.',
    },
    read: (value): number | undefined =>
      Number.isSafeInteger(value) && (value as number) >= 0 && (value as number) <= TOKENS_MAX
        ? (value as number)
        : undefined,
  },
  /** Minutes of the day in UTC, first included, last excluded; may cross midnight. */
  hours: {
    allowed: hintOf('price_hours'),
    schema: {
      type: 'array',
      items: { type: 'string', pattern: TIME.source },
      minItems: 2,
      maxItems: 2,
      description: 'Start and end time of day, in UTC.',
    },
    read: readHours,
  },
  /** The start of validity, which is read as milliseconds since 1970. */
  from: {
    allowed: hintOf('price_day'),
    schema: { type: 'string', format: 'date', description: 'Applies from this day on.' },
    read: readDay,
  },
} satisfies Readonly<Record<string, PriceField<unknown>>>

const currencyFields = {
  code: textField('price_currency', { pattern: /^(?!USD)[A-Z]{3}$/, example: 'CNY', read: text => text }),
  unitsPerUsd: textField('price_units', {
    pattern: DECIMAL,
    example: '7.10',
    read: text => ((parseUsd(text) ?? 0n) > 0n ? text : undefined),
  }),
  /** The rates have been converted to USD already. */
  converted: {
    allowed: hintOf('price_converted'),
    schema: { const: true, description: 'The rates are in USD already.' },
    read: value => (value === true ? true : undefined),
  },
} satisfies Readonly<Record<string, PriceField<unknown>>>

/** The names of tools and fields are sorted, so that equal lists have equal texts. */
const includedField: PriceField<readonly string[]> = {
  allowed: hintOf('price_names', { max: INCLUDED_MAX }),
  schema: {
    type: 'array',
    items: { type: 'string', pattern: NAME.source },
    maxItems: INCLUDED_MAX,
    description: 'Tools and request fields that cost nothing beyond the rates and fees.',
  },
  read(value) {
    const isName = (name: unknown): name is string => typeof name === 'string' && NAME.test(name)
    const isList = Array.isArray(value) && value.length <= INCLUDED_MAX && value.every(isName)
    return isList ? [...new Set(value)].sort() : undefined
  },
}

const sourceField: PriceField<string> = {
  allowed: hintOf('price_source', { max: SOURCE_CHARS_MAX }),
  schema: { type: 'string', minLength: 1, maxLength: SOURCE_CHARS_MAX, description: 'The source of the price.' },
  read: value => (typeof value === 'string' && value !== '' && value.length <= SOURCE_CHARS_MAX ? value : undefined),
}

const schemaOf = (fields: Readonly<Record<string, PriceField<unknown>>>): Readonly<Record<string, PriceSchema>> =>
  Object.fromEntries(Object.entries(fields).map(([name, { schema }]) => [name, schema]))

const closed = (properties: PriceSchema, required: readonly string[] = []): PriceSchema => ({
  type: 'object',
  properties,
  ...(required.length > 0 && { required }),
  additionalProperties: false,
})

/** The schemas of the conditions of a case. */
export const conditionSchemas = schemaOf(conditionFields)

/** The JSON Schema of a price. */
export const priceSchema = closed(
  {
    ...schemaOf(rateFields),
    cases: {
      type: 'array',
      items: closed({ ...conditionSchemas, ...schemaOf(rateFields) }),
      maxItems: CASES_MAX,
      description: 'Rates that differ in some cases. If several cases apply, the last one wins.',
    },
    currency: closed(schemaOf(currencyFields), ['code', 'unitsPerUsd']),
    source: sourceField.schema,
    included: includedField.schema,
  },
  ['input', 'output'],
)

type FieldValues<F> = { readonly [Name in keyof F]?: F[Name] extends PriceField<infer T> ? T : never }

export interface PriceCase extends Omit<FieldValues<typeof conditionFields>, 'from'> {
  /** Start of validity, in milliseconds since 1970. */
  readonly fromMs?: number
  readonly rates: Rates
}

type Json = Readonly<Record<string, unknown>>

export function parsePrice(value: unknown, onProblem: FailPrice): Price {
  const fail = failWith(onProblem)
  const known = [...RATE_FIELDS, 'cases', 'currency', 'source', 'included']
  const json = readObject(value, 'price', known, fail)
  const { code, unitsPerUsd, converted } = json.currency === undefined ? noCurrency : readCurrency(json.currency, fail)
  const units = unitsPerUsd === undefined || converted ? undefined : (parseUsd(unitsPerUsd) as bigint)
  const rates = readRates(json, { path: 'price', unitsPerUsd: units }, fail)
  const { input, output } = rates
  if (input === undefined || output === undefined) {
    const field = `price.${input === undefined ? 'input' : 'output'}`
    return fail(hintOf('price_given', { field, allowed: rateField.allowed }), field)
  }
  const cases = json.cases ?? []
  if (!Array.isArray(cases) || cases.length > CASES_MAX) {
    return fail(hintOf('price_cases', { max: CASES_MAX }), 'price.cases')
  }
  const more = readFields(json, { source: sourceField, included: includedField }, 'price', fail)
  return {
    rates: { ...rates, input, output },
    cases: cases.map((entry: unknown, index) =>
      readCase(entry, { path: `price.cases[${index}]`, unitsPerUsd: units }, fail),
    ),
    ...(code !== undefined && unitsPerUsd !== undefined && { currency: { code, unitsPerUsd } }),
    ...more,
  }
}

/** The JSON Schema of the list that parseIncluded() reads. */
export const includedSchema = includedField.schema

/** Reads the names of tools and fields in a provider file, which are those of a price. */
export const parseIncluded = (value: unknown, what: string, fail: FailPrice): readonly string[] =>
  includedField.read(value) ??
  failWith(fail)(hintOf('price_included', { field: what, allowed: includedField.allowed }), what)

/** Reads the fields that are there. */
function readFields<F extends Readonly<Record<string, PriceField<unknown>>>>(
  json: Json,
  fields: F,
  path: string,
  fail: Fail,
): FieldValues<F> {
  const values: Record<string, unknown> = {}
  for (const [name, { allowed, read }] of Object.entries(fields)) {
    if (json[name] === undefined) continue
    const field = `${path}.${name}`
    values[name] = read(json[name]) ?? fail(hintOf('price_must', { field, allowed }), field)
  }
  return values as FieldValues<F>
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
export function priceText(price: Price): string {
  const known = texts.get(price) ?? writePrice(price)
  texts.set(price, known)
  return known
}

/** The shipped prices are compared as texts at every change of the providers. */
const texts = new WeakMap<Price, string>()

function writePrice({ rates, cases, currency, source, included }: Price): string {
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

function readRates(json: Json, { path, unitsPerUsd }: RateContext, fail: Fail): Rates {
  const rates: Partial<Record<(typeof RATE_FIELDS)[number], bigint>> = readFields(json, rateFields, path, fail)
  for (const name of RATE_FIELDS) {
    const written = rates[name]
    if (written === undefined) continue
    const rate = unitsPerUsd === undefined ? written : (written * 1_000_000_000n + unitsPerUsd - 1n) / unitsPerUsd
    const rateMax = rateFields[name] === feeField ? FEE_MAX : RATE_MAX
    const field = `${path}.${name}`
    if (rate > rateMax) fail(hintOf('price_max', { field, max: formatUsd(rateMax as Nanos) }), field)
    rates[name] = rate
  }
  return rates as Rates
}

function readCase(value: unknown, context: RateContext, fail: Fail): PriceCase {
  const { path } = context
  const conditions = Object.keys(conditionFields)
  const json = readObject(value, path, [...conditions, ...RATE_FIELDS], fail)
  if (!conditions.some(field => json[field] !== undefined)) {
    fail(hintOf('price_when', { field: path, conditions: conditions.join(', ') }), path)
  }
  const rates = readRates(json, context, fail)
  if (Object.keys(rates).length === 0) fail(hintOf('price_what', { field: path }), path)
  const { from: fromMs, ...when } = readFields(json, conditionFields, path, fail)
  return { ...when, ...(fromMs !== undefined && { fromMs }), rates }
}

function readHours(value: unknown): readonly [number, number] | undefined {
  const [from, to] = Array.isArray(value) && value.length === 2 ? value.map(minuteOfDay) : []
  return from !== undefined && to !== undefined && from !== to ? [from, to] : undefined
}

function minuteOfDay(value: unknown): number | undefined {
  const match = typeof value === 'string' ? TIME.exec(value) : null
  return match ? Number(match[1]) * 60 + Number(match[2]) : undefined
}

const timeText = (minute: number): string =>
  `${String(Math.floor(minute / 60)).padStart(2, '0')}:${String(minute % 60).padStart(2, '0')}`

function readDay(value: unknown): number | undefined {
  const ms = typeof value === 'string' && /^\d{4}-\d\d-\d\d$/.test(value) ? Date.parse(value) : Number.NaN
  // Date.parse moves a day that does not exist (2027-02-30) to one that does.
  return !Number.isNaN(ms) && new Date(ms).toISOString().startsWith(value as string) ? ms : undefined
}

type WrittenCurrency = FieldValues<typeof currencyFields>

const noCurrency: WrittenCurrency = {}

function readCurrency(value: unknown, fail: Fail): WrittenCurrency {
  const path = 'price.currency'
  const json = readObject(value, path, Object.keys(currencyFields), fail)
  const currency = readFields(json, currencyFields, path, fail)
  for (const name of ['code', 'unitsPerUsd'] as const) {
    if (currency[name] === undefined) {
      const field = `${path}.${name}`
      fail(hintOf('price_given', { field, allowed: currencyFields[name].allowed }), field)
    }
  }
  return currency
}

/** Checks that a value is a JSON object without unknown fields: a misspelt rate must not count as an absent one. */
function readObject(value: unknown, path: string, known: readonly string[], fail: Fail): Json {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    return fail(hintOf('price_object', { field: path }), path)
  }
  const unknownField = Object.keys(value).find(field => !known.includes(field))
  if (unknownField === undefined) return value as Json
  const near = nearestName(unknownField, known)
  const named = { field: path, name: unknownField.slice(0, 64) }
  const problem =
    near === undefined
      ? hintOf('price_unknown_field', { ...named, known: known.join(', ') })
      : hintOf('price_unknown_near', { ...named, near })
  return fail(problem, `${path}.${unknownField}`)
}
