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

/** The width of the terminal. What is written to a file or read by a program is never shortened. */
const outputWidth = (): number =>
  process.stdout.isTTY === true && process.stdout.columns > 0 ? process.stdout.columns : Number.POSITIVE_INFINITY

const GAP = '  '
const NUMBER = /^[+-]?[\d.]+$|^-$/
const ID_OR_TIME = /^[a-z]+_[0-9a-z]{11}$|^\d{4}-\d\d-\d\d(T[\d:.]+Z)?$|^-$/
/** Columns with names that other commands take, so they are needed in full. */
const NAMES: ReadonlySet<string> = new Set(['id', 'model', 'channel'])
/** A column of text is not shortened below this. */
const TEXT_WIDTH_MIN = 8

interface TableColumn {
  readonly title: string
  readonly cells: readonly string[]
  readonly isNumeric: boolean
  readonly isText: boolean
  readonly width: number
}

function columnOf(name: string, rows: readonly CommandFields[]): TableColumn {
  const [title, cells] = [words(name), rows.map(row => cell(row[name]))]
  const isNumeric = cells.every(text => NUMBER.test(text))
  const isText = !isNumeric && !NAMES.has(name) && !cells.every(text => ID_OR_TIME.test(text))
  return { title, cells, isNumeric, isText, width: Math.max(...[title, ...cells].map(text => Bun.stringWidth(text))) }
}

/** The widths with which a table fits, if it can: the widest column of text gives up its width first. */
function fitWidths(columns: readonly TableColumn[], widthMax: number): readonly number[] {
  const widths = columns.map(({ width }) => width)
  let excess = widths.reduce((sum, width) => sum + width + GAP.length, -GAP.length) - widthMax
  for (; excess > 0; excess--) {
    let widest: number | undefined
    columns.forEach(({ isText, title }, at) => {
      const canShrink = isText && widths[at]! > Math.max(TEXT_WIDTH_MIN, title.length)
      if (canShrink && (widest === undefined || widths[at]! > widths[widest]!)) widest = at
    })
    if (widest === undefined) return widths
    widths[widest]!--
  }
  return widths
}

function shorten(text: string, width: number): string {
  if (Bun.stringWidth(text) <= width) return text
  const graphemes = new Intl.Segmenter() // here, because the first one loads Unicode data, which takes milliseconds
  let kept = ''
  for (const { segment } of graphemes.segment(text)) {
    if (Bun.stringWidth(kept + segment) > width - 1) break
    kept += segment
  }
  return `${kept}…`
}

/** The fields of the first row are the columns. Numbers and money are aligned to the right. */
export function tableLines(rows: readonly CommandFields[], widthMax = outputWidth()): readonly string[] {
  const columns = Object.keys(rows[0] ?? {}).map(name => columnOf(name, rows))
  const widths = fitWidths(columns, widthMax)
  const padded = columns.map(({ title, cells, isNumeric }, at) =>
    [title, ...cells].map(text => {
      const shown = shorten(text, widths[at]!)
      const blanks = ' '.repeat(widths[at]! - Bun.stringWidth(shown))
      return isNumeric ? blanks + shown : shown + blanks
    }),
  )
  return (padded[0] ?? []).map((_, at) =>
    padded
      .map(column => column[at]!)
      .join(GAP)
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
