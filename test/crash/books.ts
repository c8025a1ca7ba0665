// Reads the database of the gateway for the checker; all SQL of the checker is here. It uses a connection of its own and no
// code of the gateway.

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
  /** The sum of its transfers: credits less debits. */
  readonly entries: bigint
  /** The sum of its open holds. */
  readonly open: bigint
}

/** A budget of a key or an account, set before its first call. */
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
  /** Records of calls after `after.call`. */
  readonly records: readonly RecordRow[]
  /** Transfers of calls after `after.seq`. */
  readonly transfers: readonly Transfer[]
  /** References of payments after `after.seq`; a reference that occurs twice was booked twice. */
  readonly payments: readonly string[]
  readonly lastSeq: number
  readonly openCalls: number
  /** All calls with more than one charge; all calls with a charge and no record. */
  readonly chargedTwice: readonly number[]
  readonly chargedAlone: readonly number[]
  readonly recordsInAll: number
  readonly transfersInAll: number
}

/** Reads the transfers once, however many accounts there are. */
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
  WHERE seq > ?1 AND kind IN ('charge', 'shortfall', 'refund') ORDER BY seq`

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

/** Converts ids and counts to numbers; money stays a bigint. */
const numbered = <Row>(row: Raw, ...names: readonly string[]): Row => {
  const numbers = Object.fromEntries(names.map(name => [name, Number(row[name])]))
  return { ...row, ...numbers } as Row
}

export interface Position {
  readonly call: number
  readonly seq: number
}

/** Reads one state of the database in one transaction. */
export function readBooks(path: string, after: Position): Books {
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

/** How many calls a start would have to recover; 0 if there is no schema yet. */
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

/** Accounts and budgets that are overdrawn; calls may be active meanwhile. */
export function readOverdrawn(path: string): number[] {
  const db = openDatabase(path, { readonly: true })
  try {
    return (db.query(OVERDRAWN).values() as [number][]).map(([id]) => id)
  } finally {
    db.close()
  }
}
