// Recomputes a statement: each balance must be the balance before it plus the amount. Lines come newest first.

import { nanosOf } from './money.ts'

interface ProvableLine {
  readonly amount: string
  readonly balance: string
}

interface Proof {
  readonly lines: number
  readonly sum: bigint
  /** The first line, counted from the newest, whose balance is not the sum; undefined: all agree. */
  readonly wrongAt: number | undefined
}

/** `isWhole`: there are no lines before the oldest one, so that its balance must be its amount. */
export function proveStatement(lines: readonly ProvableLine[], isWhole: boolean): Proof {
  let sum = 0n
  let wrongAt: number | undefined
  for (let index = lines.length - 1; index >= 0; index--) {
    const { amount, balance } = lines[index]!
    const before = lines[index + 1]
    sum += nanosOf(amount)
    const expected =
      before === undefined ? (isWhole ? nanosOf(amount) : nanosOf(balance)) : nanosOf(before.balance) + nanosOf(amount)
    if (expected !== nanosOf(balance)) wrongAt = index
  }
  return { lines: lines.length, sum, wrongAt }
}
