// The operations that delete records, by deletion orders of people and by age. Money is never deleted: transfers stay,
// the costs of deleted records are summed up by account and day, and the cost of each call that an order deleted stays
// known to the auditor.

import { bounds } from '../../base/bounds.ts'
import { msOfId } from '../../base/ids.ts'
import { DAY_MS } from '../../base/time.ts'
import type { OperationContext, StepsOf } from '../engine/operation.ts'
import { isInScope } from '../engine/scope-check.ts'
import type { Steps } from '../engine/steps.ts'
import { query } from '../engine/steps.ts'
import { RECORDS_INDEXED_TO } from '../ledger/late-indexes.ts'
import type { Scope } from '../queries/paging.ts'
import { scopeSql } from '../queries/paging.ts'

/** Which records an order deletes. A null field matches all records. */
export interface DeletionFilter {
  readonly accountId: number | null
  readonly keyId: number | null
  readonly endUser: string | null
  readonly from: number
  readonly before: number
}

export interface RecordOperations {
  /** Deletes some rows of the record log below this one. */
  trimLog: { input: { readonly below: number }; result: { done: 'trimmed'; count: number } }
  orderDeletion: {
    input: DeletionFilter & {
      /** The accounts whose records the actor may delete; null: all. */
      readonly scope: Scope | null
      readonly author: string
    }
    result: { done: 'ordered'; id: number } | { done: 'unknown' | 'too_many' }
  }
  /**
   * Sets the first id that is kept: records with lower ids are deleted by age. What is known of those that an order has
   * deleted goes with them, some with this operation and some with each `deleteRecords`.
   */
  keepRecordsFrom: { input: { readonly id: number }; result: { done: 'set' } }
  /** Deletes these records. `behind`: some are not yet in the statistics and stay for now. */
  deleteRecords: {
    input: {
      readonly ids: readonly number[]
      /** The last row of the log that is in the statistics. On PostgreSQL, where no row of the log is, 0. */
      readonly rolledSeq: number
      /** The deletion order, and the id at which it continues; null: it has reached its end. */
      readonly order?: { readonly id: number; readonly next: number | null }
    }
    result: { done: 'deleted' | 'behind'; count: number }
  }
  /** Writes only an audit row: somebody has read the bodies of a call. */
  noteBodiesSeen: { input: { readonly callId: number; readonly accountId: number }; result: { done: 'noted' } }
}

/** Few enough that no call waits for it. */
const LOG_ROWS_PER_STEP = 1_000
/** More than a step of deleting can add, so that those which are too old become fewer with each step. */
const OLD_DELETED_PER_STEP = 1_000
/** If more log rows than this are not in the statistics yet, deleting waits; this state never lasts long. */
const BEHIND_MAX = 20_000

// The last row always stays, so that the next row gets a number that was never used. Rows that are not in the indexes
// stay too, because searches find their records by them. On PostgreSQL the log has only rows that are not in the
// statistics, so nothing may be trimmed.
const trimLog = query({
  sqlite: `DELETE FROM record_log WHERE seq IN (SELECT seq FROM record_log
    WHERE seq < ?1 AND seq < (SELECT max(seq) FROM record_log) AND seq <= ${RECORDS_INDEXED_TO} ORDER BY seq LIMIT ?2)`,
  postgres: 'DELETE FROM record_log WHERE false AND seq < ?1 AND seq < ?2',
})
const insertOrder = query<{ id: bigint }>(
  `INSERT INTO record_deletion (account_id, key_id, end_user, from_id, before_id, next_id, author, made_ms)
   SELECT CAST(?1 AS BIGINT), CAST(?2 AS BIGINT), CAST(?3 AS TEXT), CAST(?4 AS BIGINT), CAST(?5 AS BIGINT),
     CAST(?4 AS BIGINT), CAST(?6 AS TEXT), CAST(?7 AS BIGINT)
   WHERE (CAST(?1 AS BIGINT) IS NULL OR EXISTS (SELECT 1 FROM account WHERE id = ?1))
     AND (CAST(?2 AS BIGINT) IS NULL OR EXISTS
       (SELECT 1 FROM api_key WHERE id = ?2 AND account_id = coalesce(?1, account_id)))
     AND (CAST(?8 AS BIGINT) IS NULL OR `.concat(scopeSql('?1', '?8', '?9'), ') RETURNING id'),
)
const countOpen = query<{ n: bigint }>(
  'SELECT count(*) AS n FROM record_deletion WHERE done_ms IS NULL AND account_id IS NOT DISTINCT FROM ?1',
)
const raiseFirstKept = query(
  `INSERT INTO setting (name, value) VALUES ('records_from', ?1) ON CONFLICT (name) DO UPDATE
   SET value = excluded.value WHERE CAST(setting.value AS BIGINT) < CAST(excluded.value AS BIGINT)`,
)
// Some at a time: an order may have deleted millions of records, and a statement must not take long.
const removeOldDeleted = query(
  `DELETE FROM deleted_record WHERE call_id IN (SELECT call_id FROM deleted_record
     WHERE call_id < coalesce((SELECT CAST(value AS BIGINT) FROM setting WHERE name = 'records_from'), 0)
     ORDER BY call_id LIMIT ?1)`,
)

