// The operations on sessions: sign in, refresh, sign out. A refresh token can be used once. If a used token comes again
// later, somebody has copied it, and the session is ended for everybody.

import { bounds } from '../../base/bounds.ts'
import type { OperationHandlers } from '../engine/operations.ts'
import type { Books } from '../ledger/books.ts'
import type { SecondFactor } from './people.ts'
import type { PeopleRows } from './people-rows.ts'

type SessionHandlers = Pick<
  OperationHandlers,
  'signIn' | 'signInOperator' | 'renewSession' | 'endSessions' | 'forgetSessions'
>

const ROWS_PER_SWEEP = 100

interface RefreshRow {
  readonly session_id: bigint
  readonly next: Uint8Array | null
  readonly used_ms: bigint | null
  readonly made_ms: bigint
  readonly expires_ms: bigint
  readonly ended_ms: bigint | null
  readonly person_id: bigint
  readonly ver: bigint
}

export function sessionOperations(books: Books, people: PeopleRows): SessionHandlers {
  const { db } = books
  const insertOperator = db.query(
    `INSERT INTO session (id, person_id, made_ms, seen_ms, expires_ms, address, place, agent)
     VALUES (?1, NULL, ?2, ?2, ?3, '', '', 'weir token')`,
  )
  const findOwn = db.query('SELECT 1 FROM session WHERE id = ?1 AND person_id = ?2 AND ended_ms IS NULL')
  const findOld = db.query<{ id: bigint }, [number, number]>('SELECT id FROM session WHERE expires_ms < ?1 LIMIT ?2')
  const removeRefreshTokens = db.query('DELETE FROM refresh WHERE session_id = ?1')
  const remove = db.query('DELETE FROM session WHERE id = ?1')
  const removeOldInvitations = db.query('DELETE FROM invitation WHERE expires_ms < ?1')
  const useSecondFactor = secondFactorUser(books)
  return {
    signIn({ personId, ver, second, session, nowMs }) {
      const row = people.find(personId)
      if (row === undefined || row.disabled === 1n || Number(row.ver) !== ver) return { done: 'changed' }
      if (!useSecondFactor(personId, second, nowMs)) return { done: 'code_used' }
      people.sessions.begin(personId, session, nowMs)
      return { done: 'signed_in' }
    },
    signInOperator({ id, expiresMs, nowMs }) {
      insertOperator.run(id, nowMs, expiresMs)
      return { done: 'signed_in' }
    },
    renewSession: buildRenewSession(books, people),
    endSessions({ personId, only, except, why, nowMs }) {
      if (only === undefined) return { done: 'ended', count: people.sessions.endAll(personId, { why, nowMs, except }) }
      if (findOwn.get(only, personId) === null) return { done: 'unknown' }
      people.sessions.end(only, why, nowMs)
      return { done: 'ended', count: 1 }
    },
    forgetSessions({ nowMs }) {
      const beforeMs = nowMs - bounds.endedSessionMsMax
      removeOldInvitations.run(beforeMs)
      const ids = findOld.all(beforeMs, ROWS_PER_SWEEP)
      for (const { id } of ids) {
        removeRefreshTokens.run(id)
        remove.run(id)
      }
      return { done: 'forgotten', count: ids.length }
    },
  }
}

/** Uses up the second factor of a sign-in. Returns false for a code that was used before, and for a missing code. */
function secondFactorUser({ db }: Books): (personId: number, second: SecondFactor | null, nowMs: number) => boolean {
  const findSecondFactor = db.query('SELECT 1 FROM totp WHERE person_id = ?1 AND confirmed_ms IS NOT NULL')
  const useStep = db.query(
    'UPDATE totp SET last_step = ?2 WHERE person_id = ?1 AND confirmed_ms IS NOT NULL AND last_step < ?2',
  )
  const useRecoveryCode = db.query(
    'UPDATE recovery_code SET used_ms = ?3 WHERE person_id = ?1 AND digest = ?2 AND used_ms IS NULL',
  )
  return (personId, second, nowMs) => {
    if (second === null) return findSecondFactor.get(personId) === null
    if ('step' in second) return useStep.run(personId, second.step).changes > 0
    return useRecoveryCode.run(personId, Buffer.from(second.recovery, 'hex'), nowMs).changes > 0
  }
}

function buildRenewSession({ db }: Books, people: PeopleRows): SessionHandlers['renewSession'] {
  const find = db.query<RefreshRow, [Uint8Array]>(
    `SELECT r.session_id, r.used_ms, s.next, s.made_ms, s.expires_ms, s.ended_ms, s.person_id, p.ver
     FROM refresh r JOIN session s ON s.id = r.session_id JOIN person p ON p.id = s.person_id
     WHERE r.digest = ?1 AND p.disabled = 0`,
  )
  const markUsed = db.query('UPDATE refresh SET used_ms = ?2 WHERE digest = ?1')
  const extend = db.query('UPDATE session SET seen_ms = ?2, expires_ms = ?3, next = ?4 WHERE id = ?1')
  const removeOldRefreshTokens = db.query(
    `DELETE FROM refresh WHERE digest IN (SELECT digest FROM refresh WHERE session_id = ?1
       ORDER BY used_ms IS NULL DESC, made_ms DESC, digest LIMIT -1 OFFSET ?2)`,
  )
  return function renewSession({ digest, next, sealed, nowMs }) {
    const row = find.get(Buffer.from(digest, 'hex'))
    if (row === null || row.ended_ms !== null || Number(row.expires_ms) <= nowMs) return { done: 'over' }
    const [sessionId, personId, ver] = [Number(row.session_id), Number(row.person_id), Number(row.ver)]
    if (row.used_ms !== null) {
      // A request that comes shortly after the first one gets the same next token.
      const isRecent = nowMs - Number(row.used_ms) < bounds.refreshGraceMsMax && row.next !== null
      if (isRecent) return { done: 'again', sessionId, personId, ver, sealed: Buffer.from(row.next).toString('base64') }
      people.sessions.end(sessionId, 'stolen', nowMs)
      return { done: 'stolen', sessionId, personId }
    }
    markUsed.run(Buffer.from(digest, 'hex'), nowMs)
    people.sessions.addRefresh(next, sessionId, nowMs)
    removeOldRefreshTokens.run(sessionId, bounds.usedRefreshTokensMax)
    const expiresMs = Math.min(nowMs + bounds.sessionIdleMsMax, Number(row.made_ms) + bounds.sessionMsMax)
    extend.run(sessionId, nowMs, expiresMs, Buffer.from(sealed, 'base64'))
    return { done: 'renewed', sessionId, personId, ver }
  }
}
