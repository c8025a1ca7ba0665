// Arithmetic of money: exact, rounded up once, and never beyond what was held.

import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import type { NanosPerMillion } from '../base/money.ts'
import type { Usage } from '../base/usage.ts'
import type { CallSize, Price, PriceOrFree } from './price.ts'
import { costOf, estimateUsage, upperBound } from './price.ts'

const perMillion = (nanos: bigint): NanosPerMillion => nanos as NanosPerMillion

const price: Price = {
  input: perMillion(150_000_000n),
  cacheRead: perMillion(75_000_000n),
  output: perMillion(600_000_000n),
  perMille: 1_000n,
}

/** As plain numbers, to compare them with. */
const cost = (used: Usage, each: PriceOrFree): bigint => costOf(used, each)
const bound = (size: CallSize, each: PriceOrFree): bigint => upperBound(size, each)

const usage = (input: number, cacheRead: number, output: number) => ({ input, cacheRead, output })

describe('a cost', () => {
  test('is each kind of token at its own price', () => {
    expect(cost(usage(1, 0, 0), price)).toBe(150n)
    expect(cost(usage(0, 1, 0), price)).toBe(75n)
    expect(cost(usage(0, 0, 1), price)).toBe(600n)
    expect(cost(usage(10, 20, 30), price)).toBe(1_500n + 1_500n + 18_000n)
  })

  test('of nothing is nothing, and of a free provider too', () => {
    expect(cost(usage(0, 0, 0), price)).toBe(0n)
    expect(cost(usage(1e9, 1e9, 1e9), undefined)).toBe(0n)
  })

  test('is rounded up, once for the whole bill', () => {
    const tiny = { ...price, input: perMillion(1n), cacheRead: perMillion(1n), output: perMillion(1n) }
    expect(cost(usage(1, 0, 0), tiny)).toBe(1n)
    expect(cost(usage(400_000, 300_000, 300_000), tiny)).toBe(1n)
    expect(cost(usage(400_000, 300_000, 300_001), tiny)).toBe(2n)
  })

  test('is multiplied by the tier before it is rounded', () => {
    const half = { ...price, perMille: 500n }
    expect(cost(usage(1, 0, 0), half)).toBe(75n)
    expect(cost(usage(0, 1, 0), half)).toBe(38n)
    expect(cost(usage(1, 1, 0), half)).toBe(113n) // 112.5, and not 75 + 38
    expect(cost(usage(1, 1, 1), { ...price, perMille: 0n })).toBe(0n)
  })

  test('is exact where numbers are not', () => {
    const dear = { ...price, input: perMillion(15_000_000_000n) }
    expect(cost(usage(1_200_001, 0, 0), dear)).toBe(18_000_015_000n)
    const odd = { ...price, input: perMillion(1_234_567n) }
    expect(cost(usage(999_999_999_999, 0, 0), odd)).toBe(1_234_566_999_999n)
  })

  test('that no ledger can hold is refused', () => {
    const absurd = { ...price, output: perMillion(999_999_999_999_999_999n) }
    expect(() => cost(usage(0, 0, 1e12), absurd)).toThrow('64 bits')
  })
})

const tokens = fc.nat(10_000_000)
const perMillionAny = fc.bigInt(0n, 1_000_000_000_000n).map(perMillion)
const prices = fc.record({
  input: perMillionAny,
  cacheRead: perMillionAny,
  output: perMillionAny,
  perMille: fc.bigInt(0n, 5_000n),
})
const usages = fc.record({ input: tokens, cacheRead: tokens, output: tokens })

test('a cost is never negative, grows with usage, and its parts add up but for one nano-dollar each', () => {
  fc.assert(
    fc.property(usages, usages, prices, (one, two, each) => {
      const sum = usage(one.input + two.input, one.cacheRead + two.cacheRead, one.output + two.output)
      const [a, b, both] = [cost(one, each), cost(two, each), cost(sum, each)]
      expect(a).toBeGreaterThanOrEqual(0n)
      expect(both).toBeGreaterThanOrEqual(a)
      expect(a + b - both).toBeGreaterThanOrEqual(0n)
      expect(a + b - both).toBeLessThanOrEqual(1n)
    }),
    { numRuns: 2_000 },
  )
})

test('the bound covers every usage that keeps to it', () => {
  const call = fc.record({
    inputTokensMax: fc.nat(33_554_432),
    outputTokensMax: fc.nat(1_000_000),
    choices: fc.integer({ min: 1, max: 128 }),
  })
  const share = fc.double({ min: 0, max: 1, noNaN: true })
  fc.assert(
    fc.property(call, prices, fc.tuple(share, share, share), (size, each, [read, cached, written]) => {
      const prompt = Math.floor(size.inputTokensMax * read)
      const cacheRead = Math.floor(prompt * cached)
      const output = Math.floor(size.outputTokensMax * size.choices * written)
      expect(bound(size, each)).toBeGreaterThanOrEqual(cost(usage(prompt - cacheRead, cacheRead, output), each))
    }),
    { numRuns: 5_000 },
  )
})

describe('the bound', () => {
  const size = { inputTokensMax: 100, outputTokensMax: 10, choices: 1 }

  test('is every byte a token, and every token that may be written', () => {
    expect(bound(size, price)).toBe(100n * 150n + 10n * 600n)
    expect(bound({ ...size, choices: 3 }, price)).toBe(100n * 150n + 30n * 600n)
  })

  test('takes the dearest kind of input', () => {
    expect(bound(size, { ...price, cacheRead: perMillion(400_000_000n) })).toBe(100n * 400n + 6_000n)
  })

  test('of a free call is nothing', () => {
    expect(bound(size, undefined)).toBe(0n)
  })
})

test('an estimate counts four characters as a token, rounded up', () => {
  expect(estimateUsage(0, 0)).toEqual(usage(0, 0, 0))
  expect(estimateUsage(1, 1)).toEqual(usage(1, 0, 1))
  expect(estimateUsage(401, 8)).toEqual(usage(101, 0, 2))
})
