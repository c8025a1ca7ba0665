// The operations on persons: set up the first owner, register, change or remove another person, change the own profile
// and password.

import { textId } from '../../base/ids.ts'
import type { OperationContext } from '../engine/operation.ts'
import type { OperationSteps } from '../engine/operations.ts'
import type { Steps } from '../engine/steps.ts'
import { query } from '../engine/steps.ts'
import { isCreditTooHigh } from '../ledger/credit.ts'
import { readAmount } from '../ledger/money-text.ts'
import { endInvitationsOf, endResetsOf } from './invitation-rows.ts'
import type { PersonRow } from './people-rows.ts'
import {
  beginSession,
  countOwners,
  endSessions,
  findPerson,
  findPersonByEmail,
  insertPerson,
  isLastOwner,
  joinAccount,
  MANAGER_RANK,
  mayChange,
  mayGrant,
  openAccount,
  raiseTokenVersion,
} from './people-rows.ts'
import { anonymisePlaygroundKeys, revokeLostPlaygroundKeys } from './playground-keys.ts'
import { isStoredToken, SETUP_SETTING } from './set-up-token.ts'

type CreateSteps = Pick<OperationSteps, 'setUpOwner' | 'register'>
type ChangeSteps = Pick<OperationSteps, 'setPerson' | 'removePerson' | 'setProfile' | 'setPassword'>

const findSetting = query<{ value: string }>('SELECT value FROM setting WHERE name = ?1')
const deleteSetting = query('DELETE FROM setting WHERE name = ?1')
const findAccounts = query<{ id: bigint }>("SELECT id FROM account WHERE kind <> 'operator' LIMIT 2")
const countMembers = query<{ n: bigint }>('SELECT count(*) AS n FROM member')

const createOperations: CreateSteps = {
  *setUpOwner({ token, person, account, session, nowMs }, context) {
    if ((yield* countOwners()) > 0) return { done: 'owner_exists' }
    const storedToken = (yield* findSetting.get(SETUP_SETTING))?.value
    if (token !== null && !isStoredToken(token, storedToken, nowMs)) return { done: 'token_wrong' }
    if ((yield* findPersonByEmail(person.email)) !== undefined) return { done: 'email_taken' }
    yield* insertPerson(person, 'owner', nowMs)
    // The owner gets the account of the key that the first start created, if it is still the only account.
    const [first, second] = yield* findAccounts.all()
    const isFirstKeyAccount = first !== undefined && second === undefined && (yield* countMembers.get())!.n === 0n
    if (isFirstKeyAccount) yield* joinAccount(Number(first.id), person.id, { rank: MANAGER_RANK, nowMs })
    else yield* openAccount(person, account, nowMs, context)
    if (session !== null) yield* beginSession(person.id, session, nowMs)
    yield* deleteSetting.run(SETUP_SETTING)
    return { done: 'set_up' }
  },
  *register({ person, account, session, nowMs }, context) {
    if ((yield* findPersonByEmail(person.email)) !== undefined) return { done: 'email_taken' }
    if (yield* isCreditTooHigh(readAmount(account.credit), 0n, context)) return { done: 'balance_too_high' }
    yield* insertPerson(person, 'member', nowMs)
    yield* openAccount(person, account, nowMs, context)
    yield* beginSession(person.id, session, nowMs)
    return { done: 'registered' }
  },
}

const update = query(
  `UPDATE person SET name = coalesce(?2, name), role = coalesce(?3, role), disabled = coalesce(?4, disabled),
     email = coalesce(?5, email) WHERE id = ?1`,
)
const updateProfile = query(
  `UPDATE person SET name = coalesce(?2, name), email = coalesce(?3, email), preferences = coalesce(?4, preferences)
   WHERE id = ?1`,
)
const findPreferences = query<{ preferences: string | null }>('SELECT preferences FROM person WHERE id = ?1')
const updatePassword = query('UPDATE person SET password = ?2 WHERE id = ?1 AND removed_ms IS NULL')
// Nobody else can have this text as an address, because it has no "@".
const anonymise = query(
  `UPDATE person SET email = 'removed-' || id, name = 'removed', password = NULL, disabled = 1,
     role = 'member', removed_ms = ?2, preferences = NULL WHERE id = ?1`,
)
const removePersonalData = [
  query('DELETE FROM member WHERE person_id = ?1'),
  query('DELETE FROM totp WHERE person_id = ?1'),
  query('DELETE FROM recovery_code WHERE person_id = ?1'),
  query("UPDATE session SET address = '', place = '', agent = '' WHERE person_id = ?1"),
  query(`UPDATE invitation SET email = 'removed' WHERE person_id = ?1
    OR email = (SELECT email FROM person WHERE id = ?1)`),
]

