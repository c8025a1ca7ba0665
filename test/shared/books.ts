// Reads the ledger on PostgreSQL in the form that the rules of the crash tests judge. It uses the driver, but no SQL of the
// gateway.

import type { Steps } from '../../src/store/engine/steps.ts'
import { postgresQuery } from '../../src/store/engine/steps.ts'
import type { PostgresPool } from '../../src/store/postgres/pools.ts'
import type { AccountRow, Books, BudgetRow, Position, RecordRow, Transfer } from '../crash/books.ts'
import { PAYMENT } from '../crash/operator.ts'

type Raw = Record<string, bigint | string | null>

const accounts = postgresQuery<Raw>(`
  WITH entry (account, amount) AS (
    SELECT credit, amount FROM transfer UNION ALL SELECT debit, -amount FROM transfer
  ), total AS (SELECT account, CAST(sum(amount) AS BIGINT) AS amount FROM entry GROUP BY account),
  open AS (SELECT account_id AS account, CAST(sum(amount) AS BIGINT) AS amount FROM hold GROUP BY account_id),
  part AS (SELECT account_id AS account, CAST(sum(balance) AS BIGINT) AS balance FROM operator_part GROUP BY account_id)
  SELECT id, kind, account.balance + coalesce(part.balance, 0) AS balance, held, credit_limit AS "creditLimit",
    CAST(CASE WHEN frozen_ms IS NULL THEN 0 ELSE 1 END AS BIGINT) AS frozen,
    coalesce(total.amount, 0) AS entries, coalesce(open.amount, 0) AS open
  FROM account LEFT JOIN total ON total.account = id LEFT JOIN open ON open.account = id
    LEFT JOIN part ON part.account = id`)
const records = postgresQuery<Raw>(`
  SELECT call_id AS "callId", account_id AS "accountId", end_user AS tag, outcome, usage_source AS source,
    input_tokens AS input, cache_read_tokens AS cached, output_tokens AS output, cost, shortfall, held
  FROM record WHERE call_id > $1 ORDER BY call_id`)
const transfers = postgresQuery<Raw>(`
  SELECT seq, ref AS call, kind, debit, credit, amount FROM transfer
  WHERE seq > $1 AND kind IN ('charge', 'shortfall', 'refund') ORDER BY seq`)
const payments = postgresQuery<Raw>(`SELECT seq, reference FROM transfer WHERE kind = 'top_up' AND amount = $1`)
const chargedTwice = postgresQuery<Raw>(
  `SELECT ref FROM transfer WHERE kind = 'charge' GROUP BY ref HAVING count(*) > 1`,
)
const chargedAlone = postgresQuery<Raw>(`
  SELECT ref FROM transfer WHERE kind = 'charge' AND NOT EXISTS (SELECT 1 FROM record WHERE call_id = transfer.ref)`)
const budgets = postgresQuery<Raw>(`
  SELECT scope_id AS scope, span, ceiling, spent, held,
    coalesce((SELECT CAST(sum(amount) AS BIGINT) FROM hold WHERE key_id = scope_id OR account_id = scope_id), 0) AS open,
    coalesce((SELECT CAST(sum(cost) AS BIGINT) FROM record WHERE key_id = scope_id OR account_id = scope_id), 0) AS charged
  FROM budget`)
const counts = postgresQuery<Raw>(`
  SELECT (SELECT count(*) FROM record) AS records, (SELECT count(*) FROM transfer) AS transfers,
    (SELECT coalesce(max(seq), 0) FROM transfer) AS seq, (SELECT count(*) FROM hold WHERE kind = 'call') AS open`)

const numbered = <Row>(row: Raw, ...names: readonly string[]): Row => {
  const numbers = Object.fromEntries(names.map(name => [name, Number(row[name])]))
  return { ...row, ...numbers } as Row
}

/**
 * All processes have settled their calls, so that records that come later have higher ids. Payments go on meanwhile, and
 * one of them may be committed after a transfer with a higher number.
 */
export function sharedBooksReader(pool: PostgresPool): (after: Position) => Promise<Books> {
  const seen = new Set<bigint>()
  const isNew = ({ seq }: Raw): boolean => {
    const isSeen = seen.has(seq as bigint)
    seen.add(seq as bigint)
    return !isSeen
  }
  return async after => readBooks(pool, after, isNew)
}

function readBooks(pool: PostgresPool, after: Position, isNew: (row: Raw) => boolean): Promise<Books> {
  return pool.read(
    (function* (): Steps<Books> {
      const all = yield* counts.get()
      const ids = ['callId', 'accountId', 'input', 'cached', 'output'] as const
      return {
        accounts: (yield* accounts.all()).map(row => ({
          ...numbered<AccountRow>(row, 'id'),
          frozen: row.frozen === 1n,
        })),
        budgets: (yield* budgets.all()).map(row => numbered<BudgetRow>(row, 'scope')),
        records: (yield* records.all(after.call)).map(row => numbered<RecordRow>(row, ...ids)),
        transfers: (yield* transfers.all(after.seq)).map(row =>
          numbered<Transfer>(row, 'seq', 'call', 'debit', 'credit'),
        ),
        payments: (yield* payments.all(PAYMENT)).filter(isNew).map(row => String(row.reference)),
        lastSeq: Number(all!.seq),
        openCalls: Number(all!.open),
        chargedTwice: (yield* chargedTwice.all()).map(row => Number(row.ref)),
        chargedAlone: (yield* chargedAlone.all()).map(row => Number(row.ref)),
        recordsInAll: Number(all!.records),
        transfersInAll: Number(all!.transfers),
      }
    })(),
  )
}

const open = postgresQuery<{ n: bigint }>(`SELECT count(*) AS n FROM hold WHERE kind = 'call'`)

export const countOpenHolds = async (pool: PostgresPool): Promise<number> =>
  Number((await pool.readPoint(open.get()))!.n)
