// The table of tasks, which an upstream works on after their call was answered. A task has ended when it has no next
// poll time; then it does not change any more, and only then can it be deleted.

import type { Database } from 'bun:sqlite'
import { bounds } from '../../base/bounds.ts'
import type { OperationInput, OperationResult } from '../engine/operations.ts'
import type { TaskChange, VaultId } from './vault-types.ts'

const ROWS_PER_SWEEP = 256

export class TaskRows {
  readonly #insert
  readonly #countOpen
  readonly #trim
  readonly #change
  readonly #findByCall
  readonly #deleteEnded
  readonly #findById
  readonly #deleteExpired

  constructor(db: Database) {
    this.#insert = db.query(
      `INSERT INTO task (call_id, account_id, id, key_id, provider, model, channel, admitted, status, created_ms,
         updated_ms, due_ms, expires_ms) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, 'queued', ?9, ?9, ?10, ?11)
       ON CONFLICT DO NOTHING`,
    )
    this.#countOpen = db.query('SELECT count(*) AS n FROM task WHERE account_id = ?1 AND due_ms IS NOT NULL')
    this.#trim = db.query(
      `DELETE FROM task WHERE call_id IN (SELECT call_id FROM task WHERE account_id = ?1 AND due_ms IS NULL
         ORDER BY call_id LIMIT max(0, (SELECT count(*) FROM task WHERE account_id = ?1) - ?2))`,
    )
    this.#change = db.query(
      `UPDATE task SET status = ?2, due_ms = ?3, updated_ms = ?4, polled_ms = coalesce(?5, polled_ms),
         upstream_id = coalesce(?6, upstream_id), sealed = coalesce(?7, sealed), id = coalesce(?8, id),
         channel = coalesce(?9, channel)
       WHERE call_id = ?1 AND due_ms IS NOT NULL`,
    )
    this.#findByCall = db.query('SELECT 1 FROM task WHERE call_id = ?1')
    this.#deleteEnded = db.query('DELETE FROM task WHERE account_id = ?1 AND id = ?2 AND due_ms IS NULL')
    this.#findById = db.query('SELECT 1 FROM task WHERE account_id = ?1 AND id = ?2')
    this.#deleteExpired = db.query(
      `DELETE FROM task WHERE call_id IN (SELECT call_id FROM task
         WHERE expires_ms <= ?1 AND due_ms IS NULL ORDER BY expires_ms, call_id LIMIT ?2)`,
    )
  }

  create(input: OperationInput<'createTask'>): OperationResult<'createTask'> {
    const { callId, accountId, id, keyId, provider, model, channel, admitted, createdMs, dueMs, expiresMs } = input
    const { n } = this.#countOpen.get(accountId) as { n: bigint }
    if (n >= bounds.tasksOpenMax) return { done: 'too_many' }
    const { changes } = this.#insert.run(
      callId,
      accountId,
      id,
      keyId,
      provider,
      model,
      channel,
      admitted,
      createdMs,
      dueMs,
      expiresMs,
    )
    if (changes === 0) return { done: 'exists' }
    this.#trim.run(accountId, bounds.storedTasksMax)
    return { done: 'created' }
  }

  change(change: TaskChange, sealed: Buffer | null): OperationResult<'changeTask'> {
    const { callId, status, dueMs, updatedMs, polledMs = null, upstreamId = null, id = null, channel = null } = change
    const values = [status, dueMs, updatedMs, polledMs, upstreamId, sealed, id, channel]
    const { changes } = this.#change.run(callId, ...values)
    if (changes === 1) return { done: 'changed' }
    return { done: this.#findByCall.get(callId) === null ? 'unknown' : 'over' }
  }

  drop({ accountId, id }: VaultId): OperationResult<'dropTask'> {
    if (this.#deleteEnded.run(accountId, id).changes === 1) return { done: 'dropped' }
    return { done: this.#findById.get(accountId, id) === null ? 'unknown' : 'under_way' }
  }

  deleteExpired(nowMs: number): number {
    return this.#deleteExpired.run(nowMs, ROWS_PER_SWEEP).changes
  }
}
