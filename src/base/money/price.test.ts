// Tests that a price is read strictly, converted exactly, and has one text.

import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import type { Price } from './price.ts'
import { canBeFree, parsePrice, priceSchema, priceText } from './price.ts'
import { buckets } from './usage.ts'

const fail = (problem: string): never => {
  throw new Error(problem)
}
const read = (fields: object): Price => parsePrice({ input: '1', output: '2', ...fields }, fail)
const decimal = (value: bigint): string => `${value / 10n ** 9n}.${String(value % 10n ** 9n).padStart(9, '0')}`
/** Drops the money type, so that a value can be compared with plain bigints. */
const plain = (value: unknown): unknown => value

test('every bucket and fee has a rate, and each kind of case a condition', () => {
  const allRates = Object.fromEntries(buckets.map((bucket, index) => [bucket, `${index + 1}`]))
  const price = read({
    ...allRates,
    perRequest: '0.005',
    perSearch: '0.01',
    cases: [
      { class: 'priority', input: '5' },
      { inputAbove: 271_999, input: '5', output: '22.50' },
      { hours: ['16:30', '00:30'], perRequest: '0' },
      { from: '2027-02-28', class: 'flex', output: '1' },
    ],
    source: 'the vendor, by hand',
  })
  for (const [index, bucket] of buckets.entries()) {
    expect(plain(price.rates[bucket])).toBe(BigInt(index + 1) * 1_000_000_000n)
  }
  expect(plain([price.rates.perRequest, price.rates.perSearch])).toEqual([5_000_000n, 10_000_000n])
  expect(plain(price.cases)).toEqual([
    { class: 'priority', rates: { input: 5_000_000_000n } },
    { inputAbove: 271_999, rates: { input: 5_000_000_000n, output: 22_500_000_000n } },
    { hours: [990, 30], rates: { perRequest: 0n } },
    { class: 'flex', fromMs: Date.UTC(2027, 1, 28), rates: { output: 1_000_000_000n } },
  ])
  expect(price.source).toBe('the vendor, by hand')
})

describe('a price in another currency', () => {
  const yuan = (unitsPerUsd: string) => ({ currency: { code: 'CNY', unitsPerUsd } })

  test('is converted when it is read, and each rate is rounded up once', () => {
    const price = read({ ...yuan('7.2'), input: '8', output: '7.2', cases: [{ class: 'flex', input: '4' }] })
    expect(plain(price.rates)).toEqual({ input: 1_111_111_112n, output: 1_000_000_000n })
    expect(plain(price.cases[0]!.rates)).toEqual({ input: 555_555_556n })
    expect(price.currency).toEqual({ code: 'CNY', unitsPerUsd: '7.2' })
  })

  test('is exact where floating point is not', () => {
    fc.assert(
      fc.property(fc.bigInt(0n, 10n ** 12n), fc.bigInt(1_000_000n, 10n ** 13n), (rate, units) => {
        const found = read({ ...yuan(decimal(units)), output: decimal(rate) }).rates.output
        expect(found * units >= rate * 10n ** 9n && (found - 1n) * units < rate * 10n ** 9n).toBe(true)
      }),
    )
  })
})

const badPrices: readonly (readonly [name: string, change: object, message: string])[] = [
  ['a misspelt rate', { cacheread: '1' }, 'unknown field "cacheread"; did you mean "cacheRead"?'],
  ['no input', { input: undefined }, '"price.input" must be given'],
  ['no output', { output: undefined }, '"price.output" must be given'],
  ['a rate that is a number', { input: 0.15 }, '"price.input" must be'],
  ['a rate that is null', { reasoning: null }, '"price.reasoning" must be'],
  ['a negative rate', { output: '-1' }, '"price.output" must be'],
  ['a rate with an exponent', { input: '1e3' }, '"price.input" must be'],
  ['a rate with too many decimals', { input: '0.0000000001' }, 'nine decimals'],
  ['a fee that is a word', { perSearch: 'free' }, '"price.perSearch" must be an amount'],
  ['a rate that is too large', { input: '9999999999999999999' }, '"price.input" must be'],
  ['more than a dollar a token', { input: '1000000.000000001' }, 'must not be more than 1000000.00 USD'],
  ['a fee of more than a thousand dollars', { perRequest: '1000.01' }, 'must not be more than 1000.00 USD'],
  ['cases that are not a list', { cases: {} }, '"price.cases" must be a list'],
  ['too many cases', { cases: Array(25).fill({ class: 'flex', input: '1' }) }, '24 cases'],
  ['a case that is null', { cases: [null] }, '"price.cases[0]" must be an object'],
  ['a case without a condition', { cases: [{ input: '1' }] }, 'must say when it applies'],
  ['a case without a rate', { cases: [{ class: 'flex' }] }, 'must say what differs'],
  ['a misspelt condition', { cases: [{ above: 5, input: '1' }] }, 'unknown field "above"'],
  ['a case in a case', { cases: [{ class: 'flex', cases: [], input: '1' }] }, 'unknown field "cases"'],
  [
    'an invalid rate in a case',
    {
      cases: [
        { class: 'a', input: '1' },
        { class: 'b', input: 1 },
      ],
    },
    '"price.cases[1].input"',
  ],
  ['a class that is a number', { cases: [{ class: 5, input: '1' }] }, '"price.cases[0].class"'],
  ['a class in capitals', { cases: [{ class: 'Flex', input: '1' }] }, '"price.cases[0].class"'],
  ['a threshold that is a string', { cases: [{ inputAbove: '5', input: '1' }] }, '.inputAbove" must be'],
  ['a negative threshold', { cases: [{ inputAbove: -1, input: '1' }] }, '.inputAbove" must be'],
  ['a threshold of 1e400', { cases: [{ inputAbove: 1e400, input: '1' }] }, '.inputAbove" must be'],
  ['hours with one time', { cases: [{ hours: ['16:30'], input: '1' }] }, '.hours" must be'],
  ['hours with the same time twice', { cases: [{ hours: ['16:30', '16:30'], input: '1' }] }, '.hours" must be'],
  ['an invalid hour', { cases: [{ hours: ['16:30', '24:00'], input: '1' }] }, '.hours" must be'],
  ['an invalid day', { cases: [{ from: '2027-02-30', input: '1' }] }, '.from" must be'],
  ['a day with a time', { cases: [{ from: '2027-02-28T00:00', input: '1' }] }, '.from" must be'],
  ['a day that is a number', { cases: [{ from: 5, input: '1' }] }, '.from" must be'],
  ['a currency that is a string', { currency: 'CNY' }, '"price.currency" must be an object'],
  ['a currency without a rate', { currency: { code: 'CNY' } }, 'unitsPerUsd" must be'],
  ['a currency with a rate of zero', { currency: { code: 'CNY', unitsPerUsd: '0' } }, 'above zero'],
  ['a currency with a rate that is a number', { currency: { code: 'CNY', unitsPerUsd: 7.2 } }, 'unitsPerUsd" must be'],
  ['the dollar as the currency', { currency: { code: 'USD', unitsPerUsd: '1' } }, 'code" must be'],
  [
    'a currency that makes the price too large',
    { currency: { code: 'XAU', unitsPerUsd: '0.000000001' } },
    'not be more than',
  ],
  [
    'a currency with converted: false',
    { currency: { code: 'CNY', unitsPerUsd: '7', converted: false } },
    'converted" must be true',
  ],
  ['a source that is a number', { source: 5 }, '"price.source" must be'],
]

