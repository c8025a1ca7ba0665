// What the operations on people share: finding a person, checking rights, sessions, and personal accounts.

import { bounds } from '../../base/bounds.ts'
import { FIRST_VERSION } from '../audit-log/first-version.ts'
import type { OperationContext } from '../engine/operation.ts'
import type { Steps } from '../engine/steps.ts'
import { ALL_ROWS, query } from '../engine/steps.ts'
import { giveCredit } from '../ledger/credit.ts'
import { readAmount } from '../ledger/money-text.ts'
import type { AccountInsert, PersonInsert, SessionInsert, SiteRoleName } from './people.ts'

const roles: readonly SiteRoleName[] = ['member', 'support', 'admin', 'owner']
export const MANAGER_RANK = 3
const DEVELOPER_RANK = 2

/** What decisions about rights need of the engine: service tokens expire. */
export type RightsClock = Pick<OperationContext, 'nowMs'>

export const isAtLeast = (role: SiteRoleName, least: SiteRoleName): boolean =>
  roles.indexOf(role) >= roles.indexOf(least)

export interface PersonRow {
  readonly id: bigint
  readonly email: string
  readonly role: SiteRoleName
  readonly disabled: bigint
  readonly ver: bigint
  readonly removed_ms: bigint | null
}

export interface Grant {
  readonly role: SiteRoleName
  readonly member: { readonly accountId: number; readonly rank: number } | null
}

/** What a person or a service token may do now. */
interface ActorRights {
  readonly role: SiteRoleName
  readonly isToken: boolean
  /** When a service token ends; null: never. */
  readonly expiresMs: number | null
  /** Who made a service token. */
  readonly creator?: string
}

const find = query<PersonRow>('SELECT id, email, role, disabled, ver, removed_ms FROM person WHERE id = ?1')
const findByEmail = query<PersonRow>('SELECT id, email, role, disabled, ver, removed_ms FROM person WHERE email = ?1')
const countEnabledOwners = query<{ n: bigint }>(
  "SELECT count(*) AS n FROM person WHERE role = 'owner' AND disabled = 0",
)
const findToken = query<{ role: SiteRoleName; expires_ms: bigint | null; creator: string }>(
  `SELECT role, expires_ms, creator FROM service_token
   WHERE id = ?1 AND revoked_ms IS NULL AND (expires_ms IS NULL OR expires_ms > ?2)`,
)
const findRank = query<{ rank: bigint }>('SELECT rank FROM member WHERE account_id = ?1 AND person_id = ?2')
const findAccess = query<{ rank: bigint }>('SELECT rank FROM account_access WHERE account_id = ?1 AND actor_id = ?2')
const insert = query('INSERT INTO person (id, email, name, role, password, created_ms) VALUES (?1, ?2, ?3, ?4, ?5, ?6)')
const raiseVer = query('UPDATE person SET ver = ver + 1 WHERE id = ?1')

export const findPerson = (id: number): Steps<PersonRow | undefined> => find.get(id)

export const findPersonByEmail = (email: string): Steps<PersonRow | undefined> => findByEmail.get(email)

export function* rankOf(accountId: number, personId: number): Steps<number> {
  return Number((yield* findRank.get(accountId, personId))?.rank ?? 0n)
}

/** The rank of a person or of a service token in an account; 0: none. */
function* accessRank(accountId: number, actorId: number): Steps<number> {
  return Number((yield* findAccess.get(accountId, actorId))?.rank ?? 0n)
}

/** The present rights of an actor; undefined for a disabled person, a token that is no longer valid, and nobody. */
export function* findActor(actorId: number, { nowMs }: RightsClock): Steps<ActorRights | undefined> {
  if (actorId === 0) return { role: 'owner', isToken: false, expiresMs: null }
  const person = yield* find.get(actorId)
  if (person !== undefined) {
    return person.disabled === 1n ? undefined : { role: person.role, isToken: false, expiresMs: null }
  }
  const token = yield* findToken.get(actorId, nowMs())
  if (token === undefined) return undefined
  const { role, creator, expires_ms: endMs } = token
  return { role, isToken: true, expiresMs: endMs === null ? null : Number(endMs), creator }
}

/** Whether an actor may know that the account exists. */
export function* seesAccount(actorId: number, accountId: number, clock: RightsClock): Steps<boolean> {
  if (!(yield* isCustomer(accountId))) return false
  const role = (yield* findActor(actorId, clock))?.role ?? 'member'
  return isAtLeast(role, 'support') || (yield* accessRank(accountId, actorId)) > 0
}

export function* countOwners(): Steps<number> {
  return Number((yield* countEnabledOwners.get())!.n)
}

/** Whether the person is the only enabled owner. */
export function* isLastOwner({ role, disabled }: PersonRow): Steps<boolean> {
  return role === 'owner' && disabled === 0n && (yield* countOwners()) <= 1
}

/**
 * An actor can grant no higher role than the own one, and membership only of accounts that the actor manages. Only
 * people make owners: a service token that leaks must not leave an owner behind.
 */
export function* mayGrant(actorId: number, { role, member }: Grant, clock: RightsClock): Steps<boolean> {
  const rights = yield* findActor(actorId, clock)
  if (rights === undefined || (rights.isToken && role === 'owner')) return false
  if (isAtLeast(rights.role, 'admin')) return isAtLeast(rights.role, role)
  return role === 'member' && member !== null && (yield* accessRank(member.accountId, actorId)) >= MANAGER_RANK
}

