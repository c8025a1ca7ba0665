// Queries for tiers.

import type { RowOf } from '../tables/columns.ts'
import { number } from '../tables/columns.ts'
import { tierColumns } from '../tables/rules.ts'
import type { ListPlan, ListQuery, Page } from './paging.ts'
import { listPage, rowFinder } from './paging.ts'

const columns = {
  ...tierColumns,
  keys: ['(SELECT count(*) FROM api_key k WHERE k.tier = t.name AND k.revoked_ms IS NULL)', number],
} as const

const sorts = { name: 't.name', qpm: 't.qpm' }
const plan: ListPlan<typeof columns> = { from: 'tier t', columns, id: 't.name', sorts }

export type TierView = RowOf<typeof columns>

export interface TierQueries {
  tiers: { input: ListQuery; result: Page<TierView> }
  tier: { input: { readonly name: string }; result: TierView | null }
}

const findTier = rowFinder(plan)

export const tierQueries = {
  tiers: (ask: ListQuery) => listPage(plan, ask),
  tier: ({ name }: { readonly name: string }) => findTier({ id: name, scope: null }),
}
