// Searches records page by page, newest or oldest first. One filter decides which index is scanned; the other filters
// are checked on the rows of this scan. A page scans a bounded number of rows, so that no search takes long. Where
// several values of one index are scanned (accounts of a person, failed outcomes), they are merged in the order of
// time.

import type { Database } from 'bun:sqlite'
import type { SqlValue } from '../engine/steps.ts'
import type { RecordIndex } from '../ledger/late-indexes.ts'
import { recordIndexes, recordTail } from '../ledger/late-indexes.ts'
import type { Scope } from '../queries/paging.ts'
import { scopeSql, scopeValues } from '../queries/paging.ts'
import type { Columns, RowOf, SqlRow } from '../tables/columns.ts'
import { rowReader, selectList } from '../tables/columns.ts'
import type { fullRecordColumns, recordColumns } from '../tables/records.ts'

export interface RecordFilter {
  readonly callId?: number | undefined
  readonly keyId?: number | undefined
  readonly accountId?: number | undefined
  readonly endUser?: string | undefined
  /** Needs the provider, because the index of models is in the order of time only within a provider. */
  readonly model?: { readonly provider: string; readonly name: string } | undefined
  readonly provider?: string | undefined
  readonly channel?: string | undefined
  readonly outcome?: string | undefined
  readonly status?: number | undefined
  readonly error?: string | undefined
  /** Nano-USD, in decimal digits. */
  readonly costMin?: string | undefined
  readonly costMax?: string | undefined
  readonly streamed?: boolean | undefined
  /** Ids from `from` on and below `before`. */
  readonly from?: number | undefined
  readonly before?: number | undefined
}

export interface RecordQuery {
  /** Null: all accounts. */
  readonly scope: Scope | null
  readonly filter: RecordFilter
  readonly oldestFirst?: boolean | undefined
  /** The `next` of the page before. */
  readonly after?: number | undefined
  readonly limit: number
}

export type RecordView = RowOf<typeof recordColumns>
export type FullRecord = RowOf<typeof fullRecordColumns>

export interface RecordPage<T> {
  readonly rows: readonly T[]
  /** The `after` of the next page; null at the end. */
  readonly next: number | null
  /** The page ended early, with fewer rows than the limit, because it had scanned enough rows. */
  readonly early: boolean
}

/** The most rows that one page scans. */
export const ROWS_SCANNED_MAX = 20_000
/** The most values of one index that are scanned at once; SQLite merges at most five hundred. */
const SCANNED_VALUES_MAX = 400

export type RecordScan = RecordIndex | 'callId' | 'none'
export const recordScanNames: readonly RecordScan[] = [
  'callId',
  'none',
  ...(Object.keys(recordIndexes) as RecordIndex[]),
]

const inRange = (id: string): string => `${id} >= $from AND ${id} < $before`

/** The SQL that yields the scanned ids in order: of each value, and of the newest records, which have no entries yet. */
export function recordScanSql(walk: RecordScan, count: number, oldestFirst: boolean): string {
  const order = oldestFirst ? ' ORDER BY call_id' : ' ORDER BY call_id DESC'
  if (walk === 'none') return `SELECT call_id FROM record WHERE ${inRange('call_id')}`.concat(order)
  if (walk === 'callId')
    return `SELECT call_id FROM record WHERE call_id = $walk0 AND ${inRange('call_id')}`.concat(order)
  const { kind, value } = recordIndexes[walk]
  const names = Array.from({ length: count }, (_, i) => `$walk${i}`)
  const selects = names.map(
    name => `SELECT call_id FROM record_index WHERE kind = ${kind} AND value = ${name} AND ${inRange('call_id')}`,
  )
  const tail = `SELECT r.call_id FROM ${recordTail(walk)} AND ${value} IN (${names}) AND ${inRange('r.call_id')}`
  return [...selects, tail].join(' UNION ALL ').concat(order)
}

const { kind: FAILED_KIND, value: FAILED_OUTCOME } = recordIndexes.failed

const OUTCOMES = `WITH RECURSIVE way (outcome) AS (
    SELECT min(value) FROM record_index WHERE kind = ${FAILED_KIND}
    UNION ALL SELECT (SELECT min(value) FROM record_index WHERE kind = ${FAILED_KIND} AND value > way.outcome)
      FROM way WHERE outcome IS NOT NULL)
  SELECT outcome FROM way WHERE outcome IS NOT NULL
  UNION SELECT ${FAILED_OUTCOME} FROM ${recordTail('failed')} AND ${FAILED_OUTCOME} IS NOT NULL`

const conditions: Readonly<Partial<Record<keyof RecordFilter, string>>> = {
  callId: 'r.call_id = $callId',
  keyId: 'r.key_id = $keyId',
  accountId: 'r.account_id = $accountId',
  endUser: 'r.end_user = $endUser',
  provider: 'r.provider = $provider',
  channel: 'r.channel = $channel',
  outcome: 'r.outcome = $outcome',
  status: 'r.status = $status',
  error: 'r.error = $error',
  costMin: 'r.cost >= $costMin',
  costMax: 'r.cost <= $costMax',
  streamed: 'r.streamed = $streamed',
}

type BoundValues = Record<string, SqlValue>

interface Scan {
  readonly walk: RecordScan
  readonly values: readonly SqlValue[]
}

