// A price of the data keeps its meaning in a provider file, whatever its tiers, hours and days.

import { expect, test } from 'bun:test'
import type { ConditionalPrice, ModelInfo } from '@pydantic/genai-prices'
import fc from 'fast-check'
import type { Tariff } from '../../scripts/providers/prices.ts'
import { dearer, filePrice, PRICES_AS_OF, tariffOf } from '../../scripts/providers/prices.ts'
import { parsePrice } from '../../src/base/money/price.ts'
import { computeBill } from '../../src/billing/price.ts'

const rate = fc.integer({ min: 1, max: 40 }).map(tenths => tenths / 8)
const tiers = fc.uniqueArray(fc.record({ start: fc.constantFrom(100, 200, 300), price: rate }), {
  selector: ({ start }) => start,
})
const tieredRate = fc.oneof(rate, fc.record({ base: rate, tiers }))
const prices = fc.record(
  { input_mtok: tieredRate, output_mtok: tieredRate, cache_read_mtok: tieredRate, cache_write_1h_mtok: rate },
  { requiredKeys: ['input_mtok', 'output_mtok'] },
)
const clock = fc.constantFrom('00:00:00Z', '00:30:00Z', '08:00:00Z', '16:30:00Z', '23:59:00Z')
const startDate = fc.record({
  type: fc.constant('start_date'),
  start_date: fc.constantFrom('2025-01-01', PRICES_AS_OF, '2027-01-01', '2028-06-01'),
})
const timeOfDay = fc
  .record({ type: fc.constant('time_of_date'), start_time: clock, end_time: clock })
  .filter(({ start_time, end_time }) => start_time !== end_time)
const conditional = fc.record({ constraint: fc.oneof(startDate, timeOfDay), prices })

// Two conditions at most: with three a price can have more cases than a file may hold.
const models = fc.tuple(prices, fc.array(conditional, { maxLength: 2 })).map(([first, others]): Tariff => {
  const all = [{ prices: first }, ...others] as unknown as ConditionalPrice[]
  return tariffOf({ id: 'one', match: { equals: 'one' }, prices: all } as ModelInfo) as Tariff
})

const point = fc.record({
  tokens: fc.constantFrom(3, 100, 101, 200, 201, 300, 301, 5000),
  minute: fc.integer({ min: 0, max: 1439 }),
  day: fc.constantFrom(PRICES_AS_OF, '2026-12-31', '2027-01-01', '2028-06-01', '2030-01-01'),
})

type Point = { readonly tokens: number; readonly minute: number; readonly day: string }

/** The rates that the gateway's billing uses then. */
function billedAt(tariff: Tariff, { tokens, minute, day }: Point): Record<string, number> {
  const price = parsePrice(filePrice(tariff), problem => {
    throw new Error(problem)
  })
  const atMs = Date.parse(day) + minute * 60_000
  const usage = { input: tokens - 2, cacheRead: 1, cacheWrite1h: 1, output: 1 }
  const { lines } = computeBill(usage, { price, version: 1, perMille: 1000n, serviceClass: undefined, atMs })
  return Object.fromEntries(lines.map(({ what, rate }) => [what, Number(rate) / 1e9]))
}

test('at every moment and length a file has the price of the data', () => {
  fc.assert(
    fc.property(models, point, (tariff, at) => {
      const expected = tariff.at(at)
      const billed = billedAt(tariff, at)
      expect(billed.output).toBe(expected.output!)
      expect(billed.input).toBe(expected.input!)
      expect(billed.cacheRead).toBe(expected.cacheRead ?? expected.input!)
      expect(billed.cacheWrite1h).toBe(expected.cacheWrite1h ?? expected.input!)
    }),
    { numRuns: 1500 },
  )
})

test('a kind that a case names keeps its rate, even if the plain price has the same rate for it without naming it', () => {
  const constraint = { type: 'time_of_date', start_time: '08:00:00Z', end_time: '16:30:00Z' }
  const peak = { input_mtok: 2, output_mtok: 4, cache_read_mtok: 1 }
  const all = [{ prices: { input_mtok: 1, output_mtok: 4 } }, { constraint, prices: peak }] as ConditionalPrice[]
  const tariff = tariffOf({ id: 'one', match: { equals: 'one' }, prices: all }) as Tariff
  expect(filePrice(tariff)).toEqual({
    input: '1.00',
    output: '4.00',
    cases: [{ hours: ['08:00', '16:30'], input: '2.00', cacheRead: '1.00' }],
  })
})

test('the more expensive of two prices is never less than its own price, nor than what the other names', () => {
  fc.assert(
    fc.property(models, models, point, (own, other, at) => {
      const [ownRates, otherRates, both] = [own.at(at), other.at(at), dearer(own, other).at(at)]
      for (const name of Object.keys(both) as (keyof typeof both)[]) {
        expect(both[name]!).toBeGreaterThanOrEqual(ownRates[name] ?? 0)
        expect(both[name]!).toBeGreaterThanOrEqual(otherRates[name] ?? 0)
      }
    }),
    { numRuns: 1500 },
  )
})
