// The table of idempotency keys and their calls. A key is claimed in the transaction of the hold, and finished or
// released in the transaction of the settle, so that a key never has more than one execution.

import type { Database } from 'bun:sqlite'
import { assert } from '../../base/assert.ts'
import { bounds } from '../../base/bounds.ts'
import { idAtMs } from '../../base/ids.ts'
import type { Steps } from '../engine/steps.ts'
import { query } from '../engine/steps.ts'
import type { HoldInput, HoldResult } from './hold-types.ts'

/** Answers of calls with ids below this one have expired. */
export const expiredBefore = (nowMs: number): number => idAtMs(nowMs - bounds.idempotentAnswerMsMax)

/** Few, because an answer may have four megabytes and settles wait while answers are deleted. */
const ROWS_PER_SWEEP = 32

// On PostgreSQL, holds release expired keys at the same time. Whoever waited for them could make them wait in turn.
const unlocked = (select: string) => ({
  sqlite: `DELETE FROM ${select})`,
  postgres: `DELETE FROM ${select} FOR UPDATE SKIP LOCKED)`,
})
const deleteOldKeys = query(
  unlocked(`idempotency WHERE call_id IN
     (SELECT call_id FROM idempotency WHERE call_id < ?1 AND done = 1 ORDER BY call_id LIMIT ?2`),
)
const deleteOldAnswers = query(
  unlocked('kept_answer WHERE call_id IN (SELECT call_id FROM kept_answer WHERE call_id < ?1 LIMIT ?2'),
)

/** Deletes some of the finished keys and answers of calls with ids below `before`. Returns how many keys. */
export function* deleteExpiredKeys(before: number): Steps<number> {
  yield* deleteOldAnswers.run(before, ROWS_PER_SWEEP)
  return yield* deleteOldKeys.run(before, ROWS_PER_SWEEP)
}

type ClaimedRow = { call_id: bigint; fingerprint: Uint8Array; done: bigint }

export class IdempotencyRows {
  readonly #nowMs: () => number
  readonly #find
  readonly #insert
  readonly #finish
  readonly #release
  readonly #insertAnswer
  readonly #deleteAnswer

  constructor(db: Database, nowMs: () => number) {
    this.#nowMs = nowMs
    this.#find = db.query('SELECT call_id, fingerprint, done FROM idempotency WHERE key_id = ?1 AND name = ?2')
    this.#insert = db.query('INSERT INTO idempotency (key_id, name, fingerprint, call_id) VALUES (?1, ?2, ?3, ?4)')
    this.#finish = db.query('UPDATE idempotency SET done = 1 WHERE call_id = ?1')
    this.#release = db.query('DELETE FROM idempotency WHERE call_id = ?1')
    this.#insertAnswer = db.query('INSERT INTO kept_answer VALUES (?1, ?2)')
    this.#deleteAnswer = db.query('DELETE FROM kept_answer WHERE call_id = ?1')
  }

  /** The call that has the key; undefined when the key is free. An expired key is released here, before any sweep. */
  findClaim({ keyId, idempotency }: HoldInput): HoldResult | undefined {
    const row = this.#find.get(keyId, idempotency!.name) as ClaimedRow | null
    if (row === null) return undefined
    const callId = Number(row.call_id)
    if (row.done === 1n && callId < expiredBefore(this.#nowMs())) {
      this.release(callId)
      return undefined
    }
    if (!Buffer.from(idempotency!.fingerprint, 'hex').equals(row.fingerprint)) return { done: 'other_body', callId }
    return { done: row.done === 1n ? 'finished' : 'running', callId }
  }

  claim({ keyId, callId, idempotency }: HoldInput): void {
    this.#insert.run(keyId, idempotency!.name, Buffer.from(idempotency!.fingerprint, 'hex'), callId)
  }

  finish(callId: number, sealed: string | null): void {
    assert(this.#finish.run(callId).changes === 1, 'a call that stores its answer must have claimed a key')
    if (sealed !== null) this.#insertAnswer.run(callId, Buffer.from(sealed, 'base64'))
  }

  /** Releases the key of a call. Returns whether the call had one. */
  release(callId: number): boolean {
    if (this.#release.run(callId).changes === 0) return false
    this.#deleteAnswer.run(callId)
    return true
  }
}
