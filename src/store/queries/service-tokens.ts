// Queries for service tokens. They never return a digest.

import type { Database } from 'bun:sqlite'
import type { RowOf } from '../tables/columns.ts'
import { serviceTokenColumns } from '../tables/service-tokens.ts'
import type { ListFilter, ListPlan, ListQuery, Page, Scope } from './paging.ts'
import { beginsWith, equals, findOne, isTrue, listPage } from './paging.ts'

const endsAfter: ListFilter = { ...equals(''), sql: name => `(t.expires_ms IS NULL OR t.expires_ms > $${name})` }
const endsBy: ListFilter = { ...equals(''), sql: name => `t.expires_ms <= $${name}` }

const plan: ListPlan<typeof serviceTokenColumns> = {
  from: 'service_token t',
  columns: serviceTokenColumns,
  id: 't.id',
  sorts: { created: 't.id', name: 't.name' },
  account: 't.account_id',
  filters: {
    account: equals('t.account_id'),
    creator: equals('t.creator'),
    name: beginsWith('t.name'),
    isRevoked: isTrue('t.revoked_ms IS NOT NULL'),
    endsAfter,
    endsBy,
  },
}

export type ServiceTokenView = RowOf<typeof serviceTokenColumns>

export interface ServiceTokenQueries {
  serviceTokens: { input: ListQuery; result: Page<ServiceTokenView> }
  serviceToken: { input: { readonly id: number; readonly scope: Scope | null }; result: ServiceTokenView | null }
}

export const serviceTokenQueries = (db: Database) => ({
  serviceTokens: (ask: ListQuery) => listPage(db, plan, ask),
  serviceToken: (ask: ServiceTokenQueries['serviceToken']['input']) => findOne(db, plan, ask) ?? null,
})
