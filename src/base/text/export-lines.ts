// Lists as a file: lines of CSV, or a JSON object a line.

export const exportFormats = ['csv', 'ndjson'] as const
export type ExportFormat = (typeof exportFormats)[number]

export const jsonLine = (row: object): string => `${JSON.stringify(row)}\n`

export const csvLine = (cells: readonly unknown[]): string => `${cells.map(csvCell).join()}\r\n`

/** Where a spreadsheet may begin a new cell, by its own settings: a comma, a semicolon, a tab, a bar, a line. */
const SEGMENT = /[^,;|\t\r\n]+/g
const NUMBER = /^-?\d+(\.\d+)?$/
/** What a spreadsheet would run instead of showing it, also behind quotes, spaces and signs that nobody sees. */
const RUN = /^["\s\p{Cc}\p{Cf}]*[=+\-@\uff1d\uff0b\uff0d\uff20]/u

const harmlessSegment = (text: string): string => (RUN.test(text) ? `'${text}` : text)

/**
 * A cell of CSV. A spreadsheet that splits at semicolons does not see the quotes of a cell that is not the first: a
 * formula behind a separator inside of the text would be run there. So whatever could be run is made a text by an
 * apostrophe, at the beginning and after each separator; everything else is read back as it was.
 */
export function csvCell(value: unknown): string {
  if (value === null || value === undefined) return ''
  const text = typeof value === 'object' ? JSON.stringify(value) : String(value)
  if (NUMBER.test(text)) return text
  const segments = text.replace(SEGMENT, harmlessSegment)
  const harmless = /^[\t\r\n]/.test(text) ? `'${segments}` : segments
  return /[",;|\t\r\n]/.test(harmless) ? `"${harmless.replaceAll('"', '""')}"` : harmless
}
