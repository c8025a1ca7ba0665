// Queries for the ledger: the statement of an account with the balance after each line, and the trial balance.

import { BILLION } from '../../base/money/money.ts'
import type { Steps } from '../engine/steps.ts'
import { query } from '../engine/steps.ts'
import type { LedgerInspection } from '../ledger/inspect-tables.ts'
import { inspectTables } from '../ledger/inspect-tables.ts'
import { OPERATOR_ID_MAX } from '../ledger/operator-accounts.ts'
import type { StatementCursor } from '../ledger/statement.ts'
import { newestCursor, readStatementPage } from '../ledger/statement.ts'
import type { StatementView } from '../ledger/statement-text.ts'
import { viewOfLine } from '../ledger/statement-text.ts'
import { number } from '../tables/columns.ts'
import type { Scope } from './paging.ts'
import { rowFinder } from './paging.ts'

export interface StatementQuery {
  readonly accountId: number
  readonly scope: Scope | null
  readonly kind?: string | undefined
  readonly from?: number | undefined
  readonly before?: number | undefined
  readonly after?: string | undefined
  readonly limit: number
}

export interface StatementResult {
  readonly lines: readonly StatementView[]
  readonly next: string | null
}

export interface TrialRow {
  readonly kind: string
  readonly accounts: number
  readonly balance: string
  readonly held: string
}

export interface TrialBalance {
  readonly operators: readonly { readonly id: number; readonly name: string; readonly balance: string }[]
  readonly customers: readonly TrialRow[]
  /** The sum of all balances. It must be zero. */
  readonly sum: string
  /** The number of the last transfer that is included. */
  readonly transfers: number
}

export interface LedgerQueries {
  /** Null where the account does not exist or is outside the scope. */
  statement: { input: StatementQuery; result: StatementResult | null }
  trialBalance: { input: Record<string, never>; result: TrialBalance }
  /** For the state of the gateway. */
  ledgerInspection: { input: { readonly dateMs: number }; result: LedgerInspection }
}

const findAccount = rowFinder({ from: 'account a', columns: { id: ['a.id', number] }, id: 'a.id', account: 'a.id' })

/** On PostgreSQL each process has its own part of the balances of the operator's accounts. */
const WITH_PARTS = `CAST(a.balance + coalesce((SELECT sum(p.balance) FROM operator_part p WHERE p.account_id = a.id), 0)
  AS BIGINT) AS balance`

const findBalance = query<{ balance: bigint }>({
  sqlite: 'SELECT balance FROM account WHERE id = ?1',
  postgres: `SELECT ${WITH_PARTS} FROM account a WHERE a.id = ?1`,
})

/** The balance, the transfers and the sums fit together because a query reads in one transaction. */
export const ledgerQueries = {
  statement: readStatement,
  trialBalance: readTrialBalance,
  ledgerInspection: ({ dateMs }: { readonly dateMs: number }) => inspectTables(dateMs),
}

function* readStatement(ask: StatementQuery): Steps<StatementResult | null> {
  const { accountId, scope, kind, from: fromMs, before: beforeMs, limit } = ask
  if ((yield* findAccount({ id: accountId, scope })) === null) return null
  const { balance } = (yield* findBalance.get(accountId))!
  const cursor = ask.after === undefined ? newestCursor(balance) : readStatementCursor(ask.after)
  if (cursor === undefined) return { lines: [], next: null }
  const { lines, next } = yield* readStatementPage({ accountId, limit, cursor, kind, fromMs, beforeMs })
  return {
    lines: lines.map(line => viewOfLine(line, accountId)),
    next: next === undefined ? null : writeCursor(next),
  }
}

const writeCursor = ({ beforeSeq, balance }: StatementCursor): string =>
  Buffer.from(JSON.stringify([beforeSeq, String(balance)])).toString('base64url')

/** Whether a text is a balance that the table can hold. */
const isBalance = (text: unknown): text is string =>
  typeof text === 'string' && /^-?\d{1,19}$/.test(text) && BigInt(text.replace('-', '')) < 2n ** 62n

/** Undefined for a text that is not a cursor of ours. */
export function readStatementCursor(text: string): StatementCursor | undefined {
  try {
    const [beforeSeq, balance] = JSON.parse(Buffer.from(text, 'base64url').toString()) as unknown[]
    if (!Number.isSafeInteger(beforeSeq) || !isBalance(balance)) return undefined
    return { beforeSeq: beforeSeq as number, balance: BigInt(balance) }
  } catch {
    return undefined
  }
}

interface CustomerSums {
  readonly kind: string
  readonly n: bigint
  readonly whole: bigint
  readonly rest: bigint
  readonly held: bigint
  readonly held_rest: bigint
}

/** Sums whole billions and the rest apart, because the sum of all balances may not fit into 64 bits. */
const findSums = query<CustomerSums>(
  `SELECT kind, count(*) AS n, CAST(sum(balance / 1000000000) AS BIGINT) AS whole,
     CAST(sum(balance % 1000000000) AS BIGINT) AS rest, CAST(sum(held / 1000000000) AS BIGINT) AS held,
     CAST(sum(held % 1000000000) AS BIGINT) AS held_rest
   FROM account WHERE id > ?1 GROUP BY kind ORDER BY kind DESC`,
)
const findOperators = query<{ id: bigint; name: string; balance: bigint }>({
  sqlite: 'SELECT id, name, balance FROM account WHERE id <= ?1 ORDER BY id',
  postgres: `SELECT a.id, a.name, ${WITH_PARTS} FROM account a WHERE a.id <= ?1 ORDER BY a.id`,
})
const findLast = query<{ last: bigint }>('SELECT coalesce(max(seq), 0) AS last FROM transfer')

function* readTrialBalance(): Steps<TrialBalance> {
  const sums = yield* findSums.all(OPERATOR_ID_MAX)
  const operatorRows = yield* findOperators.all(OPERATOR_ID_MAX)
  const { last } = (yield* findLast.get())!
  const balanceOf = ({ whole, rest }: CustomerSums): bigint => whole * BILLION + rest
  const sum = sums.reduce(
    (all, row) => all + balanceOf(row),
    operatorRows.reduce((all, row) => all + row.balance, 0n),
  )
  return {
    operators: operatorRows.map(({ id, name, balance }) => ({ id: Number(id), name, balance: String(balance) })),
    customers: sums.map(row => ({
      kind: row.kind,
      accounts: Number(row.n),
      balance: String(balanceOf(row)),
      held: String(row.held * BILLION + row.held_rest),
    })),
    sum: String(sum),
    transfers: Number(last),
  }
}
