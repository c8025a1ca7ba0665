// The gateway's database as the checker reads it: every statement about its tables stands here. The file is opened
// by a connection of the checker's own, and none of the gateway's code is used.

import { existsSync } from 'node:fs'
import { openDatabase } from '../support/database.ts'
import { PAYMENT } from './operator.ts'

export interface AccountRow {
  readonly id: number
  readonly kind: string
  readonly balance: bigint
  readonly held: bigint
  readonly creditLimit: bigint
  readonly frozen: boolean
  /** What came in less what went out, by the transfers. */
  readonly entries: bigint
  /** Of its open holds. */
  readonly open: bigint
}

/** Of a key or an account, set before its first call. */
export interface BudgetRow {
  readonly scope: number
  readonly span: string
  readonly ceiling: bigint
  readonly spent: bigint
  readonly held: bigint
  readonly open: bigint
  readonly charged: bigint
}

export interface RecordRow {
  readonly callId: number
  readonly accountId: number
  readonly tag: string
  readonly outcome: string
  readonly source: string
  readonly input: number
  readonly cached: number
  readonly output: number
  readonly cost: bigint
  readonly shortfall: bigint
  readonly held: bigint
}

export interface Transfer {
  readonly seq: number
  readonly call: number
  readonly kind: string
  readonly debit: number
  readonly credit: number
  readonly amount: bigint
}

export interface Books {
  readonly accounts: readonly AccountRow[]
  readonly budgets: readonly BudgetRow[]
  /** Of calls after the one given. */
  readonly records: readonly RecordRow[]
  /** After the one given, those of calls only. */
  readonly transfers: readonly Transfer[]
  /** References of payments after the transfer given; one that stands twice was booked twice. */
  readonly payments: readonly string[]
  readonly lastSeq: number
  readonly openCalls: number
  /** Calls of all times with more than one charge, or with a charge and no record. */
  readonly chargedTwice: readonly number[]
  readonly chargedAlone: readonly number[]
  readonly recordsInAll: number
  readonly transfersInAll: number
}

/** One pass over the transfers, however many accounts there are. */
const ACCOUNTS = `
  WITH entry (account, amount) AS (
    SELECT credit, amount FROM transfer UNION ALL SELECT debit, -amount FROM transfer
  ), total AS (SELECT account, sum(amount) AS amount FROM entry GROUP BY account),
  open AS (SELECT account_id AS account, sum(amount) AS amount FROM hold GROUP BY account_id)
  SELECT id, kind, balance, held, credit_limit AS creditLimit, frozen_ms IS NOT NULL AS frozen,
    coalesce(total.amount, 0) AS entries, coalesce(open.amount, 0) AS open
  FROM account LEFT JOIN total ON total.account = id LEFT JOIN open ON open.account = id`

const RECORDS = `
  SELECT call_id AS callId, account_id AS accountId, end_user AS tag, outcome, usage_source AS source,
    input_tokens AS input, cache_read_tokens AS cached, output_tokens AS output, cost, shortfall, held
  FROM record WHERE call_id > ?1 ORDER BY call_id`

const RECORD_NUMBERS = ['callId', 'accountId', 'input', 'cached', 'output'] as const

const TRANSFERS = `
  SELECT seq, ref AS call, kind, debit, credit, amount FROM transfer
  WHERE seq > ?1 AND kind IN ('charge', 'shortfall') ORDER BY seq`

const PAYMENTS = `SELECT reference FROM transfer WHERE seq > ?1 AND kind = 'top_up' AND amount = ?2`

const CHARGED_TWICE = `SELECT ref FROM transfer WHERE kind = 'charge' GROUP BY ref HAVING count(*) > 1`
const CHARGED_ALONE = `
  SELECT ref FROM transfer WHERE kind = 'charge' AND NOT EXISTS (SELECT 1 FROM record WHERE call_id = transfer.ref)`

const BUDGETS = `
  SELECT scope_id AS scope, span, ceiling, spent, held,
    coalesce((SELECT sum(amount) FROM hold WHERE key_id = scope_id OR account_id = scope_id), 0) AS open,
    coalesce((SELECT sum(cost) FROM record WHERE key_id = scope_id OR account_id = scope_id), 0) AS charged
  FROM budget`

const OVERDRAWN = `
  SELECT id FROM account WHERE kind = 'prepaid' AND balance + credit_limit - held < 0
  UNION ALL SELECT scope_id FROM budget WHERE spent + held > ceiling`

type Raw = Record<string, bigint | string | null>

/** What is integer by its nature becomes a number; money stays as it is. */
const numbered = <Row>(row: Raw, ...names: readonly string[]): Row => {
  const numbers = Object.fromEntries(names.map(name => [name, Number(row[name])]))
  return { ...row, ...numbers } as Row
}

export interface Seen {
  readonly call: number
  readonly seq: number
}

/** One state of the database, read in one transaction. */
export function readBooks(path: string, after: Seen): Books {
  const db = openDatabase(path, { readonly: true, safeIntegers: true })
  const all = (sql: string, ...values: number[]): Raw[] => db.query<Raw, number[]>(sql).all(...values)
  const one = (sql: string): number => Number(Object.values(all(sql)[0]!)[0])
  try {
    return db.transaction(() => ({
      accounts: all(ACCOUNTS).map(row => ({ ...numbered<AccountRow>(row, 'id'), frozen: row.frozen === 1n })),
      budgets: all(BUDGETS).map(row => numbered<BudgetRow>(row, 'scope')),
      records: all(RECORDS, after.call).map(row => numbered<RecordRow>(row, ...RECORD_NUMBERS)),
      transfers: all(TRANSFERS, after.seq).map(row => numbered<Transfer>(row, 'seq', 'call', 'debit', 'credit')),
      payments: all(PAYMENTS, after.seq, Number(PAYMENT)).map(row => String(row.reference)),
      lastSeq: one('SELECT coalesce(max(seq), 0) FROM transfer'),
      openCalls: one(`SELECT count(*) FROM hold WHERE kind = 'call'`),
      chargedTwice: all(CHARGED_TWICE).map(row => Number(row.ref)),
      chargedAlone: all(CHARGED_ALONE).map(row => Number(row.ref)),
      recordsInAll: one('SELECT count(*) FROM record'),
      transfersInAll: one('SELECT count(*) FROM transfer'),
    }))()
  } finally {
    db.close()
  }
}

/** What a start would have to recover; nothing where there is no schema yet. */
export function countOpenCalls(path: string): number {
  if (!existsSync(path)) return 0
  const db = openDatabase(path, { readonly: true })
  try {
    return (db.query(`SELECT count(*) AS n FROM hold WHERE kind = 'call'`).get() as { n: number }).n
  } catch {
    return 0
  } finally {
    db.close()
  }
}

/** Accounts and budgets that stand below nothing, calls under way or not. */
export function readOverdrawn(path: string): number[] {
  const db = openDatabase(path, { readonly: true })
  try {
    return (db.query(OVERDRAWN).values() as [number][]).map(([id]) => id)
  } finally {
    db.close()
  }
}
