// Tests that percentiles are at most 5 % off, and that histograms can be added, encoded and decoded.

import { expect, test } from 'bun:test'
import fc from 'fast-check'
import type { LatencyHistogram } from './latency-histogram.ts'
import {
  addEncodedHistogram,
  addHistogram,
  countLatency,
  encodeHistogram,
  msOfStep,
  percentile,
  stepOf,
} from './latency-histogram.ts'

const WEEK_MS = 7 * 86_400_000
const times = fc.array(fc.integer({ min: 0, max: WEEK_MS }), { minLength: 1, maxLength: 200 })

function histogramOf(values: readonly number[]): LatencyHistogram {
  const histogram: LatencyHistogram = new Map()
  for (const value of values) countLatency(histogram, stepOf(value))
  return histogram
}

test('the value of a step is within 5 % of all latencies in it', () => {
  for (let ms = 1; ms < WEEK_MS; ms = Math.ceil(ms * 1.003)) {
    expect(Math.abs(msOfStep(stepOf(ms)) - ms) / ms).toBeLessThan(0.05)
  }
  expect(msOfStep(stepOf(0))).toBe(0)
})

test('a percentile is exact within 5 % and a rounded millisecond', () => {
  fc.assert(
    fc.property(times, fc.constantFrom(0.5, 0.9, 0.95, 0.99, 1), (values, part) => {
      const sorted = values.toSorted((one, other) => one - other)
      const exact = sorted[Math.max(1, Math.ceil(values.length * part)) - 1]!
      expect(Math.abs(percentile(histogramOf(values), part)! - exact)).toBeLessThanOrEqual(exact * 0.05 + 0.5)
    }),
  )
  expect(percentile(new Map(), 0.5)).toBeUndefined()
})

test('the sum of two histograms equals the histogram of all values, also after encoding', () => {
  fc.assert(
    fc.property(times, times, (first, second) => {
      const sum = histogramOf(first)
      addHistogram(sum, histogramOf(second))
      const read: LatencyHistogram = new Map()
      for (const values of [first, second]) addEncodedHistogram(read, encodeHistogram(histogramOf(values)))
      const all = [...histogramOf([...first, ...second])].sort()
      expect([...sum].sort()).toEqual(all)
      expect([...read].sort()).toEqual(all)
    }),
  )
  const many: LatencyHistogram = new Map([
    [0, 3],
    [200, 5_000_000_000],
  ])
  const decoded: LatencyHistogram = new Map()
  addEncodedHistogram(decoded, encodeHistogram(many))
  expect(decoded).toEqual(many)
})
