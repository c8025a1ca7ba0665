// The bill of a call: each line is a count times a rate. Rates are US dollars for a million.

import { nanosOf } from './money.ts'

interface BillLine {
  readonly what: string
  readonly count: number
  readonly rate: string
}

const MILLION = 1_000_000n

/** The amount of a line in millionths of a nano-dollar, so that nothing is rounded. */
export const lineAmount = ({ count, rate }: BillLine): bigint => BigInt(count) * nanosOf(rate)

export const sumOfLines = (lines: readonly BillLine[]): bigint =>
  lines.reduce((sum, line) => sum + lineAmount(line), 0n)

/** Rounds up to whole nano-dollars, as the gateway does once for a whole bill. */
export const roundedUp = (amount: bigint): bigint => (amount + MILLION - 1n) / MILLION

/** What the charge is of the sum of the lines: the multiplier of the tier, with three digits; undefined if it is 1. */
export function multiplierOf(lines: readonly BillLine[], cost: string): number | undefined {
  const sum = sumOfLines(lines)
  const charged = nanosOf(cost)
  if (sum === 0n || charged === 0n || charged === roundedUp(sum)) return undefined
  return Math.round((Number(charged) * 1_000 * Number(MILLION)) / Number(sum)) / 1_000
}
