// Queries for the audit log: list its rows, and verify its hash chain.

import { textId } from '../../base/ids.ts'
import { auditHash, auditText } from '../audit-log/audited-operations.ts'
import type { Steps } from '../engine/steps.ts'
import { query } from '../engine/steps.ts'
import type { RowOf, SqlRow } from '../tables/columns.ts'
import { hex, json, nullable, number, text } from '../tables/columns.ts'
import { findNames } from './names.ts'
import type { ListPlan, ListQuery, Page, Scope } from './paging.ts'
import { atLeast, beginsWith, below, equals, listPage } from './paging.ts'

const columns = {
  seq: ['a.seq', number],
  madeMs: ['a.made_ms', number],
  actor: ['a.actor', text],
  address: ['a.address', nullable(text)],
  request: ['a.request', nullable(text)],
  action: ['a.action', text],
  target: ['a.target', text],
  accountId: ['a.account_id', nullable(number)],
  changes: ['a.changes', json],
  hash: ['a.hash', hex],
} as const

const plan: ListPlan<typeof columns> = {
  from: 'audit a',
  columns,
  id: 'a.seq',
  sorts: { seq: 'a.seq' },
  account: 'a.account_id',
  filters: {
    actor: equals('a.actor'),
    action: equals('a.action'),
    target: beginsWith('a.target'),
    account: equals('a.account_id'),
    from: atLeast('a.made_ms'),
    before: below('a.made_ms'),
  },
}

/** The names of what the ids of a row stand for. Null where there is none, or none in the scope. */
interface AuditNames {
  readonly actorName: string | null
  readonly targetName: string | null
  readonly accountName: string | null
}

export type AuditView = RowOf<typeof columns> & AuditNames

/** With what is hashed: the changes as they are stored, and the hash of the row before. */
const rawColumns = {
  ...columns,
  storedChanges: ['a.changes', text],
  hashBefore: ['(SELECT b.hash FROM audit b WHERE b.seq = a.seq - 1)', nullable(hex)],
} as const

const rawPlan: ListPlan<typeof rawColumns> = { ...plan, columns: rawColumns }

/** A row, the text of it that is hashed, and the hash of the row before, which is hashed in front of it. */
export type RawAuditView = AuditView & {
  readonly hashedText: string
  readonly hashBefore: string
}

const NO_HASH = '0'.repeat(64)

type AuditRow = RowOf<typeof columns>

function* withNames<Row extends AuditRow>(rows: readonly Row[], scope: Scope | null): Steps<(Row & AuditNames)[]> {
  const idsOf = ({ actor, target, accountId }: AuditRow) =>
    [actor, target, accountId === null ? '' : textId('acc', accountId)] as const
  const names = yield* findNames(rows.flatMap(idsOf), scope)
  return rows.map(row => {
    const [actor, target, account] = idsOf(row)
    const nameOf = (id: string): string | null => names.get(id) ?? null
    return { ...row, actorName: nameOf(actor), targetName: nameOf(target), accountName: nameOf(account) }
  })
}

function* rawAuditLog(ask: ListQuery): Steps<Page<RawAuditView>> {
  const { rows, next } = yield* listPage(rawPlan, ask)
  const named = yield* withNames(rows, ask.scope)
  const withText = named.map(({ storedChanges, hashBefore, ...row }) => ({
    ...row,
    hashedText: auditText({ ...row, changes: storedChanges }),
    hashBefore: hashBefore ?? NO_HASH,
  }))
  return { rows: withText, next }
}

/** The number and hash of a row. With it a later check can tell that no row up to this one was changed or removed. */
export interface AuditHead {
  readonly seq: number
  readonly hash: string
}

export interface AuditCheckResult {
  /** The number of rows that were checked, counted from the first. */
  readonly rows: number
  /** The first row that does not fit the rows before it; null: the chain is intact. */
  readonly brokenAt: number | null
  /** The last row that was checked. */
  readonly head: AuditHead | null
  /** There are more rows to check, after `head`. */
  readonly goesOn: boolean
}

export interface AuditCheckRequest {
  /** The head of an earlier check. This row must still exist. */
  readonly known?: AuditHead | undefined
  /** The head of the slice before. */
  readonly after?: AuditHead | null | undefined
}

export interface AuditLogQueries {
  auditLog: { input: ListQuery; result: Page<AuditView> }
  rawAuditLog: { input: ListQuery; result: Page<RawAuditView> }
  /** Checks one slice: a million rows at once would block other queries for too long. */
  checkAuditLog: { input: AuditCheckRequest; result: AuditCheckResult }
}

const SLICE_ROWS = 20_000

const findRows = query<SqlRow>('SELECT * FROM audit WHERE seq > ?1 ORDER BY seq LIMIT ?2')

export const auditLogQueries = {
  *auditLog(ask: ListQuery): Steps<Page<AuditView>> {
    const { rows, next } = yield* listPage(plan, ask)
    return { rows: yield* withNames(rows, ask.scope), next }
  },
  rawAuditLog,
  *checkAuditLog({ known, after }: AuditCheckRequest): Steps<AuditCheckResult> {
    let checked = after?.seq ?? 0
    let lastHash: Uint8Array = after ? Buffer.from(after.hash, 'hex') : Buffer.alloc(32)
    const rows = yield* findRows.all(checked, SLICE_ROWS)
    for (const row of rows) {
      const fits = isLinked(row, checked + 1, lastHash)
      const isReplaced =
        known?.seq === checked + 1 && known.hash !== Buffer.from(row.hash as Uint8Array).toString('hex')
      if (!fits || isReplaced) {
        return { rows: checked, brokenAt: checked + 1, head: headOf(checked, lastHash), goesOn: false }
      }
      lastHash = row.hash as Uint8Array
      checked++
    }
    const goesOn = rows.length === SLICE_ROWS
    const lacksKnownRow = !goesOn && known !== undefined && known.seq > checked
    return { rows: checked, brokenAt: lacksKnownRow ? checked + 1 : null, head: headOf(checked, lastHash), goesOn }
  },
}

const headOf = (seq: number, hash: Uint8Array): AuditHead | null =>
  seq === 0 ? null : { seq, hash: Buffer.from(hash).toString('hex') }

function isLinked(row: SqlRow, seq: number, before: Uint8Array): boolean {
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
