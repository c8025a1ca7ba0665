// Reading the audit log, and whether its chain holds.

import type { Database } from 'bun:sqlite'
import { auditHash } from '../audit-log/audited.ts'
import type { ListAsk, ListPlan, Page } from './paging.ts'
import { atLeast, beginsWith, below, is, listPage } from './paging.ts'
import type { Row, Told } from './values.ts'
import { json, number, or, text } from './values.ts'

const columns = {
  seq: ['a.seq', number],
  madeMs: ['a.made_ms', number],
  actor: ['a.actor', text],
  address: ['a.address', or(text)],
  request: ['a.request', or(text)],
  action: ['a.action', text],
  target: ['a.target', text],
  accountId: ['a.account_id', or(number)],
  changes: ['a.changes', json],
  hash: ['lower(hex(a.hash))', text],
} as const

const plan: ListPlan<typeof columns> = {
  from: 'audit a',
  columns,
  id: 'a.seq',
  sorts: { seq: 'a.seq' },
  account: 'a.account_id',
  filters: {
    actor: is('a.actor'),
    action: is('a.action'),
    target: beginsWith('a.target'),
    account: is('a.account_id'),
    from: atLeast('a.made_ms'),
    before: below('a.made_ms'),
  },
}

export type AuditView = Told<typeof columns>

/** A row by which a later look can tell that it is still there, and none was taken from before it. */
export interface AuditHead {
  readonly seq: number
  readonly hash: string
}

export interface AuditChecked {
  /** Rows that were looked at, from the first on. */
  readonly rows: number
  /** The first that does not fit the ones before it; null: the chain holds. */
  readonly brokenAt: number | null
  /** The last row that was looked at. */
  readonly head: AuditHead | null
  /** There are more: to be looked at from `head` on. */
  readonly goesOn: boolean
}

export interface AuditAsk {
  /** What an earlier look told: that row must still be there. */
  readonly known?: AuditHead | undefined
  /** Where the last slice ended. */
  readonly after?: AuditHead | null | undefined
}

export interface AuditLogReads {
  auditLog: { input: ListAsk; result: Page<AuditView> }
  /** A slice of it: a million rows take longer than others should wait. */
  checkAuditLog: { input: AuditAsk; result: AuditChecked }
}

const SLICE_ROWS = 20_000

export const auditLogReads = (db: Database) => ({
  auditLog: (ask: ListAsk) => listPage(db, plan, ask),
  checkAuditLog: buildCheck(db),
})

function buildCheck(db: Database): (ask: AuditAsk) => AuditChecked {
  const query = db.query<Row, [number, number]>('SELECT * FROM audit WHERE seq > ?1 ORDER BY seq LIMIT ?2')
  return function checkSlice({ known, after }) {
    let seen = after?.seq ?? 0
    let last: Uint8Array = after ? Buffer.from(after.hash, 'hex') : Buffer.alloc(32)
    const rows = query.all(seen, SLICE_ROWS)
    for (const row of rows) {
      const fits = isLinked(row, seen + 1, last)
      const isOther = known?.seq === seen + 1 && known.hash !== Buffer.from(row.hash as Uint8Array).toString('hex')
      if (!fits || isOther) return { rows: seen, brokenAt: seen + 1, head: headOf(seen, last), goesOn: false }
      last = row.hash as Uint8Array
      seen++
    }
    const goesOn = rows.length === SLICE_ROWS
    const isShort = !goesOn && known !== undefined && known.seq > seen
    return { rows: seen, brokenAt: isShort ? seen + 1 : null, head: headOf(seen, last), goesOn }
  }
}

const headOf = (seq: number, hash: Uint8Array): AuditHead | null =>
  seq === 0 ? null : { seq, hash: Buffer.from(hash).toString('hex') }

function isLinked(row: Row, seq: number, before: Uint8Array): boolean {
  const hash = auditHash(before, {
    seq: Number(row.seq),
    madeMs: Number(row.made_ms),
    actor: String(row.actor),
    address: row.address as string | null,
    request: row.request as string | null,
    action: String(row.action),
    target: String(row.target),
    accountId: row.account_id === null ? null : Number(row.account_id),
    changes: String(row.changes),
  })
  return Number(row.seq) === seq && hash.equals(row.hash as Uint8Array)
}
