// Queries for the stored rows of channels and providers (author, times and version) and for model routes.

import type { Database } from 'bun:sqlite'
import type { QueryRow, SqlRow } from './columns.ts'
import { json, number, readRow, text } from './columns.ts'
import type { ListPlan, ListQuery, Page } from './paging.ts'
import { beginsWith, equals, findOne, listPage } from './paging.ts'

const changeColumns = {
  author: ['author', text],
  createdMs: ['created_ms', number],
  changedMs: ['changed_ms', number],
  version: ['version', number],
} as const

const channelColumns = { id: ['id', text], ...changeColumns } as const
const providerColumns = { id: ['id', text], ...changeColumns } as const
const routeColumns = {
  name: ['name', text],
  policy: ['policy', text],
  members: ['members', json],
  author: ['author', text],
  changedMs: ['changed_ms', number],
  version: ['version', number],
} as const

const routePlan: ListPlan<typeof routeColumns> = {
  from: 'model_route',
  columns: routeColumns,
  id: 'name',
  sorts: { name: 'name', changed: 'changed_ms' },
  filters: { name: beginsWith('name'), policy: equals('policy') },
}

export type ChannelMetadata = QueryRow<typeof channelColumns>
export type ProviderMetadata = QueryRow<typeof providerColumns>
export type RouteView = QueryRow<typeof routeColumns>

interface Ids {
  readonly ids: readonly string[]
}

export interface ChannelQueries {
  /** Only ids that have a row are in the result. */
  channelNotes: { input: Ids; result: readonly ChannelMetadata[] }
  providerNotes: { input: Ids; result: readonly ProviderMetadata[] }
  routes: { input: ListQuery; result: Page<RouteView> }
  route: { input: { readonly name: string }; result: RouteView | null }
}

const CHANGE_COLUMNS = 'id, author, created_ms AS "createdMs", changed_ms AS "changedMs", version'

export function channelQueries(db: Database) {
  const channels = db.query<SqlRow, [string]>(
    `SELECT ${CHANGE_COLUMNS} FROM channel WHERE id IN (SELECT value FROM json_each(?1))`,
  )
  const providers = db.query<SqlRow, [string]>(
    `SELECT ${CHANGE_COLUMNS} FROM provider WHERE id IN (SELECT value FROM json_each(?1))`,
  )
  return {
    channelNotes: ({ ids }: Ids) => channels.all(JSON.stringify(ids)).map(row => readRow(channelColumns, row)),
    providerNotes: ({ ids }: Ids) => providers.all(JSON.stringify(ids)).map(row => readRow(providerColumns, row)),
    routes: (ask: ListQuery) => listPage(db, routePlan, ask),
    route: ({ name }: { readonly name: string }) => findOne(db, routePlan, { id: name, scope: null }) ?? null,
  }
}
