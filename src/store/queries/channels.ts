// Reading what is written of channels, providers and names for models, beside what holds at the moment: who wrote it,
// when, and which version of it that is.

import type { Database } from 'bun:sqlite'
import type { ListAsk, ListPlan, Page } from './paging.ts'
import { beginsWith, findOne, is, listPage } from './paging.ts'
import type { Row, Told } from './values.ts'
import { json, number, text, told } from './values.ts'

const written = {
  author: ['author', text],
  createdMs: ['created_ms', number],
  changedMs: ['changed_ms', number],
  version: ['version', number],
} as const

const ofChannel = { id: ['id', text], ...written } as const
const ofProvider = { id: ['id', text], ...written } as const
const ofRoute = {
  name: ['name', text],
  policy: ['policy', text],
  members: ['members', json],
  author: ['author', text],
  changedMs: ['changed_ms', number],
  version: ['version', number],
} as const

const routes: ListPlan<typeof ofRoute> = {
  from: 'model_route',
  columns: ofRoute,
  id: 'name',
  sorts: { name: 'name', changed: 'changed_ms' },
  filters: { name: beginsWith('name'), policy: is('policy') },
}

export type ChannelNote = Told<typeof ofChannel>
export type ProviderNote = Told<typeof ofProvider>
export type RouteView = Told<typeof ofRoute>

interface Ids {
  readonly ids: readonly string[]
}

export interface ChannelReads {
  /** Of those of which anything is written. */
  channelNotes: { input: Ids; result: readonly ChannelNote[] }
  providerNotes: { input: Ids; result: readonly ProviderNote[] }
  routes: { input: ListAsk; result: Page<RouteView> }
  route: { input: { readonly name: string }; result: RouteView | null }
}

const COLUMNS = 'id, author, created_ms AS "createdMs", changed_ms AS "changedMs", version'

export function channelReads(db: Database) {
  const channels = db.query<Row, [string]>(
    `SELECT ${COLUMNS} FROM channel WHERE id IN (SELECT value FROM json_each(?1))`,
  )
  const providers = db.query<Row, [string]>(
    `SELECT ${COLUMNS} FROM provider WHERE id IN (SELECT value FROM json_each(?1))`,
  )
  return {
    channelNotes: ({ ids }: Ids) => channels.all(JSON.stringify(ids)).map(row => told(ofChannel, row)),
    providerNotes: ({ ids }: Ids) => providers.all(JSON.stringify(ids)).map(row => told(ofProvider, row)),
    routes: (ask: ListAsk) => listPage(db, routes, ask),
    route: ({ name }: { readonly name: string }) => findOne(db, routes, { id: name, scope: null }) ?? null,
  }
}
