// Queries for accounts, and for the budgets of accounts and keys. The operator's own accounts are left out.

import type { Database } from 'bun:sqlite'
import type { SqlValue } from '../engine/steps.ts'
import { periodOf } from '../ledger/budgets.ts'
import { accountColumns, budgetColumns } from '../tables/accounts.ts'
import type { RowOf, SqlRow } from '../tables/columns.ts'
import { rowReader, selectList } from '../tables/columns.ts'
import type { ListPlan, ListQuery, Page, Scope } from './paging.ts'
import { beginsWithName, equals, findOne, isTrue, listPage, scopeSql, scopeValues } from './paging.ts'

const plan: ListPlan<typeof accountColumns> = {
  from: 'account a',
  columns: accountColumns,
  id: 'a.id',
  sorts: { created: 'a.id', name: 'a.name COLLATE NOCASE' },
  account: 'a.id',
  where: "a.kind <> 'operator'",
  filters: {
    name: beginsWithName('a.name'),
    type: equals('a.type'),
    kind: equals('a.kind'),
    frozen: isTrue('a.frozen_ms IS NOT NULL'),
  },
}

export type AccountDetails = RowOf<typeof accountColumns>
export type BudgetDetails = RowOf<typeof budgetColumns>

interface BudgetQuery {
  /** The id of a key or of an account. */
  readonly id: number
  readonly of: 'key' | 'account'
  readonly scope: Scope | null
  readonly nowMs: number
}

export interface AccountQueries {
  accounts: { input: ListQuery; result: Page<AccountDetails> }
  account: { input: { readonly id: number; readonly scope: Scope | null }; result: AccountDetails | null }
  /** Null where the key or account is not found. For an account, the budgets of its keys are not included. */
  budgets: { input: BudgetQuery; result: readonly BudgetDetails[] | null }
}

export const accountQueries = (db: Database) => ({
  accounts: (ask: ListQuery) => listPage(db, plan, ask),
  account: (ask: AccountQueries['account']['input']) => findOne(db, plan, ask) ?? null,
  budgets: (ask: BudgetQuery) => readBudgets(db, ask),
})

const owners = {
  key: { sql: 'SELECT 1 FROM api_key o WHERE o.id = $id', account: 'o.account_id' },
  account: { sql: "SELECT 1 FROM account o WHERE o.id = $id AND o.kind <> 'operator'", account: 'o.id' },
}

const readBudget = rowReader(budgetColumns)

function readBudgets(db: Database, { id, of, scope, nowMs }: BudgetQuery): readonly BudgetDetails[] | null {
  const { sql, account } = owners[of]
  const inScope = scope === null ? '' : ` AND ${scopeSql(account)}`
  const owner = db.query<SqlRow, [Record<string, SqlValue>]>(sql.concat(inScope)).get({ id, ...scopeValues(scope) })
  if (owner === null) return null
  const select = ['SELECT', selectList(budgetColumns), 'FROM budget WHERE scope_id = $id ORDER BY span']
  const rows = db.query<SqlRow, [Record<string, SqlValue>]>(select.join(' ')).all({ id })
  return rows.map(row => inCurrentPeriod(readBudget(row), nowMs))
}

/** Shows zero spending for a period that is over; the next call resets the row. */
const inCurrentPeriod = (budget: BudgetDetails, nowMs: number): BudgetDetails =>
  periodOf(budget.span, nowMs) > BigInt(budget.period) ? { ...budget, spent: '0' } : budget
