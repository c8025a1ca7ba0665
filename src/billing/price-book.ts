// The current prices, each with the version that a call is billed by. A version is a row that never changes: a shipped
// price becomes a new row when it differs from the last shipped row of its model; a price of an operator is a row that
// overrides the shipped price; and its withdrawal is a row as well. A price of an operator for a pattern (`relay/*`) is
// the price of all models that match it and have none of their own. It is not the price of their variants
// (`relay/gpt-5:online`), which may cost more, unless the pattern is about variants, too (`relay/*:online`).

import { assert } from '../base/assert.ts'
import type { Price } from '../base/money/price.ts'
import { parsePrice, priceText } from '../base/money/price.ts'
import { matchesGlob } from '../base/text/glob.ts'
import { isForVariants, variantBase } from '../base/text/rule-names.ts'
import type { PriceVersion } from '../store/engine/reader.ts'
import type { StoreWriter } from '../store/engine/store-engine.ts'
import type { PriceInsert } from '../store/ledger/hold-types.ts'

/** A row of the price table. It has the model name that callers use; the price of a withdrawal is empty. */
export type PriceRow = PriceVersion

export interface CurrentPrice {
  readonly version: number
  readonly price: Price
}

export interface PriceBook {
  /** Undefined: the price is unknown. */
  current(model: string): CurrentPrice | undefined
  /** The models that an operator has priced one by one. */
  operatorModels(): Iterable<string>
  /** Adds a row that was written while the gateway runs. Throws and changes nothing if its price cannot be read. */
  add(row: PriceRow): void
  /** The rows that have to be written before ship() can be called with these prices. */
  listMissing(shipped: ReadonlyMap<string, Price>, author: string): readonly PriceInsert[]
  /** Replaces the shipped prices. `rows`: the rows of missing(), written by now. */
  replaceShipped(shipped: ReadonlyMap<string, Price>, rows: readonly PriceRow[]): void
  /** Reads the whole table again, after another process has added rows, for the prices that this process ships. */
  reread(shipped: ReadonlyMap<string, Price>, rows: readonly PriceRow[]): void
  /** Grows with each change, so that data derived from the prices knows when it is out of date. */
  readonly revision: number
}

/** The rows to write before the price book is opened: every shipped price that differs from its last shipped version. */
export function findNewPrices(
  shipped: ReadonlyMap<string, string>,
  rows: readonly PriceRow[],
  author: string,
): readonly PriceInsert[] {
  const last = new Map<string, string>()
  let version = 0
  for (const row of rows) {
    assert(row.version > version, 'price rows must be in the order of their versions')
    version = row.version
    if (row.origin === 'shipped') last.set(row.model, row.price)
  }
  const fresh: PriceInsert[] = []
  for (const [model, price] of shipped) {
    if (last.get(model) !== price) fresh.push({ model, origin: 'shipped', price, author })
  }
  return fresh
}

/** Prices as the texts that are compared and stored. */
export function shippedTexts(prices: ReadonlyMap<string, Price>): ReadonlyMap<string, string> {
  return new Map([...prices].map(([model, price]) => [model, priceText(price)]))
}

/**
 * `rows`: all rows of the table, in order, including the ones for `first`. Only rows of operators are parsed: shipped
 * prices are already in memory, and a model that is no longer shipped with a price has none.
 */
