// Queries for service tokens. They never return a digest.

import type { RowOf } from '../tables/columns.ts'
import { serviceTokenColumns } from '../tables/service-tokens.ts'
import type { ListFilter, ListPlan, ListQuery, Page, Scope } from './paging.ts'
import { beginsWith, equals, isTrue, listPage, rowFinder } from './paging.ts'

const endsAfter: ListFilter = { ...equals(''), sql: value => `(t.expires_ms IS NULL OR t.expires_ms > ${value})` }
const endsBy: ListFilter = { ...equals(''), sql: value => `t.expires_ms <= ${value}` }

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

export const serviceTokenQueries = {
  serviceTokens: (ask: ListQuery) => listPage(plan, ask),
  serviceToken: rowFinder(plan),
}
