// Records as a file that is written while it is read: the next slice is asked for only when the one before it is on
// its way, and nobody is asked any more when the reader has left.

import { bounds } from '../../base/bounds.ts'
import type { ExportFormat } from '../../base/text/export-lines.ts'
import type { Packed } from '../../store/queries/records.ts'
import type { RecordAsk } from '../../store/records/search.ts'
import type { ManagementParts } from '../management-parts.ts'
import type { ExportSlot } from '../web/export-slots.ts'

export interface ExportAsk extends Omit<RecordAsk, 'after' | 'limit'> {
  readonly format: ExportFormat
  /** Channels are told. */
  readonly staff: boolean
}

const types = { ndjson: 'application/x-ndjson', csv: 'text/csv; charset=utf-8' } as const

/** Gzip, without a name or a time. */
const GZIP_HEAD = Buffer.from([0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff])

/** An empty last block, and what is said of all before it. */
function gzipEnd({ crc, bytes }: Packed): Buffer {
  const end = Buffer.alloc(10)
  end[0] = 3
  end.writeUInt32LE(crc, 2)
  end.writeUInt32LE(bytes % 2 ** 32, 6)
  return end
}

export function startExport(desk: ManagementParts['desk'], exporting: Exporting): Response {
  const {
    ask: { format },
    gzip,
  } = exporting
  return new Response(exported(desk, exporting), {
    headers: {
      'content-type': types[format],
      'content-disposition': `attachment; filename="records.${format}"`,
      ...(gzip && { 'content-encoding': 'gzip' }),
    },
  })
}

export interface Exporting {
  readonly ask: ExportAsk
  readonly gzip: boolean
  readonly slot: ExportSlot
}

function exported(desk: ManagementParts['desk'], exporting: Exporting): ReadableStream<Uint8Array> {
  const { ask, gzip, slot } = exporting
  let after: number | undefined
  let packed: Packed | null = gzip ? { crc: 0, bytes: 0 } : null
  let isFirst = true

  /** The next slice; undefined after the last. */
  async function next(): Promise<Buffer | undefined> {
    if (after === undefined && !isFirst) return undefined
    const slice = await desk.ask('exportRecords', { ...ask, after, packed, limit: bounds.exportRowsMax })
    const bytes = Buffer.from(slice.text, gzip ? 'base64' : 'utf8')
    const head = isFirst && gzip ? [GZIP_HEAD] : []
    packed = slice.packed
    isFirst = false
    after = slice.next ?? undefined
    const isLast = slice.next === null && packed !== null
    return Buffer.concat([...head, bytes, ...(isLast ? [gzipEnd(packed!)] : [])])
  }

  return new ReadableStream<Uint8Array>(
    {
      start(controller) {
        slot.onLost(() => controller.error(undefined)) // an error would be printed
      },
      async pull(controller) {
        slot.goesOn()
        try {
          for (;;) {
            const bytes = await next()
            if (bytes === undefined) {
              slot.leave()
              return controller.close()
            }
            if (bytes.length > 0) return controller.enqueue(bytes)
          }
        } catch (fault) {
          slot.leave()
          controller.error(fault)
        }
      },
      cancel: () => slot.leave(),
    },
    { highWaterMark: 1 },
  )
}
