// Queries for accounts, and for the budgets of accounts and keys. The operator's own accounts are left out.

import type { Steps } from '../engine/steps.ts'
import { query } from '../engine/steps.ts'
import { periodOf } from '../ledger/budgets.ts'
import { accountColumns, budgetColumns } from '../tables/accounts.ts'
import type { RowOf, SqlRow } from '../tables/columns.ts'
import { number, rowReader, selectList } from '../tables/columns.ts'
import type { ListPlan, ListQuery, Page, Scope } from './paging.ts'
import { beginsWithName, byName, equals, isTrue, listPage, rowFinder } from './paging.ts'

const plan: ListPlan<typeof accountColumns> = {
  from: 'account a',
  columns: accountColumns,
  id: 'a.id',
  // The balance changes with each call, so it has no index: this order reads all accounts.
  sorts: { created: 'a.id', name: byName('a.name'), balance: 'a.balance' },
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

const ownerColumns = { id: ['o.id', number] } as const
const findOwner = {
  key: rowFinder({ from: 'api_key o', columns: ownerColumns, id: 'o.id', account: 'o.account_id' }),
  account: rowFinder({
    ...{ from: 'account o', columns: ownerColumns, id: 'o.id', account: 'o.id' },
    where: "o.kind <> 'operator'",
  }),
}
const findBudgets = query<SqlRow>(`SELECT ${selectList(budgetColumns)} FROM budget WHERE scope_id = ?1 ORDER BY span`)
const readBudget = rowReader(budgetColumns)

export const accountQueries = {
  accounts: (ask: ListQuery) => listPage(plan, ask),
  account: rowFinder(plan),
  *budgets({ id, of, scope, nowMs }: BudgetQuery): Steps<readonly BudgetDetails[] | null> {
    if ((yield* findOwner[of]({ id, scope })) === null) return null
    return (yield* findBudgets.all(id)).map(row => inCurrentPeriod(readBudget(row), nowMs))
  },
}

/** Shows zero spending for a period that is over; the next call resets the row. */
export const inCurrentPeriod = (budget: BudgetDetails, nowMs: number): BudgetDetails =>
  periodOf(budget.span, nowMs) > BigInt(budget.period) ? { ...budget, spent: '0' } : budget
