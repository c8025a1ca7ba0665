// Which call an idempotency key stands for. Claimed in the transaction of the hold, finished or given back in that of
// the settle, so that there is never more than one execution for a key.

import type { Database } from 'bun:sqlite'
import { assert } from '../../base/assert.ts'
import { bounds } from '../../base/bounds.ts'
import { idAtMs } from '../../base/ids.ts'
import type { HoldInput, HoldResult } from './hold-types.ts'

/** Few: each may take four megabytes, and settles wait meanwhile. */
const FORGET_AT_ONCE = 32

/** Calls before this one have had their time. */
export const forgottenBefore = (nowMs: number): number => idAtMs(nowMs - bounds.keptAnswerMsMax)

type Claimed = { call_id: bigint; fingerprint: Uint8Array; done: bigint }

export class IdempotencyRows {
  readonly #nowMs: () => number
  readonly #find
  readonly #insert
  readonly #finish
  readonly #release
  readonly #keep
  readonly #drop
  readonly #forgetNames
  readonly #forgetAnswers

  constructor(db: Database, nowMs: () => number) {
    this.#nowMs = nowMs
    this.#find = db.query('SELECT call_id, fingerprint, done FROM idempotency WHERE key_id = ?1 AND name = ?2')
    this.#insert = db.query('INSERT INTO idempotency (key_id, name, fingerprint, call_id) VALUES (?1, ?2, ?3, ?4)')
    this.#finish = db.query('UPDATE idempotency SET done = 1 WHERE call_id = ?1')
    this.#release = db.query('DELETE FROM idempotency WHERE call_id = ?1')
    this.#keep = db.query('INSERT INTO kept_answer VALUES (?1, ?2)')
    this.#drop = db.query('DELETE FROM kept_answer WHERE call_id = ?1')
    this.#forgetNames = db.query(
      `DELETE FROM idempotency WHERE call_id IN
         (SELECT call_id FROM idempotency WHERE call_id < ?1 AND done = 1 ORDER BY call_id LIMIT ?2)`,
    )
    this.#forgetAnswers = db.query(
      'DELETE FROM kept_answer WHERE call_id IN (SELECT call_id FROM kept_answer WHERE call_id < ?1 LIMIT ?2)',
    )
  }

  /** Undefined when the key is free. One whose time is over is given back here, not only when the sweep comes. */
  holder({ keyId, idempotency }: HoldInput): HoldResult | undefined {
    const row = this.#find.get(keyId, idempotency!.name) as Claimed | null
    if (row === null) return undefined
    const callId = Number(row.call_id)
    if (row.done === 1n && callId < forgottenBefore(this.#nowMs())) {
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
    assert(this.#finish.run(callId).changes === 1, 'a call that keeps its answer has claimed a key')
    if (sealed !== null) this.#keep.run(callId, Buffer.from(sealed, 'base64'))
  }

  /** Whether there was something to give back. */
  release(callId: number): boolean {
    if (this.#release.run(callId).changes === 0) return false
    this.#drop.run(callId)
    return true
  }

  forget(before: number): number {
    this.#forgetAnswers.run(before, FORGET_AT_ONCE)
    return this.#forgetNames.run(before, FORGET_AT_ONCE).changes
  }
}
