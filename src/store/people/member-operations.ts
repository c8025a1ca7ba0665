// The operations on the members of accounts. Only actors who manage an account can change its members.

import type { OperationHandlers } from '../engine/operations.ts'
import type { Books } from '../ledger/books.ts'
import type { PeopleRows } from './people-rows.ts'

type MemberHandlers = Pick<OperationHandlers, 'setMember' | 'removeMember'>

export function memberOperations({ db }: Books, people: PeopleRows): MemberHandlers {
  const remove = db.query('DELETE FROM member WHERE account_id = ?1 AND person_id = ?2')

  return {
    setMember({ actorId, accountId, personId, rank, isNew, nowMs }) {
      if (!people.sees(actorId, accountId)) return { done: 'unknown' }
      if (!people.mayGrant(actorId, { role: 'member', member: { accountId, rank } })) return { done: 'forbidden' }
      const presentRank = people.rankOf(accountId, personId)
      if (isNew && presentRank > 0) return { done: 'exists' }
      const person = people.find(personId)
      if ((!isNew && presentRank === 0) || person === undefined || person.removed_ms !== null)
        return { done: 'unknown' }
      people.join(accountId, personId, { rank, nowMs })
      return { done: 'set' }
    },
    removeMember({ actorId, accountId, personId }) {
      if (!people.sees(actorId, accountId) || people.rankOf(accountId, personId) === 0) return { done: 'unknown' }
      const isOwn = actorId === personId
      const grant = { role: 'member', member: { accountId, rank: 1 } } as const
      if (!isOwn && !people.mayGrant(actorId, grant)) return { done: 'forbidden' }
      remove.run(accountId, personId)
      return { done: 'removed' }
    },
  }
}