/** Whether an actor may create keys in an account. */
export function* mayDevelop(actorId: number, accountId: number, clock: RightsClock): Steps<boolean> {
  const rights = yield* findActor(actorId, clock)
  if (rights === undefined) return false
  return isAtLeast(rights.role, 'admin') || (yield* accessRank(accountId, actorId)) >= DEVELOPER_RANK
}

/** Whether an actor may change another person. */
export function* mayChange(actorId: number, { role }: PersonRow, clock: RightsClock): Steps<boolean> {
  const actorRole = (yield* findActor(actorId, clock))?.role
  return actorRole !== undefined && isAtLeast(actorRole, 'admin') && isAtLeast(actorRole, role)
}

export function* insertPerson(person: PersonInsert, role: SiteRoleName, nowMs: number): Steps<void> {
  yield* insert.run(person.id, person.email, person.name, role, person.password, nowMs)
}

/** Makes all tokens of the person invalid. */
export function* raiseTokenVersion(id: number): Steps<void> {
  yield* raiseVer.run(id)
}

const insertAccount = query(
  `INSERT INTO account (id, name, type, kind, created_ms, tier)
   VALUES (?1, ?2, 'personal', 'prepaid', ?3, (SELECT name FROM tier WHERE name = ?4))`,
)
const findCustomer = query("SELECT 1 FROM account WHERE id = ?1 AND kind <> 'operator'")
const upsertMember = query(
  `INSERT INTO member (account_id, person_id, rank, added_ms, version) VALUES (?1, ?2, ?3, ?4, ${FIRST_VERSION})
   ON CONFLICT (account_id, person_id) DO UPDATE SET rank = excluded.rank`,
)

export function* isCustomer(accountId: number): Steps<boolean> {
  return (yield* findCustomer.get(accountId)) !== undefined
}

export function* joinAccount(
  accountId: number,
  personId: number,
  { rank, nowMs }: { readonly rank: number; readonly nowMs: number },
): Steps<void> {
  yield* upsertMember.run(accountId, personId, rank, nowMs)
}

/** Creates the personal account of a person, who becomes its manager. */
export function* openAccount(
  person: PersonInsert,
  account: AccountInsert,
  nowMs: number,
  context: OperationContext,
): Steps<void> {
  yield* insertAccount.run(account.id, person.name, nowMs, account.tier)
  yield* upsertMember.run(account.id, person.id, MANAGER_RANK, nowMs)
  const gift = { kind: 'gift', ref: account.creditRef, accountId: account.id } as const
  const amount = readAmount(account.credit)
  if (amount > 0n) yield* giveCredit({ ...gift, amount }, context)
}

interface EndSessionsOptions {
  readonly why: string
  readonly nowMs: number
  /** The session that continues. */
  readonly except?: number | null | undefined
}

const insertSession = query(
  `INSERT INTO session (id, person_id, made_ms, seen_ms, expires_ms, address, place, agent)
   VALUES (?1, ?2, ?3, ?3, ?4, ?5, ?6, ?7)`,
)
const insertRefresh = query('INSERT INTO refresh (digest, session_id, made_ms) VALUES (?1, ?2, ?3)')
const setLastSignIn = query('UPDATE person SET signed_ms = ?2 WHERE id = ?1')
const findSurplus = query<{ id: bigint }>(
  `SELECT id FROM session WHERE person_id = ?1 AND ended_ms IS NULL ORDER BY seen_ms DESC, id DESC
   LIMIT ${ALL_ROWS} OFFSET ?2`,
)
const markEnded = query(
  'UPDATE session SET ended_ms = ?2, ended_why = ?3, next = NULL WHERE id = ?1 AND ended_ms IS NULL',
)
const deleteRefreshTokens = query('DELETE FROM refresh WHERE session_id = ?1')
const findLive = query<{ id: bigint }>('SELECT id FROM session WHERE person_id = ?1 AND ended_ms IS NULL')

export function* endSession(id: number | bigint, why: string, nowMs: number): Steps<boolean> {
  const changed = yield* markEnded.run(id, nowMs, why)
  yield* deleteRefreshTokens.run(id)
  return changed > 0
}

export function* beginSession(personId: number, session: SessionInsert, nowMs: number): Steps<void> {
  const { id, address, place, agent } = session
  yield* insertSession.run(id, personId, nowMs, nowMs + bounds.sessionIdleMsMax, address, place, agent)
  yield* addRefreshToken(session.refresh, id, nowMs)
  yield* setLastSignIn.run(personId, nowMs)
  const surplus = yield* findSurplus.all(personId, bounds.sessionsOfPersonMax)
  for (const row of surplus) yield* endSession(row.id, 'too_many', nowMs)
}

export function* addRefreshToken(digest: string, sessionId: number, nowMs: number): Steps<void> {
  yield* insertRefresh.run(Buffer.from(digest, 'hex'), sessionId, nowMs)
}

/** Ends all sessions of a person except one. Returns how many. */
export function* endSessions(personId: number, { why, nowMs, except }: EndSessionsOptions): Steps<number> {
  let count = 0
  for (const { id } of yield* findLive.all(personId)) {
    if (Number(id) !== except && (yield* endSession(id, why, nowMs))) count++
  }
  return count
}
