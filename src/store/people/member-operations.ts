// The operations on the members of accounts. Only actors who manage an account can change its members.

import type { OperationSteps } from '../engine/operations.ts'
import { query } from '../engine/steps.ts'
import { findPerson, joinAccount, mayGrant, rankOf, seesAccount } from './people-rows.ts'

const deleteMember = query('DELETE FROM member WHERE account_id = ?1 AND person_id = ?2')

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
    return { done: 'set' }
  },
  *removeMember({ actorId, accountId, personId }, context) {
    const isKnown = (yield* seesAccount(actorId, accountId, context)) && (yield* rankOf(accountId, personId)) > 0
    if (!isKnown) return { done: 'unknown' }
    const isOwn = actorId === personId
    const grant = { role: 'member', member: { accountId, rank: 1 } } as const
    if (!isOwn && !(yield* mayGrant(actorId, grant, context))) return { done: 'forbidden' }
    yield* deleteMember.run(accountId, personId)
    return { done: 'removed' }
  },
}
