// Whether a write is about something that whoever asks for it may change. Looked at inside the transaction: a member
// who was removed a moment ago changes nothing any more.

import type { Database } from 'bun:sqlite'
import type { Scope } from '../queries/paging.ts'

/** What a write reaches: null or nothing for whoever may change everything. */
export interface Scoped {
  readonly scope?: Scope | null
}

export type Reaches = (scope: Scope | null | undefined, accountId: number) => boolean

export function buildReaches(db: Database): Reaches {
  const find = db.query('SELECT 1 FROM member WHERE account_id = ?1 AND person_id = ?2 AND rank >= ?3')
  return (scope, accountId) =>
    scope === null || scope === undefined || find.get(accountId, scope.personId, scope.rank) !== null
}
