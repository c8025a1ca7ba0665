// What the operations on people share: finding a person, checking rights, sessions, and personal accounts.

import { bounds } from '../../base/bounds.ts'
import type { Books } from '../ledger/books.ts'
import { buildGiveCredit } from '../ledger/credit.ts'
import { readAmount } from '../ledger/money-text.ts'
import type { AccountInsert, PersonInsert, SessionInsert, SiteRoleName } from './people.ts'

const roles: readonly SiteRoleName[] = ['member', 'support', 'admin', 'owner']
export const MANAGER_RANK = 3

const isAtLeast = (role: SiteRoleName, least: SiteRoleName): boolean => roles.indexOf(role) >= roles.indexOf(least)

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

export type PeopleRows = ReturnType<typeof peopleRows>

export function peopleRows(books: Books) {
  const { db } = books
  const find = db.query<PersonRow, [number]>(
    'SELECT id, email, role, disabled, ver, removed_ms FROM person WHERE id = ?1',
  )
  const findByEmail = db.query<PersonRow, [string]>(
    'SELECT id, email, role, disabled, ver, removed_ms FROM person WHERE email = ?1',
  )
  const countOwners = db.query<{ count: bigint }, []>(
    "SELECT count(*) AS count FROM person WHERE role = 'owner' AND disabled = 0",
  )
  const findToken = db.query<{ role: SiteRoleName; expires_ms: bigint | null; creator: string }, [number, number]>(
    `SELECT role, expires_ms, creator FROM service_token
     WHERE id = ?1 AND revoked_ms IS NULL AND (expires_ms IS NULL OR expires_ms > ?2)`,
  )
  const findRank = db.query<{ rank: bigint }, [number, number]>(
    'SELECT rank FROM member WHERE account_id = ?1 AND person_id = ?2',
  )
  const findAccess = db.query<{ rank: bigint }, [number, number]>(
    'SELECT rank FROM account_access WHERE account_id = ?1 AND actor_id = ?2',
  )
  const insert = db.query(
    'INSERT INTO person (id, email, name, role, password, created_ms) VALUES (?1, ?2, ?3, ?4, ?5, ?6)',
  )
  const raiseTokenVersion = db.query('UPDATE person SET ver = ver + 1 WHERE id = ?1')

  const rankOf = (accountId: number, personId: number): number => Number(findRank.get(accountId, personId)?.rank ?? 0n)

  /** The rank of a person or of a service token in an account; 0: none. */
  const accessRank = (accountId: number, actorId: number): number =>
    Number(findAccess.get(accountId, actorId)?.rank ?? 0n)

  /** The present rights of an actor; undefined for a disabled person, a token that is no longer valid, and nobody. */
  function actor(actorId: number): ActorRights | undefined {
    if (actorId === 0) return { role: 'owner', isToken: false, expiresMs: null }
    const person = find.get(actorId)
    if (person !== null) {
      return person.disabled === 1n ? undefined : { role: person.role, isToken: false, expiresMs: null }
    }
    const token = findToken.get(actorId, books.nowMs())
    if (token === null) return undefined
    const { role, creator, expires_ms: endMs } = token
    return { role, isToken: true, expiresMs: endMs === null ? null : Number(endMs), creator }
  }

  const roleOf = (actorId: number): SiteRoleName | undefined => actor(actorId)?.role
  const isStaff = (actorId: number): boolean => isAtLeast(roleOf(actorId) ?? 'member', 'support')
  const accounts = accountRows(books)

  return {
    find: (id: number) => find.get(id) ?? undefined,
    findByEmail: (email: string) => findByEmail.get(email) ?? undefined,
    rankOf,
    actor,
    isAtLeast,
    /** Whether an actor may know that the account exists. */
    sees: (actorId: number, accountId: number) =>
      accounts.isCustomer(accountId) && (isStaff(actorId) || accessRank(accountId, actorId) > 0),
    hasOwner: () => countOwners.get()!.count > 0n,
    /** Whether the person is the only enabled owner. */
    isLastOwner: ({ role, disabled }: PersonRow) =>
      role === 'owner' && disabled === 0n && countOwners.get()!.count <= 1n,
    /**
     * An actor can grant no higher role than the own one, and membership only of accounts that the actor manages. Only
     * people make owners: a service token that leaks must not leave an owner behind.
     */
    mayGrant(actorId: number, { role, member }: Grant): boolean {
      const rights = actor(actorId)
      if (rights === undefined || (rights.isToken && role === 'owner')) return false
      if (isAtLeast(rights.role, 'admin')) return isAtLeast(rights.role, role)
      return role === 'member' && member !== null && accessRank(member.accountId, actorId) >= MANAGER_RANK
    },
    /** Whether an actor may change another person. */
    mayChange(actorId: number, { role }: PersonRow): boolean {
      const actorRole = roleOf(actorId)
      return actorRole !== undefined && isAtLeast(actorRole, 'admin') && isAtLeast(actorRole, role)
    },
    insert(person: PersonInsert, role: SiteRoleName, nowMs: number): void {
      insert.run(person.id, person.email, person.name, role, person.password, nowMs)
    },
    /** Makes all tokens of the person invalid. */
    raiseVer: (id: number) => void raiseTokenVersion.run(id),
    sessions: sessionRows(books),
    ...accounts,
  }
}

