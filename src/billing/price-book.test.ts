// Tests price versions: shipped prices, prices of operators that override them, and withdrawals.

import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { expectCheap } from '../../test/support/cpu.ts'
import type { Price } from '../base/money/price.ts'
import { parsePrice, priceText } from '../base/money/price.ts'
import type { PriceRow } from './price-book.ts'
import { buildPriceBook, findNewPrices, openPriceBook, shippedTexts } from './price-book.ts'

const priceOf = (input: string): Price =>
  parsePrice({ input, output: '1' }, problem => {
    throw new Error(problem)
  })

const author = 'weir 1.0'
const shippedAt = (prices: Record<string, string>): ReadonlyMap<string, Price> =>
  new Map(Object.entries(prices).map(([model, input]) => [model, priceOf(input)]))

/** Starts a release that ships these prices, on a table with these rows. */
function start(prices: Record<string, string>, rows: readonly PriceRow[] = []) {
  const shipped = shippedAt(prices)
  let version = rows.at(-1)?.version ?? 0
  const fresh = findNewPrices(shippedTexts(shipped), rows, author).map(row => ({ ...row, version: ++version }))
  const all = [...rows, ...fresh]
  return { rows: all, book: buildPriceBook(shipped, all) }
}

/** The current version and input rate. */
function currentPrice(book: ReturnType<typeof start>['book'], model: string): readonly [number, string] | undefined {
  const current = book.current(model)
  return current && [current.version, `${current.price.rates.input / 1_000_000_000n}`]
}

const operatorRow = (version: number, model: string, input: string): PriceRow => ({
  version,
  model,
  origin: 'operator',
  price: priceText(priceOf(input)),
  author: 'ann',
})
const withdrawnRow = (version: number, model: string): PriceRow => ({
  version,
  model,
  origin: 'withdrawn',
  price: '',
  author: 'ann',
})

describe('a shipped price', () => {
  test('has a version from the first start on, and no new one while it stays the same', () => {
    const first = start({ 'a/x': '1', 'a/y': '2' })
    expect(first.rows).toEqual([
      { version: 1, model: 'a/x', origin: 'shipped', price: '{"input":"1.00","output":"1.00"}', author },
      { version: 2, model: 'a/y', origin: 'shipped', price: '{"input":"2.00","output":"1.00"}', author },
    ])
    expect(currentPrice(first.book, 'a/y')).toEqual([2, '2'])
    expect(start({ 'a/x': '1', 'a/y': '2.0' }, first.rows).rows).toEqual(first.rows)
  })

  test('has a new version when it changes, also when it changes back', () => {
    const first = start({ 'a/x': '1' })
    const second = start({ 'a/x': '3' }, first.rows)
    const third = start({ 'a/x': '1' }, second.rows)
    expect([first, second, third].map(({ book }) => currentPrice(book, 'a/x'))).toEqual([
      [1, '1'],
      [2, '3'],
      [3, '1'],
    ])
  })

  test('is unknown when it is no longer shipped', () => {
    const { rows } = start({ 'a/x': '1' })
    expect(currentPrice(start({}, rows).book, 'a/x')).toBeUndefined()
    expect(currentPrice(start({ 'a/x': '1' }, rows).book, 'a/x')).toEqual([1, '1'])
  })
})

describe("an operator's price", () => {
  test('overrides the shipped price, also after that has changed, until it is withdrawn', () => {
    const { rows } = start({ 'a/x': '1' })
    const set = [...rows, operatorRow(2, 'a/x', '9')]
    expect(currentPrice(start({ 'a/x': '1' }, set).book, 'a/x')).toEqual([2, '9'])
    const later = start({ 'a/x': '3' }, set)
    expect(currentPrice(later.book, 'a/x')).toEqual([2, '9'])
    expect(later.rows.at(-1)).toMatchObject({ version: 3, origin: 'shipped' })
    expect(currentPrice(start({ 'a/x': '3' }, [...later.rows, withdrawnRow(4, 'a/x')]).book, 'a/x')).toEqual([3, '3'])
  })

  test('may be added while the gateway runs, also for a model without a price', () => {
    const { book } = start({ 'a/x': '1' })
    expect(currentPrice(book, 'b/open')).toBeUndefined()
    const { revision } = book
    book.add(operatorRow(2, 'b/open', '4'))
    book.add(operatorRow(3, 'a/x', '5'))
    book.add(operatorRow(4, 'a/x', '6'))
    expect([currentPrice(book, 'b/open'), currentPrice(book, 'a/x')]).toEqual([
      [2, '4'],
      [4, '6'],
    ])
    book.add(withdrawnRow(5, 'a/x'))
    book.add(withdrawnRow(6, 'b/open'))
    expect([currentPrice(book, 'b/open'), currentPrice(book, 'a/x')]).toEqual([undefined, [1, '1']])
    expect(book.revision).toBe(revision + 5)
  })

  test('is refused when it is invalid, and changes nothing', () => {
    const { book } = start({ 'a/x': '1' })
    const bad = (price: string) => () => book.add({ ...operatorRow(2, 'a/x', '1'), price })
    expect(bad('{"input":"-1","output":"1"}')).toThrow('"price.input" must be')
    expect(bad('{"input":')).toThrow('price version 2 of a/x: not valid JSON')
    expect(currentPrice(book, 'a/x')).toEqual([1, '1'])
  })
})

