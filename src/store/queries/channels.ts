// Queries for the stored rows of channels and providers (author, times and version) and for model routes.

import type { Steps } from '../engine/steps.ts'
import { query } from '../engine/steps.ts'
import type { RowOf, SqlRow } from '../tables/columns.ts'
import { json, number, rowReader, selectList, text } from '../tables/columns.ts'
import { authorColumns, routeColumns } from '../tables/rules.ts'
import type { ListPlan, ListQuery, Page } from './paging.ts'
import { beginsWith, equals, listPage, rowFinder } from './paging.ts'

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

const notesQuery = (table: 'channel' | 'provider') => {
  const select = `SELECT ${selectList(noteColumns)} FROM ${table} WHERE id IN`
  return query<SqlRow>({
    sqlite: `${select} (SELECT value FROM json_each(?1)) ORDER BY id`,
    postgres: `${select} (SELECT value FROM json_array_elements_text(CAST(CAST(?1 AS TEXT) AS JSON))) ORDER BY id`,
  })
}
const findChannels = notesQuery('channel')
const findProviders = notesQuery('provider')
const findRoute = rowFinder(routePlan)

export const channelQueries = {
  *channelNotes({ ids }: Ids): Steps<readonly RuleNote[]> {
    return (yield* findChannels.all(JSON.stringify(ids))).map(readNote)
  },
  *providerNotes({ ids }: Ids): Steps<readonly RuleNote[]> {
    return (yield* findProviders.all(JSON.stringify(ids))).map(readNote)
  },
  routes: (ask: ListQuery) => listPage(routePlan, ask),
  route: ({ name }: { readonly name: string }) => findRoute({ id: name, scope: null }),
}
