// Lists as a file: lines of CSV, or a JSON object a line.

export const exportFormats = ['csv', 'ndjson'] as const
export type ExportFormat = (typeof exportFormats)[number]

export const jsonLine = (row: object): string => `${JSON.stringify(row)}\n`

export const csvLine = (cells: readonly unknown[]): string => `${cells.map(csvCell).join()}\r\n`

const NUMBER = /^-?\d+(\.\d+)?$/
/** What a spreadsheet would run instead of showing it. */
const RUN = /^[=+\-@\t\r]/

/** What would be run is made a text by the mark that spreadsheets know. */
export function csvCell(value: unknown): string {
  if (value === null || value === undefined) return ''
  const text = typeof value === 'object' ? JSON.stringify(value) : String(value)
  const harmless = RUN.test(text) && !NUMBER.test(text) ? `'${text}` : text
  return /[",\r\n]/.test(harmless) ? `"${harmless.replaceAll('"', '""')}"` : harmless
}
