// Queries for accounts, and for the budgets of accounts and keys. The operator's own accounts are left out.

import type { Database } from 'bun:sqlite'
import { periodOf } from '../ledger/budgets.ts'
import type { BudgetSpan } from '../ledger/hold-types.ts'
import type { QueryRow, SqlRow, SqlValue } from './columns.ts'
import { flag, list, money, nullable, number, readRow, selectList, text } from './columns.ts'
import type { ListPlan, ListQuery, Page, Scope } from './paging.ts'
import { beginsWithName, equals, findOne, isTrue, listPage, scopeSql, scopeValues } from './paging.ts'

const columns = {
  id: ['a.id', number],
  name: ['a.name', text],
  type: ['a.type', text],
  kind: ['a.kind', text],
  balance: ['a.balance', money],
  held: ['a.held', money],
  creditLimit: ['a.credit_limit', money],
  keepsBodies: ['a.keeps_bodies', flag],
  tier: ['a.tier', nullable(text)],
  allows: ['a.allows', list],
  denies: ['a.denies', list],
  frozenMs: ['a.frozen_ms', nullable(number)],
  createdMs: ['a.created_ms', number],
  version: ['a.version', number],
} as const

const plan: ListPlan<typeof columns> = {
  from: 'account a',
  columns,
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

const budgetColumns = {
  scopeId: ['b.scope_id', number],
  span: ['b.span', text],
  cap: ['b.cap', money],
  spent: ['b.spent', money],
  held: ['b.held', money],
  period: ['b.period', number],
  version: ['b.version', number],
} as const

export type AccountDetails = QueryRow<typeof columns>
export type BudgetDetails = QueryRow<typeof budgetColumns>

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

function readBudgets(db: Database, { id, of, scope, nowMs }: BudgetQuery): readonly BudgetDetails[] | null {
  const { sql, account } = owners[of]
  const inScope = scope === null ? '' : ` AND ${scopeSql(account)}`
  const owner = db.query<SqlRow, [Record<string, SqlValue>]>(sql.concat(inScope)).get({ id, ...scopeValues(scope) })
  if (owner === null) return null
  const select = ['SELECT', selectList(budgetColumns), 'FROM budget b WHERE b.scope_id = $id ORDER BY b.span']
  const rows = db.query<SqlRow, [Record<string, SqlValue>]>(select.join(' ')).all({ id })
  return rows.map(row => inCurrentPeriod(readRow(budgetColumns, row), nowMs))
}

/** Shows zero spending for a period that is over; the next call resets the row. */
const inCurrentPeriod = (budget: BudgetDetails, nowMs: number): BudgetDetails =>
  periodOf(budget.span as BudgetSpan, nowMs) > BigInt(budget.period) ? { ...budget, spent: '0' } : budget
