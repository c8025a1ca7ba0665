// Long lists as a file: CSV or a JSON object a line, page by page, no faster than whoever reads it takes it. What is
// held is one page, however long the list is.

import { streamResponse } from '../http/event-stream.ts'

export const exportFormats = ['csv', 'ndjson'] as const
export type ExportFormat = (typeof exportFormats)[number]

type Cell = string | number | boolean | null | undefined
export type ExportRow = Readonly<Record<string, unknown>>

export interface ExportPage {
  readonly rows: readonly ExportRow[]
  /** For the next page; null: there is none. */
  readonly next: string | null
}

export interface Export {
  readonly format: ExportFormat
  /** Without its ending. */
  readonly name: string
  /** Of a CSV file, in this order. */
  readonly columns: readonly string[]
  /** The first page is asked for before anything is answered, so that whoever may not see it is told so. */
  readonly first: ExportPage
  page(after: string): Promise<ExportPage>
  onTrouble?(fault: unknown): void
}

const types: Readonly<Record<ExportFormat, string>> = {
  csv: 'text/csv; charset=utf-8',
  ndjson: 'application/x-ndjson; charset=utf-8',
}

export function exportResponse({ format, name, columns, first, page, onTrouble }: Export): Response {
  const write = format === 'csv' ? (row: ExportRow) => csvLine(columns.map(column => row[column])) : jsonLine
  let isLeft = false
  const head = {
    status: 200,
    headers: {
      'content-type': types[format],
      'content-disposition': `attachment; filename="${name}.${format}"`,
      ...{ 'cache-control': 'no-store', 'x-content-type-options': 'nosniff' },
    },
  }
  return streamResponse(
    head,
    async sink => {
      if (format === 'csv') await sink.write(csvLine(columns))
      try {
        for (let { rows, next } = first; ; { rows, next } = await page(next)) {
          if (rows.length > 0) await sink.write(rows.map(write).join(''))
          if (next === null || isLeft) return undefined
        }
      } catch (fault) {
        onTrouble?.(fault)
        return 'broken' // a file that ends early must not look whole
      }
    },
    () => (isLeft = true),
  )
}

const jsonLine = (row: ExportRow): string => `${JSON.stringify(row)}\n`

export const csvLine = (cells: readonly unknown[]): string => `${cells.map(cell => csvCell(cell as Cell)).join()}\r\n`

const NUMBER = /^-?\d+(\.\d+)?$/
/** What a spreadsheet would run instead of showing it. */
const RUN = /^[=+\-@\t\r]/

export function csvCell(value: Cell | object): string {
  if (value === null || value === undefined) return ''
  const text = typeof value === 'object' ? JSON.stringify(value) : String(value)
  const harmless = RUN.test(text) && !NUMBER.test(text) ? `'${text}` : text
  return /[",\r\n]/.test(harmless) ? `"${harmless.replaceAll('"', '""')}"` : harmless
}
