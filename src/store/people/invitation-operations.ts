// The operations on invitations: to join, or to choose a new password. When an invitation is accepted, its author must
// still have the right to grant what it offers.

import { bounds } from '../../base/bounds.ts'
import type { OperationHandlers } from '../engine/operations.ts'
import type { Books } from '../ledger/books.ts'
import type { SiteRoleName } from './people.ts'
import type { Grant, PeopleRows } from './people-rows.ts'

type InviteHandlers = Pick<OperationHandlers, 'invite' | 'inviteToReset' | 'revokeInvitation'>
type AcceptHandlers = Pick<OperationHandlers, 'acceptInvitation' | 'resetPassword'>

interface OpenInvitation {
  readonly id: bigint
  readonly email: string
  readonly role: SiteRoleName
  readonly account_id: bigint | null
  readonly rank: bigint | null
  readonly by_id: bigint | null
  readonly person_id: bigint | null
}

export function invitationOperations(books: Books, people: PeopleRows): InviteHandlers & AcceptHandlers {
  return { ...inviteOperations(books, people), ...acceptOperations(books, people) }
}

function inviteOperations({ db }: Books, people: PeopleRows): InviteHandlers {
  const insert = db.query(
    `INSERT INTO invitation (id, digest, kind, email, role, account_id, rank, by_id, made_ms, expires_ms, person_id)
     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)`,
  )
  const countOpen = db.query<{ count: bigint }, [number, number]>(
    `SELECT count(*) AS count FROM invitation WHERE coalesce(by_id, 0) = ?1 AND accepted_ms IS NULL
       AND revoked_ms IS NULL AND expires_ms > ?2`,
  )
  const find = db.query<{ by_id: bigint | null; account_id: bigint | null }, [number]>(
    'SELECT by_id, account_id FROM invitation WHERE id = ?1 AND accepted_ms IS NULL AND revoked_ms IS NULL',
  )
  const revoke = db.query('UPDATE invitation SET revoked_ms = ?2, version = version + 1 WHERE id = ?1')
  const revokeResets = db.query(
    `UPDATE invitation SET revoked_ms = ?2 WHERE person_id = ?1 AND kind = 'password' AND accepted_ms IS NULL
       AND revoked_ms IS NULL`,
  )
  const hasTooMany = (actorId: number, nowMs: number): boolean =>
    countOpen.get(actorId, nowMs)!.count >= bounds.invitationsOpenMax

  return {
    invite({ actorId, nowMs, id, digest, email, role, member, expiresMs }) {
      if (member !== null && !people.sees(actorId, member.accountId)) return { done: 'account_unknown' }
      if (!people.mayGrant(actorId, { role, member })) return { done: 'forbidden' }
      if (hasTooMany(actorId, nowMs)) return { done: 'too_many' }
      insert.run(
        id,
        Buffer.from(digest, 'hex'),
        'join',
        email,
        role,
        member?.accountId ?? null,
        member?.rank ?? null,
        actorId === 0 ? null : actorId,
        nowMs,
        expiresMs,
        null,
      )
      return { done: 'invited' }
    },
    inviteToReset({ actorId, nowMs, id, digest, personId, expiresMs }) {
      const row = people.find(personId)
      if (row === undefined || row.removed_ms !== null) return { done: 'unknown' }
      if (actorId === personId) return { done: 'own' }
      if (!people.mayChange(actorId, row)) return { done: 'forbidden' }
      if (hasTooMany(actorId, nowMs)) return { done: 'too_many' }
      revokeResets.run(personId, nowMs)
      insert.run(
        id,
        Buffer.from(digest, 'hex'),
        'password',
        row.email,
        row.role,
        null,
        null,
        actorId === 0 ? null : actorId,
        nowMs,
        expiresMs,
        personId,
      )
      return { done: 'invited' }
    },
    revokeInvitation({ actorId, id, nowMs }) {
      const row = find.get(id)
      if (row === null) return { done: 'unknown' }
      const accountId = row.account_id === null ? null : Number(row.account_id)
      const isOwn = actorId !== 0 && Number(row.by_id ?? 0n) === actorId
      const member = accountId === null ? null : { accountId, rank: 1 }
      if (!isOwn && !people.mayGrant(actorId, { role: 'member', member })) return { done: 'unknown' }
      revoke.run(id, nowMs)
      return { done: 'revoked' }
    },
  }
}

function acceptOperations({ db }: Books, people: PeopleRows): AcceptHandlers {
  const find = db.query<OpenInvitation, [Uint8Array, string, number]>(
    `SELECT id, email, role, account_id, rank, by_id, person_id FROM invitation WHERE digest = ?1 AND kind = ?2
       AND accepted_ms IS NULL AND revoked_ms IS NULL AND expires_ms > ?3`,
  )
  const accept = db.query('UPDATE invitation SET accepted_ms = ?2, person_id = ?3, version = version + 1 WHERE id = ?1')
  const updatePassword = db.query('UPDATE person SET password = ?2 WHERE id = ?1')

  const grantOf = ({ role, account_id, rank }: OpenInvitation): Grant => ({
    role,
    member: account_id === null ? null : { accountId: Number(account_id), rank: Number(rank) },
  })

  return {
    acceptInvitation({ digest, personId, newcomer, nowMs }) {
      const row = find.get(Buffer.from(digest, 'hex'), 'join', nowMs)
      if (row === null || !people.mayGrant(Number(row.by_id ?? 0n), grantOf(row))) return { done: 'invalid' }
      const existing = people.findByEmail(row.email)
      const { role, member } = grantOf(row)
      if (newcomer !== null) {
        if (existing !== undefined) return { done: 'email_taken' }
        const { name, password, account, session } = newcomer
        const person = { id: personId, email: row.email, name, password }
        people.insert(person, role, nowMs)
        if (member === null) people.openAccount(person, account, nowMs)
        people.sessions.begin(personId, session, nowMs)
      } else if (Number(existing?.id) !== personId || existing!.disabled === 1n || member === null) {
        return { done: 'invalid' }
      }
      // An existing person keeps the role on the site; only setPerson changes it.
      const presentRank = member === null ? 0 : people.rankOf(member.accountId, personId)
      if (member !== null) {
        people.join(member.accountId, personId, { rank: Math.max(presentRank, member.rank), nowMs })
      }
      accept.run(row.id, nowMs, personId)
      return { done: 'accepted' }
    },
    resetPassword({ digest, password, nowMs }) {
      const row = find.get(Buffer.from(digest, 'hex'), 'password', nowMs)
      const person = row === null ? undefined : people.find(Number(row.person_id))
      if (row === null || person === undefined || person.disabled === 1n) return { done: 'invalid' }
      if (!people.mayChange(Number(row.by_id ?? 0n), person)) return { done: 'invalid' }
      const personId = Number(person.id)
      updatePassword.run(personId, password)
      people.raiseVer(personId)
      people.sessions.endAll(personId, { why: 'password', nowMs })
      accept.run(row.id, nowMs, personId)
      return { done: 'reset', personId }
    },
  }
}