test.each(badPrices)('%s is refused with a message', (_name, change, message) => {
  expect(() => read(change)).toThrow(message)
})

test('the schema has each field that is read, and no other', () => {
  const { properties, required } = priceSchema as { properties: Record<string, object>; required: readonly string[] }
  expect(required).toEqual(['input', 'output'])
  const cases = (properties.cases as { items: { properties: object } }).items
  const currency = properties.currency as { properties: object }
  const values: readonly unknown[] = ['1', 'x', 5, true, ['x'], ['01:00', '02:00'], '2027-01-01', 'CNY', [], {}]
  const isKnown = (name: string, wrap: (fields: object) => object): boolean =>
    values.some(value => {
      try {
        read(wrap({ [name]: value }))
        return true
      } catch (fault) {
        return !(fault as Error).message.includes('unknown field')
      }
    })
  for (const name of Object.keys(properties)) expect([name, isKnown(name, fields => fields)]).toEqual([name, true])
  for (const name of Object.keys(cases.properties)) {
    expect([name, isKnown(name, fields => ({ cases: [fields] }))]).toEqual([name, true])
  }
  for (const name of Object.keys(currency.properties)) {
    expect([name, isKnown(name, fields => ({ currency: fields }))]).toEqual([name, true])
  }
  expect(isKnown('other', fields => fields)).toBe(false)
  const [, list = ''] = /fields: (.*)$/.exec(problemOf({ zzzzzzzz: 1 }))!
  expect(list.split(', ').toSorted()).toEqual(Object.keys(properties).toSorted())
})

function problemOf(fields: object): string {
  try {
    read(fields)
    return ''
  } catch (fault) {
    return (fault as Error).message
  }
}

test('a price must be an object', () => {
  for (const value of [null, undefined, 5, '1', []]) {
    expect(() => parsePrice(value, fail)).toThrow('"price" must be an object')
  }
})

const amount = fc.bigInt(0n, 10n ** 12n).map(decimal)
const rates = Object.fromEntries(buckets.map(bucket => [bucket, amount]))
const priceCase = fc.record({ class: fc.constant('flex'), inputAbove: fc.nat(1e9), output: amount })
const prices = fc.record(
  {
    ...rates,
    perRequest: amount,
    cases: fc.array(priceCase, { maxLength: 3 }),
    currency: fc.constant({ code: 'CNY', unitsPerUsd: '7.1' }),
    source: fc.string({ minLength: 1, maxLength: 20 }),
  },
  { requiredKeys: [] },
)

test('a price is read back from its text as the same price, which has the same text', () => {
  fc.assert(
    fc.property(prices, fields => {
      const price = read(fields)
      const readAgain = parsePrice(JSON.parse(priceText(price)), fail)
      expect(readAgain).toEqual(price)
      expect(priceText(readAgain)).toBe(priceText(price))
    }),
  )
})

test('the text does not depend on how a price was written', () => {
  const first = read({ cacheRead: '0.5', reasoning: '3', cases: [{ from: '2027-01-01', class: 'flex', input: '1.0' }] })
  const cases = [{ input: '1', class: 'flex', from: '2027-01-01' }]
  const second = parsePrice({ cases, reasoning: '3.00', output: '2.0', input: '01', cacheRead: '0.50' }, fail)
  expect(priceText(first)).toBe(priceText(second))
  expect(priceText(first)).toBe(
    '{"input":"1.00","cacheRead":"0.50","output":"2.00","reasoning":"3.00",' +
      '"cases":[{"class":"flex","from":"2027-01-01","input":"1.00"}]}',
  )
})

test('a free price is distinguished from one with free parts', () => {
  expect(canBeFree(read({ input: '0' }))).toBe(false)
  expect(canBeFree(read({ input: '0', output: '0' }))).toBe(true)
  expect(canBeFree(read({ input: '0', cases: [{ class: 'batch', output: '0' }] }))).toBe(true)
})