// The account that was opened with the person has the name of the person. It is personal, it was created in the same
// moment, and nobody else was its first member. The person may have left it.
const renameOpened = query(
  `UPDATE account SET name = ?2 WHERE type = 'personal' AND created_ms = (SELECT created_ms FROM person WHERE id = ?1)
     AND NOT EXISTS (SELECT 1 FROM member m
       WHERE m.account_id = account.id AND m.person_id <> ?1 AND m.added_ms = account.created_ms)`,
)

function* isTaken(email: string | undefined, id: number): Steps<boolean> {
  const other = email === undefined ? undefined : yield* findPersonByEmail(email)
  return other !== undefined && Number(other.id) !== id
}

/** The stored preferences with these changes, as JSON. Null removes one. */
function* mergePreferences(id: number, changes: Readonly<Record<string, unknown>>): Steps<string> {
  const before = JSON.parse((yield* findPreferences.get(id))?.preferences ?? '{}') as Record<string, unknown>
  const entries = Object.entries({ ...before, ...changes }).filter(([, value]) => value !== null && value !== undefined)
  return JSON.stringify(Object.fromEntries(entries))
}

/** Why the actor may not change the person; undefined where the actor may. */
function* refusalOf(
  actorId: number,
  row: PersonRow | undefined,
  context: OperationContext,
): Steps<'unknown' | 'own' | 'forbidden' | undefined> {
  if (row === undefined || row.removed_ms !== null) return 'unknown'
  if (actorId === Number(row.id)) return 'own'
  return (yield* mayChange(actorId, row, context)) ? undefined : 'forbidden'
}

const changeOperations: ChangeSteps = {
  *setPerson({ actorId, id, name, email, role, disabled, nowMs }, context) {
    const row = yield* findPerson(id)
    const refusedBecause = yield* refusalOf(actorId, row, context)
    if (refusedBecause !== undefined) return { done: refusedBecause }
    if (role !== undefined && !(yield* mayGrant(actorId, { role, member: null }, context))) return { done: 'forbidden' }
    const losesOwnership = disabled === true || (role !== undefined && role !== 'owner')
    if (losesOwnership && (yield* isLastOwner(row!))) return { done: 'last_owner' }
    if (yield* isTaken(email, id)) return { done: 'email_taken' }
    const state = disabled === undefined ? null : Number(disabled)
    yield* update.run(id, name ?? null, role ?? null, state, email ?? null)
    // A link may have been sent to the old address.
    if (email !== undefined && email !== row!.email) yield* endResetsOf(id, nowMs)
    const haveRightsChanged = (role !== undefined && role !== row!.role) || (disabled === true && row!.disabled === 0n)
    if (haveRightsChanged) {
      yield* raiseTokenVersion(id)
      yield* endSessions(id, { why: 'changed', nowMs })
    }
    const revokedKeys = yield* revokeLostPlaygroundKeys({ actorId: id, subject: textId('usr', id) }, context)
    return { done: 'set', revokedKeys }
  },
  *removePerson({ actorId, id, nowMs }, context) {
    const row = yield* findPerson(id)
    const refusedBecause = yield* refusalOf(actorId, row, context)
    if (refusedBecause !== undefined) return { done: refusedBecause }
    if (yield* isLastOwner(row!)) return { done: 'last_owner' }
    yield* raiseTokenVersion(id)
    yield* endSessions(id, { why: 'removed', nowMs })
    const subject = textId('usr', id)
    yield* endInvitationsOf(row!, nowMs)
    yield* renameOpened.run(id, `account of ${subject}`)
    for (const statement of removePersonalData) yield* statement.run(id)
    yield* anonymise.run(id, nowMs)
    yield* anonymisePlaygroundKeys(subject)
    return { done: 'removed', revokedKeys: yield* revokeLostPlaygroundKeys({ actorId: id, subject }, context) }
  },
  *setProfile({ id, name, email, preferences }, { nowMs }) {
    if (yield* isTaken(email, id)) return { done: 'email_taken' }
    if (email !== undefined) yield* endResetsOf(id, nowMs())
    const merged = preferences === undefined ? null : yield* mergePreferences(id, preferences)
    return { done: (yield* updateProfile.run(id, name ?? null, email ?? null, merged)) > 0 ? 'set' : 'unknown' }
  },
  *setPassword({ id, password, sessionId, nowMs }) {
    if ((yield* updatePassword.run(id, password)) === 0) return { done: 'unknown' }
    yield* raiseTokenVersion(id)
    yield* endResetsOf(id, nowMs)
    yield* endSessions(id, { why: 'password', nowMs, except: sessionId })
    return { done: 'set', ver: Number((yield* findPerson(id))!.ver) }
  },
}

export const personOperations: CreateSteps & ChangeSteps = { ...createOperations, ...changeOperations }
