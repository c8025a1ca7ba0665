// The playground keys of an actor, a person or a service token. They end when the actor may no longer create keys in their
// account: nobody sees them in a list and would revoke them.

import type { Steps } from '../engine/steps.ts'
import { query } from '../engine/steps.ts'
import { playgroundKeyName, revokeKeyRow } from '../rules/key-operations.ts'
import type { RightsClock } from './people-rows.ts'
import { mayDevelop } from './people-rows.ts'

interface PlaygroundActor {
  readonly actorId: number
  /** As in the audit log. */
  readonly subject: string
}

const findOpen = query<{ id: bigint; account_id: bigint }>(
  'SELECT id, account_id FROM api_key WHERE playground_of = ?1 AND revoked_ms IS NULL ORDER BY id',
)
const rename = query('UPDATE api_key SET name = ?2 WHERE playground_of = ?1 AND name <> ?2')

/** Revokes the playground keys of an actor in the accounts where the actor may not create keys. Returns their ids. */
export function* revokeLostPlaygroundKeys({ actorId, subject }: PlaygroundActor, clock: RightsClock): Steps<number[]> {
  const revoked: number[] = []
  for (const { id, account_id: accountId } of yield* findOpen.all(subject)) {
    if (yield* mayDevelop(actorId, Number(accountId), clock)) continue
    yield* revokeKeyRow(Number(id), clock.nowMs())
    revoked.push(Number(id))
  }
  return revoked
}

/** Removes the name of a person from playground keys: earlier versions have written it there. */
export function* anonymisePlaygroundKeys(subject: string): Steps<void> {
  yield* rename.run(subject, playgroundKeyName(subject))
}
