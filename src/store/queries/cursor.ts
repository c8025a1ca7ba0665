// Cursors of lists: the `next` of a page, and the `after` of the request for the page behind it. A cursor has the place of
// the last row, not the row itself, so it also works after that row was removed.

import type { SqlValue } from '../engine/steps.ts'

export interface Cursor {
  /** What the list is sorted by, of the last row. */
  readonly value: SqlValue
  /** Orders rows with the same value. */
  readonly id: SqlValue
}

/** What a list is sorted by, as in a request: `-created`. A place in one order is no place in another one. */
export const orderName = ({ sort, descending }: { readonly sort: string; readonly descending: boolean }): string =>
  `${descending ? '-' : ''}${sort}`

/** JSON has no exact form of an integer above 2^53, such as a large balance. */
interface LargeInteger {
  readonly integer: string
}

function cursorValue(value: SqlValue): string | number | LargeInteger {
  if (typeof value !== 'bigint') return String(value)
  return Number.isSafeInteger(Number(value)) ? Number(value) : { integer: String(value) }
}

/** Undefined for a value that is not one of ours. */
function readCursorValue(value: unknown): SqlValue | undefined {
  if (typeof value === 'string' || Number.isSafeInteger(value)) return value as string | number
  const { integer } = (value ?? {}) as Partial<Record<string, unknown>>
  if (typeof integer !== 'string' || !/^-?\d{1,19}$/.test(integer)) return undefined
  const large = BigInt(integer)
  return BigInt.asIntN(64, large) === large ? large : undefined
}

export const writeCursor = (order: string, { value, id }: Cursor): string =>
  Buffer.from(JSON.stringify([order, cursorValue(value), cursorValue(id)])).toString('base64url')

/** Null for a text that is not a cursor of ours, or one of another order. */
export function readCursor(text: string, order: string): Cursor | null {
  try {
    const parts: unknown = JSON.parse(Buffer.from(text, 'base64url').toString())
    if (!Array.isArray(parts) || parts.length !== 3 || parts[0] !== order) return null
    const [value, id] = parts.slice(1).map(readCursorValue)
    return value === undefined || id === undefined ? null : { value, id }
  } catch {
    return null
  }
}
