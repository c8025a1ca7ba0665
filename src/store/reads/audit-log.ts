// Reading the audit log, and whether its chain holds.

import type { Database } from 'bun:sqlite'
import { auditHash } from '../audited.ts'
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

export interface AuditChecked {
  /** Rows that were looked at. */
  readonly rows: number
  /** The first that does not fit the ones before it; null: the chain holds. */
  readonly brokenAt: number | null
  /** The last row, by which a later look can tell that none was taken from the end. */
  readonly head: { readonly seq: number; readonly hash: string } | null
}

export interface AuditLogReads {
  auditLog: { input: ListAsk; result: Page<AuditView> }
  /** `head` is what an earlier look told: that row must still be there. */
  checkAuditLog: { input: { readonly head?: string | undefined }; result: AuditChecked }
}

export const auditLogReads = (db: Database) => ({
  auditLog: (ask: ListAsk) => listPage(db, plan, ask),
  checkAuditLog: ({ head }: { readonly head?: string | undefined }) => checkChain(db, head),
})

function checkChain(db: Database, known: string | undefined): AuditChecked {
  const rows = db.prepare<Row, []>('SELECT * FROM audit ORDER BY seq')
  let [seen, last, knownSeen] = [0, Buffer.alloc(32), known === undefined]
  try {
    for (const row of rows.iterate()) {
      const fits = isLinked(row, seen + 1, last)
      if (!fits) return { rows: seen, brokenAt: seen + 1, head: headOf(seen, last) }
      last = Buffer.from(row.hash as Uint8Array)
      seen++
      knownSeen ||= known === `${seen}:${last.toString('hex')}`
    }
    return { rows: seen, brokenAt: knownSeen ? null : seen + 1, head: headOf(seen, last) }
  } finally {
    rows.finalize()
  }
}

const headOf = (seq: number, hash: Buffer): AuditChecked['head'] =>
  seq === 0 ? null : { seq, hash: hash.toString('hex') }

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
