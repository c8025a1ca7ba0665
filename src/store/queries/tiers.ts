// Queries for tiers.

import type { Steps } from '../engine/steps.ts'
import type { RowOf } from '../tables/columns.ts'
import { number } from '../tables/columns.ts'
import { tierColumns } from '../tables/rules.ts'
import type { ListPlan, ListQuery, Page } from './paging.ts'
import { listPage, rowFinder } from './paging.ts'

const sorts = { name: 't.name', qpm: 't.qpm' }
const plan: ListPlan<typeof tierColumns> = { from: 'tier t', columns: tierColumns, id: 't.name', sorts }

const countedColumns = {
  ...tierColumns,
  keys: ['(SELECT count(*) FROM api_key k WHERE k.tier = t.name AND k.revoked_ms IS NULL)', number],
} as const
const countedPlan: ListPlan<typeof countedColumns> = { ...plan, columns: countedColumns }

/** `keys`: undefined if they were not counted. */
export type TierView = RowOf<typeof tierColumns> & { readonly keys?: number }

interface KeyCount {
  /** All keys of a tier are read for it, and there may be a million. */
  readonly countsKeys?: boolean | undefined
}

export interface TierQueries {
  tiers: { input: ListQuery & KeyCount; result: Page<TierView> }
  tier: { input: KeyCount & { readonly name: string }; result: TierView | null }
}

const findTier = rowFinder(plan)
const findCountedTier = rowFinder(countedPlan)

export const tierQueries = {
  tiers: (ask: TierQueries['tiers']['input']): Steps<Page<TierView>> =>
    ask.countsKeys ? listPage(countedPlan, ask) : listPage(plan, ask),
  tier: ({ name, countsKeys }: TierQueries['tier']['input']): Steps<TierView | null> =>
    (countsKeys ? findCountedTier : findTier)({ id: name, scope: null }),
}
