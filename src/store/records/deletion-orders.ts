// Deleting records by rule: what people order, and what is older than records are kept. The money stays: transfers are
// never touched, what was deleted is summed up by account and day, and of what was ordered the auditor still finds what
// each call had cost.

import type { Database } from 'bun:sqlite'
import { bounds } from '../../base/bounds.ts'
import { msOfId } from '../../base/ids.ts'
import type { Runs } from '../engine/operation.ts'
import { buildReaches } from '../engine/reach.ts'
import type { Books } from '../ledger/books.ts'
import type { Scope } from '../queries/paging.ts'
import { scopeSql } from '../queries/paging.ts'

/** Which records; what is null does not matter. */
export interface DeletionRule {
  readonly accountId: number | null
  readonly keyId: number | null
  readonly endUser: string | null
  readonly from: number
  readonly before: number
}

export interface RecordOperations {
  /** Rows of the log below this one, some at a time. */
  trimLog: { input: { readonly below: number }; result: { done: 'trimmed'; count: number } }
  orderDeletion: {
    input: DeletionRule & {
      /** Whose records they may delete; null: everybody's. */
      readonly scope: Scope | null
      readonly author: string
    }
    result: { done: 'ordered'; id: number } | { done: 'unknown' | 'too_many' }
  }
  /** From now on, nothing below this id is kept. */
  keepRecordsFrom: { input: { readonly id: number }; result: { done: 'set' } }
  /** These; `behind`: but for what is not yet in the statistics, which stays for now. */
  deleteRecords: {
    input: {
      readonly ids: readonly number[]
      /** The last row of the log that is in the statistics. */
      readonly rolledSeq: number
      /** By whose order, and where that goes on; null: it has come to its end. */
      readonly order?: { readonly id: number; readonly next: number | null }
    }
    result: { done: 'deleted' | 'behind'; count: number }
  }
  /** Somebody has looked at the bodies of a call. Nothing is written but that. */
  noteBodiesSeen: { input: { readonly callId: number; readonly accountId: number }; result: { done: 'noted' } }
}

/** So few that no call waits for it. */
const TRIMMED_AT_ONCE = 1_000
/** More than that the statistics are never behind for long. */
const BEHIND_MAX = 20_000
const DAY_MS = 86_400_000

export function recordOperations({ db, nowMs }: Books): Runs<RecordOperations> {
  // The last row stays in any case: by it, the next one gets a number that was never used.
  const trim = db.query(
    `DELETE FROM record_log WHERE seq IN (SELECT seq FROM record_log
       WHERE seq < ?1 AND seq < (SELECT max(seq) FROM record_log) ORDER BY seq LIMIT ?2)`,
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
  const reaches = buildReaches(db)
  /** Of whoever does not run the site, all others wait behind them. */
  const hasTooMany = (accountId: number | null, scope: Scope | null): boolean =>
    scope !== null && reaches(scope, accountId ?? 0) && countOpen.get(accountId)!.n >= bounds.deletionsOpenMax
  const raise = db.query(
    `INSERT INTO setting (name, value) VALUES ('records_from', ?1) ON CONFLICT (name) DO UPDATE SET value = ?1
     WHERE CAST(value AS INTEGER) < CAST(?1 AS INTEGER)`,
  )
  const forgetDeleted = db.query('DELETE FROM deleted_record WHERE call_id < ?1')
  return {
    trimLog: ({ below }) => ({ done: 'trimmed', count: trim.run(below, TRIMMED_AT_ONCE).changes }),
    orderDeletion({ accountId, keyId, endUser, from, before, author, scope }) {
      if (hasTooMany(accountId, scope)) return { done: 'too_many' }
      const values = { account: accountId, key: keyId, endUser, from, before, author, now: nowMs() }
      const row = order.get({ ...values, scope: scope?.personId ?? null, rank: scope?.rank ?? null })
      return row === null ? { done: 'unknown' } : { done: 'ordered', id: Number((row as { id: bigint }).id) }
    },
    keepRecordsFrom({ id }) {
      raise.run(String(id))
      forgetDeleted.run(id)
      return { done: 'set' }
    },
    deleteRecords: buildDelete(db, nowMs),
    noteBodiesSeen: () => ({ done: 'noted' }),
  }
}

interface Deleted {
  readonly account_id: bigint
  readonly cost: bigint
  readonly shortfall: bigint
}

function buildDelete(db: Database, nowMs: () => number): Runs<RecordOperations>['deleteRecords'] {
  const unrolled = db.query('SELECT abs(call_id) AS id FROM record_log WHERE seq > ?1 LIMIT ?2')
  const remove = db.query('DELETE FROM record WHERE call_id = ?1 RETURNING account_id, cost, shortfall')
  const dropAnswer = db.query('DELETE FROM kept_answer WHERE call_id = ?1')
  const remember = db.query(
    `INSERT INTO deleted_record SELECT ?1, ?2, ?3, ?4 WHERE ?1 >=
       coalesce((SELECT CAST(value AS INTEGER) FROM setting WHERE name = 'records_from'), 0)`,
  )
  const add = db.query(
    `INSERT INTO deleted_sum VALUES (?1, ?2, 1, ?3, ?4) ON CONFLICT DO UPDATE SET
       calls = calls + 1, cost = cost + ?3, shortfall = shortfall + ?4`,
  )
  const noteOrder = buildNote(db, nowMs)
  return function deleteRecords({ ids, rolledSeq, order }) {
    const waiting = unrolled.all(rolledSeq, BEHIND_MAX) as { id: bigint }[]
    if (waiting.length === BEHIND_MAX) return { done: 'behind', count: 0 }
    const kept = new Set(waiting.map(({ id }) => Number(id)))
    let [count, first] = [0, undefined as number | undefined]
    for (const id of ids) {
      if (kept.has(id)) {
        first ??= id
        continue
      }
      const row = remove.get(id) as Deleted | null
      if (row === null) continue
      dropAnswer.run(id)
      remember.run(id, row.account_id, row.cost, row.shortfall)
      add.run(row.account_id, Math.floor(msOfId(id) / DAY_MS), row.cost, row.shortfall)
      count++
    }
    if (order !== undefined) noteOrder({ id: order.id, next: first ?? order.next, count })
    return { done: first === undefined ? 'deleted' : 'behind', count }
  }
}

/** An order is done when it has come to its end, and no call that it is for is still under way. */
function buildNote(db: Database, nowMs: () => number) {
  const goOn = db.query('UPDATE record_deletion SET next_id = ?2, deleted = deleted + ?3 WHERE id = ?1')
  const findOpen = db.query(
    `SELECT min(h.call_id) AS id FROM record_deletion d JOIN hold h
       ON h.call_id >= d.from_id AND h.call_id < d.before_id
       AND (d.account_id IS NULL OR h.account_id = d.account_id) AND (d.key_id IS NULL OR h.key_id = d.key_id)
     WHERE d.id = ?1`,
  )
  // Whose records they were is not to be remembered by the order itself.
  const end = db.query(
    `UPDATE record_deletion SET next_id = before_id, deleted = deleted + ?2, done_ms = ?3,
       end_user = CASE WHEN end_user IS NULL THEN NULL ELSE '' END WHERE id = ?1`,
  )
  return function noteOrder({ id, next, count }: { id: number; next: number | null; count: number }): void {
    const open = next === null ? (findOpen.get(id) as { id: bigint | null }).id : null
    if (next === null && open === null) end.run(id, count, nowMs())
    else goOn.run(id, next ?? open, count)
  }
}
