// The statement of an account: every transfer that has moved its balance, newest first, page by page. Charges are found
// by the records of their calls, the few others by their own indexes. A charge is dated by its call's beginning, the
// rest by when they were made.

import type { Database } from 'bun:sqlite'
import { idAtMs, msOfId } from '../base/ids.ts'
import { REVENUE } from './operator-accounts.ts'

/** Records that are looked at for one page. */
export const ROWS_A_PAGE = 5_000

export interface StatementLine {
  readonly kind: string
  readonly ref: bigint
  readonly debit: bigint
  readonly credit: bigint
  readonly amount: bigint
  readonly atMs: number
  readonly reference: string | null
  readonly author: string | null
}

export interface StatementCursor {
  readonly beforeSeq: number
  readonly beforeCall: number
}

export interface StatementAsk {
  readonly accountId: number
  readonly limit: number
  readonly cursor?: StatementCursor | undefined
  /** No transfer after this one. */
  readonly upTo?: number | undefined
  readonly kind?: string | undefined
  readonly fromMs?: number | undefined
  readonly beforeMs?: number | undefined
}

export interface StatementPage {
  readonly lines: readonly StatementLine[]
  /** Where the next page begins. Many free calls in a row may make a page short. */
  readonly next: StatementCursor | undefined
}

type Raw = Record<string, bigint | string | null>
type Bound = string | number | null

const CHARGE = 'charge'
const END = Number.MAX_SAFE_INTEGER
const fromTheStart: StatementCursor = { beforeSeq: END, beforeCall: END }

const COLUMNS = 'seq, kind, ref, debit, credit, amount, made_ms, reference, author'
const RANGE = 'seq < ?2 AND seq <= ?4 AND (?5 IS NULL OR kind = ?5) AND made_ms >= ?6 AND made_ms < ?7'

export const othersSql = `
  SELECT ${COLUMNS} FROM transfer WHERE credit = ?1 AND kind <> 'charge' AND ${RANGE}
  UNION ALL
  SELECT ${COLUMNS} FROM transfer WHERE debit = ?1 AND kind <> 'charge' AND ${RANGE}
  ORDER BY seq DESC LIMIT ?3`

export const chargesSql = `
  SELECT t.seq, t.kind, t.ref, t.debit, t.credit, t.amount, t.made_ms, t.reference, t.author
  FROM (SELECT call_id FROM record WHERE account_id = ?1 AND call_id < ?2 AND call_id >= ?6
          ORDER BY call_id DESC LIMIT ?3) r
    JOIN transfer t ON t.ref = r.call_id AND t.kind = 'charge' AND t.seq <= ?5
  ORDER BY r.call_id DESC LIMIT ?4`

/** The last call that such a page looks at. */
export const walkedSql = `SELECT call_id FROM record WHERE account_id = ?1 AND call_id < ?2 AND call_id >= ?4
  ORDER BY call_id DESC LIMIT 1 OFFSET ?3 - 1`

/** Nearly all transfers are of this account, so they are walked as they stand. */
export const revenueSql = `
  SELECT ${COLUMNS} FROM (SELECT * FROM transfer WHERE seq < ?2 ORDER BY seq DESC LIMIT ?8)
  WHERE (credit = ?1 OR debit = ?1) AND ${RANGE} ORDER BY seq DESC LIMIT ?3`

export function statementPage(db: Database, ask: StatementAsk): StatementPage {
  const isWalked = ask.accountId === REVENUE && (ask.kind === undefined || ask.kind === CHARGE)
  return isWalked ? revenuePage(db, ask) : mergedPage(db, ask)
}

const valuesOf = ({ accountId, limit, cursor, upTo, kind, fromMs, beforeMs }: StatementAsk): Bound[] => [
  ...[accountId, cursor?.beforeSeq ?? END, limit, upTo ?? END, kind ?? null, fromMs ?? 0, beforeMs ?? END],
]

function revenuePage(db: Database, ask: StatementAsk): StatementPage {
  const { limit, cursor = fromTheStart } = ask
  const rows = all(db, revenueSql, [...valuesOf(ask), ROWS_A_PAGE])
  const lines = rows.map(row => lineOf(row, Number(row.made_ms)))
  const last = rows.at(-1)
  const end = rows.length === limit ? last : all(db, END_SQL, [cursor.beforeSeq, ROWS_A_PAGE])[0]
  return { lines, next: end === undefined ? undefined : { ...cursor, beforeSeq: Number(end.seq) } }
}

const END_SQL = 'SELECT seq FROM transfer WHERE seq < ?1 ORDER BY seq DESC LIMIT 1 OFFSET ?2 - 1'

interface Charges {
  readonly rows: readonly Raw[]
  /** Where the walk ended without having found as many as were asked for. */
  readonly end: number | undefined
}

function chargesOf(db: Database, ask: StatementAsk): Charges {
  if (ask.kind !== undefined && ask.kind !== CHARGE) return { rows: [], end: undefined }
  const { accountId, limit, cursor = fromTheStart, upTo = END, fromMs, beforeMs } = ask
  const before = Math.min(cursor.beforeCall, beforeMs === undefined ? END : idAtMs(beforeMs))
  const from = fromMs === undefined ? 0 : idAtMs(fromMs)
  const rows = all(db, chargesSql, [accountId, before, ROWS_A_PAGE, limit, upTo, from])
  if (rows.length === limit) return { rows, end: undefined }
  const walked = all(db, walkedSql, [accountId, before, ROWS_A_PAGE, from])[0]
  return { rows, end: walked === undefined ? undefined : Number(walked.call_id) }
}

function mergedPage(db: Database, ask: StatementAsk): StatementPage {
  const { limit, cursor = fromTheStart } = ask
  const others = ask.kind === CHARGE ? [] : all(db, othersSql, valuesOf(ask))
  const { rows: charges, end } = chargesOf(db, ask)
  const endMs = end === undefined ? 0 : msOfId(end)
  const lines: StatementLine[] = []
  let { beforeSeq, beforeCall } = cursor
  let [other, charge] = [others[0], charges[0]]
  for (let [at, atCharge] = [0, 0]; lines.length < limit; ) {
    const callMs = charge === undefined ? endMs : msOfId(Number(charge.ref))
    if (other !== undefined && Number(other.made_ms) >= callMs) {
      lines.push(lineOf(other, Number(other.made_ms)))
      beforeSeq = Number(other.seq)
      other = others[++at]
    } else if (charge !== undefined) {
      lines.push(lineOf(charge, callMs))
      beforeCall = Number(charge.ref)
      charge = charges[++atCharge]
    } else return { lines, next: end === undefined ? undefined : { beforeSeq, beforeCall: end } }
  }
  return { lines, next: { beforeSeq, beforeCall } }
}

const all = (db: Database, sql: string, values: Bound[]): readonly Raw[] => db.query<Raw, Bound[]>(sql).all(...values)

export function lineOf(row: Raw, atMs: number): StatementLine {
  return {
    kind: row.kind as string,
    ref: row.ref as bigint,
    debit: row.debit as bigint,
    credit: row.credit as bigint,
    amount: row.amount as bigint,
    atMs,
    reference: row.reference as string | null,
    author: row.author as string | null,
  }
}
