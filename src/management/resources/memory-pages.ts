// Pages of a list that is in memory, such as channels: it has few rows, and most of its data is not in the database.

import { assert } from '../../base/assert.ts'
import { orderName, readCursor, writeCursor } from '../../store/queries/cursor.ts'
import type { ListQuery } from '../../store/queries/paging.ts'

export interface MemoryPage<T> {
  readonly rows: readonly T[]
  readonly next: string | null
}

/** Sorts by `keyOf`, which must be different for each row. */
export function pageInMemory<T>(rows: readonly T[], pageQuery: ListQuery, keyOf: (row: T) => string): MemoryPage<T> {
  const direction = pageQuery.descending ? -1 : 1
  const compare = (a: string, b: string): number => (a < b ? -direction : a > b ? direction : 0)
  const sorted = rows.toSorted((a, b) => compare(keyOf(a), keyOf(b)))
  const after = pageQuery.after === undefined ? undefined : readCursor(pageQuery.after, orderName(pageQuery))
  assert(after !== null, 'the cursor of a request is checked before')
  const from = after === undefined ? 0 : sorted.findIndex(row => compare(keyOf(row), String(after.id)) > 0)
  const rest = from < 0 ? [] : sorted.slice(from)
  const page = rest.slice(0, pageQuery.limit)
  const last = page.at(-1)
  const hasMore = rest.length > page.length && last !== undefined
  const next = hasMore ? writeCursor(orderName(pageQuery), { value: keyOf(last), id: keyOf(last) }) : null
  return { rows: page, next }
}
