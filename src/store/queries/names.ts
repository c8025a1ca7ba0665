// Finds the names of what ids stand for, for rows that have only ids: one query for each kind, however many rows.

import { parseTextId } from '../../base/ids.ts'
import type { Steps } from '../engine/steps.ts'
import { RequestQuery } from '../engine/steps.ts'
import type { Scope } from './paging.ts'
import { boundScopeSql } from './paging.ts'

/** What has a name, by the prefix of its id: its table, and the accounts to which a row belongs. */
const kinds = {
  usr: { table: 'person', account: (scoped: (column: string) => string) => memberIn(scoped) },
  tok: { table: 'service_token', account: (scoped: (column: string) => string) => scoped('t.account_id') },
  key: { table: 'api_key', account: (scoped: (column: string) => string) => scoped('t.account_id') },
  acc: { table: 'account', account: (scoped: (column: string) => string) => scoped('t.id') },
} as const

const memberIn = (scoped: (column: string) => string): string =>
  `EXISTS (SELECT 1 FROM member m WHERE m.person_id = t.id AND ${scoped('m.account_id')})`

/** The names of people, service tokens, keys and accounts by their text ids. What is outside of the scope has none. */
export function* findNames(texts: readonly string[], scope: Scope | null): Steps<ReadonlyMap<string, string>> {
  const names = new Map<string, string>()
  for (const [prefix, { table, account }] of Object.entries(kinds)) {
    const byId = new Map<number, string>()
    for (const text of texts) {
      const id = parseTextId(prefix, text)
      if (id !== undefined) byId.set(id, text)
    }
    if (byId.size === 0) continue
    const sql = new RequestQuery()
    const ids = [...byId.keys()].map(id => sql.bind(id))
    const inScope = scope === null ? '' : `AND ${account(column => boundScopeSql(sql, column, scope))}`
    const rows = yield* sql.all<{ id: bigint; name: string }>(
      `SELECT t.id, t.name FROM ${table} t WHERE t.id IN (${ids}) ${inScope}`,
    )
    for (const { id, name } of rows) names.set(byId.get(Number(id))!, name)
  }
  return names
}
