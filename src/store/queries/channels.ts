// Queries for the stored rows of channels and providers (author, times and version) and for model routes.

import type { Database } from 'bun:sqlite'
import type { ListAsk, ListPlan, Page } from './paging.ts'
import { beginsWith, findOne, is, listPage } from './paging.ts'
import type { Row, Told } from './values.ts'
import { json, number, text, told } from './values.ts'

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
  filters: { name: beginsWith('name'), policy: is('policy') },
}

export type ChannelNote = Told<typeof channelColumns>
export type ProviderNote = Told<typeof providerColumns>
export type RouteView = Told<typeof routeColumns>

interface Ids {
  readonly ids: readonly string[]
}

export interface ChannelReads {
  /** Only ids that have a row are in the result. */
  channelNotes: { input: Ids; result: readonly ChannelNote[] }
  providerNotes: { input: Ids; result: readonly ProviderNote[] }
  routes: { input: ListAsk; result: Page<RouteView> }
  route: { input: { readonly name: string }; result: RouteView | null }
}

const CHANGE_COLUMNS = 'id, author, created_ms AS "createdMs", changed_ms AS "changedMs", version'

export function channelReads(db: Database) {
  const channels = db.query<Row, [string]>(
    `SELECT ${CHANGE_COLUMNS} FROM channel WHERE id IN (SELECT value FROM json_each(?1))`,
  )
  const providers = db.query<Row, [string]>(
    `SELECT ${CHANGE_COLUMNS} FROM provider WHERE id IN (SELECT value FROM json_each(?1))`,
  )
  return {
    channelNotes: ({ ids }: Ids) => channels.all(JSON.stringify(ids)).map(row => told(channelColumns, row)),
    providerNotes: ({ ids }: Ids) => providers.all(JSON.stringify(ids)).map(row => told(providerColumns, row)),
    routes: (ask: ListAsk) => listPage(db, routePlan, ask),
    route: ({ name }: { readonly name: string }) => findOne(db, routePlan, { id: name, scope: null }) ?? null,
  }
}
