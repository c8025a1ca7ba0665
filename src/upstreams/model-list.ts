// Reads the price and the sizes of a model from the provider's own list of models. A provider file names the fields,
// so that models which the file does not know can be called at the provider's own price.

import { formatUsd, nanos } from '../base/money/money.ts'
import type { Price } from '../base/money/price.ts'
import { canBeFree, fees, parsePrice } from '../base/money/price.ts'

/** Where a row of the list has what. A path is the names of fields with dots between them, such as `pricing.prompt`. */
export interface ModelListFields {
  /** Rates are in USD for this many tokens. */
  readonly perTokens: number
  /** The path of each rate and fee of a price. */
  readonly price: ReadonlyMap<string, string>
  /** Paths of prices that cost nothing besides these. A model with any other price needs one of an operator. */
  readonly ignored: readonly string[]
  readonly contextTokens?: string
  readonly outputTokensMax?: string
}

type Row = Readonly<Record<string, unknown>>

const PATH = /^[A-Za-z_]\w*(\.[A-Za-z_]\w*)*$/
const isPath = (value: unknown): value is string => typeof value === 'string' && PATH.test(value)

const PER_TOKENS: readonly unknown[] = [1, 1_000, 1_000_000]
const pathSchema = { type: 'string', pattern: PATH.source }

/** The JSON Schema of these fields. */
export const modelListSchema: Readonly<Record<string, unknown>> = {
  type: 'object',
  properties: {
    perTokens: { type: 'integer', enum: PER_TOKENS },
    price: {
      type: 'object',
      properties: { input: pathSchema, output: pathSchema },
      required: ['input', 'output'],
      additionalProperties: pathSchema,
    },
    ignored: { type: 'array', items: pathSchema },
    contextTokens: pathSchema,
    outputTokensMax: pathSchema,
  },
  required: ['perTokens', 'price'],
  additionalProperties: false,
}

/** Throws an Error that says what is wrong. */
export function readModelListFields(value: unknown): ModelListFields {
  const fail = (problem: string): never => {
    throw new Error(problem)
  }
  const isObject = (one: unknown): one is Row => typeof one === 'object' && one !== null && !Array.isArray(one)
  if (!isObject(value)) return fail('must be an object')
  const { perTokens, price, ignored = [], contextTokens, outputTokensMax, ...unknown } = value
  const [extra] = Object.keys(unknown)
  if (extra !== undefined) fail(`has an unknown field "${extra}"`)
  if (!PER_TOKENS.includes(perTokens)) fail('"perTokens" must be 1, 1000 or 1000000')
  if (!isObject(price) || !Object.values(price).every(isPath)) return fail('"price" must be an object of paths')
  if (price.input === undefined || price.output === undefined) fail('"price" must have "input" and "output"')
  if (!Array.isArray(ignored) || !ignored.every(isPath)) return fail('"ignored" must be a list of paths')
  for (const path of [contextTokens, outputTokensMax]) if (path !== undefined && !isPath(path)) fail('needs a path')
  return {
    perTokens: perTokens as number,
    price: new Map(Object.entries(price as Record<string, string>)),
    ignored,
    ...(contextTokens !== undefined && { contextTokens: contextTokens as string }),
    ...(outputTokensMax !== undefined && { outputTokensMax: outputTokensMax as string }),
  }
}

/** A model as the list describes it, with its price, or with the reason why the list does not give it. */
export interface ListedRow {
  readonly id: string
  readonly price?: Price
  readonly priceProblem?: string
  readonly contextTokens?: number
  readonly outputTokensMax?: number
}

/** The model of a row. Undefined if the list gives no price, or a price of 0. */
export function readListedModel(id: string, row: Row, fields: ModelListFields): ListedRow | undefined {
  const price = readPrice(row, fields)
  if (price === undefined) return undefined
  const [contextTokens, outputTokensMax] = [sizeAt(row, fields.contextTokens), sizeAt(row, fields.outputTokensMax)]
  const others = otherPrices(row, fields)
  return {
    id,
    ...(others.length === 0 ? { price } : { priceProblem: problemOf(others) }),
    ...(contextTokens !== undefined && { contextTokens }),
    ...(outputTokensMax !== undefined && { outputTokensMax }),
  }
}

/** The names come from the provider, and callers see them. */
function problemOf(names: readonly string[]): string {
  const shown = names.filter(name => /^\w{1,40}$/.test(name)).slice(0, 5)
  return `Its provider lists a price for more than the gateway can bill${shown.length > 0 ? ` (${shown.join(', ')})` : ''}.`
}

function readPrice(row: Row, { price: paths, perTokens }: ModelListFields): Price | undefined {
  const json: Record<string, string> = {}
  for (const [field, path] of paths) {
    const isFee = (fees as readonly string[]).includes(field)
    const amount = readAmount(valueAt(row, path), isFee ? 1n : BigInt(MILLION / perTokens))
    if (amount === undefined) return undefined
    // A rate of 0 is left out: a cache that seems free costs as much as the input then.
    if (amount > 0n) json[field] = formatUsd(nanos(amount))
  }
  try {
    const price = parsePrice(json, problem => {
      throw new Error(problem)
    })
    return canBeFree(price) ? undefined : price
  } catch {
    return undefined
  }
}

const MILLION = 1_000_000
const AMOUNT = /^(\d{1,20})(?:\.(\d{0,40}))?(?:[eE]([+-]?\d{1,2}))?$/

/** An amount in USD as billionths, rounded up, so that no price becomes 0. Undefined if it is no amount. */
function readAmount(value: unknown, times: bigint): bigint | undefined {
  if (value === undefined || value === null || value === '') return 0n
  const text = typeof value === 'number' || typeof value === 'string' ? String(value) : ''
  const [, whole, decimals = '', exponent = '0'] = AMOUNT.exec(text) ?? []
  if (whole === undefined) return undefined
  const shift = 9 + Number(exponent) - decimals.length
  const digits = BigInt(whole + decimals) * times
  if (shift >= 0) return digits * 10n ** BigInt(shift)
  const divisor = 10n ** BigInt(-shift)
  return (digits + divisor - 1n) / divisor
}

/** The prices that stand beside the known ones. */
function otherPrices(row: Row, { price: paths, ignored }: ModelListFields): readonly string[] {
  const known = new Set([...paths.values(), ...ignored])
  const parents = new Set(
    [...known].flatMap(path => (path.includes('.') ? [path.slice(0, path.lastIndexOf('.'))] : [])),
  )
  return [...parents].flatMap(parent => {
    const prices = valueAt(row, parent)
    if (typeof prices !== 'object' || prices === null) return []
    const others = Object.entries(prices).filter(([name]) => !known.has(`${parent}.${name}`))
    return others.flatMap(([name, value]) => (readAmount(value, 1n) === 0n ? [] : [name]))
  })
}

function sizeAt(row: Row, path: string | undefined): number | undefined {
  const value = path === undefined ? undefined : valueAt(row, path)
  return Number.isSafeInteger(value) && (value as number) > 0 ? (value as number) : undefined
}

function valueAt(row: Row, path: string): unknown {
  let value: unknown = row
  for (const name of path.split('.')) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, name)) return undefined
    value = (value as Row)[name]
  }
  return value
}
