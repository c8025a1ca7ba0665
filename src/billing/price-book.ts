// The prices in force, each with the version that a call pins. Versions are rows that are never changed: what is
// shipped becomes a new row when it differs from the row before it, an operator's own price is a row that goes before
// what is shipped, and taking it back is a row as well.

import { assert } from '../base/assert.ts'
import type { Price } from '../base/money/price.ts'
import { parsePrice, priceText } from '../base/money/price.ts'
import type { PriceVersion } from '../store/engine/reader.ts'
import type { Writer } from '../store/engine/writer.ts'
import type { PriceInsert } from '../store/ledger/hold-types.ts'

/** A row of the price table. Its model is named as callers name it, and the price of a withdrawal is empty. */
export type PriceRow = PriceVersion

export interface CurrentPrice {
  readonly version: number
  readonly price: Price
}

export interface PriceBook {
  /** Undefined: nobody knows the price. */
  current(model: string): CurrentPrice | undefined
  /** Takes a row that has been written while we run. Throws if its price cannot be read, and then stays as it was. */
  add(row: PriceRow): void
  /** The rows to write before these are the shipped prices. */
  missing(shipped: ReadonlyMap<string, Price>, author: string): readonly PriceInsert[]
  /** From now on these are the shipped prices: `rows` are those that were missing, by now written. */
  ship(shipped: ReadonlyMap<string, Price>, rows: readonly PriceRow[]): void
  /** Grows with each row, so that what is made from the prices knows when it is out of date. */
  readonly revision: number
}

/** The rows to write before a book is opened: every shipped price that differs from its last shipped version. */
export function syncRows(
  shipped: ReadonlyMap<string, string>,
  rows: readonly PriceRow[],
  author: string,
): readonly PriceInsert[] {
  const last = new Map<string, string>()
  let version = 0
  for (const row of rows) {
    assert(row.version > version, 'the rows of the price table come in order')
    version = row.version
    if (row.origin === 'shipped') last.set(row.model, row.price)
  }
  const fresh: PriceInsert[] = []
  for (const [model, price] of shipped) {
    if (last.get(model) !== price) fresh.push({ model, origin: 'shipped', price, author })
  }
  return fresh
}

/** The texts that syncRows() compares. */
export function shippedTexts(prices: ReadonlyMap<string, Price>): ReadonlyMap<string, string> {
  return new Map([...prices].map(([model, price]) => [model, priceText(price)]))
}

/**
 * `rows` are those of the table, synchronised and in order. Only what operators wrote is parsed: the shipped prices
 * are at hand, and a model that is no longer shipped with a price has none.
 */
export function buildPriceBook(first: ReadonlyMap<string, Price>, rows: readonly PriceRow[]): PriceBook {
  const ours = new Map<string, CurrentPrice>()
  const operators = new Map<string, CurrentPrice>()

  let shipped = first
  let revision = 0

  function add({ version, model, origin, price: text }: PriceRow): void {
    if (origin === 'withdrawn') {
      operators.delete(model)
    } else if (origin === 'operator') {
      operators.set(model, { version, price: readRow(model, version, text) })
    } else {
      const price = shipped.get(model)
      if (price !== undefined) ours.set(model, { version, price })
    }
    revision++
  }

  function ship(prices: ReadonlyMap<string, Price>, fresh: readonly PriceRow[]): void {
    shipped = prices
    for (const model of ours.keys()) if (!prices.has(model)) ours.delete(model)
    for (const row of fresh) add(row)
    for (const model of prices.keys()) assert(ours.has(model), 'every shipped price has a version')
    revision++
  }

  ship(first, rows)
  return {
    current: model => operators.get(model) ?? ours.get(model),
    add,
    ship,
    missing(prices, author) {
      const isKnown = ([model, price]: readonly [string, Price]): boolean => {
        const known = ours.get(model)?.price
        return known !== undefined && (known === price || priceText(known) === priceText(price))
      }
      const fresh = [...prices].filter(row => !isKnown(row))
      return fresh.map(([model, price]) => ({ model, origin: 'shipped', price: priceText(price), author }))
    },
    get revision() {
      return revision
    },
  }
}

export interface PriceBookParts {
  readonly shipped: ReadonlyMap<string, Price>
  /** Those of the table, in order. */
  readonly rows: readonly PriceRow[]
  readonly writer: Pick<Writer, 'run'>
  /** Who ships. */
  readonly author: string
}

/** Writes down what is newly shipped, and opens the book. */
export async function openPriceBook({ shipped, rows, writer, author }: PriceBookParts): Promise<PriceBook> {
  const prices = syncRows(shippedTexts(shipped), rows, author)
  if (prices.length === 0) return buildPriceBook(shipped, rows)
  const { versions } = await writer.run('addPrices', { prices }, { actor: author })
  const fresh = prices.map((row, index) => ({ ...row, version: versions[index]! }))
  return buildPriceBook(shipped, [...rows, ...fresh])
}

/** What a row says. Throws where nobody can read it. */
export function readRow(model: string, version: number, text: string): Price {
  const fail = (problem: string): never => {
    throw new Error(`version ${version} of the prices, for ${model}: ${problem}`)
  }
  let json: unknown
  try {
    json = JSON.parse(text)
  } catch {
    return fail('not valid JSON')
  }
  return parsePrice(json, fail)
}
