// Long lists as a file: CSV or a JSON object a line, page by page, no faster than whoever reads it takes it. What is
// held is one page, however long the list is.

import type { ExportFormat } from '../../base/text/export-lines.ts'
import { csvLine, jsonLine } from '../../base/text/export-lines.ts'
import { streamResponse } from '../../http/server/event-stream.ts'
import type { ExportSlot } from './export-slots.ts'

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
  readonly slot: ExportSlot
  onTrouble?(fault: unknown): void
}

const LOST = Symbol('lost')

const types: Readonly<Record<ExportFormat, string>> = {
  csv: 'text/csv; charset=utf-8',
  ndjson: 'application/x-ndjson; charset=utf-8',
}

export function exportResponse({ format, name, columns, first, page, slot, onTrouble }: Export): Response {
  const write = format === 'csv' ? (row: ExportRow) => csvLine(columns.map(column => row[column])) : jsonLine
  let isLeft = false
  const lost = new Promise<typeof LOST>(resolve => slot.onLost(() => resolve(LOST)))
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
      /** False when the slot was taken away because the reader did not read. */
      const give = async (text: string): Promise<boolean> => {
        const taken = await Promise.race([sink.write(text), lost])
        slot.goesOn()
        return taken !== LOST
      }
      try {
        if (format === 'csv' && !(await give(csvLine(columns)))) return 'broken'
        for (let { rows, next } = first; ; { rows, next } = await page(next)) {
          if (rows.length > 0 && !(await give(rows.map(write).join('')))) return 'broken'
          if (next === null || isLeft) return undefined
        }
      } catch (fault) {
        onTrouble?.(fault)
        return 'broken' // a file that ends early must not look whole
      } finally {
        slot.leave()
      }
    },
    () => {
      isLeft = true
      slot.leave()
    },
  )
}