function accountRows(books: Books) {
  const { db } = books
  const insertAccount = db.query(
    `INSERT INTO account (id, name, type, kind, created_ms, tier)
     VALUES (?1, ?2, 'personal', 'prepaid', ?3, (SELECT name FROM tier WHERE name = ?4))`,
  )
  const findCustomer = db.query("SELECT 1 FROM account WHERE id = ?1 AND kind <> 'operator'")
  const upsertMember = db.query(
    `INSERT INTO member (account_id, person_id, rank, added_ms) VALUES (?1, ?2, ?3, ?4)
     ON CONFLICT (account_id, person_id) DO UPDATE SET rank = excluded.rank`,
  )
  const giveCredit = buildGiveCredit(books)
  return {
    isCustomer: (accountId: number) => findCustomer.get(accountId) !== null,
    join(accountId: number, personId: number, { rank, nowMs }: { rank: number; nowMs: number }): void {
      upsertMember.run(accountId, personId, rank, nowMs)
    },
    /** Creates the personal account of a person, who becomes its manager. */
    openAccount(person: PersonInsert, account: AccountInsert, nowMs: number): void {
      insertAccount.run(account.id, person.name, nowMs, account.tier)
      upsertMember.run(account.id, person.id, MANAGER_RANK, nowMs)
      const amount = readAmount(account.credit)
      if (amount > 0n) giveCredit({ kind: 'gift', ref: account.creditRef, accountId: account.id, amount })
    },
  }
}

interface EndSessionsOptions {
  readonly why: string
  readonly nowMs: number
  /** The session that continues. */
  readonly except?: number | null | undefined
}

function sessionRows({ db }: Books) {
  const insert = db.query(
    `INSERT INTO session (id, person_id, made_ms, seen_ms, expires_ms, address, place, agent)
     VALUES (?1, ?2, ?3, ?3, ?4, ?5, ?6, ?7)`,
  )
  const insertRefresh = db.query('INSERT INTO refresh (digest, session_id, made_ms) VALUES (?1, ?2, ?3)')
  const setLastSignIn = db.query('UPDATE person SET signed_ms = ?2 WHERE id = ?1')
  const findSurplus = db.query<{ id: bigint }, [number, number]>(
    `SELECT id FROM session WHERE person_id = ?1 AND ended_ms IS NULL ORDER BY seen_ms DESC, id DESC
     LIMIT -1 OFFSET ?2`,
  )
  const endSession = db.query(
    'UPDATE session SET ended_ms = ?2, ended_why = ?3, next = NULL WHERE id = ?1 AND ended_ms IS NULL',
  )
  const deleteRefreshTokens = db.query('DELETE FROM refresh WHERE session_id = ?1')
  const findLive = db.query<{ id: bigint }, [number]>(
    'SELECT id FROM session WHERE person_id = ?1 AND ended_ms IS NULL',
  )
  function end(id: number | bigint, why: string, nowMs: number): boolean {
    const { changes } = endSession.run(id, nowMs, why)
    deleteRefreshTokens.run(id)
    return changes > 0
  }
  return {
    end,
    begin(personId: number, session: SessionInsert, nowMs: number): void {
      const { id, address, place, agent } = session
      insert.run(id, personId, nowMs, nowMs + bounds.sessionIdleMsMax, address, place, agent)
      insertRefresh.run(Buffer.from(session.refresh, 'hex'), id, nowMs)
      setLastSignIn.run(personId, nowMs)
      for (const row of findSurplus.all(personId, bounds.sessionsOfPersonMax)) end(row.id, 'too_many', nowMs)
    },
    addRefresh: (digest: string, id: number, nowMs: number) =>
      void insertRefresh.run(Buffer.from(digest, 'hex'), id, nowMs),
    /** Ends all sessions of a person except one. Returns how many. */
    endAll(personId: number, { why, nowMs, except }: EndSessionsOptions): number {
      const ids = findLive.all(personId).filter(({ id }) => Number(id) !== except)
      return ids.filter(({ id }) => end(id, why, nowMs)).length
    },
  }
}
