// Queries for prices: the current price of each model, and all versions of a price.

import type { Database } from 'bun:sqlite'
import type { ListAsk, ListPlan, Page } from './paging.ts'
import { beginsWith, findOne, is, listPage } from './paging.ts'
import type { Told } from './values.ts'
import { json, number, text } from './values.ts'

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
  filters: { model: beginsWith('m.model'), origin: is('p.origin') },
}

const history: ListPlan<typeof versionColumns> = {
  from: 'price p',
  columns: versionColumns,
  id: 'p.version',
  sorts: { version: 'p.version' },
  filters: { model: is('p.model') },
}

export type PriceTold = Told<typeof columns>
export type PriceVersionTold = Told<typeof versionColumns>

export interface PriceReads {
  prices: { input: ListAsk; result: Page<PriceTold> }
  /** `newest` is 0 for a model that never had a price; `current` is null for a model without a price. */
  price: { input: { readonly model: string }; result: { readonly newest: number; readonly current: PriceTold | null } }
  priceHistory: { input: ListAsk; result: Page<PriceVersionTold> }
}

export const priceReads = (db: Database) => ({
  prices: (ask: ListAsk) => listPage(db, plan, ask),
  price: ({ model }: { readonly model: string }) => {
    const found = db.query('SELECT coalesce(max(version), 0) AS newest FROM price WHERE model = ?1').get(model)
    const current = findOne(db, plan, { id: model, scope: null }) ?? null
    return { newest: Number((found as { newest: bigint }).newest), current }
  },
  priceHistory: (ask: ListAsk) => listPage(db, history, ask),
})
