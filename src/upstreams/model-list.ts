// Reads what a provider's own list of models says of a model: its price and its sizes. A provider file names the fields,
// so that models which the file does not know can be called at the provider's own price.

import type { Price } from '../base/money/price.ts'
import { canBeFree, fees, parsePrice } from '../base/money/price.ts'

/** Where a row of the list has what. A path is the names of fields with dots between them, such as `pricing.prompt`. */
export interface ModelListFields {
  /** Rates are in USD for this many tokens. */
  readonly perTokens: number
  /** The path of each rate and fee of a price. */
  readonly price: ReadonlyMap<string, string>
  /** Paths of prices that cost nothing besides these. A model with any other price is left out. */
  readonly ignored: readonly string[]
  readonly contextTokens?: string
  readonly outputTokensMax?: string
}

type Row = Readonly<Record<string, unknown>>

const PATH = /^[A-Za-z_]\w*(\.[A-Za-z_]\w*)*$/
const isPath = (value: unknown): value is string => typeof value === 'string' && PATH.test(value)

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
  if (perTokens !== 1 && perTokens !== 1_000 && perTokens !== 1_000_000) fail('"perTokens" must be 1, 1000 or 1000000')
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

/** A model as the list describes it. */
export interface PricedModel {
  readonly id: string
  readonly price: Price
  readonly contextTokens?: number
  readonly outputTokensMax?: number
}

/** The model of a row. Undefined if the list does not give its whole price. */
export function readListedModel(id: string, row: Row, fields: ModelListFields): PricedModel | undefined {
  const price = readPrice(row, fields)
  if (price === undefined) return undefined
  const [contextTokens, outputTokensMax] = [sizeAt(row, fields.contextTokens), sizeAt(row, fields.outputTokensMax)]
  return {
    id,
    price,
    ...(contextTokens !== undefined && { contextTokens }),
    ...(outputTokensMax !== undefined && { outputTokensMax }),
  }
}

const MILLION = 1_000_000
/** Enough for a thousandth of a cent for a million tokens. */
const DECIMALS = 6

function readPrice(row: Row, { price: paths, perTokens, ignored }: ModelListFields): Price | undefined {
  const known = new Set([...paths.values(), ...ignored])
  if (hasOtherPrice(row, known)) return undefined
  const json: Record<string, string> = {}
  for (const [field, path] of paths) {
    const value = valueAt(row, path)
    const usd = typeof value === 'string' || typeof value === 'number' ? Number(value) : undefined
    // A rate of 0 is left out: a cache that seems free costs as much as the input then.
    if (usd === undefined || usd === 0) continue
    const isFee = (fees as readonly string[]).includes(field)
    json[field] = (isFee ? usd : (usd * MILLION) / perTokens).toFixed(DECIMALS)
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

/** Whether a price stands beside the known ones. */
function hasOtherPrice(row: Row, known: ReadonlySet<string>): boolean {
  const parents = new Set(
    [...known].flatMap(path => (path.includes('.') ? [path.slice(0, path.lastIndexOf('.'))] : [])),
  )
  return [...parents].some(parent => {
    const prices = valueAt(row, parent)
    if (typeof prices !== 'object' || prices === null) return true
    return Object.entries(prices).some(([name, value]) => !known.has(`${parent}.${name}`) && Number(value) !== 0)
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
