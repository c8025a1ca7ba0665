// Queries for accounts, and for the budgets of accounts and keys. The operator's own accounts are left out.

import type { Database } from 'bun:sqlite'
import { periodOf } from '../ledger/budgets.ts'
import type { BudgetSpan } from '../ledger/hold-types.ts'
import type { ListAsk, ListPlan, Page, Scope } from './paging.ts'
import { beginsWithName, findOne, holds, is, listPage, scopeSql, scopeValues } from './paging.ts'
import type { Row, Told, Value } from './values.ts'
import { flag, list, money, number, or, selectOf, text, told } from './values.ts'

const columns = {
  id: ['a.id', number],
  name: ['a.name', text],
  type: ['a.type', text],
  kind: ['a.kind', text],
  balance: ['a.balance', money],
  held: ['a.held', money],
  creditLimit: ['a.credit_limit', money],
  keepsBodies: ['a.keeps_bodies', flag],
  tier: ['a.tier', or(text)],
  allows: ['a.allows', list],
  denies: ['a.denies', list],
  frozenMs: ['a.frozen_ms', or(number)],
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
    type: is('a.type'),
    kind: is('a.kind'),
    frozen: holds('a.frozen_ms IS NOT NULL'),
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

export type AccountRead = Told<typeof columns>
export type BudgetRead = Told<typeof budgetColumns>

interface BudgetQuery {
  /** The id of a key or of an account. */
  readonly id: number
  readonly of: 'key' | 'account'
  readonly scope: Scope | null
  readonly nowMs: number
}

export interface AccountReads {
  accounts: { input: ListAsk; result: Page<AccountRead> }
  account: { input: { readonly id: number; readonly scope: Scope | null }; result: AccountRead | null }
  /** Null where the key or account is not found. For an account, the budgets of its keys are not included. */
  budgets: { input: BudgetQuery; result: readonly BudgetRead[] | null }
}

export const accountReads = (db: Database) => ({
  accounts: (ask: ListAsk) => listPage(db, plan, ask),
  account: (ask: AccountReads['account']['input']) => findOne(db, plan, ask) ?? null,
  budgets: (ask: BudgetQuery) => readBudgets(db, ask),
})

const owners = {
  key: { sql: 'SELECT 1 FROM api_key o WHERE o.id = $id', account: 'o.account_id' },
  account: { sql: "SELECT 1 FROM account o WHERE o.id = $id AND o.kind <> 'operator'", account: 'o.id' },
}

function readBudgets(db: Database, { id, of, scope, nowMs }: BudgetQuery): readonly BudgetRead[] | null {
  const { sql, account } = owners[of]
  const inScope = scope === null ? '' : ` AND ${scopeSql(account)}`
  const owner = db.query<Row, [Record<string, Value>]>(sql.concat(inScope)).get({ id, ...scopeValues(scope) })
  if (owner === null) return null
  const select = ['SELECT', selectOf(budgetColumns), 'FROM budget b WHERE b.scope_id = $id ORDER BY b.span']
  const rows = db.query<Row, [Record<string, Value>]>(select.join(' ')).all({ id })
  return rows.map(row => inCurrentPeriod(told(budgetColumns, row), nowMs))
}

/** Shows zero spending for a period that is over; the next call resets the row. */
const inCurrentPeriod = (budget: BudgetRead, nowMs: number): BudgetRead =>
  periodOf(budget.span as BudgetSpan, nowMs) > BigInt(budget.period) ? { ...budget, spent: '0' } : budget
