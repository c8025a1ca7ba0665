// The arithmetic of npm run bench:ab, and what it is asked for.

import { expect, test } from 'bun:test'
import { readArguments } from '../../bench/ab/arguments.ts'
import type { Costs } from '../../bench/ab/compare.ts'
import { compare, outsideOf, ROUNDS_MIN, roundsToSee, verdict } from '../../bench/ab/compare.ts'

test('the interval leaves out as many ratios as the tables of the sign test say', () => {
  const tables = { 1: 0, 5: 0, 6: 1, 8: 1, 9: 2, 12: 3, 15: 4, 20: 6, 25: 8 }
  expect(Object.fromEntries(Object.keys(tables).map(count => [count, outsideOf(Number(count))]))).toEqual(tables)
  expect(ROUNDS_MIN).toBe(6)
})

const ratios = (...values: readonly number[]): readonly Costs[] => values.map(ratio => ({ a: 200, b: 200 * ratio }))

test('a difference is seen when the whole interval is on one side of 1', () => {
  const pairs = ratios(0.9, 0.91, 0.92, 0.89, 0.9, 0.93)
  const { ratio, interval } = compare(pairs)
  expect(ratio).toBeCloseTo(0.905)
  expect(interval).toEqual({ low: expect.closeTo(0.89), high: expect.closeTo(0.93) })
  expect(verdict(compare(pairs), 6)).toStartWith(
    'A difference is seen: B costs 9.5 % less (95 % sure: between 11.0 % less and 7.0 % less).',
  )
  expect(verdict(compare(ratios(1.1, 1.12, 1.1, 1.11, 1.1, 1.13)), 6)).toStartWith(
    'A difference is seen: B costs 10.5 % more',
  )
})

test('no difference is seen when the interval contains 1, and it says whether 5 % would have been', () => {
  const calm = ratios(0.99, 1.01, 1, 1.005, 0.995, 1.002, 0.998, 1.003)
  expect(verdict(compare(calm), 8)).toMatch(/^No difference is seen: .* One of 5 % would probably have been\./)
  const rough = ratios(0.7, 1.3, 1, 1.2, 0.8, 1.1, 0.9, 1.05)
  expect(verdict(compare(rough), 8)).toMatch(/^No difference is seen: .* One of 5 % could be there\./)
})

test('too few rounds say nothing, however large the difference is', () => {
  const pairs = ratios(0.5, 0.5, 0.5, 0.5, 0.5)
  expect(compare(pairs).interval).toBeUndefined()
  expect(verdict(compare(pairs), 5)).toContain('which says nothing: 6 rounds are the least')
})

test('one round in which the machine was busy changes neither the ratio nor the spread much', () => {
  const calm = compare(ratios(0.99, 1.01, 1, 1.01, 0.99, 1))
  const disturbed = compare(ratios(0.99, 1.01, 1, 1.01, 0.99, 4))
  expect(disturbed.ratio).toBeCloseTo(calm.ratio, 1)
  expect(disturbed.spread).toBeLessThan(0.03)
})

test('the rounds that show 5 % grow with the square of the spread', () => {
  expect(roundsToSee(0)).toBe(ROUNDS_MIN)
  expect(roundsToSee(0.05)).toBe(19)
  expect(roundsToSee(0.1)).toBe(58)
})

/** Numbers between 0 and 1 that are the same in each run of the test. */
function numbers(seed: number): () => number {
  let state = seed
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state / 2 ** 32
  }
}

/** How many of a thousand comparisons see a difference when B costs so many times A. */
function seenOf(times: number, rounds: number, spread: number): number {
  const next = numbers(15)
  const noise = (): number =>
    Math.exp(spread * Math.sqrt(-2 * Math.log(next() || 1e-9)) * Math.cos(2 * Math.PI * next()))
  const seen = Array.from({ length: 1_000 }, () => {
    const { interval } = compare(Array.from({ length: rounds }, () => ({ a: 200, b: 200 * times * noise() })))
    return interval !== undefined && (interval.low > 1 || interval.high < 1)
  })
  return seen.filter(Boolean).length
}

test('of a thousand comparisons of the same with itself at most 5 % see a difference; of 5 % more, most do', () => {
  expect(seenOf(1, 13, 0.05)).toBeLessThanOrEqual(60)
  expect(seenOf(1.05, roundsToSee(0.05), 0.05)).toBeGreaterThanOrEqual(770)
})

test('arguments: A, B or the working tree, what, and how many rounds', () => {
  expect(readArguments(['main'])).toEqual({
    a: 'main',
    b: undefined,
    only: ['plain', 'stream'],
    rounds: 40,
    quick: false,
  })
  expect(readArguments(['a', 'b', '--only', 'ledger', '--only', 'ledger', '--rounds', '20', '--quick'])).toEqual({
    ...{ a: 'a', b: 'b', only: ['ledger'], rounds: 20, quick: true },
  })
})

test.each([
  [[], 'npm run bench:ab -- <commit>'],
  [['a', 'b', 'c'], 'npm run bench:ab -- <commit>'],
  [['a', '--only', 'speed'], '--only takes plain, stream, translated, prompt, ledger, choice, not "speed".'],
  [['a', '--rounds', '0'], '--rounds takes a whole number from 1 to 1000, not "0".'],
  [['a', '--rounds', '1.5'], '--rounds takes a whole number from 1 to 1000, not "1.5".'],
  [['a', '--rounds', 'many'], '--rounds takes a whole number from 1 to 1000, not "many".'],
  [['a', '--fast'], "'--fast'"],
])('arguments %p are refused: %s', (args, message) => {
  expect(() => readArguments(args)).toThrow(message)
})
