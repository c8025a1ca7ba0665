// Queries for limits.

import type { Database } from 'bun:sqlite'
import type { ListAsk, ListPlan, Page } from './paging.ts'
import { findOne, is, listPage } from './paging.ts'
import type { Told } from './values.ts'
import { list, number, or, text } from './values.ts'

const columns = {
  id: ['l.id', number],
  resource: ['l.resource', text],
  span: ['l.span', or(text)],
  amount: ['l.amount', number],
  keyId: ['l.key_id', or(number)],
  accountId: ['l.account_id', or(number)],
  tier: ['l.tier', or(text)],
  model: ['l.model', or(text)],
  per: ['l.per', list],
  version: ['l.version', number],
} as const

const plan: ListPlan<typeof columns> = {
  from: 'limit_rule l',
  columns,
  id: 'l.id',
  sorts: { id: 'l.id' },
  filters: {
    resource: is('l.resource'),
    key: is('l.key_id'),
    account: is('l.account_id'),
    tier: is('l.tier'),
    model: is('l.model'),
  },
}

export type LimitRead = Told<typeof columns>

export interface LimitReads {
  limits: { input: ListAsk; result: Page<LimitRead> }
  limit: { input: { readonly id: number }; result: LimitRead | null }
}

export const limitReads = (db: Database) => ({
  limits: (ask: ListAsk) => listPage(db, plan, ask),
  limit: ({ id }: { readonly id: number }) => findOne(db, plan, { id, scope: null }) ?? null,
})