/** Chooses the scan. Undefined where no record can match within the scope. */
function chooseScan(db: Database, { scope, filter }: RecordQuery): Scan | undefined {
  const { callId, keyId, endUser, accountId, model, outcome, status, error } = filter
  if (scope !== null && !isInScope(db, scope, filter)) return undefined
  if (callId !== undefined) return { walk: 'callId', values: [callId] }
  if (keyId !== undefined) return { walk: 'keyId', values: [keyId] }
  // For members this scan is not used: where a page ends early would reveal how many calls other accounts have.
  if (endUser !== undefined && scope === null) return { walk: 'endUser', values: [endUser] }
  if (accountId !== undefined) return { walk: 'accountId', values: [accountId] }
  if (scope !== null) return scanOwnAccounts(db, scope)
  if (model !== undefined) return { walk: 'model', values: [`${model.provider}/${model.name}`] }
  if (outcome !== undefined && outcome !== 'completed') return { walk: 'failed', values: [outcome] }
  if (error !== undefined || (status ?? 0) >= 400) {
    const outcomes = db
      .query<{ outcome: string }, []>(OUTCOMES)
      .all()
      .map(row => row.outcome)
    return outcomes.length === 0 ? undefined : { walk: 'failed', values: outcomes }
  }
  return { walk: 'none', values: [null] }
}

const OWNERS = {
  keyId: 'SELECT 1 FROM api_key WHERE id = $id AND '.concat(scopeSql('account_id')),
  accountId: 'SELECT 1 FROM account WHERE id = $id AND '.concat(scopeSql('id')),
} as const

/** Whether the key and the account of the filter are in the scope. Rows of other accounts must not be scanned. */
function isInScope(db: Database, scope: Scope, filter: RecordFilter): boolean {
  return (['keyId', 'accountId'] as const).every(name => {
    const id = filter[name]
    return id === undefined || db.query<SqlRow, [BoundValues]>(OWNERS[name]).get({ id, ...scopeValues(scope) }) !== null
  })
}

/** Scans all accounts of a person. */
function scanOwnAccounts(db: Database, scope: Scope): Scan | undefined {
  const sql = 'SELECT id FROM account WHERE '.concat(scopeSql('id'), ' LIMIT $most')
  const rows = db.query<{ id: bigint }, [BoundValues]>(sql).all({ ...scopeValues(scope), most: SCANNED_VALUES_MAX + 1 })
  if (rows.length === 0) return undefined
  if (rows.length > SCANNED_VALUES_MAX) return { walk: 'none', values: [null] }
  return { walk: 'accountId', values: rows.map(({ id }) => id) }
}

export function findRecords<C extends Columns>(db: Database, columns: C, ask: RecordQuery): RecordPage<RowOf<C>> {
  const scan = chooseScan(db, ask)
  if (scan === undefined) return { rows: [], next: null, early: false }
  const { filter, scope, oldestFirst = false, limit } = ask
  const ids = recordScanSql(scan.walk, scan.values.length, oldestFirst)
  const active = Object.entries(conditions).filter(([name]) => filter[name as keyof RecordFilter] !== undefined)
  const where = [
    ...active.map(([, sql]) => sql),
    ...(filter.model === undefined ? [] : ['r.model = $model AND r.provider = $provider']),
    ...(scope === null ? [] : [scopeSql('r.account_id')]),
  ]
  const scanned = { ...rangeOf(ask), ...scanValues(scan) }
  // The CROSS JOIN keeps the order of the ids without sorting, so the query ends as soon as the page is full.
  const sql = 'SELECT '.concat(
    selectList(columns),
    ' FROM (SELECT call_id AS id FROM (',
    ids,
    ') LIMIT $looked) w CROSS JOIN record r ON r.call_id = w.id WHERE ',
    where.length === 0 ? 'true' : where.join(' AND '),
    ' LIMIT $limit',
  )
  const rows = queryAll(db, sql, {
    ...scanned,
    ...filterValues(filter),
    ...scopeValues(scope),
    looked: ROWS_SCANNED_MAX,
    limit: limit + 1,
  })
  const shown = rows.slice(0, limit).map(rowReader(columns))
  if (rows.length > limit) return { rows: shown, next: Number(rows[limit - 1]!.callId), early: false }
  const [end] = queryAll(db, ids.concat(' LIMIT 1 OFFSET $looked - 1'), { ...scanned, looked: ROWS_SCANNED_MAX })
  return { rows: shown, next: end === undefined ? null : Number(end.call_id), early: end !== undefined }
}

function queryAll(db: Database, sql: string, values: BoundValues): readonly SqlRow[] {
  const statement = db.prepare<SqlRow, [BoundValues]>(sql)
  try {
    return statement.all(values)
  } finally {
    statement.finalize()
  }
}

function rangeOf({ filter, oldestFirst = false, after }: RecordQuery): BoundValues {
  const { from = 0, before = Number.MAX_SAFE_INTEGER } = filter
  if (after === undefined) return { from, before }
  return oldestFirst ? { from: Math.max(from, after + 1), before } : { from, before: Math.min(before, after) }
}

const scanValues = ({ walk, values }: Scan): BoundValues =>
  walk === 'none' ? {} : Object.fromEntries(values.map((value, i) => [`walk${i}`, value]))

function filterValues({ model, from: _from, before: _before, ...filter }: RecordFilter): BoundValues {
  const values: BoundValues = {}
  for (const [name, value] of Object.entries(filter)) {
    if (value === undefined) continue
    values[name] = typeof value === 'boolean' ? Number(value) : name.startsWith('cost') ? BigInt(value) : value
  }
  return model === undefined ? values : { ...values, model: model.name, provider: model.provider }
}
