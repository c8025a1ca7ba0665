// The operations on tasks, which an upstream works on after their call was answered. A task has ended when it has no next
// poll time; then it does not change any more, and only then can it be deleted.

import { bounds } from '../../base/bounds.ts'
import type { OperationSteps } from '../engine/operations.ts'
import type { Steps } from '../engine/steps.ts'
import { query } from '../engine/steps.ts'

const ROWS_PER_SWEEP = 256

const insert = query(
  `INSERT INTO task (call_id, account_id, id, key_id, provider, model, channel, admitted, status, created_ms,
     updated_ms, due_ms, expires_ms) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, 'queued', ?9, ?9, ?10, ?11)
   ON CONFLICT DO NOTHING`,
)
const replaceUnstarted = query(
  `UPDATE task SET provider = ?2, model = ?3, channel = ?4, admitted = ?5, created_ms = ?6, updated_ms = ?6, due_ms = ?7,
     expires_ms = ?8
   WHERE call_id = ?1 AND upstream_id IS NULL AND due_ms IS NOT NULL`,
)
const countOpen = query<{ n: bigint }>('SELECT count(*) AS n FROM task WHERE account_id = ?1 AND due_ms IS NOT NULL')
const trim = query(
  `DELETE FROM task WHERE call_id IN (SELECT call_id FROM task WHERE account_id = ?1 AND due_ms IS NULL
     ORDER BY call_id LIMIT (SELECT CASE WHEN count(*) > ?2 THEN count(*) - ?2 ELSE 0 END FROM task
       WHERE account_id = ?1))`,
)
const change = query(
  `UPDATE task SET status = ?2, due_ms = ?3, updated_ms = ?4, polled_ms = coalesce(?5, polled_ms),
     upstream_id = coalesce(?6, upstream_id), sealed = coalesce(?7, sealed), id = coalesce(?8, id),
     channel = coalesce(?9, channel)
   WHERE call_id = ?1 AND due_ms IS NOT NULL`,
)
const findByCall = query('SELECT 1 FROM task WHERE call_id = ?1')
const deleteEnded = query('DELETE FROM task WHERE account_id = ?1 AND id = ?2 AND due_ms IS NULL')
const findById = query('SELECT 1 FROM task WHERE account_id = ?1 AND id = ?2')
const deleteExpired = query(
  `DELETE FROM task WHERE call_id IN (SELECT call_id FROM task
     WHERE expires_ms <= ?1 AND due_ms IS NULL ORDER BY expires_ms, call_id LIMIT ?2)`,
)

export const taskOperations: Pick<OperationSteps, 'createTask' | 'changeTask' | 'dropTask'> = {
  *createTask(task) {
    const { callId, accountId, id, keyId, provider, model, channel, admitted, createdMs, dueMs, expiresMs } = task
    if (task.isAgain) {
      const terms = [provider, model, channel, admitted, createdMs, dueMs, expiresMs]
      return { done: (yield* replaceUnstarted.run(callId, ...terms)) === 1 ? 'created' : 'exists' }
    }
    if ((yield* countOpen.get(accountId))!.n >= bounds.tasksOpenMax) return { done: 'too_many' }
    const values = [callId, accountId, id, keyId, provider, model, channel, admitted, createdMs, dueMs, expiresMs]
    if ((yield* insert.run(...values)) === 0) return { done: 'exists' }
    yield* trim.run(accountId, bounds.storedTasksMax)
    return { done: 'created' }
  },
  *changeTask(input) {
    const { callId, status, dueMs, updatedMs, polledMs = null, upstreamId = null, id = null, channel = null } = input
    const sealed = input.sealed === null ? null : Buffer.from(input.sealed, 'base64')
    const values = [status, dueMs, updatedMs, polledMs, upstreamId, sealed, id, channel]
    if ((yield* change.run(callId, ...values)) === 1) return { done: 'changed' }
    return { done: (yield* findByCall.get(callId)) === undefined ? 'unknown' : 'over' }
  },
  *dropTask({ accountId, id }) {
    if ((yield* deleteEnded.run(accountId, id)) === 1) return { done: 'dropped' }
    return { done: (yield* findById.get(accountId, id)) === undefined ? 'unknown' : 'under_way' }
  },
}

/** Deletes some of the tasks that have expired. Returns how many. */
export const deleteExpiredTasks = (nowMs: number): Steps<number> => deleteExpired.run(nowMs, ROWS_PER_SWEEP)
