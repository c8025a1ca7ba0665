// The operations that delete records, by deletion orders of people and by age. Money is never deleted: transfers stay,
// the costs of deleted records are summed up by account and day, and the cost of each call that an order deleted stays
// known to the auditor.

import type { Database } from 'bun:sqlite'
import { bounds } from '../../base/bounds.ts'
import { msOfId } from '../../base/ids.ts'
import { DAY_MS } from '../../base/time.ts'
import type { HandlersOf } from '../engine/operation.ts'
import { buildScopeCheck } from '../engine/scope-check.ts'
import type { Books } from '../ledger/books.ts'
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
  /** Sets the first id that is kept: records with lower ids are deleted by age. */
  keepRecordsFrom: { input: { readonly id: number }; result: { done: 'set' } }
  /** Deletes these records. `behind`: some are not yet in the statistics and stay for now. */
  deleteRecords: {
    input: {
      readonly ids: readonly number[]
      /** The last row of the log that is in the statistics. */
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
/** If more log rows than this are not in the statistics yet, deleting waits; this state never lasts long. */
const BEHIND_MAX = 20_000

export function recordOperations({ db, nowMs }: Books): HandlersOf<RecordOperations> {
  // The last row always stays, so that the next row gets a number that was never used. Rows that are not in the indexes
  // stay too, because searches find their records by them.
  const trim = db.query(
    `DELETE FROM record_log WHERE seq IN (SELECT seq FROM record_log
       WHERE seq < ?1 AND seq < (SELECT max(seq) FROM record_log) AND seq <= ${RECORDS_INDEXED_TO} ORDER BY seq LIMIT ?2)`,
  )
  const order = db.query(
    `INSERT INTO record_deletion (account_id, key_id, end_user, from_id, before_id, next_id, author, made_ms)
     SELECT $account, $key, $endUser, $from, $before, $from, $author, $now WHERE
       ($account IS NULL OR EXISTS (SELECT 1 FROM account WHERE id = $account))
       AND ($key IS NULL OR EXISTS
         (SELECT 1 FROM api_key WHERE id = $key AND account_id = coalesce($account, account_id)))
       AND ($scope IS NULL OR `.concat(scopeSql('$account'), ') RETURNING id'),
  )
  const countOpen = db.query<{ n: bigint }, [number | null]>(
    'SELECT count(*) AS n FROM record_deletion WHERE done_ms IS NULL AND account_id IS ?1',
  )
  const isInScope = buildScopeCheck(db)
  /** Limits the open orders of an account. Orders of staff are not limited. */
  const hasTooMany = (accountId: number | null, scope: Scope | null): boolean =>
    scope !== null && isInScope(scope, accountId ?? 0) && countOpen.get(accountId)!.n >= bounds.deletionsOpenMax
  const raiseFirstKept = db.query(
    `INSERT INTO setting (name, value) VALUES ('records_from', ?1) ON CONFLICT (name) DO UPDATE SET value = ?1
     WHERE CAST(value AS INTEGER) < CAST(?1 AS INTEGER)`,
  )
  const removeOldDeleted = db.query('DELETE FROM deleted_record WHERE call_id < ?1')
  return {
    trimLog: ({ below }) => ({ done: 'trimmed', count: trim.run(below, LOG_ROWS_PER_STEP).changes }),
    orderDeletion({ accountId, keyId, endUser, from, before, author, scope }) {
      if (hasTooMany(accountId, scope)) return { done: 'too_many' }
      const values = { account: accountId, key: keyId, endUser, from, before, author, now: nowMs() }
      const row = order.get({ ...values, scope: scope?.actorId ?? null, rank: scope?.rank ?? null })
      return row === null ? { done: 'unknown' } : { done: 'ordered', id: Number((row as { id: bigint }).id) }
    },
    keepRecordsFrom({ id }) {
      raiseFirstKept.run(String(id))
      removeOldDeleted.run(id)
      return { done: 'set' }
    },
    deleteRecords: buildDeleteRecords(db, nowMs),
    noteBodiesSeen: () => ({ done: 'noted' }),
  }
}

interface DeletedRecord {
  readonly account_id: bigint
  readonly cost: bigint
  readonly shortfall: bigint
}

function buildDeleteRecords(db: Database, nowMs: () => number): HandlersOf<RecordOperations>['deleteRecords'] {
  const findNotInStatistics = db.query('SELECT abs(call_id) AS id FROM record_log WHERE seq > ?1 LIMIT ?2')
  const remove = db.query('DELETE FROM record WHERE call_id = ?1 RETURNING account_id, cost, shortfall')
  const deleteAnswer = db.query('DELETE FROM kept_answer WHERE call_id = ?1')
  const insertDeleted = db.query(
    `INSERT INTO deleted_record SELECT ?1, ?2, ?3, ?4 WHERE ?1 >=
       coalesce((SELECT CAST(value AS INTEGER) FROM setting WHERE name = 'records_from'), 0)`,
  )
  const addToSum = db.query(
    `INSERT INTO deleted_sum VALUES (?1, ?2, 1, ?3, ?4) ON CONFLICT DO UPDATE SET
       calls = calls + 1, cost = cost + ?3, shortfall = shortfall + ?4`,
  )
  const noteOrder = buildNoteOrder(db, nowMs)
  return function deleteRecords({ ids, rolledSeq, order }) {
    const waiting = findNotInStatistics.all(rolledSeq, BEHIND_MAX) as { id: bigint }[]
    if (waiting.length === BEHIND_MAX) return { done: 'behind', count: 0 }
    const notInStatistics = new Set(waiting.map(({ id }) => Number(id)))
    let count = 0
    let firstKept: number | undefined
    for (const id of ids) {
      if (notInStatistics.has(id)) {
        firstKept ??= id
        continue
      }
      const row = remove.get(id) as DeletedRecord | null
      if (row === null) continue
      deleteAnswer.run(id)
      insertDeleted.run(id, row.account_id, row.cost, row.shortfall)
      addToSum.run(row.account_id, Math.floor(msOfId(id) / DAY_MS), row.cost, row.shortfall)
      count++
    }
    if (order !== undefined) noteOrder({ id: order.id, next: firstKept ?? order.next, count })
    return { done: firstKept === undefined ? 'deleted' : 'behind', count }
  }
}

/** Notes the progress of an order. An order is done when it has reached its end and no matching call is active. */
function buildNoteOrder(db: Database, nowMs: () => number) {
  const continueAt = db.query('UPDATE record_deletion SET next_id = ?2, deleted = deleted + ?3 WHERE id = ?1')
  const findOpen = db.query(
    `SELECT min(h.call_id) AS id FROM record_deletion d JOIN hold h
       ON h.call_id >= d.from_id AND h.call_id < d.before_id
       AND (d.account_id IS NULL OR h.account_id = d.account_id) AND (d.key_id IS NULL OR h.key_id = d.key_id)
     WHERE d.id = ?1`,
  )
  // A finished order does not keep the name of the end user.
  const finish = db.query(
    `UPDATE record_deletion SET next_id = before_id, deleted = deleted + ?2, done_ms = ?3,
       end_user = CASE WHEN end_user IS NULL THEN NULL ELSE '' END WHERE id = ?1`,
  )
  return function noteOrder({ id, next, count }: { id: number; next: number | null; count: number }): void {
    const open = next === null ? (findOpen.get(id) as { id: bigint | null }).id : null
    if (next === null && open === null) finish.run(id, count, nowMs())
    else continueAt.run(id, next ?? open, count)
  }
}
