// The mean and the deviation, however the numbers are split into batches.

import { expect, test } from 'bun:test'
import type { MeanVariance } from './mean-variance.ts'
import { deviationOf, fadeMeanVariance, meanVarianceOf, mergeMeanVariances } from './mean-variance.ts'

const numbers = Array.from({ length: 1_000 }, (_, at) => 1 + Math.sin(at) / 3)
const all = (values: readonly number[]): MeanVariance =>
  values.reduce<MeanVariance | undefined>((sum, value) => mergeMeanVariances(sum, meanVarianceOf(value)), undefined)!

test('equals the textbook formula', () => {
  const mean = numbers.reduce((sum, value) => sum + value, 0) / numbers.length
  const variance = numbers.reduce((sum, value) => sum + (value - mean) ** 2, 0) / (numbers.length - 1)
  expect(all(numbers).mean).toBeCloseTo(mean, 12)
  expect(deviationOf(all(numbers))).toBeCloseTo(Math.sqrt(variance), 12)
  expect(deviationOf(meanVarianceOf(7))).toBe(0)
})

test.each([1, 3, 500, 999])('is the same when it is cut at %d', at => {
  const merged = mergeMeanVariances(all(numbers.slice(0, at)), all(numbers.slice(at)))
  expect(merged.n).toBe(1_000)
  expect(merged.mean).toBeCloseTo(all(numbers).mean, 12)
  expect(merged.m2).toBeCloseTo(all(numbers).m2, 9)
})

test('fades to half the number, with the same mean and deviation', () => {
  const spread = all(numbers)
  expect(fadeMeanVariance(spread, 1_000)).toBe(spread)
  const faded = fadeMeanVariance(spread, 900)
  expect([faded.n, faded.mean]).toEqual([450, spread.mean])
  expect(deviationOf(faded)).toBeCloseTo(deviationOf(spread), 3)
})
