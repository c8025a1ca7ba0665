// What the operations about people share: finding somebody, what they may give, their sessions, their own account.

import { bounds } from '../../base/bounds.ts'
import type { Books } from '../ledger/books.ts'
import { buildGive } from '../ledger/give-credit.ts'
import { amountOf } from '../ledger/money-text.ts'
import type { AccountInsert, PersonInsert, SessionInsert, SiteRoleName } from './people.ts'

const roles: readonly SiteRoleName[] = ['member', 'support', 'admin', 'owner']
const MANAGER = 3

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
  const findRank = db.query<{ rank: bigint }, [number, number]>(
    'SELECT rank FROM member WHERE account_id = ?1 AND person_id = ?2',
  )
  const insert = db.query(
    'INSERT INTO person (id, email, name, role, password, created_ms) VALUES (?1, ?2, ?3, ?4, ?5, ?6)',
  )
  const raise = db.query('UPDATE person SET ver = ver + 1 WHERE id = ?1')

  const rankOf = (accountId: number, personId: number): number => Number(findRank.get(accountId, personId)?.rank ?? 0n)

  /** What somebody is at this moment; undefined for whoever may not come in any more. */
  function roleOf(actorId: number): SiteRoleName | undefined {
    if (actorId === 0) return 'owner'
    const row = find.get(actorId)
    return row === null || row.disabled === 1n ? undefined : row.role
  }

  const isStaff = (actorId: number): boolean => isAtLeast(roleOf(actorId) ?? 'member', 'support')
  const accounts = accountRows(books)

  return {
    find: (id: number) => find.get(id) ?? undefined,
    findByEmail: (email: string) => findByEmail.get(email) ?? undefined,
    rankOf,
    roleOf,
    /** Whether somebody may know that the account is there at all. */
    sees: (actorId: number, accountId: number) =>
      accounts.isCustomer(accountId) && (isStaff(actorId) || rankOf(accountId, actorId) > 0),
    hasOwner: () => countOwners.get()!.count > 0n,
    /** Without them there would be none. */
    isLastOwner: ({ role, disabled }: PersonRow) =>
      role === 'owner' && disabled === 0n && countOwners.get()!.count <= 1n,
    /** Nobody gives what they do not have, nor an account that they do not look after. */
    mayGrant(actorId: number, { role, member }: Grant): boolean {
      const own = roleOf(actorId)
      if (own === undefined) return false
      if (isAtLeast(own, 'admin')) return isAtLeast(own, role)
      return role === 'member' && member !== null && rankOf(member.accountId, actorId) >= MANAGER
    },
    /** Whether one may change another. */
    mayChange(actorId: number, { role }: PersonRow): boolean {
      const own = roleOf(actorId)
      return own !== undefined && isAtLeast(own, 'admin') && isAtLeast(own, role)
    },
    insert(person: PersonInsert, role: SiteRoleName, nowMs: number): void {
      insert.run(person.id, person.email, person.name, role, person.password, nowMs)
    },
    /** Every token of theirs is void from now on. */
    raiseVer: (id: number) => void raise.run(id),
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
  const give = buildGive(books)
  return {
    isCustomer: (accountId: number) => findCustomer.get(accountId) !== null,
    join(accountId: number, personId: number, { rank, nowMs }: { rank: number; nowMs: number }): void {
      upsertMember.run(accountId, personId, rank, nowMs)
    },
    /** They look after it alone. */
    openAccount(person: PersonInsert, account: AccountInsert, nowMs: number): void {
      insertAccount.run(account.id, person.name, nowMs, account.tier)
      upsertMember.run(account.id, person.id, MANAGER, nowMs)
      const amount = amountOf(account.credit)
      if (amount > 0n) give({ kind: 'gift', ref: account.creditRef, accountId: account.id, amount })
    },
  }
}

interface Ending {
  readonly why: string
  readonly nowMs: number
  /** One that goes on. */
  readonly except?: number | null | undefined
}

function sessionRows({ db }: Books) {
  const insert = db.query(
    `INSERT INTO session (id, person_id, made_ms, seen_ms, expires_ms, address, place, agent)
     VALUES (?1, ?2, ?3, ?3, ?4, ?5, ?6, ?7)`,
  )
  const insertRefresh = db.query('INSERT INTO refresh (digest, session_id, made_ms) VALUES (?1, ?2, ?3)')
  const noteSigned = db.query('UPDATE person SET signed_ms = ?2 WHERE id = ?1')
  const findSurplus = db.query<{ id: bigint }, [number, number]>(
    `SELECT id FROM session WHERE person_id = ?1 AND ended_ms IS NULL ORDER BY seen_ms DESC, id DESC
     LIMIT -1 OFFSET ?2`,
  )
  const endOne = db.query(
    'UPDATE session SET ended_ms = ?2, ended_why = ?3, next = NULL WHERE id = ?1 AND ended_ms IS NULL',
  )
  const forgetRefreshes = db.query('DELETE FROM refresh WHERE session_id = ?1')
  const findLive = db.query<{ id: bigint }, [number]>(
    'SELECT id FROM session WHERE person_id = ?1 AND ended_ms IS NULL',
  )
  function end(id: number | bigint, why: string, nowMs: number): boolean {
    const { changes } = endOne.run(id, nowMs, why)
    forgetRefreshes.run(id)
    return changes > 0
  }
  return {
    end,
    begin(personId: number, session: SessionInsert, nowMs: number): void {
      const { id, address, place, agent } = session
      insert.run(id, personId, nowMs, nowMs + bounds.sessionIdleMsMax, address, place, agent)
      insertRefresh.run(Buffer.from(session.refresh, 'hex'), id, nowMs)
      noteSigned.run(personId, nowMs)
      for (const row of findSurplus.all(personId, bounds.sessionsOfPersonMax)) end(row.id, 'too_many', nowMs)
    },
    addRefresh: (digest: string, id: number, nowMs: number) =>
      void insertRefresh.run(Buffer.from(digest, 'hex'), id, nowMs),
    /** All of somebody's, but for one. */
    endAll(personId: number, { why, nowMs, except }: Ending): number {
      const ids = findLive.all(personId).filter(({ id }) => Number(id) !== except)
      return ids.filter(({ id }) => end(id, why, nowMs)).length
    },
  }
}
