// Reading records: searches, one of them whole, and slices of them as text, for a file.

import type { Database } from 'bun:sqlite'
import type { RecordAsk, RecordPage, RecordView, WholeRecord } from '../record-search.ts'
import { findRecords, recordColumns, wholeColumns } from '../record-search.ts'
import type { ExportFormat } from '../record-text.ts'
import { exportHead, exportLine, showWhole } from '../record-text.ts'
import type { Scope } from './paging.ts'
import { findOne } from './paging.ts'
import type { Told } from './values.ts'
import { money, number, or, text, told } from './values.ts'

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

export interface ExportSlice {
  /** Compressed, base64, where that was asked for; slices of that put together are one file. */
  readonly text: string
  readonly rows: number
  readonly next: number | null
}

export interface RecordReads {
  records: { input: RecordAsk; result: RecordPage<RecordView> }
  record: { input: { readonly callId: number; readonly scope: Scope | null }; result: RecordInFull | null }
  exportRecords: {
    input: RecordAsk & { readonly format: ExportFormat; readonly gzip: boolean; readonly staff: boolean }
    result: ExportSlice
  }
}

const plan = { from: 'record r', columns: wholeColumns, id: 'r.call_id', account: 'r.account_id' } as const

type Run = { readonly [Name in keyof RecordReads]: (input: RecordReads[Name]['input']) => RecordReads[Name]['result'] }

export const recordReads = (db: Database): Run => ({
  records: ask => findRecords(db, recordColumns, ask),
  record({ callId, scope }) {
    const record = findOne(db, plan, { id: callId, scope })
    if (record === undefined) return null
    const sql = 'SELECT kind, ref, debit, credit, amount, made_ms, reference, author FROM transfer WHERE ref = ?1'
    const rows = db.query<Record<string, string | bigint | null>, [number]>(sql.concat(' ORDER BY seq')).all(callId)
    const moved = rows.map(({ made_ms: madeMs, ...row }) => told(transferColumns, { ...row, madeMs: madeMs! }))
    return { record, transfers: moved }
  },
  exportRecords({ format, gzip, staff, ...ask }) {
    const { rows, next } = findRecords(db, wholeColumns, ask)
    const head = ask.after === undefined ? exportHead(format) : ''
    const lines = rows.map(row => exportLine(showWhole(row, staff), format))
    const whole = head.concat(...lines)
    const given = gzip && whole !== '' ? Buffer.from(Bun.gzipSync(Buffer.from(whole))).toString('base64') : whole
    return { text: given, rows: rows.length, next }
  },
})
