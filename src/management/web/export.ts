// Exports long lists as a file: CSV, or one JSON object per line. It writes page by page, no faster than the reader
// reads, so only one page is in memory.

import type { ExportFormat } from '../../base/text/export-lines.ts'
import { csvLine, jsonLine } from '../../base/text/export-lines.ts'
import { streamResponse } from '../../http/server/event-stream.ts'
import type { ExportSlot } from './export-slots.ts'

export type ExportRow = Readonly<Record<string, unknown>>

export interface ExportPage {
  readonly rows: readonly ExportRow[]
  /** The cursor of the next page; null: this is the last page. */
  readonly next: string | null
}

export interface Export {
  readonly format: ExportFormat
  /** The file name without its extension. */
  readonly name: string
  /** The columns of a CSV file, in this order. */
  readonly columns: readonly string[]
  /** Read before the response begins, so that an error of the first page can still be returned as an error. */
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
  let isReaderGone = false
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
      /** Returns false if the slot was taken away because the reader did not read. */
      const send = async (text: string): Promise<boolean> => {
        const taken = await Promise.race([sink.write(text), lost])
        slot.keepAlive()
        return taken !== LOST
      }
      const readNext = async (after: string): Promise<ExportPage> => {
        await slot.check()
        return await page(after)
      }
      try {
        if (format === 'csv' && !(await send(csvLine(columns)))) return 'broken'
        for (let { rows, next } = first; ; { rows, next } = await readNext(next)) {
          if (rows.length > 0 && !(await send(rows.map(write).join('')))) return 'broken'
          if (next === null || isReaderGone) return undefined
        }
      } catch (fault) {
        onTrouble?.(fault)
        return 'broken' // a file that ends early must not look complete
      } finally {
        slot.release()
      }
    },
    () => {
      isReaderGone = true
      slot.release()
    },
  )
}
