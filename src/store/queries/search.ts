// The query that finds rows of many kinds by a text: by the beginning of their names or by their ids. Each kind has few
// hits, and all names but those of people have an index, so that the cost hardly depends on the number of rows.
//
// Webhooks are found by `management/resources/search.ts`: what of their URLs may be compared depends on who asks.

import { parseTextId, textId } from '../../base/ids.ts'
import type { SqlPiece, Steps } from '../engine/steps.ts'
import { query } from '../engine/steps.ts'
import type { SqlRow } from '../tables/columns.ts'
import { accountQueries } from './accounts.ts'
import { keyQueries } from './keys.ts'
import type { Scope } from './paging.ts'
import { beginsWithName } from './paging.ts'
import { peopleQueries } from './people.ts'
import { recordQueries } from './records.ts'

export interface SearchQuery {
  /** Null: the actor may see everything. */
  readonly scope: Scope | null
  readonly text: string
  /** Rows of each kind. */
  readonly limit: number
}

export interface SearchHit {
  readonly kind: 'account' | 'person' | 'key' | 'call' | 'tier' | 'code_batch'
  readonly id: string
  readonly name: string
  readonly detail: string | null
}

export interface SearchQueries {
  search: { input: SearchQuery; result: readonly SearchHit[] }
}

const SUFFIX_CHARS = 4

/** Addresses are stored in lower case, so their unique index finds those that begin with a text in lower case. */
const beginsWithText = (column: string): SqlPiece => ({
  sqlite: `(${column} >= ?1 AND ${column} < ?1 || char(1114111))`,
  postgres: `(${column} >= ?1 AND ${column} < ?1 || chr(1114111))`,
})
const textsOf = (piece: SqlPiece, sql: (condition: string) => string): SqlPiece =>
  typeof piece === 'string' ? sql(piece) : { sqlite: sql(piece.sqlite), postgres: sql(piece.postgres) }

const peopleWhere = (condition: string): string =>
  `SELECT p.id, p.email, p.name FROM person p WHERE ${condition} AND p.removed_ms IS NULL ORDER BY p.email LIMIT ?2`
const findPeopleByEmail = query<SqlRow>(textsOf(beginsWithText('p.email'), peopleWhere))
const findPeopleByName = query<SqlRow>(textsOf(beginsWithName('p.name').sql('?1'), peopleWhere))
const findTiers = query<SqlRow>(
  textsOf(
    beginsWithText('t.name'),
    condition => `SELECT t.name FROM tier t WHERE ${condition} ORDER BY t.name LIMIT ?2`,
  ),
)
const findBatch = query<SqlRow>('SELECT c.batch FROM code c WHERE c.batch = ?1 LIMIT 1')

export const searchQueries = {
  *search({ scope, text, limit }: SearchQuery): Steps<readonly SearchHit[]> {
    const hits = [...(yield* hitById(text, scope))]
    const page = { scope, sort: 'name', descending: false, limit }
    for (const { id, name } of (yield* accountQueries.accounts({ ...page, filters: { name: text } })).rows) {
      hits.push({ kind: 'account', id: textId('acc', id), name, detail: null })
    }
    const named = (yield* keyQueries.keys({ ...page, filters: { name: text } })).rows
    const ending =
      text.length === SUFFIX_CHARS ? (yield* keyQueries.keys({ ...page, filters: { suffix: text } })).rows : []
    for (const key of [...named, ...ending]) hits.push(keyHit(key))
    if (scope !== null) return hits
    const addressed = yield* findPeopleByEmail.all(text.toLowerCase(), limit)
    for (const { id, email, name } of [...addressed, ...(yield* findPeopleByName.all(text, limit))]) {
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

/** What has the text as its id. */
function* hitById(text: string, scope: Scope | null): Steps<readonly SearchHit[]> {
  const idOf = (prefix: string): number | undefined =>
    text.startsWith(`${prefix}_`) ? parseTextId(prefix, text) : undefined
  const [account, key, person, call] = ['acc', 'key', 'usr', 'req'].map(idOf)
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
  if (call === undefined) return []
  const found = yield* recordQueries.record({ callId: call, scope })
  if (found === null) return []
  const { provider, model, outcome } = found.record
  return [{ kind: 'call', id: text, name: model === null ? text : `${provider}/${model}`, detail: outcome }]
}
