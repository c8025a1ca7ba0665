// The operations on invitations: to join, or to choose a new password. When an invitation is accepted, its author must
// still have the right to grant what it offers.

import { bounds } from '../../base/bounds.ts'
import type { OperationSteps } from '../engine/operations.ts'
import type { Steps } from '../engine/steps.ts'
import { query } from '../engine/steps.ts'
import type { OfferRow } from './invitation-rows.ts'
import { endInvitations, endResetsOf, isOfferValid, mayInvite, offerOf } from './invitation-rows.ts'
import {
  beginSession,
  endSessions,
  findPerson,
  findPersonByEmail,
  insertPerson,
  joinAccount,
  mayChange,
  mayGrant,
  openAccount,
  raiseTokenVersion,
  rankOf,
  seesAccount,
} from './people-rows.ts'

type InviteSteps = Pick<OperationSteps, 'invite' | 'inviteToReset' | 'revokeInvitation'>
type AcceptSteps = Pick<OperationSteps, 'acceptInvitation' | 'resetPassword'>

interface OpenInvitation extends OfferRow {
  readonly id: bigint
  readonly email: string
}

const insert = query(
  `INSERT INTO invitation (id, digest, kind, email, role, account_id, rank, by_id, made_ms, expires_ms, person_id)
   VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)`,
)
const countOpen = query<{ n: bigint }>(
  `SELECT count(*) AS n FROM invitation WHERE coalesce(by_id, 0) = ?1 AND accepted_ms IS NULL
     AND revoked_ms IS NULL AND expires_ms > ?2`,
)
const findOpen = query<{ by_id: bigint | null; account_id: bigint | null }>(
  'SELECT by_id, account_id FROM invitation WHERE id = ?1 AND accepted_ms IS NULL AND revoked_ms IS NULL',
)
const revoke = query('UPDATE invitation SET revoked_ms = ?2, version = version + 1 WHERE id = ?1')

function* hasTooMany(actorId: number, nowMs: number): Steps<boolean> {
  return (yield* countOpen.get(actorId, nowMs))!.n >= bounds.invitationsOpenMax
}

const inviteOperations: InviteSteps = {
  *invite({ actorId, nowMs, id, digest, email, role, member, expiresMs }, context) {
    if (member !== null && !(yield* seesAccount(actorId, member.accountId, context))) return { done: 'account_unknown' }
    if (!(yield* mayInvite(actorId, { role, member }, context))) return { done: 'forbidden' }
    if (yield* hasTooMany(actorId, nowMs)) return { done: 'too_many' }
    // An older link must not give a role that the author has not meant any more.
    const endedInvitations = yield* endInvitations(email, member?.accountId ?? null, nowMs)
    yield* insert.run(
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
    return { done: 'invited', endedInvitations }
  },
  *inviteToReset({ actorId, nowMs, id, digest, personId, expiresMs }, context) {
    const row = yield* findPerson(personId)
    if (row === undefined || row.removed_ms !== null) return { done: 'unknown' }
    if (actorId === personId) return { done: 'own' }
    if (!(yield* mayChange(actorId, row, context))) return { done: 'forbidden' }
    if (yield* hasTooMany(actorId, nowMs)) return { done: 'too_many' }
    yield* endResetsOf(personId, nowMs)
    yield* insert.run(
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
  *revokeInvitation({ actorId, id, nowMs }, context) {
    const row = yield* findOpen.get(id)
    if (row === undefined) return { done: 'unknown' }
    const accountId = row.account_id === null ? null : Number(row.account_id)
    const isOwn = actorId !== 0 && Number(row.by_id ?? 0n) === actorId
    const member = accountId === null ? null : { accountId, rank: 1 }
    if (!isOwn && !(yield* mayGrant(actorId, { role: 'member', member }, context))) return { done: 'unknown' }
    yield* revoke.run(id, nowMs)
    return { done: 'revoked' }
  },
}

const findByDigest = query<OpenInvitation>(
  `SELECT id, kind, email, role, account_id, rank, by_id, person_id FROM invitation WHERE digest = ?1 AND kind = ?2
     AND accepted_ms IS NULL AND revoked_ms IS NULL AND expires_ms > ?3`,
)
const accept = query('UPDATE invitation SET accepted_ms = ?2, person_id = ?3, version = version + 1 WHERE id = ?1')
const updatePassword = query('UPDATE person SET password = ?2 WHERE id = ?1')

const acceptOperations: AcceptSteps = {
  *acceptInvitation({ digest, personId, newcomer, nowMs }, context) {
    const row = yield* findByDigest.get(Buffer.from(digest, 'hex'), 'join', nowMs)
    if (row === undefined || !(yield* isOfferValid(offerOf(row), context))) return { done: 'invalid' }
    const existing = yield* findPersonByEmail(row.email)
    const { role, member } = offerOf(row)
    if (newcomer !== null) {
      if (existing !== undefined) return { done: 'email_taken' }
      const { name, password, account, session } = newcomer
      const person = { id: personId, email: row.email, name, password }
      yield* insertPerson(person, role, nowMs)
      if (member === null) yield* openAccount(person, account, nowMs, context)
      yield* beginSession(personId, session, nowMs)
    } else if (Number(existing?.id) !== personId || existing!.disabled === 1n || member === null) {
      return { done: 'invalid' }
    }
    // An existing person keeps the role on the site; only setPerson changes it.
    if (member !== null) {
      const presentRank = yield* rankOf(member.accountId, personId)
      yield* joinAccount(member.accountId, personId, { rank: Math.max(presentRank, member.rank), nowMs })
    }
    yield* accept.run(row.id, nowMs, personId)
    return { done: 'accepted' }
  },
  *resetPassword({ digest, password, nowMs }, context) {
    const row = yield* findByDigest.get(Buffer.from(digest, 'hex'), 'password', nowMs)
    if (row === undefined || !(yield* isOfferValid(offerOf(row), context))) return { done: 'invalid' }
    const personId = Number(row.person_id)
    yield* updatePassword.run(personId, password)
    yield* raiseTokenVersion(personId)
    yield* endSessions(personId, { why: 'password', nowMs })
    yield* accept.run(row.id, nowMs, personId)
    return { done: 'reset', personId }
  },
}

export const invitationOperations: InviteSteps & AcceptSteps = { ...inviteOperations, ...acceptOperations }
