// Queries for the stored rows of channels and providers (author, times and version) and for model routes.

import type { Database } from 'bun:sqlite'
import type { RowOf, SqlRow } from '../tables/columns.ts'
import { json, number, rowReader, selectList, text } from '../tables/columns.ts'
import { authorColumns, routeColumns } from '../tables/rules.ts'
import type { ListPlan, ListQuery, Page } from './paging.ts'
import { beginsWith, equals, findOne, listPage } from './paging.ts'

/** The columns that channels and providers have in common. */
const noteColumns = { id: ['id', text], createdMs: ['created_ms', number], ...authorColumns } as const
const shownRouteColumns = { ...routeColumns, members: ['members', json], ...authorColumns } as const

const routePlan: ListPlan<typeof shownRouteColumns> = {
  from: 'model_route',
  columns: shownRouteColumns,
  id: 'name',
  sorts: { name: 'name', changed: 'changed_ms' },
  filters: { name: beginsWith('name'), policy: equals('policy') },
}

export type RuleNote = RowOf<typeof noteColumns>
export type RouteView = RowOf<typeof shownRouteColumns>

interface Ids {
  readonly ids: readonly string[]
}

export interface ChannelQueries {
  /** Only ids that have a row are in the result. */
  channelNotes: { input: Ids; result: readonly RuleNote[] }
  providerNotes: { input: Ids; result: readonly RuleNote[] }
  routes: { input: ListQuery; result: Page<RouteView> }
  route: { input: { readonly name: string }; result: RouteView | null }
}

const readNote = rowReader(noteColumns)

export function channelQueries(db: Database) {
  const channels = db.query<SqlRow, [string]>(
    `SELECT ${selectList(noteColumns)} FROM channel WHERE id IN (SELECT value FROM json_each(?1))`,
  )
  const providers = db.query<SqlRow, [string]>(
    `SELECT ${selectList(noteColumns)} FROM provider WHERE id IN (SELECT value FROM json_each(?1))`,
  )
  return {
    channelNotes: ({ ids }: Ids) => channels.all(JSON.stringify(ids)).map(readNote),
    providerNotes: ({ ids }: Ids) => providers.all(JSON.stringify(ids)).map(readNote),
    routes: (ask: ListQuery) => listPage(db, routePlan, ask),
    route: ({ name }: { readonly name: string }) => findOne(db, routePlan, { id: name, scope: null }) ?? null,
  }
}
