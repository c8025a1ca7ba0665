// The changes of an audit row: for each field its old and its new value, or one value.

import type { AuditRow } from '../api/types.ts'

interface FieldChange {
  readonly field: string
  /** Undefined: the field has only one value, which is not a change. */
  readonly before?: string
  readonly after: string
}

/** How a value that is not there is shown. */
export const NOTHING = '–'

type Changes = AuditRow['changes']

const textOf = (value: unknown): string =>
  value === null || value === undefined ? NOTHING : typeof value === 'string' ? value : JSON.stringify(value)

export function changesOf(changes: Changes): readonly FieldChange[] {
  return Object.entries(changes).map(([field, value]) =>
    Array.isArray(value) && value.length === 2
      ? { field, before: textOf(value[0]), after: textOf(value[1]) }
      : { field, after: textOf(value) },
  )
}

/** One line: `name: a → b, tier: pro`. A value that was not there before needs no arrow, and one that stayed empty no words. */
export const changesLine = (changes: Changes): string =>
  changesOf(changes)
    .filter(({ before = NOTHING, after }) => before !== NOTHING || after !== NOTHING)
    .map(({ field, before = NOTHING, after }) =>
      before === NOTHING ? `${field}: ${after}` : `${field}: ${before} → ${after}`,
    )
    .join(', ')

/** JSON in a value, on several lines. */
export function prettyValue(text: string): string {
  if (!/^[[{]/.test(text)) return text
  try {
    return JSON.stringify(JSON.parse(text), null, 2)
  } catch {
    return text
  }
}
