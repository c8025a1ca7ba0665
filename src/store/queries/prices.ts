// Queries for prices: the current price of each model, and all versions of a price.

import type { Steps } from '../engine/steps.ts'
import { query } from '../engine/steps.ts'
import type { RowOf } from '../tables/columns.ts'
import { json, number, text } from '../tables/columns.ts'
import type { ListPlan, ListQuery, Page } from './paging.ts'
import { beginsWith, equals, listPage, rowFinder } from './paging.ts'

const versionColumns = {
  version: ['p.version', number],
  model: ['p.model', text],
  origin: ['p.origin', text],
  price: ["nullif(p.price, '')", json],
  author: ['p.author', text],
  madeMs: ['p.made_ms', number],
} as const

/** `newest` is the highest version of the model, also of a withdrawal, so it rises with every change. */
const columns = { ...versionColumns, newest: ['m.newest', number] } as const

/** A price of the operator overrides the shipped price until it is withdrawn. */
const plan: ListPlan<typeof columns> = {
  from: `(SELECT model, max(version) AS newest, max(CASE WHEN origin <> 'shipped' THEN version END) AS own,
            max(CASE WHEN origin = 'shipped' THEN version END) AS shipped FROM price GROUP BY model) m
    JOIN price p ON p.version =
      CASE (SELECT o.origin FROM price o WHERE o.version = m.own) WHEN 'operator' THEN m.own ELSE m.shipped END`,
  columns,
  id: 'm.model',
  sorts: { model: 'm.model' },
  filters: { model: beginsWith('m.model'), origin: equals('p.origin') },
}

const history: ListPlan<typeof versionColumns> = {
  from: 'price p',
  columns: versionColumns,
  id: 'p.version',
  sorts: { version: 'p.version' },
  filters: { model: equals('p.model') },
}

export type PriceDetails = RowOf<typeof columns>
export type PriceVersionDetails = RowOf<typeof versionColumns>

export interface PriceQueries {
  prices: { input: ListQuery; result: Page<PriceDetails> }
  /** `newest` is 0 for a model that never had a price; `current` is null for a model without a price. */
  price: {
    input: { readonly model: string }
    result: { readonly newest: number; readonly current: PriceDetails | null }
  }
  priceHistory: { input: ListQuery; result: Page<PriceVersionDetails> }
}

const findNewest = query<{ newest: bigint }>('SELECT coalesce(max(version), 0) AS newest FROM price WHERE model = ?1')
const findPrice = rowFinder(plan)

export const priceQueries = {
  prices: (ask: ListQuery) => listPage(plan, ask),
  *price({ model }: { readonly model: string }): Steps<PriceQueries['price']['result']> {
    const { newest } = (yield* findNewest.get(model))!
    return { newest: Number(newest), current: yield* findPrice({ id: model, scope: null }) }
  },
  priceHistory: (ask: ListQuery) => listPage(history, ask),
}
