// The lines of an exported file: CSV, or NDJSON with one object in a line.

export const exportFormats = ['csv', 'ndjson'] as const
export type ExportFormat = (typeof exportFormats)[number]

export const jsonLine = (row: object): string => `${JSON.stringify(row)}\n`

export const csvLine = (cells: readonly unknown[]): string => `${cells.map(csvCell).join()}\r\n`

/** Text between the characters at which a spreadsheet may start a new cell: comma, semicolon, tab, bar, line break. */
const SEGMENT = /[^,;|\t\r\n]+/g
const NUMBER = /^-?\d+(\.\d+)?$/
/** The start of a formula, which a spreadsheet would run; also after quotes, spaces and invisible characters. */
const FORMULA = /^["\s\p{Cc}\p{Cf}]*[=+\-@\uff1d\uff0b\uff0d\uff20]/u

const escapeFormula = (text: string): string => (FORMULA.test(text) ? `'${text}` : text)

/**
 * A cell of CSV. A spreadsheet that splits at semicolons ignores the quotes of every cell but the first, and would run
 * a formula that follows a separator inside of a text. Therefore an apostrophe is put before every possible formula, at
 * the beginning and after each separator. All other text is unchanged.
 */
export function csvCell(value: unknown): string {
  if (value === null || value === undefined) return ''
  const text = typeof value === 'object' ? JSON.stringify(value) : String(value)
  if (NUMBER.test(text)) return text
  const segments = text.replace(SEGMENT, escapeFormula)
  const escaped = /^[\t\r\n]/.test(text) ? `'${segments}` : segments
  return /[",;|\t\r\n]/.test(escaped) ? `"${escaped.replaceAll('"', '""')}"` : escaped
}
