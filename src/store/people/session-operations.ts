// The operations on sessions: sign in, refresh, sign out. A refresh token is exchanged for the next one. Two requests
// with the same token at the same time get the same next token.
//
// The answer with the next token can be lost. So the token before is accepted until the next one is used for the first
// time. It then gets another next token, and the lost one becomes invalid: if somebody else has received that one, its use
// shows it. Any other token that comes again was copied, and the session is ended for everybody.

import { bounds } from '../../base/bounds.ts'
import type { OperationSteps } from '../engine/operations.ts'
import type { Steps } from '../engine/steps.ts'
import { ALL_ROWS, query } from '../engine/steps.ts'
import type { SecondFactor } from './people.ts'
import { addRefreshToken, beginSession, endSession, endSessions, findPerson, mayChange } from './people-rows.ts'

type SessionSteps = Pick<
  OperationSteps,
  'signIn' | 'signInOperator' | 'renewSession' | 'endSessions' | 'addTicket' | 'useTicket' | 'forgetSessions'
>

const ROWS_PER_SWEEP = 100

interface RefreshRow {
  readonly session_id: bigint
  readonly next: Uint8Array | null
  readonly previous: Uint8Array | null
  readonly used_ms: bigint | null
  readonly made_ms: bigint
  readonly expires_ms: bigint
  readonly ended_ms: bigint | null
  readonly person_id: bigint
  readonly ver: bigint
}

const insertOperator = query(
  `INSERT INTO session (id, person_id, made_ms, seen_ms, expires_ms, address, place, agent)
   VALUES (?1, NULL, ?2, ?2, ?3, '', '', 'weir token')`,
)
const findOwn = query('SELECT 1 FROM session WHERE id = ?1 AND person_id = ?2 AND ended_ms IS NULL')
const findOld = query<{ id: bigint }>('SELECT id FROM session WHERE expires_ms < ?1 LIMIT ?2')
const deleteRefreshTokens = query('DELETE FROM refresh WHERE session_id = ?1')
const deleteSession = query('DELETE FROM session WHERE id = ?1')
const deleteOldInvitations = query('DELETE FROM invitation WHERE expires_ms < ?1')

const countTickets = query<{ count: bigint }>(
  'SELECT CAST(count(*) AS BIGINT) AS count FROM download_ticket WHERE session_id = ?1',
)
const insertTicket = query(
  'INSERT INTO download_ticket (digest, session_id, request, expires_ms) VALUES (?1, ?2, ?3, ?4)',
)
const findTicket = query<{ session_id: bigint; request: string }>(
  'SELECT session_id, request FROM download_ticket WHERE digest = ?1 AND expires_ms > ?2',
)
const deleteTicket = query('DELETE FROM download_ticket WHERE digest = ?1')
const deleteOldTickets = query('DELETE FROM download_ticket WHERE expires_ms <= ?1')

const findSecondFactor = query('SELECT 1 FROM totp WHERE person_id = ?1 AND confirmed_ms IS NOT NULL')
const useStep = query(
  'UPDATE totp SET last_step = ?2 WHERE person_id = ?1 AND confirmed_ms IS NOT NULL AND last_step < ?2',
)
const useRecoveryCode = query(
  'UPDATE recovery_code SET used_ms = ?3 WHERE person_id = ?1 AND digest = ?2 AND used_ms IS NULL',
)

/** Uses up the second factor of a sign-in. Returns false for a code that was used before, and for a missing code. */
function* useSecondFactor(personId: number, second: SecondFactor | null, nowMs: number): Steps<boolean> {
  if (second === null) return (yield* findSecondFactor.get(personId)) === undefined
  if ('step' in second) return (yield* useStep.run(personId, second.step)) > 0
  return (yield* useRecoveryCode.run(personId, Buffer.from(second.recovery, 'hex'), nowMs)) > 0
}

const findRefresh = query<RefreshRow>(
  `SELECT r.session_id, r.used_ms, s.next, s.previous, s.made_ms, s.expires_ms, s.ended_ms, s.person_id, p.ver
   FROM refresh r JOIN session s ON s.id = r.session_id JOIN person p ON p.id = s.person_id
   WHERE r.digest = ?1 AND p.disabled = 0`,
)
const markUsed = query('UPDATE refresh SET used_ms = ?2 WHERE digest = ?1')
/** The token that was issued last, which nobody has used. */
const retireLast = query('UPDATE refresh SET used_ms = ?2 WHERE session_id = ?1 AND used_ms IS NULL')
const extend = query('UPDATE session SET seen_ms = ?2, expires_ms = ?3, next = ?4, previous = ?5 WHERE id = ?1')
const deleteOldRefreshTokens = query(
  `DELETE FROM refresh WHERE digest IN (SELECT digest FROM refresh WHERE session_id = ?1
     ORDER BY used_ms IS NULL DESC, made_ms DESC, digest LIMIT ${ALL_ROWS} OFFSET ?2)`,
)

