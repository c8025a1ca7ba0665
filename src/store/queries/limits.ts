// Queries for limits.

import type { RowOf } from '../tables/columns.ts'
import { nullable, number, text } from '../tables/columns.ts'
import { limitColumns } from '../tables/rules.ts'
import type { ListPlan, ListQuery, Page } from './paging.ts'
import { equals, listPage, rowFinder } from './paging.ts'

const columns = {
  ...limitColumns,
  version: ['version', number],
  keyName: ['(SELECT k.name FROM api_key k WHERE k.id = l.key_id)', nullable(text)],
  accountName: ['(SELECT a.name FROM account a WHERE a.id = l.account_id)', nullable(text)],
} as const

const plan: ListPlan<typeof columns> = {
  from: 'limit_rule l',
  columns,
  id: 'l.id',
  sorts: { id: 'l.id' },
  filters: {
    resource: equals('l.resource'),
    key: equals('l.key_id'),
    account: equals('l.account_id'),
    tier: equals('l.tier'),
    model: equals('l.model'),
  },
}

export type LimitDetails = RowOf<typeof columns>

export interface LimitQueries {
  limits: { input: ListQuery; result: Page<LimitDetails> }
  limit: { input: { readonly id: number }; result: LimitDetails | null }
}

const findLimit = rowFinder(plan)

export const limitQueries = {
  limits: (ask: ListQuery) => listPage(plan, ask),
  limit: ({ id }: { readonly id: number }) => findLimit({ id, scope: null }),
}
