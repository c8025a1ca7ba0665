// Tests that money is exact: amounts are read back as written, and a bill is rounded up once.

import { expect, test } from 'bun:test'
import fc from 'fast-check'
import type { Nanos, NanosPerMillion } from './money.ts'
import { bill, formatUsd, nanos, noMoney, parseUsd } from './money.ts'

const amounts = fc.bigInt({ min: 0n, max: 999_999_999n * 1_000_000_000n + 999_999_999n })
const price = (value: bigint): NanosPerMillion => value as NanosPerMillion
const line = fc.record({ count: fc.nat(10_000_000), rate: fc.bigInt({ min: 0n, max: 1_000_000_000_000n }).map(price) })
const lineOf = (count: number, rate: bigint) => ({ count, rate: price(rate) })

test.each([
  ['0', 0n],
  ['5', 5_000_000_000n],
  ['0.25', 250_000_000n],
  ['0.000000001', 1n],
  ['1.000000001', 1_000_000_001n],
  ['007.10', 7_100_000_000n],
  ['999999999.999999999', 999_999_999_999_999_999n],
])('%s USD is %p nanos', (text, value) => {
  expect(parseUsd(text)).toBe(value as Nanos)
})

test.each([
  ...['', ' ', '-1', '+1', '1.', '.5', '1,5', '1e3', '0x10', 'NaN', ' 1', '1 ', '١'],
  ...['1.0000000001', '1000000000'],
])('%p is not an amount', text => {
  expect(parseUsd(text)).toBeUndefined()
})

test.each([
  [0n, '0.00'],
  [1n, '0.000000001'],
  [10_000_000n, '0.01'],
  [100_000_000n, '0.10'],
  [5_000_000_000n, '5.00'],
  [1_230_000_000n, '1.23'],
  [1_234_500_000n, '1.2345'],
  [-1n, '-0.000000001'],
  [-10_000_000_000n, '-10.00'],
])('%p nanos are written %s', (value, text) => {
  expect(formatUsd(nanos(value))).toBe(text)
})

test('a written amount is read back as the same amount', () => {
  fc.assert(fc.property(amounts, amount => expect(parseUsd(formatUsd(nanos(amount)))).toBe(nanos(amount))))
})

test('an amount beyond 64 bits fails an assertion', () => {
  expect(nanos(2n ** 63n - 1n)).toBe((2n ** 63n - 1n) as Nanos)
  expect(() => nanos(2n ** 63n)).toThrow('64 bits')
  expect(() => nanos(-(2n ** 63n))).toThrow('64 bits')
})

test('a bill is at most a billion dollars, so that the ledger can still refuse it', () => {
  expect(bill([lineOf(1e12, 2n ** 62n)])).toBe((10n ** 18n) as Nanos)
  expect(bill([lineOf(1e9, 10n ** 15n), lineOf(1, 1n)])).toBe((10n ** 18n) as Nanos)
})

test('a bill is the exact sum, rounded up once', () => {
  fc.assert(
    fc.property(fc.array(line, { maxLength: 5 }), fc.bigInt({ min: 0n, max: 5_000n }), (lines, perMille) => {
      const exact = lines.reduce((sum, { count, rate }) => sum + BigInt(count) * rate, 0n) * perMille
      const billed = bill(lines, perMille)
      // billed - 1 < exact / 10^9 <= billed
      expect(billed * 1_000_000_000n >= exact && (billed - 1n) * 1_000_000_000n < exact).toBe(true)
    }),
  )
})

test('a bill does not depend on the order of its lines or on how they are split', () => {
  fc.assert(
    fc.property(fc.array(line, { minLength: 1, maxLength: 5 }), lines => {
      expect(bill([...lines].reverse())).toBe(bill(lines))
      const [{ count, rate }, ...others] = lines as [(typeof lines)[number], ...typeof lines]
      const half = Math.floor(count / 2)
      expect(bill([{ count: half, rate }, { count: count - half, rate }, ...others])).toBe(bill(lines))
    }),
  )
})

test('the smallest use at the lowest price costs one nano, and no use costs nothing', () => {
  expect(bill([lineOf(1, 1n)])).toBe(1n as Nanos)
  expect(bill([lineOf(0, 1n)])).toBe(noMoney)
  expect(bill([lineOf(5, 0n)])).toBe(noMoney)
  expect(bill([])).toBe(noMoney)
})
