// Searches records page by page, newest or oldest first. One filter decides which index is scanned; the other filters
// are checked on the rows of this scan. A page scans a bounded number of rows, so that no search takes long. Where
// several values of one index are scanned (accounts of a person, failed outcomes), they are merged in the order of
// time.

import type { SqlPiece, SqlText, SqlValue, Steps } from '../engine/steps.ts'
import { query, RequestQuery } from '../engine/steps.ts'
import type { RecordIndex } from '../ledger/late-indexes.ts'
import { recordIndexes, recordTail } from '../ledger/late-indexes.ts'
import type { Scope } from '../queries/paging.ts'
import { boundScopeSql, scopeSql } from '../queries/paging.ts'
import type { Columns, RowOf, SqlRow } from '../tables/columns.ts'
import { rowReader, selectList } from '../tables/columns.ts'
import { fullRecordColumns, recordColumns, recordNameColumns } from '../tables/records.ts'

export interface RecordFilter {
  readonly callId?: number | undefined
  readonly keyId?: number | undefined
  readonly accountId?: number | undefined
  readonly endUser?: string | undefined
  /** No index has it, so it needs another filter, and a short time. */
  readonly conversation?: string | undefined
  /** Needs the provider, because the index of models is in the order of time only within a provider. */
  readonly model?: { readonly provider: string; readonly name: string } | undefined
  readonly provider?: string | undefined
  readonly channel?: string | undefined
  /** One of these. */
  readonly outcome?: readonly string[] | undefined
  readonly status?: number | undefined
  readonly error?: string | undefined
  /** Nano-USD, in decimal digits. */
  readonly costMin?: string | undefined
  readonly costMax?: string | undefined
  readonly streamed?: boolean | undefined
  readonly dialect?: string | undefined
  /** The name that the caller used, also where it is the model's own. */
  readonly requestedModel?: string | undefined
  /** The name of a tag, and its value if that matters. */
  readonly tag?: { readonly name: string; readonly value?: string } | undefined
  /** Whether a translation has lost something. */
  readonly lossy?: boolean | undefined
  readonly attemptsMin?: number | undefined
  readonly firstContentMsMin?: number | undefined
  readonly durationMsMin?: number | undefined
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

export const shownRecordColumns = { ...recordColumns, ...recordNameColumns } as const
export const shownFullRecordColumns = { ...fullRecordColumns, ...recordNameColumns } as const

export type RecordView = RowOf<typeof shownRecordColumns>
export type FullRecord = RowOf<typeof shownFullRecordColumns>

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

/** The parameters of a scan. */
export interface ScanParameters {
  readonly values: readonly string[]
  readonly from: string
  readonly before: string
}

/** The SQL that yields the scanned ids in order: of each value, and of the newest records, which have no entries yet. */
export function recordScanSql(walk: RecordScan, parameters: ScanParameters, oldestFirst: boolean): SqlText {
  const { values, from, before } = parameters
  const inRange = (id: string): string => `${id} >= ${from} AND ${id} < ${before}`
  const order = oldestFirst ? ' ORDER BY call_id' : ' ORDER BY call_id DESC'
  if (walk === 'none' || walk === 'callId') {
    const isId = values.map(value => `call_id = ${value} AND `).join('')
    const sql = `SELECT call_id FROM record WHERE ${isId}${inRange('call_id')}`.concat(order)
    return { sqlite: sql, postgres: sql }
  }
  const { kind, value: expression } = recordIndexes[walk]
  const selects = values.map(
    value => `SELECT call_id FROM record_index WHERE kind = ${kind} AND value = ${value} AND ${inRange('call_id')}`,
  )
  const tail = `SELECT r.call_id FROM ${recordTail(walk)} AND ${expression} IN (${values}) AND ${inRange('r.call_id')}`
  const indexed = values.map(
    value => `SELECT r.call_id FROM record r WHERE ${indexedOnPostgres(walk, value)} AND ${inRange('r.call_id')}`,
  )
  return {
    sqlite: [...selects, tail].join(' UNION ALL ').concat(order),
    postgres: indexed.join(' UNION ALL ').concat(order),
  }
}

/** On PostgreSQL records have usual indexes, and the index of outcomes has only failed calls. */
const indexedOnPostgres = (walk: RecordIndex, value: string): string =>
  walk === 'failed' ? `r.outcome = ${value} AND ${FAILED}` : `${recordIndexes[walk].value} = ${value}`

const FAILED = "r.outcome <> 'completed'"
const { kind: FAILED_KIND, value: FAILED_OUTCOME } = recordIndexes.failed

const findOutcomes = query<{ outcome: string }>({
  sqlite: `WITH RECURSIVE way (outcome) AS (
      SELECT min(value) FROM record_index WHERE kind = ${FAILED_KIND}
      UNION ALL SELECT (SELECT min(value) FROM record_index WHERE kind = ${FAILED_KIND} AND value > way.outcome)
        FROM way WHERE outcome IS NOT NULL)
    SELECT outcome FROM way WHERE outcome IS NOT NULL
    UNION SELECT ${FAILED_OUTCOME} FROM ${recordTail('failed')} AND ${FAILED_OUTCOME} IS NOT NULL`,
  postgres: `WITH RECURSIVE way (outcome) AS (
      SELECT min(r.outcome) FROM record r WHERE ${FAILED}
      UNION ALL SELECT (SELECT min(r.outcome) FROM record r WHERE ${FAILED} AND r.outcome > way.outcome)
        FROM way WHERE way.outcome IS NOT NULL)
    SELECT outcome FROM way WHERE outcome IS NOT NULL`,
})

type PlainFilter = Omit<RecordFilter, 'model' | 'outcome' | 'tag' | 'lossy' | 'attemptsMin' | 'from' | 'before'>

const conditions: Readonly<Record<keyof PlainFilter, string>> = {
  callId: 'r.call_id =',
  keyId: 'r.key_id =',
  accountId: 'r.account_id =',
  endUser: 'r.end_user =',
  conversation: 'r.conversation =',
  provider: 'r.provider =',
  channel: 'r.channel =',
  status: 'r.status =',
  error: 'r.error =',
  costMin: 'r.cost >=',
  costMax: 'r.cost <=',
  streamed: 'r.streamed =',
  dialect: 'r.dialect =',
  requestedModel: "coalesce(r.asked, r.provider || '/' || r.model) =",
  firstContentMsMin: 'r.first_ms >=',
  durationMsMin: 'r.duration_ms >=',
}

interface Scan {
  readonly walk: RecordScan
  readonly values: readonly SqlValue[]
}

/** Chooses the scan. Undefined where no record can match within the scope. */
function* chooseScan({ scope, filter }: RecordQuery): Steps<Scan | undefined> {
  const { callId, keyId, endUser, accountId, model, outcome, status, error } = filter
  if (scope !== null && !(yield* isInScope(scope, filter))) return undefined
  if (callId !== undefined) return { walk: 'callId', values: [callId] }
  if (keyId !== undefined) return { walk: 'keyId', values: [keyId] }
  // For members this scan is not used: where a page ends early would reveal how many calls other accounts have.
  if (endUser !== undefined && scope === null) return { walk: 'endUser', values: [endUser] }
  if (accountId !== undefined) return { walk: 'accountId', values: [accountId] }
  if (scope !== null) return yield* scanOwnAccounts(scope)
  if (model !== undefined) return { walk: 'model', values: [`${model.provider}/${model.name}`] }
  if (outcome !== undefined && !outcome.includes('completed')) return { walk: 'failed', values: outcome }
  if (error !== undefined || (status ?? 0) >= 400) {
    const outcomes = (yield* findOutcomes.all()).map(row => row.outcome)
    return outcomes.length === 0 ? undefined : { walk: 'failed', values: outcomes }
  }
  return { walk: 'none', values: [] }
}

const ownersInScope = {
  keyId: query(`SELECT 1 FROM api_key WHERE id = ?1 AND ${scopeSql('account_id', '?2', '?3')}`),
  accountId: query(`SELECT 1 FROM account WHERE id = ?1 AND ${scopeSql('id', '?2', '?3')}`),
} as const

/** Whether the key and the account of the filter are in the scope. Rows of other accounts must not be scanned. */
function* isInScope({ actorId, rank }: Scope, filter: RecordFilter): Steps<boolean> {
  for (const name of ['keyId', 'accountId'] as const) {
    const id = filter[name]
    if (id !== undefined && (yield* ownersInScope[name].get(id, actorId, rank)) === undefined) return false
  }
  return true
}

const findOwnAccounts = query<{ id: bigint }>(`SELECT id FROM account WHERE ${scopeSql('id', '?1', '?2')} LIMIT ?3`)

/** Scans all accounts of a person. */
function* scanOwnAccounts({ actorId, rank }: Scope): Steps<Scan | undefined> {
  const rows = yield* findOwnAccounts.all(actorId, rank, SCANNED_VALUES_MAX + 1)
  if (rows.length === 0) return undefined
  if (rows.length > SCANNED_VALUES_MAX) return { walk: 'none', values: [] }
  return { walk: 'accountId', values: rows.map(({ id }) => id) }
}

export function* findRecords<C extends Columns>(columns: C, recordQuery: RecordQuery): Steps<RecordPage<RowOf<C>>> {
  const scan = yield* chooseScan(recordQuery)
  if (scan === undefined) return { rows: [], next: null, early: false }
  const { filter, scope, limit } = recordQuery
  const sql = new RequestQuery()
  // On SQLite the CROSS JOIN keeps the order of the ids without sorting, so the query ends as soon as the page is full.
  const rows = yield* sql.all<SqlRow>(
    ...['SELECT', selectList(columns), 'FROM (SELECT call_id AS id FROM (', scanSql(sql, scan, recordQuery)],
    `) s LIMIT ${sql.bind(ROWS_SCANNED_MAX)}) w`,
    { sqlite: 'CROSS JOIN', postgres: 'JOIN' },
    'record r ON r.call_id = w.id WHERE true',
    ...filterConditions(sql, filter).flatMap(condition => ['AND', condition]),
    scope === null ? '' : `AND ${boundScopeSql(sql, 'r.account_id', scope)}`,
    { sqlite: '', postgres: recordQuery.oldestFirst ? 'ORDER BY w.id' : 'ORDER BY w.id DESC' },
    `LIMIT ${sql.bind(limit + 1)}`,
  )
  const shown = rows.slice(0, limit).map(rowReader(columns))
  if (rows.length > limit) return { rows: shown, next: Number(rows[limit - 1]!.callId), early: false }
  const ending = new RequestQuery()
  const ids = scanSql(ending, scan, recordQuery)
  const [end] = yield* ending.all<SqlRow>(ids, `LIMIT 1 OFFSET ${ending.bind(ROWS_SCANNED_MAX - 1)}`)
  return { rows: shown, next: end === undefined ? null : Number(end.call_id), early: end !== undefined }
}

function scanSql(sql: RequestQuery, { walk, values }: Scan, recordQuery: RecordQuery): SqlText {
  const { from, before } = rangeOf(recordQuery)
  const bound = { values: values.map(value => sql.bind(value)), from: sql.bind(from), before: sql.bind(before) }
  return recordScanSql(walk, bound, recordQuery.oldestFirst ?? false)
}

function rangeOf({ filter, oldestFirst = false, after }: RecordQuery): { from: number; before: number } {
  const { from = 0, before = Number.MAX_SAFE_INTEGER } = filter
  if (after === undefined) return { from, before }
  return oldestFirst ? { from: Math.max(from, after + 1), before } : { from, before: Math.min(before, after) }
}

export function filterConditions(sql: RequestQuery, filter: RecordFilter): readonly SqlPiece[] {
  const { model, outcome, tag, lossy, attemptsMin } = filter
  // The provider of a model counts, and not that of the filter.
  const active: PlainFilter = model === undefined ? filter : { ...filter, provider: model.provider }
  const found: SqlPiece[] = Object.entries(conditions).flatMap(([name, condition]) => {
    const value = active[name as keyof PlainFilter]
    if (value === undefined) return []
    const bound = typeof value === 'boolean' ? Number(value) : name.startsWith('cost') ? BigInt(value) : value
    return [`${condition} ${sql.bind(bound)}`]
  })
  if (model !== undefined) found.push(`r.model = ${sql.bind(model.name)}`)
  if (outcome !== undefined) found.push(`r.outcome IN (${outcome.map(word => sql.bind(word))})`)
  if (lossy !== undefined) found.push(`r.loss IS ${lossy ? 'NOT ' : ''}NULL`)
  if (tag !== undefined) found.push(hasTag(sql, tag))
  if (attemptsMin !== undefined) {
    const least = sql.bind(attemptsMin)
    found.push({
      sqlite: `json_array_length(r.attempts) >= ${least}`,
      postgres: `json_array_length(CAST(r.attempts AS JSON)) >= ${least}`,
    })
  }
  return found
}

/**
 * Searches the JSON of the tags as text. What precedes a name is a brace or a comma, and quotes inside of names and values
 * are escaped, so that nothing else looks like this tag.
 */
function hasTag(sql: RequestQuery, { name, value }: NonNullable<RecordFilter['tag']>): SqlPiece {
  const text = `${JSON.stringify(name)}:${value === undefined ? '' : JSON.stringify(value)}`
  const places = [`{${text}`, `,${text}`].map(place => sql.bind(place))
  const found = (search: string): string => `(${places.map(place => `${search}(r.tags, ${place}) > 0`).join(' OR ')})`
  return { sqlite: found('instr'), postgres: found('strpos') }
}