test('opening the book writes the new prices and uses their versions', async () => {
  const operations: unknown[] = []
  const run = (...args: readonly unknown[]): Promise<never> => {
    operations.push(args)
    return Promise.resolve({ done: 'added', versions: [7] } as never)
  }
  const { rows } = start({ 'a/x': '1' })
  const shipped = shippedAt({ 'a/x': '1', 'a/y': '2' })
  const book = await openPriceBook({ shipped, rows, writer: { run }, author })
  const price = '{"input":"2.00","output":"1.00"}'
  const fresh = { prices: [{ model: 'a/y', origin: 'shipped', price, author }] }
  expect(operations).toEqual([['addPrices', fresh, { actor: author }]])
  expect([currentPrice(book, 'a/x'), currentPrice(book, 'a/y')]).toEqual([
    [1, '1'],
    [7, '2'],
  ])
  await openPriceBook({ shipped: shippedAt({ 'a/x': '1' }), rows, writer: { run }, author })
  expect(operations).toHaveLength(1)
})

test('rows out of order are an internal error', () => {
  expect(() => findNewPrices(new Map(), [operatorRow(2, 'a', '1'), operatorRow(1, 'a', '1')], author)).toThrow(
    'in the order of their versions',
  )
})

test('for any history of releases and operators, the last change is current', () => {
  const model = fc.constantFrom('a/x', 'a/y', 'b/z')
  const input = fc.constantFrom('1', '2', '3')
  const step = fc.oneof(
    fc.record({ kind: fc.constant('release' as const), prices: fc.dictionary(model, input, { maxKeys: 3 }) }),
    fc.record({ kind: fc.constant('set' as const), model, input }),
    fc.record({ kind: fc.constant('withdraw' as const), model }),
  )
  fc.assert(
    fc.property(fc.array(step, { maxLength: 12 }), steps => {
      let { rows, book } = start({})
      let shipped: Record<string, string> = {}
      const operatorPrices = new Map<string, string>()
      for (const one of steps) {
        const version = (rows.at(-1)?.version ?? 0) + 1
        if (one.kind === 'release') {
          shipped = one.prices
          ;({ rows, book } = start(shipped, rows))
          continue
        }
        const row = one.kind === 'set' ? operatorRow(version, one.model, one.input) : withdrawnRow(version, one.model)
        if (one.kind === 'set') operatorPrices.set(one.model, one.input)
        else operatorPrices.delete(one.model)
        rows = [...rows, row]
        book.add(row)
      }
      for (const name of ['a/x', 'a/y', 'b/z']) {
        expect(currentPrice(book, name)?.[1]).toBe((operatorPrices.get(name) ?? shipped[name]) as string)
        const version = book.current(name)?.version
        if (version !== undefined) expect(rows.find(row => row.version === version)?.model).toBe(name)
      }
    }),
    { numRuns: 500 },
  )
})

test('a book of many models opens quickly', async () => {
  const many = shippedAt(Object.fromEntries(Array.from({ length: 5_000 }, (_, index) => [`a/${index}`, '1.5'])))
  await expectCheap(1_000, () => {
    const rows = findNewPrices(shippedTexts(many), [], author).map((row, index) => ({ ...row, version: index + 1 }))
    const book = buildPriceBook(many, rows)
    expect(book.current('a/4999')?.version).toBe(5_000)
  })
})

test('a price for a pattern is not the price of a variant, unless the pattern has a colon, too', () => {
  const rows = [operatorRow(1, 'a/*', '5'), operatorRow(2, 'a/*:online', '7')]
  const book = buildPriceBook(new Map(), rows)
  const priceOfModel = (model: string): string | undefined => currentPrice(book, model)?.[1]
  expect(['a/x', 'a/v1:0', 'a/x:online'].map(priceOfModel)).toEqual(['5', '5', '7'])
  expect(['a/x:nitro', 'a/x:free', 'a/x:Other-1.5'].map(priceOfModel)).toEqual([undefined, undefined, undefined])
  const tagged = buildPriceBook(new Map(), rows, () => false)
  expect(currentPrice(tagged, 'a/x:latest')?.[1]).toBe('5')
})

test('rows of another process apply, but not the shipped prices of another release', () => {
  const { rows, book } = start({ 'a/x': '1', 'a/y': '2' })
  const shipped = (version: number, model: string, input: string): PriceRow => ({
    ...operatorRow(version, model, input),
    origin: 'shipped',
  })
  const added = [operatorRow(3, 'a/z', '7'), operatorRow(4, 'a/w', '8'), withdrawnRow(5, 'a/w'), shipped(6, 'a/x', '9')]
  book.reread(shippedAt({ 'a/x': '1', 'a/y': '2', 'a/new': '5' }), [...rows, ...added])
  expect(['a/x', 'a/y', 'a/z', 'a/w', 'a/new'].map(model => currentPrice(book, model))).toEqual([
    ...([[1, '1'], [2, '2'], [3, '7'], undefined, undefined] as const),
  ])
  book.reread(shippedAt({ 'a/x': '9', 'a/new': '5' }), [...rows, ...added, shipped(7, 'a/new', '5')])
  expect(['a/x', 'a/y', 'a/new'].map(model => currentPrice(book, model))).toEqual([[6, '9'], undefined, [7, '5']])
})

test('shipped prices without a version change nothing', () => {
  const { book } = start({ 'a/x': '1' })
  const row = { model: 'a/y', origin: 'shipped', price: priceText(priceOf('2')), author, version: 2 } as const
  expect(() => book.replaceShipped(shippedAt({ 'a/y': '2', 'a/z': '3' }), [row])).toThrow('must have a version')
  expect(currentPrice(book, 'a/x')).toEqual([1, '1'])
  expect(currentPrice(book, 'a/y')).toBeUndefined()
  book.replaceShipped(shippedAt({ 'a/x': '1', 'a/y': '2' }), [row])
  expect(currentPrice(book, 'a/y')).toEqual([2, '2'])
})
