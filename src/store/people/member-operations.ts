// The operations on the members of accounts. Only actors who manage an account can change its members.
//
// Whoever loses a role must not get it back with an older invitation, nor keep what the role has given.

import { textId } from '../../base/ids.ts'
import type { OperationContext } from '../engine/operation.ts'
import type { OperationSteps } from '../engine/operations.ts'
import type { Steps } from '../engine/steps.ts'
import { query } from '../engine/steps.ts'
import { endInvitations } from './invitation-rows.ts'
import type { EndedAccess } from './people.ts'
import { findPerson, joinAccount, mayGrant, rankOf, seesAccount } from './people-rows.ts'
import { revokeLostPlaygroundKeys } from './playground-keys.ts'

const deleteMember = query('DELETE FROM member WHERE account_id = ?1 AND person_id = ?2')

interface Loss {
  readonly accountId: number
  readonly personId: number
  readonly nowMs: number
}

const nothingEnded: EndedAccess = { endedInvitations: 0, revokedKeys: [] }

/** After the role of a person in an account was taken away or lowered: ends what would outlive it. */
function* endAccess({ accountId, personId, nowMs }: Loss, context: OperationContext): Steps<EndedAccess> {
  const { email } = (yield* findPerson(personId))!
  const endedInvitations = yield* endInvitations(email, accountId, nowMs)
  const person = { actorId: personId, subject: textId('usr', personId) }
  return { endedInvitations, revokedKeys: yield* revokeLostPlaygroundKeys(person, context) }
}

export const memberOperations: Pick<OperationSteps, 'setMember' | 'removeMember'> = {
  *setMember({ actorId, accountId, personId, rank, isNew, nowMs }, context) {
    if (!(yield* seesAccount(actorId, accountId, context))) return { done: 'unknown' }
    if (!isNew && actorId === personId) return { done: 'own' }
    const grant = { role: 'member', member: { accountId, rank } } as const
    if (!(yield* mayGrant(actorId, grant, context))) return { done: 'forbidden' }
    const presentRank = yield* rankOf(accountId, personId)
    if (isNew && presentRank > 0) return { done: 'exists' }
    const person = yield* findPerson(personId)
    if ((!isNew && presentRank === 0) || person === undefined || person.removed_ms !== null) return { done: 'unknown' }
    yield* joinAccount(accountId, personId, { rank, nowMs })
    const ended = rank < presentRank ? yield* endAccess({ accountId, personId, nowMs }, context) : nothingEnded
    return { done: 'set', ...ended }
  },
  *removeMember({ actorId, accountId, personId, nowMs }, context) {
    const isKnown = (yield* seesAccount(actorId, accountId, context)) && (yield* rankOf(accountId, personId)) > 0
    if (!isKnown) return { done: 'unknown' }
    const isOwn = actorId === personId
    const grant = { role: 'member', member: { accountId, rank: 1 } } as const
    if (!isOwn && !(yield* mayGrant(actorId, grant, context))) return { done: 'forbidden' }
    yield* deleteMember.run(accountId, personId)
    return { done: 'removed', ...(yield* endAccess({ accountId, personId, nowMs }, context)) }
  },
}