export function buildPriceBook(
  first: ReadonlyMap<string, Price>,
  rows: readonly PriceRow[],
  isVariant: IsVariant = model => variantBase(model) !== undefined,
): PriceBook {
  const shippedPrices = new Map<string, CurrentPrice>()
  const operatorPrices = new Map<string, CurrentPrice>()
  /** The longest pattern first, because it is the most exact one. */
  let patternPrices: readonly (readonly [pattern: string, price: CurrentPrice])[] = []

  let shipped = first
  let revision = 0

  function add({ version, model, origin, price: text }: PriceRow): void {
    if (origin !== 'shipped' && isPattern(model)) {
      const others = patternPrices.filter(([pattern]) => pattern !== model)
      const added =
        origin === 'withdrawn' ? [] : [[model, { version, price: parsePriceRow(model, version, text) }] as const]
      patternPrices = [...others, ...added].sort(([a], [b]) => b.length - a.length || (a < b ? -1 : 1))
    } else if (origin === 'withdrawn') {
      operatorPrices.delete(model)
    } else if (origin === 'operator') {
      operatorPrices.set(model, { version, price: parsePriceRow(model, version, text) })
    } else {
      const price = shipped.get(model)
      if (price !== undefined) shippedPrices.set(model, { version, price })
    }
    revision++
  }

  /** Changes everything or, if a price has no version, nothing. */
  function ship(prices: ReadonlyMap<string, Price>, fresh: readonly PriceRow[]): void {
    const versioned = new Set(fresh.flatMap(({ origin, model }) => (origin === 'shipped' ? [model] : [])))
    for (const model of prices.keys()) {
      assert(versioned.has(model) || shippedPrices.has(model), 'every shipped price must have a version')
    }
    shipped = prices
    for (const model of shippedPrices.keys()) if (!prices.has(model)) shippedPrices.delete(model)
    for (const row of fresh) add(row)
    revision++
  }

  const findPattern = (model: string): CurrentPrice | undefined =>
    patternPrices.find(([pattern]) => matchesGlob(pattern, model) && (isForVariants(pattern) || !isVariant(model)))?.[1]

  ship(first, rows)
  return {
    current: model => operatorPrices.get(model) ?? shippedPrices.get(model) ?? findPattern(model),
    operatorModels: () => operatorPrices.keys(),
    add,
    replaceShipped: ship,
    reread(prices, table) {
      // Another version of Weir may ship another price for a model: that row is not the version of our price. A price
      // whose version is not written yet is not used.
      const texts = shippedTexts(prices)
      const fitting = table.filter(({ origin, model, price }) => origin !== 'shipped' || texts.get(model) === price)
      const versioned = new Set(fitting.flatMap(({ origin, model }) => (origin === 'shipped' ? [model] : [])))
      ship(new Map([...prices].filter(([model]) => versioned.has(model))), fitting)
    },
    listMissing(prices, author) {
      const isWritten = ([model, price]: readonly [string, Price]): boolean => {
        const current = shippedPrices.get(model)?.price
        return current !== undefined && (current === price || priceText(current) === priceText(price))
      }
      const fresh = [...prices].filter(row => !isWritten(row))
      return fresh.map(([model, price]) => ({ model, origin: 'shipped', price: priceText(price), author }))
    },
    get revision() {
      return revision
    },
  }
}

export interface PriceBookParts {
  readonly shipped: ReadonlyMap<string, Price>
  /** All rows of the table, in order. */
  readonly rows: readonly PriceRow[]
  readonly writer: Pick<StoreWriter, 'run'>
  /** The author of shipped prices. */
  readonly author: string
  /** By default, what looks like a variant is one. */
  readonly isVariant?: IsVariant
}

/** Whether a model is a variant of another one, whose price may not be the price of the variant. */
export type IsVariant = (model: string) => boolean

/** Writes shipped prices that are new, and opens the price book. */
export async function openPriceBook({ shipped, rows, writer, author, isVariant }: PriceBookParts): Promise<PriceBook> {
  const prices = findNewPrices(shippedTexts(shipped), rows, author)
  if (prices.length === 0) return buildPriceBook(shipped, rows, isVariant)
  const { versions } = await writer.run('addPrices', { prices }, { actor: author })
  const fresh = prices.map((row, index) => ({ ...row, version: versions[index]! }))
  return buildPriceBook(shipped, [...rows, ...fresh], isVariant)
}

export const isPattern = (model: string): boolean => model.includes('*')

/** Parses the price of a row. Throws if it is invalid. */
export function parsePriceRow(model: string, version: number, text: string): Price {
  const fail = (problem: string): never => {
    throw new Error(`price version ${version} of ${model}: ${problem}`)
  }
  let json: unknown
  try {
    json = JSON.parse(text)
  } catch {
    return fail('not valid JSON')
  }
  return parsePrice(json, fail)
}
