// Queries for records: search them, read one with its transfers, and export them in slices as text.

import type { Database } from 'bun:sqlite'
import { constants, crc32, deflateRawSync } from 'node:zlib'
import type { ExportFormat } from '../../base/text/export-lines.ts'
import { exportHead, exportLine, showWhole } from '../records/record-text.ts'
import type { RecordAsk, RecordPage, RecordView, WholeRecord } from '../records/search.ts'
import { findRecords, recordColumns, wholeColumns } from '../records/search.ts'
import type { ListAsk, ListPlan, Page, Scope } from './paging.ts'
import { findOne, listPage } from './paging.ts'
import type { Told } from './values.ts'
import { flag, money, number, or, text, told } from './values.ts'

const transferColumns = {
  kind: ['kind', text],
  ref: ['ref', number],
  debit: ['debit', number],
  credit: ['credit', number],
  amount: ['amount', money],
  madeMs: ['made_ms', number],
  reference: ['reference', or(text)],
  author: ['author', or(text)],
} as const

export type TransferView = Told<typeof transferColumns>

export interface RecordInFull {
  readonly record: WholeRecord
  readonly transfers: readonly TransferView[]
}

/** The checksum and length of all slices so far, for the trailer of a gzip file. */
export interface Packed {
  readonly crc: number
  readonly bytes: number
}

export interface ExportSlice {
  /** Plain text, or deflated bytes in base64. The slices in order form the deflate stream without its end. */
  readonly text: string
  readonly rows: number
  readonly next: number | null
  readonly packed: Packed | null
}

export interface RecordReads {
  records: { input: RecordAsk; result: RecordPage<RecordView> }
  record: { input: { readonly callId: number; readonly scope: Scope | null }; result: RecordInFull | null }
  deletions: { input: ListAsk; result: Page<DeletionView> }
  deletion: { input: { readonly id: number; readonly scope: Scope | null }; result: DeletionView | null }
  /** Only the ids of records, oldest first. */
  recordIds: {
    input: Omit<RecordAsk, 'scope' | 'oldestFirst'>
    result: { readonly ids: readonly number[]; readonly next: number | null }
  }
  exportRecords: {
    input: RecordAsk & { readonly format: ExportFormat; readonly staff: boolean; readonly packed: Packed | null }
    result: ExportSlice
  }
}

const deletionColumns = {
  id: ['d.id', number],
  accountId: ['d.account_id', or(number)],
  keyId: ['d.key_id', or(number)],
  ofEndUser: ['d.end_user IS NOT NULL', flag],
  from: ['d.from_id', number],
  before: ['d.before_id', number],
  deleted: ['d.deleted', number],
  author: ['d.author', text],
  madeMs: ['d.made_ms', number],
  doneMs: ['d.done_ms', or(number)],
} as const

export type DeletionView = Told<typeof deletionColumns>

const deletionPlan: ListPlan<typeof deletionColumns> = {
  from: 'record_deletion d',
  columns: deletionColumns,
  id: 'd.id',
  account: 'd.account_id',
  sorts: { id: 'd.id' },
}

const plan = { from: 'record r', columns: wholeColumns, id: 'r.call_id', account: 'r.account_id' } as const

type RecordHandlers = {
  readonly [Name in keyof RecordReads]: (input: RecordReads[Name]['input']) => RecordReads[Name]['result']
}

export const recordReads = (db: Database): RecordHandlers => ({
  records: ask => findRecords(db, recordColumns, ask),
  record({ callId, scope }) {
    const record = findOne(db, plan, { id: callId, scope })
    if (record === undefined) return null
    const sql = 'SELECT kind, ref, debit, credit, amount, made_ms, reference, author FROM transfer WHERE ref = ?1'
    const rows = db.query<Record<string, string | bigint | null>, [number]>(sql.concat(' ORDER BY seq')).all(callId)
    const transfers = rows.map(({ made_ms: madeMs, ...row }) => told(transferColumns, { ...row, madeMs: madeMs! }))
    return { record, transfers }
  },
  deletions: ask => listPage(db, deletionPlan, ask),
  deletion: ask => findOne(db, deletionPlan, ask) ?? null,
  recordIds(ask) {
    const { rows, next } = findRecords(db, { callId: recordColumns.callId }, { ...ask, scope: null, oldestFirst: true })
    return { ids: rows.map(({ callId }) => callId), next }
  },
  exportRecords({ format, packed, staff, ...ask }) {
    const { rows, next } = findRecords(db, wholeColumns, ask)
    const head = ask.after === undefined ? exportHead(format) : ''
    const text = head.concat(...rows.map(row => exportLine(showWhole(row, staff), format)))
    return { rows: rows.length, next, ...(packed === null ? { text, packed } : deflate(text, packed)) }
  },
})

function deflate(text: string, { crc, bytes }: Packed): Pick<ExportSlice, 'text' | 'packed'> {
  if (text === '') return { text, packed: { crc, bytes } }
  const plain = Buffer.from(text)
  const deflated = deflateRawSync(plain, { finishFlush: constants.Z_SYNC_FLUSH })
  return { text: deflated.toString('base64'), packed: { crc: crc32(plain, crc), bytes: bytes + plain.length } }
}
