// Answers as text: fields one below the other, lists of rows as tables, or all of it as JSON.

import { harmless, harmlessLines } from '../base/text/safe-text.ts'
import type { Fields } from './connect.ts'

export { harmlessLines }

const isRows = (value: unknown): value is readonly Fields[] =>
  Array.isArray(value) && value.every(row => typeof row === 'object' && row !== null && !Array.isArray(row))

/** `usageSource` as `usage source`. */
const words = (name: string): string => name.replace(/[A-Z]/g, letter => ` ${letter.toLowerCase()}`)

/** JSON that is still what it was when it is read. */
export const jsonText = (answer: Fields): string => harmlessLines(JSON.stringify(answer, null, 2))

function cell(value: unknown): string {
  if (value === null || value === undefined) return '-'
  if (Array.isArray(value) && value.every(one => typeof one === 'string')) return harmless(value.join() || '-')
  return harmless(typeof value === 'object' ? JSON.stringify(value) : String(value))
}

export function fieldLines(fields: Fields): readonly string[] {
  const names = Object.keys(fields).filter(name => !isRows(fields[name]))
  const width = Math.max(8, ...names.map(name => words(name).length))
  const lines = names.map(name => `${words(name).padEnd(width)} ${cell(fields[name])}`)
  for (const [name, rows] of Object.entries(fields)) {
    if (isRows(rows) && rows.length > 0) lines.push(...(lines.length > 0 ? ['', words(name)] : []), ...tableLines(rows))
  }
  return lines
}

/** The first row names the columns; numbers and money stand to the right. */
export function tableLines(rows: readonly Fields[]): readonly string[] {
  const columns = Object.keys(rows[0] ?? {}).map(name => {
    const cells = rows.map(row => cell(row[name]))
    const width = Math.max(words(name).length, ...cells.map(text => text.length))
    const right = cells.every(text => /^[+-]?[\d.]+$|^-$/.test(text))
    const put = (text: string): string => (right ? text.padStart(width) : text.padEnd(width))
    return [put(words(name)), ...cells.map(put)]
  })
  return (columns[0] ?? []).map((_, at) =>
    columns
      .map(column => column[at]!)
      .join('  ')
      .trimEnd(),
  )
}

/** Rows, or a word where there are none, and how to go on where there are more. */
export function listLines(rows: unknown, none: string, next: unknown = null): readonly string[] {
  if ((rows as Fields[]).length === 0) return [none]
  return [...tableLines(rows as Fields[]), ...(next === null ? [] : ['', `more with --after ${String(next)}`])]
}
