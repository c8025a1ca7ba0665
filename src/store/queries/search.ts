// The query that finds rows of many kinds by a text: by the beginning of their names, which have an index, or by their
// ids. Each kind has few hits, so that the cost does not depend on the number of rows.

import { parseTextId, textId } from '../../base/ids.ts'
import type { SqlPiece, Steps } from '../engine/steps.ts'
import { query } from '../engine/steps.ts'
import type { SqlRow } from '../tables/columns.ts'
import { accountQueries } from './accounts.ts'
import { keyQueries } from './keys.ts'
import type { Scope } from './paging.ts'
import { peopleQueries } from './people.ts'
import { recordQueries } from './records.ts'
import { webhookQueries } from './webhooks.ts'

export interface SearchQuery {
  /** Null: the actor may see everything. */
  readonly scope: Scope | null
  /** The accounts whose webhooks the actor may see. */
  readonly webhookScope: Scope | null
  readonly text: string
  /** Rows of each kind. */
  readonly limit: number
}

export interface SearchHit {
  readonly kind: 'account' | 'person' | 'key' | 'webhook' | 'call' | 'tier' | 'code_batch'
  readonly id: string
  readonly name: string
  readonly detail: string | null
}

export interface SearchQueries {
  search: { input: SearchQuery; result: readonly SearchHit[] }
}

/** Webhooks have no names: so many of the newest are compared. */
const WEBHOOKS_MAX = 200
const SUFFIX_CHARS = 4

/** Addresses are stored in lower case, so their unique index finds those that begin with a text in lower case. */
const beginsWithText = (column: string): SqlPiece => ({
  sqlite: `(${column} >= ?1 AND ${column} < ?1 || char(1114111))`,
  postgres: `(${column} >= ?1 AND ${column} < ?1 || chr(1114111))`,
})
const textsOf = (piece: SqlPiece, sql: (condition: string) => string): SqlPiece =>
  typeof piece === 'string' ? sql(piece) : { sqlite: sql(piece.sqlite), postgres: sql(piece.postgres) }

const findPeople = query<SqlRow>(
  textsOf(
    beginsWithText('p.email'),
    condition =>
      `SELECT p.id, p.email, p.name FROM person p WHERE ${condition} AND p.removed_ms IS NULL ORDER BY p.email LIMIT ?2`,
  ),
)
const findTiers = query<SqlRow>(
  textsOf(
    beginsWithText('t.name'),
    condition => `SELECT t.name FROM tier t WHERE ${condition} ORDER BY t.name LIMIT ?2`,
  ),
)
const findBatch = query<SqlRow>('SELECT c.batch FROM code c WHERE c.batch = ?1 LIMIT 1')

export const searchQueries = {
  *search({ scope, webhookScope, text, limit }: SearchQuery): Steps<readonly SearchHit[]> {
    const hits = [...(yield* hitById(text, scope, webhookScope))]
    const page = { scope, sort: 'name', descending: false, limit }
    for (const { id, name } of (yield* accountQueries.accounts({ ...page, filters: { name: text } })).rows) {
      hits.push({ kind: 'account', id: textId('acc', id), name, detail: null })
    }
    const named = (yield* keyQueries.keys({ ...page, filters: { name: text } })).rows
    const ending =
      text.length === SUFFIX_CHARS ? (yield* keyQueries.keys({ ...page, filters: { suffix: text } })).rows : []
    for (const key of [...named, ...ending]) hits.push(keyHit(key))
    const recent = { scope: webhookScope, filters: {}, sort: 'created', descending: true, limit: WEBHOOKS_MAX }
    const contains = text.toLowerCase()
    const webhooks = (yield* webhookQueries.webhooks(recent)).rows.filter(({ url }) =>
      url.toLowerCase().includes(contains),
    )
    for (const { id, url } of webhooks.slice(0, limit)) hits.push(webhookHit(id, url))
    if (scope !== null) return hits
    for (const { id, email, name } of yield* findPeople.all(contains, limit)) {
      hits.push({ kind: 'person', id: textId('usr', Number(id)), name: String(name), detail: String(email) })
    }
    for (const { name } of yield* findTiers.all(text, limit)) {
      hits.push({ kind: 'tier', id: String(name), name: String(name), detail: null })
    }
    const batch = yield* findBatch.get(text)
    if (batch !== undefined) hits.push({ kind: 'code_batch', id: text, name: text, detail: null })
    return hits
  },
}

const keyHit = ({
  id,
  name,
  suffix,
  accountId,
}: Readonly<Record<'id' | 'accountId', number>> & Readonly<Record<'name' | 'suffix', string>>): SearchHit => ({
  kind: 'key',
  id: textId('key', id),
  name,
  detail: `…${suffix} ${textId('acc', accountId)}`,
})

const webhookHit = (id: number, url: string): SearchHit => ({
  kind: 'webhook',
  id: textId('hook', id),
  name: url,
  detail: null,
})

/** What has the text as its id. */
function* hitById(text: string, scope: Scope | null, webhookScope: Scope | null): Steps<readonly SearchHit[]> {
  const idOf = (prefix: string): number | undefined =>
    text.startsWith(`${prefix}_`) ? parseTextId(prefix, text) : undefined
  const [account, key, person, webhook, call] = ['acc', 'key', 'usr', 'hook', 'req'].map(idOf)
  if (account !== undefined) {
    const row = yield* accountQueries.account({ id: account, scope })
    return row === null ? [] : [{ kind: 'account', id: text, name: row.name, detail: null }]
  }
  if (key !== undefined) {
    const row = yield* keyQueries.key({ id: key, scope })
    return row === null ? [] : [keyHit(row)]
  }
  if (person !== undefined && scope === null) {
    const row = yield* peopleQueries.person({ id: person })
    return row === null ? [] : [{ kind: 'person', id: text, name: row.name, detail: row.email }]
  }
  if (webhook !== undefined) {
    const row = yield* webhookQueries.webhook({ id: webhook, scope: webhookScope })
    return row === null ? [] : [webhookHit(row.id, row.url)]
  }
  if (call === undefined) return []
  const found = yield* recordQueries.record({ callId: call, scope })
  if (found === null) return []
  const { provider, model, outcome } = found.record
  return [{ kind: 'call', id: text, name: model === null ? text : `${provider}/${model}`, detail: outcome }]
}
