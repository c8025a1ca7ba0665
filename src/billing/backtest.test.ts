// Tests recomputed bills: without a change they are equal to the last digit; with a change they are what the call would
// have cost; and the reason is given when a bill cannot be recomputed.

import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { formatUsd } from '../base/money/money.ts'
import type { Price } from '../base/money/price.ts'
import { parsePrice } from '../base/money/price.ts'
import { buckets, units } from '../base/money/usage.ts'
import type { BilledCall } from './backtest.ts'
import { recompute } from './backtest.ts'
import type { Bill } from './price.ts'
import { computeBill } from './price.ts'

const priceOf = (json: unknown): Price =>
  parsePrice(json, problem => {
    throw new Error(problem)
  })

const rate = fc.integer({ min: 0, max: 90_000_000 }).map(micros => (micros / 1e6).toFixed(6))
const feeNames = ['perRequest', 'perSearch', 'perImage', 'perCharacter', 'perSecond'] as const
const rates = fc.record(
  Object.fromEntries([...buckets, ...feeNames].map(name => [name, rate])) as Record<string, typeof rate>,
  { requiredKeys: ['input', 'output'] },
)
const cases = fc.array(
  fc.oneof(
    fc.record({ class: fc.constantFrom('priority', 'flex'), input: rate, output: rate }),
    fc.record({ inputAbove: fc.integer({ min: 1, max: 5_000 }), input: rate }),
    fc.record({ hours: fc.constant(['08:00', '20:00']), output: rate }),
  ),
  { maxLength: 3 },
)
const price = fc.tuple(rates, cases).map(([stated, caseList]) => priceOf({ ...stated, cases: caseList }))
const usage = fc
  .record(Object.fromEntries([...buckets, ...units].map(name => [name, fc.integer({ min: 1, max: 10_000 })])), {
    requiredKeys: ['input', 'output'],
  })
  .map(counts => counts as { input: number; output: number })

const noon = Date.UTC(2026, 10, 15, 12)

function callOf({ amount, lines }: Bill, { price: billed, perMille }: { price: Price; perMille?: bigint }): BilledCall {
  const lineRows = lines.map(({ what, count, rate: each }) => [what, count, formatUsd(each)])
  return { atMs: noon, amount, price: billed, lines: JSON.stringify(lineRows), used: true, perMille }
}

describe('a bill', () => {
  const situation = fc.record({
    usage,
    from: price,
    perMille: fc.integer({ min: 1, max: 5_000 }).map(BigInt),
    serviceClass: fc.constantFrom(undefined, 'priority', 'flex'),
  })

  test('at the same price is the same, to the last digit', () => {
    fc.assert(
      fc.property(situation, ({ usage: used, from, perMille, serviceClass }) => {
        const billed = computeBill(used, { price: from, version: 1, perMille, serviceClass, atMs: noon })
        const recomputed = recompute(callOf(billed, { price: from, perMille }), { price: from })
        expect(recomputed).toBe(billed.amount)
      }),
      { numRuns: 300 },
    )
  })

  test('at another price is what the call would have cost, if it can be known', () => {
    let knownCount = 0
    fc.assert(
      fc.property(situation, price, ({ usage: used, from, perMille, serviceClass }, to) => {
        const named = from.cases.some(one => one.class === serviceClass) ? serviceClass : undefined
        const billAt = (one: Price) =>
          computeBill(used, { price: one, version: 1, perMille, serviceClass: named, atMs: noon })
        const recomputed = recompute(callOf(billAt(from), { price: from, perMille }), { price: to })
        if (typeof recomputed === 'string') return expect(['units_uncounted', 'class_unknown']).toContain(recomputed)
        knownCount++
        return expect(recomputed).toBe(billAt(to).amount)
      }),
      { numRuns: 300 },
    )
    expect(knownCount).toBeGreaterThan(20)
  })

  test('with another multiplier has the same lines', () => {
    fc.assert(
      fc.property(situation, fc.integer({ min: 0, max: 5_000 }), ({ usage: used, from, perMille }, other) => {
        const billAt = (each: bigint) =>
          computeBill(used, { price: from, version: 1, perMille: each, serviceClass: undefined, atMs: noon })
        const recomputed = recompute(callOf(billAt(perMille), { price: from, perMille }), { perMille: BigInt(other) })
        expect(recomputed).toBe(billAt(BigInt(other)).amount)
      }),
      { numRuns: 100 },
    )
  })

  const plain = priceOf({ input: '2', output: '8' })
  const dearer = priceOf({ input: '3', output: '8' })
  const billAt = (used: { input: number; output: number }, perMille: bigint): Bill =>
    computeBill(used, { price: plain, version: 1, perMille, serviceClass: undefined, atMs: noon })

  test('shows its own multiplier when the tier of its key has changed', () => {
    const billed = billAt({ input: 1_000_000, output: 1_000 }, 1_250n)
    const call = callOf(billed, { price: plain, perMille: 1_000n })
    expect(recompute(call, { price: plain })).toBe(billed.amount)
    expect(recompute({ ...call, perMille: undefined }, { price: plain })).toBe(billed.amount)
  })

  test('that fits several multipliers is not guessed', () => {
    const call = callOf(billAt({ input: 1, output: 0 }, 1_250n), { price: priceOf({ input: '0.000001', output: '8' }) })
    const tiny = { ...call, amount: 1n, lines: '[["input",1,"0.000001"]]' }
    expect(recompute(tiny, { price: plain })).toBe('multiplier_unknown')
  })

  test('that does not follow from its lines is left out', () => {
    const call = callOf(billAt({ input: 1_000, output: 10 }, 1_000n), { price: plain, perMille: 1_000n })
    expect(recompute({ ...call, amount: 0n }, { price: plain })).toBe('billed_otherwise')
    expect(recompute({ ...call, lines: '[["input",1000,"7"],["output",10,"8"]]' }, { price: plain })).toBe(
      'billed_otherwise',
    )
    expect(recompute({ ...call, lines: 'nonsense' }, { price: plain })).toBe('price_gone')
    expect(recompute({ ...call, price: undefined }, { price: plain })).toBe('price_gone')
  })

  test('without usage stays zero, and of a free call is unknown', () => {
    const nothing = { atMs: noon, amount: 0n, lines: null, price: plain, used: false, perMille: 1_000n }
    expect(recompute(nothing, { price: dearer })).toBe(0n)
    expect(recompute({ ...nothing, price: undefined, used: true }, { price: dearer })).toBe('was_free')
    expect(recompute({ ...nothing, price: undefined, used: true }, { perMille: 5n })).toBe(0n)
  })
})
