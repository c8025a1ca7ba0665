// Pages of a list that is in memory: few rows, of which most is not in the database.

import type { ListAsk } from '../../store/queries/paging.ts'

export interface MemoryPage<T> {
  readonly rows: readonly T[]
  readonly next: string | null
}

/** In the order of `keyOf`, which is of each row alone. */
export function memoryPage<T>(rows: readonly T[], ask: ListAsk, keyOf: (row: T) => string): MemoryPage<T> {
  const way = ask.descending ? -1 : 1
  const compare = (one: string, other: string): number => (one < other ? -way : one > other ? way : 0)
  const sorted = rows.toSorted((one, other) => compare(keyOf(one), keyOf(other)))
  const after = ask.after === undefined ? undefined : Buffer.from(ask.after, 'base64url').toString()
  const from = after === undefined ? 0 : sorted.findIndex(row => compare(keyOf(row), after) > 0)
  const rest = from < 0 ? [] : sorted.slice(from)
  const shown = rest.slice(0, ask.limit)
  const last = shown.at(-1)
  const isMore = rest.length > shown.length && last !== undefined
  return { rows: shown, next: isMore ? Buffer.from(keyOf(last)).toString('base64url') : null }
}
