// Tests the mean and the deviation, however the numbers are split into batches.

import { expect, test } from 'bun:test'
import type { MeanVariance } from './mean-variance.ts'
import { deviationOf, fadeMeanVariance, meanVarianceOf, mergeMeanVariances } from './mean-variance.ts'

const numbers = Array.from({ length: 1_000 }, (_, index) => 1 + Math.sin(index) / 3)
const meanVarianceOfAll = (values: readonly number[]): MeanVariance =>
  values.reduce<MeanVariance | undefined>((sum, value) => mergeMeanVariances(sum, meanVarianceOf(value)), undefined)!

test('the mean and the deviation equal the textbook formulas', () => {
  const mean = numbers.reduce((sum, value) => sum + value, 0) / numbers.length
  const variance = numbers.reduce((sum, value) => sum + (value - mean) ** 2, 0) / (numbers.length - 1)
  expect(meanVarianceOfAll(numbers).mean).toBeCloseTo(mean, 12)
  expect(deviationOf(meanVarianceOfAll(numbers))).toBeCloseTo(Math.sqrt(variance), 12)
  expect(deviationOf(meanVarianceOf(7))).toBe(0)
})

test.each([1, 3, 500, 999])('the mean and the deviation are the same when the numbers are split at %d', index => {
  const merged = mergeMeanVariances(meanVarianceOfAll(numbers.slice(0, index)), meanVarianceOfAll(numbers.slice(index)))
  expect(merged.n).toBe(1_000)
  expect(merged.mean).toBeCloseTo(meanVarianceOfAll(numbers).mean, 12)
  expect(merged.m2).toBeCloseTo(meanVarianceOfAll(numbers).m2, 9)
})

test('fading halves the number, with the same mean and deviation', () => {
  const statistics = meanVarianceOfAll(numbers)
  expect(fadeMeanVariance(statistics, 1_000)).toBe(statistics)
  const faded = fadeMeanVariance(statistics, 900)
  expect([faded.n, faded.mean]).toEqual([450, statistics.mean])
  expect(deviationOf(faded)).toBeCloseTo(deviationOf(statistics), 3)
})
