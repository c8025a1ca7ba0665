// Formats answers: fields one per line, lists of rows as tables, or everything as JSON.

import { escapeControls, escapeControlsInLines } from '../base/text/safe-text.ts'
import type { CommandFields } from './connect.ts'

export { escapeControlsInLines as harmlessLines }

const isRows = (value: unknown): value is readonly CommandFields[] =>
  Array.isArray(value) && value.every(row => typeof row === 'object' && row !== null && !Array.isArray(row))

/** Turns `usageSource` into `usage source`. */
const words = (name: string): string => name.replace(/[A-Z]/g, letter => ` ${letter.toLowerCase()}`)

/** Escapes control characters; a JSON parser still reads the same value. */
export const jsonText = (answer: CommandFields): string => escapeControlsInLines(JSON.stringify(answer, null, 2))

function cell(value: unknown): string {
  if (value === null || value === undefined) return '-'
  if (Array.isArray(value) && value.every(item => typeof item === 'string')) return escapeControls(value.join() || '-')
  return escapeControls(typeof value === 'object' ? JSON.stringify(value) : String(value))
}

export function fieldLines(fields: CommandFields): readonly string[] {
  const names = Object.keys(fields).filter(name => !isRows(fields[name]))
  const width = Math.max(8, ...names.map(name => words(name).length))
  const lines = names.map(name => `${words(name).padEnd(width)} ${cell(fields[name])}`)
  for (const [name, rows] of Object.entries(fields)) {
    if (isRows(rows) && rows.length > 0) lines.push(...(lines.length > 0 ? ['', words(name)] : []), ...tableLines(rows))
  }
  return lines
}

/** The fields of the first row are the columns. Numbers and money are aligned to the right. */
export function tableLines(rows: readonly CommandFields[]): readonly string[] {
  const columns = Object.keys(rows[0] ?? {}).map(name => {
    const cells = rows.map(row => cell(row[name]))
    const width = Math.max(words(name).length, ...cells.map(text => text.length))
    const isNumeric = cells.every(text => /^[+-]?[\d.]+$|^-$/.test(text))
    const pad = (text: string): string => (isNumeric ? text.padStart(width) : text.padEnd(width))
    return [pad(words(name)), ...cells.map(pad)]
  })
  return (columns[0] ?? []).map((_, at) =>
    columns
      .map(column => column[at]!)
      .join('  ')
      .trimEnd(),
  )
}

/** Prints these columns of a list, or `emptyText` if it has no rows, and how to get the next page if there is one. */
export function listLines(list: CommandFields, emptyText: string, columns: readonly string[]): readonly string[] {
  const rows = list.data as readonly CommandFields[]
  return rowLines(
    rows.map(row => Object.fromEntries(columns.map(column => [column, row[column]]))),
    emptyText,
    list.next,
  )
}

export function rowLines(rows: unknown, emptyText: string, next: unknown = null): readonly string[] {
  if ((rows as CommandFields[]).length === 0) return [emptyText]
  return [
    ...tableLines(rows as CommandFields[]),
    ...(next === null ? [] : ['', `more rows with --after ${String(next)}`]),
  ]
}
