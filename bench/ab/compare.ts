// Decides whether B uses another amount of CPU than A, from pairs of measurements that follow each other directly. It uses
// only the ratio B/A of each pair, because other work of the machine affects both sides of a pair alike.

import { median } from '../measures/figures.ts'

export interface Costs {
  readonly a: number
  readonly b: number
}

export interface Interval {
  readonly low: number
  readonly high: number
}

export interface Comparison {
  /** The median of B/A. */
  readonly ratio: number
  /** Contains the true median in at least 95 of 100 such comparisons. Undefined if there were too few rounds. */
  readonly interval: Interval | undefined
  /** The usual distance of a ratio from the median, as a part of the median. */
  readonly spread: number
  /** Rounds that would show a difference of 5 % in about four of five comparisons, with this spread. */
  readonly roundsToSee: number
}

const DIFFERENCE = 0.05
const DOUBT = 0.05

export function compare(pairs: readonly Costs[]): Comparison {
  const ratios = pairs.map(({ a, b }) => b / a).sort((x, y) => x - y)
  const spread = spreadOf(ratios)
  const outside = outsideOf(ratios.length)
  const interval = outside < 1 ? undefined : { low: ratios[outside - 1]!, high: ratios[ratios.length - outside]! }
  return { ratio: median(ratios), interval, spread, roundsToSee: roundsToSee(spread) }
}

/**
 * The interval of the sign test: it goes from the k-th smallest to the k-th largest ratio, with the largest k for which
 * the median lies outside in at most 5 of 100 cases. It assumes no distribution of the ratios.
 */
export function outsideOf(count: number): number {
  let [chance, sum, k] = [0.5 ** count, 0, 0]
  while (2 * (sum + chance) <= DOUBT) {
    sum += chance
    chance *= (count - k) / (k + 1)
    k++
  }
  return k
}

/** Fewer rounds have no interval, whatever their ratios are. */
export const ROUNDS_MIN = [1, 2, 3, 4, 5, 6, 7].find(count => outsideOf(count) > 0)!

/** Uses the median of the distances, so that one round on a busy machine has little effect. */
function spreadOf(ratios: readonly number[]): number {
  const logs = ratios.map(Math.log)
  const middle = median(logs)
  return 1.4826 * median(logs.map(log => Math.abs(log - middle)))
}

/**
 * The usual formula for a mean (1.96 for 95 % confidence, 0.84 for four of five), times 1.2533² for a median; and some
 * more, because the interval can only end at a measured ratio.
 */
export function roundsToSee(spread: number): number {
  const errors = ((1.96 + 0.84) * 1.2533 * spread) / Math.log(1 + DIFFERENCE)
  return ROUNDS_MIN + Math.ceil(errors ** 2)
}

export function verdict({ ratio, interval, spread, roundsToSee: needed }: Comparison, rounds: number): string {
  const percent = (value: number): string => `${(Math.abs(value) * 100).toFixed(1)} %`
  const than = (value: number): string => `${percent(value - 1)} ${value < 1 ? 'less' : 'more'}`
  const machine = `A round is usually ${percent(spread)} off; ${needed} rounds show a difference of ${percent(DIFFERENCE)}.`
  if (interval === undefined) {
    return `B costs ${than(ratio)} in the median, which says nothing: ${ROUNDS_MIN} rounds are the least. ${machine}`
  }
  const between = `95 % sure: between ${than(interval.low)} and ${than(interval.high)}`
  if (interval.high < 1 || interval.low > 1)
    return `A difference is seen: B costs ${than(ratio)} (${between}). ${machine}`
  const enough = rounds >= needed ? 'One of 5 % would probably have been.' : 'One of 5 % could be there.'
  return `No difference is seen: B costs ${than(ratio)} in the median (${between}). ${enough} ${machine}`
}