export const sessionOperations: SessionSteps = {
  *signIn({ personId, ver, second, session, nowMs }) {
    const row = yield* findPerson(personId)
    if (row === undefined || row.disabled === 1n || Number(row.ver) !== ver) return { done: 'changed' }
    if (!(yield* useSecondFactor(personId, second, nowMs))) return { done: 'code_used' }
    yield* beginSession(personId, session, nowMs)
    return { done: 'signed_in' }
  },
  *signInOperator({ id, expiresMs, nowMs }) {
    yield* insertOperator.run(id, nowMs, expiresMs)
    return { done: 'signed_in' }
  },
  *renewSession({ digest, next, sealed, nowMs }) {
    const token = Buffer.from(digest, 'hex')
    const row = yield* findRefresh.get(token)
    if (row === undefined || row.ended_ms !== null || Number(row.expires_ms) <= nowMs) return { done: 'over' }
    const [sessionId, personId, ver] = [Number(row.session_id), Number(row.person_id), Number(row.ver)]
    if (row.used_ms !== null) {
      // A request that comes shortly after the first one gets the same next token.
      const isRecent = nowMs - Number(row.used_ms) < bounds.refreshGraceMsMax && row.next !== null
      if (isRecent) return { done: 'again', sessionId, personId, ver, sealed: Buffer.from(row.next).toString('base64') }
      const isPrevious = row.previous !== null && token.equals(row.previous)
      if (!isPrevious) {
        yield* endSession(sessionId, 'stolen', nowMs)
        return { done: 'stolen', sessionId, personId }
      }
      yield* retireLast.run(sessionId, nowMs)
    }
    yield* markUsed.run(token, nowMs)
    yield* addRefreshToken(next, sessionId, nowMs)
    yield* deleteOldRefreshTokens.run(sessionId, bounds.usedRefreshTokensMax)
    const expiresMs = Math.min(nowMs + bounds.sessionIdleMsMax, Number(row.made_ms) + bounds.sessionMsMax)
    yield* extend.run(sessionId, nowMs, expiresMs, Buffer.from(sealed, 'base64'), token)
    return { done: 'renewed', sessionId, personId, ver }
  },
  *endSessions({ actorId, personId, only, except, why, nowMs }, context) {
    if (actorId !== undefined) {
      const person = yield* findPerson(personId)
      if (person === undefined || person.removed_ms !== null) return { done: 'unknown' }
      if (!(yield* mayChange(actorId, person, context))) return { done: 'forbidden' }
    }
    if (only === undefined) return { done: 'ended', count: yield* endSessions(personId, { why, nowMs, except }) }
    if ((yield* findOwn.get(only, personId)) === undefined) return { done: 'unknown' }
    yield* endSession(only, why, nowMs)
    return { done: 'ended', count: 1 }
  },
  *addTicket({ digest, sessionId, request, expiresMs, nowMs }) {
    yield* deleteOldTickets.run(nowMs)
    const { count } = (yield* countTickets.get(sessionId))!
    if (Number(count) >= bounds.ticketsOfSessionMax) return { done: 'too_many' }
    yield* insertTicket.run(Buffer.from(digest, 'hex'), sessionId, request, expiresMs)
    return { done: 'added' }
  },
  *useTicket({ digest, nowMs }) {
    const token = Buffer.from(digest, 'hex')
    const row = yield* findTicket.get(token, nowMs)
    // Of two requests at the same time, one deletes the row.
    if (row === undefined || (yield* deleteTicket.run(token)) === 0) return { done: 'unknown' }
    return { done: 'used', sessionId: Number(row.session_id), request: row.request }
  },
  *forgetSessions({ nowMs }) {
    const beforeMs = nowMs - bounds.endedSessionMsMax
    yield* deleteOldTickets.run(nowMs)
    yield* deleteOldInvitations.run(beforeMs)
    const rows = yield* findOld.all(beforeMs, ROWS_PER_SWEEP)
    for (const { id } of rows) {
      yield* deleteRefreshTokens.run(id)
      yield* deleteSession.run(id)
    }
    return { done: 'forgotten', count: rows.length }
  },
}
