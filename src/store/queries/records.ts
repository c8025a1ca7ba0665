// Queries for records: search them, read one with its transfers, and export them in slices as text.

import { constants, crc32, deflateRawSync } from 'node:zlib'
import type { ExportFormat } from '../../base/text/export-lines.ts'
import type { Steps } from '../engine/steps.ts'
import { query } from '../engine/steps.ts'
import type { FullRecord, RecordPage, RecordQuery, RecordView } from '../records/record-search.ts'
import { findRecords, shownFullRecordColumns, shownRecordColumns } from '../records/record-search.ts'
import { exportHead, exportLine, formatFullRecord } from '../records/record-text.ts'
import type { SettledPage, SettledQuery } from '../records/settled-search.ts'
import { findSettled } from '../records/settled-search.ts'
import type { RowOf, SqlRow } from '../tables/columns.ts'
import { flag, nullable, number, rowReader, selectList, text } from '../tables/columns.ts'
import { recordColumns, transferColumns } from '../tables/records.ts'
import type { ListPlan, ListQuery, Page, Scope } from './paging.ts'
import { listPage, rowFinder } from './paging.ts'

export type TransferView = RowOf<typeof transferColumns>

export interface RecordWithTransfers {
  readonly record: FullRecord
  readonly transfers: readonly TransferView[]
}

/** The checksum and length of all slices so far, for the trailer of a gzip file. */
export interface GzipState {
  readonly crc: number
  readonly bytes: number
}

export interface ExportSlice {
  /** Plain text, or deflated bytes in base64. The slices in order form the deflate stream without its end. */
  readonly text: string
  readonly rows: number
  readonly next: number | null
  readonly packed: GzipState | null
}

export interface RecordQueries {
  records: { input: RecordQuery; result: RecordPage<RecordView> }
  /** In the order in which the calls were settled. */
  settledRecords: { input: SettledQuery; result: SettledPage }
  record: { input: { readonly callId: number; readonly scope: Scope | null }; result: RecordWithTransfers | null }
  deletions: { input: ListQuery; result: Page<DeletionView> }
  deletion: { input: { readonly id: number; readonly scope: Scope | null }; result: DeletionView | null }
  /** Only the ids of records, oldest first. */
  recordIds: {
    input: Omit<RecordQuery, 'scope' | 'oldestFirst'>
    result: { readonly ids: readonly number[]; readonly next: number | null }
  }
  exportRecords: {
    input: RecordQuery & { readonly format: ExportFormat; readonly staff: boolean; readonly packed: GzipState | null }
    result: ExportSlice
  }
}

const deletionColumns = {
  id: ['d.id', number],
  accountId: ['d.account_id', nullable(number)],
  keyId: ['d.key_id', nullable(number)],
  ofEndUser: ['d.end_user IS NOT NULL', flag],
  from: ['d.from_id', number],
  before: ['d.before_id', number],
  deleted: ['d.deleted', number],
  author: ['d.author', text],
  madeMs: ['d.made_ms', number],
  doneMs: ['d.done_ms', nullable(number)],
} as const

export type DeletionView = RowOf<typeof deletionColumns>

const deletionPlan: ListPlan<typeof deletionColumns> = {
  from: 'record_deletion d',
  columns: deletionColumns,
  id: 'd.id',
  account: 'd.account_id',
  sorts: { id: 'd.id' },
}

const findRecord = rowFinder({
  ...{ from: 'record r', columns: shownFullRecordColumns },
  ...{ id: 'r.call_id', account: 'r.account_id' },
})
const findTransfers = query<SqlRow>(`SELECT ${selectList(transferColumns)} FROM transfer WHERE ref = ?1 ORDER BY seq`)
const readTransfer = rowReader(transferColumns)

type RecordHandlers = {
  readonly [Name in keyof RecordQueries]: (input: RecordQueries[Name]['input']) => Steps<RecordQueries[Name]['result']>
}

export const recordQueries: RecordHandlers = {
  records: ask => findRecords(shownRecordColumns, ask),
  settledRecords: findSettled,
  *record({ callId, scope }) {
    const record = yield* findRecord({ id: callId, scope })
    if (record === null) return null
    return { record, transfers: (yield* findTransfers.all(callId)).map(readTransfer) }
  },
  deletions: ask => listPage(deletionPlan, ask),
  deletion: rowFinder(deletionPlan),
  *recordIds(ask) {
    const columns = { callId: recordColumns.callId }
    const { rows, next } = yield* findRecords(columns, { ...ask, scope: null, oldestFirst: true })
    return { ids: rows.map(({ callId }) => callId), next }
  },
  *exportRecords({ format, packed, staff, ...ask }) {
    const { rows, next } = yield* findRecords(shownFullRecordColumns, ask)
    const head = ask.after === undefined ? exportHead(format) : ''
    const text = head.concat(...rows.map(row => exportLine(formatFullRecord(row, staff), format)))
    return { rows: rows.length, next, ...(packed === null ? { text, packed } : deflate(text, packed)) }
  },
}

function deflate(text: string, { crc, bytes }: GzipState): Pick<ExportSlice, 'text' | 'packed'> {
  if (text === '') return { text, packed: { crc, bytes } }
  const plain = Buffer.from(text)
  const deflated = deflateRawSync(plain, { finishFlush: constants.Z_SYNC_FLUSH })
  return { text: deflated.toString('base64'), packed: { crc: crc32(plain, crc), bytes: bytes + plain.length } }
}
