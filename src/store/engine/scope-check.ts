// Checks whether an actor may change an account. The check runs inside the transaction of the write, so a member who
// was removed a moment ago can no longer change anything.

import type { Scope } from '../queries/paging.ts'
import type { Steps } from './steps.ts'
import { query } from './steps.ts'

/** The input of a write that is limited to the accounts of an actor. Null or undefined: all accounts. */
export interface ScopedInput {
  readonly scope?: Scope | null
}

const findAccess = query('SELECT 1 FROM account_access WHERE account_id = ?1 AND actor_id = ?2 AND rank >= ?3')

export function* isInScope(scope: Scope | null | undefined, accountId: number): Steps<boolean> {
  if (scope === null || scope === undefined) return true
  return (yield* findAccess.get(accountId, scope.actorId, scope.rank)) !== undefined
}
