// Long lists as a file: CSV or a JSON object a line, page by page, no faster than whoever reads it takes it. What is
// held is one page, however long the list is.

import type { ExportFormat } from '../base/export-lines.ts'
import { csvLine, jsonLine } from '../base/export-lines.ts'
import { streamResponse } from '../http/event-stream.ts'

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
