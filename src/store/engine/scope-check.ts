// Checks whether an actor may change an account. The check runs inside the transaction of the write, so a member who
// was removed a moment ago can no longer change anything.

import type { Database } from 'bun:sqlite'
import type { Scope } from '../queries/paging.ts'

/** The input of a write that is limited to the accounts of an actor. Null or undefined: all accounts. */
export interface ScopedInput {
  readonly scope?: Scope | null
}

export type ScopeCheck = (scope: Scope | null | undefined, accountId: number) => boolean

export function buildScopeCheck(db: Database): ScopeCheck {
  const findAccess = db.query('SELECT 1 FROM account_access WHERE account_id = ?1 AND actor_id = ?2 AND rank >= ?3')
  return (scope, accountId) =>
    scope === null || scope === undefined || findAccess.get(accountId, scope.actorId, scope.rank) !== null
}
