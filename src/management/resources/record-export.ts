// Exports records as a stream. The next slice is read only when the previous one has been taken, and reading stops when
// the reader is gone.

import * as z from 'zod'
import { bounds } from '../../base/bounds.ts'
import { Refusal } from '../../base/errors.ts'
import type { ExportFormat } from '../../base/text/export-lines.ts'
import { exportFormats } from '../../base/text/export-lines.ts'
import type { GzipState } from '../../store/queries/records.ts'
import type { RecordQuery } from '../../store/records/record-search.ts'
import type { ManagementParts } from '../management-parts.ts'
import type { ExportSlot, ExportSlots } from '../web/export-slots.ts'
import type { ManagementRequest } from './endpoint.ts'
import { filterOf, searchFilters } from './record-filters.ts'

export const recordExportQuery = z.strictObject({ ...searchFilters, format: z.enum(exportFormats).default('ndjson') })

/** What opens an export: the query as its schema has parsed it, and whose it is. */
export type ExportRequest<Query> = Pick<
  ManagementRequest<unknown, Query, unknown>,
  'query' | 'scope' | 'actor' | 'header'
>
type RecordExport = ExportRequest<z.output<typeof recordExportQuery>>

/**
 * Throws if the viewer may not have this export. Staff may export everything that there is: an export reads slice by
 * slice.
 */
export function recordExportFilter(
  { query: { format: _, ...query }, scope }: Omit<RecordExport, 'header'>,
  nowMs: number,
) {
  const longestMs = scope === null ? Number.POSITIVE_INFINITY : bounds.recordSearchMsMax
  return filterOf(query, scope, { nowMs, longestMs })
}

export async function openRecordExport(
  { queryWorker, dateMs }: Pick<ManagementParts, 'queryWorker' | 'dateMs'>,
  slots: ExportSlots,
  request: RecordExport,
): Promise<Response> {
  const { query, scope, actor, header } = request
  const filter = recordExportFilter(request, dateMs())
  const search = { scope, filter, oldestFirst: query.sort === 'time', format: query.format, staff: scope === null }
  const gzip = /\bgzip\b/.test(header('accept-encoding') ?? '')
  return startExport(queryWorker, { search, gzip, slot: await slots.enter(actor) })
}

export interface RecordExportQuery extends Omit<RecordQuery, 'after' | 'limit'> {
  readonly format: ExportFormat
  /** True: the export contains channels. */
  readonly staff: boolean
}

const types = { ndjson: 'application/x-ndjson', csv: 'text/csv; charset=utf-8' } as const

/** The gzip header, without a name or a time. */
const GZIP_HEAD = Buffer.from([0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff])

/** An empty last block, then the checksum and the length of the data. */
function gzipEnd({ crc, bytes }: GzipState): Buffer {
  const end = Buffer.alloc(10)
  end[0] = 3
  end.writeUInt32LE(crc, 2)
  end.writeUInt32LE(bytes % 2 ** 32, 6)
  return end
}

export async function startExport(
  queryWorker: ManagementParts['queryWorker'],
  request: RecordExportRequest,
): Promise<Response> {
  const {
    search: { format },
    gzip,
  } = request
  return new Response(await exportStream(queryWorker, request), {
    headers: {
      'content-type': types[format],
      'content-disposition': `attachment; filename="records.${format}"`,
      ...(gzip && { 'content-encoding': 'gzip' }),
    },
  })
}

export interface RecordExportRequest {
  readonly search: RecordExportQuery
  readonly gzip: boolean
  readonly slot: ExportSlot
}

async function exportStream(
  queryWorker: ManagementParts['queryWorker'],
  request: RecordExportRequest,
): Promise<ReadableStream<Uint8Array>> {
  const { search, gzip, slot } = request
  let after: number | undefined
  let packed: GzipState | null = gzip ? { crc: 0, bytes: 0 } : null
  let isFirst = true

  /** The next slice; undefined after the last. */
  async function next(): Promise<Buffer | undefined> {
    if (after === undefined && !isFirst) return undefined
    await slot.check()
    const slice = await queryWorker.query('exportRecords', { ...search, after, packed, limit: bounds.exportRowsMax })
    const bytes = Buffer.from(slice.text, gzip ? 'base64' : 'utf8')
    const head = isFirst && gzip ? [GZIP_HEAD] : []
    packed = slice.packed
    isFirst = false
    after = slice.next ?? undefined
    const isLast = slice.next === null && packed !== null
    return Buffer.concat([...head, bytes, ...(isLast ? [gzipEnd(packed!)] : [])])
  }

  // Read before the response begins, so that an error of the first slice can still be returned as an error.
  let first: Buffer | undefined
  try {
    first = await next()
  } catch (fault) {
    slot.release()
    throw fault
  }
  return new ReadableStream<Uint8Array>(
    {
      start(controller) {
        slot.onLost(() => controller.error(undefined)) // Bun would print an Error
      },
      async pull(controller) {
        slot.keepAlive()
        try {
          for (;;) {
            const bytes = first ?? (await next())
            first = undefined
            if (bytes === undefined) {
              slot.release()
              return controller.close()
            }
            if (bytes.length > 0) return controller.enqueue(bytes)
          }
        } catch (fault) {
          slot.release()
          controller.error(fault instanceof Refusal ? undefined : fault) // as above
        }
      },
      cancel: () => slot.release(),
    },
    { highWaterMark: 1 },
  )
}