/** Limits the open orders of an account. Orders of staff are not limited. */
function* hasTooMany(accountId: number | null, scope: Scope | null): Steps<boolean> {
  if (scope === null || !(yield* isInScope(scope, accountId ?? 0))) return false
  return (yield* countOpen.get(accountId))!.n >= bounds.deletionsOpenMax
}

interface DeletedRecord {
  readonly account_id: bigint
  readonly cost: bigint
  readonly shortfall: bigint
}

const findNotInStatistics = query<{ id: bigint }>('SELECT abs(call_id) AS id FROM record_log WHERE seq > ?1 LIMIT ?2')
const removeRecord = query<DeletedRecord>('DELETE FROM record WHERE call_id = ?1 RETURNING account_id, cost, shortfall')
const deleteAnswer = query('DELETE FROM kept_answer WHERE call_id = ?1')
const insertDeleted = query(
  `INSERT INTO deleted_record
   SELECT CAST(?1 AS BIGINT), CAST(?2 AS BIGINT), CAST(?3 AS BIGINT), CAST(?4 AS BIGINT)
   WHERE ?1 >= coalesce((SELECT CAST(value AS BIGINT) FROM setting WHERE name = 'records_from'), 0)`,
)
const addToSum = query(
  `INSERT INTO deleted_sum VALUES (?1, ?2, 1, ?3, ?4) ON CONFLICT (account_id, day) DO UPDATE SET
     calls = deleted_sum.calls + 1, cost = deleted_sum.cost + excluded.cost,
     shortfall = deleted_sum.shortfall + excluded.shortfall`,
)
const continueAt = query('UPDATE record_deletion SET next_id = ?2, deleted = deleted + ?3 WHERE id = ?1')
const findOpen = query<{ id: bigint | null }>(
  `SELECT min(h.call_id) AS id FROM record_deletion d JOIN hold h
     ON h.call_id >= d.from_id AND h.call_id < d.before_id
     AND (d.account_id IS NULL OR h.account_id = d.account_id) AND (d.key_id IS NULL OR h.key_id = d.key_id)
   WHERE d.id = ?1`,
)
// A finished order does not keep the name of the end user.
const finish = query(
  `UPDATE record_deletion SET next_id = before_id, deleted = deleted + ?2, done_ms = ?3,
     end_user = CASE WHEN end_user IS NULL THEN NULL ELSE '' END WHERE id = ?1`,
)

interface OrderProgress {
  readonly id: number
  readonly next: number | null
  readonly count: number
}

/** Notes the progress of an order. An order is done when it has reached its end and no matching call is active. */
function* noteOrder({ id, next, count }: OrderProgress, { nowMs }: OperationContext): Steps<void> {
  const open = next === null ? (yield* findOpen.get(id))!.id : null
  if (next === null && open === null) yield* finish.run(id, count, nowMs())
  else yield* continueAt.run(id, next ?? open, count)
}

export const recordOperations: StepsOf<RecordOperations> = {
  *trimLog({ below }) {
    return { done: 'trimmed', count: yield* trimLog.run(below, LOG_ROWS_PER_STEP) }
  },
  *orderDeletion({ accountId, keyId, endUser, from, before, author, scope }, { nowMs }) {
    if (yield* hasTooMany(accountId, scope)) return { done: 'too_many' }
    const values = [accountId, keyId, endUser, from, before, author, nowMs()]
    const row = yield* insertOrder.get(...values, scope?.actorId ?? null, scope?.rank ?? null)
    return row === undefined ? { done: 'unknown' } : { done: 'ordered', id: Number(row.id) }
  },
  *keepRecordsFrom({ id }) {
    yield* raiseFirstKept.run(String(id))
    yield* removeOldDeleted.run(OLD_DELETED_PER_STEP)
    return { done: 'set' }
  },
  *deleteRecords({ ids, rolledSeq, order }, context) {
    const waiting = yield* findNotInStatistics.all(rolledSeq, BEHIND_MAX)
    if (waiting.length === BEHIND_MAX) return { done: 'behind', count: 0 }
    const notInStatistics = new Set(waiting.map(({ id }) => Number(id)))
    let count = 0
    let firstKept: number | undefined
    for (const id of ids) {
      if (notInStatistics.has(id)) {
        firstKept ??= id
        continue
      }
      const row = yield* removeRecord.get(id)
      if (row === undefined) continue
      yield* deleteAnswer.run(id)
      yield* insertDeleted.run(id, row.account_id, row.cost, row.shortfall)
      yield* addToSum.run(row.account_id, Math.floor(msOfId(id) / DAY_MS), row.cost, row.shortfall)
      count++
    }
    yield* removeOldDeleted.run(OLD_DELETED_PER_STEP)
    if (order !== undefined) yield* noteOrder({ id: order.id, next: firstKept ?? order.next, count }, context)
    return { done: firstKept === undefined ? 'deleted' : 'behind', count }
  },
  // biome-ignore lint/correctness/useYield: only the audit row is written
  *noteBodiesSeen() {
    return { done: 'noted' }
  },
}
