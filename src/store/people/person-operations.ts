// The operations on persons: set up the first owner, register, change or remove another person, change the own profile
// and password.

import type { OperationHandlers } from '../engine/operations.ts'
import type { Books } from '../ledger/books.ts'
import type { PeopleRows, PersonRow } from './people-rows.ts'
import { MANAGER_RANK } from './people-rows.ts'
import { isStoredToken, SETUP_SETTING } from './set-up-token.ts'

type CreateHandlers = Pick<OperationHandlers, 'setUpOwner' | 'register'>
type ChangeHandlers = Pick<OperationHandlers, 'setPerson' | 'removePerson' | 'setProfile' | 'setPassword'>

export function personOperations(books: Books, people: PeopleRows): CreateHandlers & ChangeHandlers {
  const { db } = books
  const findSetting = db.query<{ value: string }, [string]>('SELECT value FROM setting WHERE name = ?1')
  const removeSetting = db.query('DELETE FROM setting WHERE name = ?1')
  const findAccounts = db.query<{ id: bigint }, []>("SELECT id FROM account WHERE kind <> 'operator' LIMIT 2")
  const countMembers = db.query<{ count: bigint }, []>('SELECT count(*) AS count FROM member')

  return {
    setUpOwner({ token, person, account, session, nowMs }) {
      if (people.hasOwner()) return { done: 'owner_exists' }
      const storedToken = findSetting.get(SETUP_SETTING)?.value
      if (token !== null && !isStoredToken(token, storedToken, nowMs)) return { done: 'token_wrong' }
      if (people.findByEmail(person.email) !== undefined) return { done: 'email_taken' }
      people.insert(person, 'owner', nowMs)
      // The owner gets the account of the key that the first start created, if it is still the only account.
      const [first, second] = findAccounts.all()
      const isFirstKeyAccount = first !== undefined && second === undefined && countMembers.get()!.count === 0n
      if (isFirstKeyAccount) people.join(Number(first.id), person.id, { rank: MANAGER_RANK, nowMs })
      else people.openAccount(person, account, nowMs)
      if (session !== null) people.sessions.begin(person.id, session, nowMs)
      removeSetting.run(SETUP_SETTING)
      return { done: 'set_up' }
    },
    register({ person, account, session, nowMs }) {
      if (people.findByEmail(person.email) !== undefined) return { done: 'email_taken' }
      people.insert(person, 'member', nowMs)
      people.openAccount(person, account, nowMs)
      people.sessions.begin(person.id, session, nowMs)
      return { done: 'registered' }
    },
    ...changeOperations(books, people),
  }
}

function changeOperations({ db }: Books, people: PeopleRows): ChangeHandlers {
  const update = db.query(
    `UPDATE person SET name = coalesce(?2, name), role = coalesce(?3, role), disabled = coalesce(?4, disabled),
       email = coalesce(?5, email) WHERE id = ?1`,
  )
  const updateProfile = db.query(
    'UPDATE person SET name = coalesce(?2, name), email = coalesce(?3, email) WHERE id = ?1',
  )
  const updatePassword = db.query('UPDATE person SET password = ?2 WHERE id = ?1 AND removed_ms IS NULL')
  const anonymise = db.query(
    `UPDATE person SET email = 'removed-' || id || '@invalid', name = 'removed', password = NULL, disabled = 1,
       role = 'member', removed_ms = ?2 WHERE id = ?1`,
  )
  const removePersonalData = [
    db.query('DELETE FROM member WHERE person_id = ?1'),
    db.query('DELETE FROM totp WHERE person_id = ?1'),
    db.query('DELETE FROM recovery_code WHERE person_id = ?1'),
    db.query("UPDATE session SET address = '', place = '', agent = '' WHERE person_id = ?1"),
    db.query(`UPDATE invitation SET email = 'removed' WHERE person_id = ?1
      OR email = (SELECT email FROM person WHERE id = ?1)`),
  ]

  const isTaken = (email: string | undefined, id: number): boolean => {
    const other = email === undefined ? undefined : people.findByEmail(email)
    return other !== undefined && Number(other.id) !== id
  }

  /** Why the actor may not change the person; undefined where the actor may. */
  function refusal(actorId: number, row: PersonRow | undefined): 'unknown' | 'own' | 'forbidden' | undefined {
    if (row === undefined || row.removed_ms !== null) return 'unknown'
    if (actorId === Number(row.id)) return 'own'
    return people.mayChange(actorId, row) ? undefined : 'forbidden'
  }

  return {
    setPerson({ actorId, id, name, email, role, disabled, nowMs }) {
      const row = people.find(id)
      const refusedBecause = refusal(actorId, row)
      if (refusedBecause !== undefined) return { done: refusedBecause }
      if (role !== undefined && !people.mayGrant(actorId, { role, member: null })) return { done: 'forbidden' }
      const losesOwnership = disabled === true || (role !== undefined && role !== 'owner')
      if (losesOwnership && people.isLastOwner(row!)) return { done: 'last_owner' }
      if (isTaken(email, id)) return { done: 'email_taken' }
      update.run(id, name ?? null, role ?? null, disabled === undefined ? null : Number(disabled), email ?? null)
      const haveRightsChanged =
        (role !== undefined && role !== row!.role) || (disabled === true && row!.disabled === 0n)
      if (haveRightsChanged) {
        people.raiseVer(id)
        people.sessions.endAll(id, { why: 'changed', nowMs })
      }
      return { done: 'set' }
    },
    removePerson({ actorId, id, nowMs }) {
      const row = people.find(id)
      const refusedBecause = refusal(actorId, row)
      if (refusedBecause !== undefined) return { done: refusedBecause }
      if (people.isLastOwner(row!)) return { done: 'last_owner' }
      people.raiseVer(id)
      people.sessions.endAll(id, { why: 'removed', nowMs })
      for (const statement of removePersonalData) statement.run(id)
      anonymise.run(id, nowMs)
      return { done: 'removed' }
    },
    setProfile({ id, name, email }) {
      if (isTaken(email, id)) return { done: 'email_taken' }
      return { done: updateProfile.run(id, name ?? null, email ?? null).changes > 0 ? 'set' : 'unknown' }
    },
    setPassword({ id, password, sessionId, nowMs }) {
      if (updatePassword.run(id, password).changes === 0) return { done: 'unknown' }
      people.raiseVer(id)
      people.sessions.endAll(id, { why: 'password', nowMs, except: sessionId })
      return { done: 'set' }
    },
  }
}
