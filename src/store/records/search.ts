// Finds records, page by page, newest or oldest first. One filter chooses the index that is walked; the others are
// checked on what it yields, a bounded number of rows a page, so that no search takes long. Where several values of one
// index are walked at once (accounts of a person, ways to fail), they are merged in the order of time.

import type { Database } from 'bun:sqlite'
import type { Scope } from '../queries/paging.ts'
import { scopeSql, scopeValues } from '../queries/paging.ts'
import type { Columns, Row, Told, Value } from '../queries/values.ts'
import { flag, json, money, number, or, selectOf, text, told } from '../queries/values.ts'

export interface RecordFilter {
  readonly callId?: number | undefined
  readonly keyId?: number | undefined
  readonly accountId?: number | undefined
  readonly endUser?: string | undefined
  /** Of all providers together they would not be in the order of time. */
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
  /** From this id on, and below this one. */
  readonly from?: number | undefined
  readonly before?: number | undefined
}

export interface RecordAsk {
  /** Null: all accounts. */
  readonly scope: Scope | null
  readonly filter: RecordFilter
  readonly oldestFirst?: boolean | undefined
  /** The last id that was looked at before. */
  readonly after?: number | undefined
  readonly limit: number
}

export const recordColumns = {
  callId: ['r.call_id', number],
  keyId: ['r.key_id', number],
  accountId: ['r.account_id', number],
  dialect: ['r.dialect', text],
  provider: ['r.provider', or(text)],
  model: ['r.model', or(text)],
  channel: ['r.channel', or(text)],
  status: ['r.status', number],
  error: ['r.error', or(text)],
  outcome: ['r.outcome', text],
  streamed: ['r.streamed', flag],
  inputTokens: ['r.input_tokens', number],
  cacheReadTokens: ['r.cache_read_tokens', number],
  cacheWriteTokens: ['r.cache_write_tokens', number],
  outputTokens: ['r.output_tokens', number],
  reasoningTokens: ['r.reasoning_tokens', number],
  cost: ['r.cost', money],
  shortfall: ['r.shortfall', money],
  firstMs: ['r.first_ms', or(number)],
  durationMs: ['r.duration_ms', number],
  endUser: ['r.end_user', or(text)],
  loss: ['r.loss', or(text)],
} as const

export const wholeColumns = {
  ...recordColumns,
  asked: ['r.asked', or(text)],
  rule: ['r.rule', text],
  usageSource: ['r.usage_source', text],
  held: ['r.held', money],
  priceVersion: ['r.price_version', or(number)],
  lines: ['r.lines', json],
  attempts: ['r.attempts', json],
  timings: ['r.timings', json],
  tags: ['r.tags', or(text)],
  cameHash: ['r.came_hash', or(text)],
  wentHash: ['r.went_hash', or(text)],
  why: ['r.why', json],
} as const

export type RecordView = Told<typeof recordColumns>
export type WholeRecord = Told<typeof wholeColumns>

export interface RecordPage<T> {
  readonly rows: readonly T[]
  /** Where the next page begins, as `after`; null when there is no more. */
  readonly next: number | null
  /** So much was looked at that the page has fewer rows than were asked for. */
  readonly early: boolean
}

/** Looked at for one page. */
export const ROWS_LOOKED_AT = 20_000
/** Of one index at once; SQLite merges no more than five hundred. */
const WALKED_MAX = 400

/** The order of precedence: what is likely to name the fewest comes first. */
const walks = {
  callId: 'SELECT call_id FROM record WHERE call_id = $walk0',
  keyId: 'SELECT call_id FROM record INDEXED BY record_key WHERE key_id = $walk0',
  endUser: 'SELECT call_id FROM record INDEXED BY record_end_user WHERE end_user = $walk0',
  accountId: 'SELECT call_id FROM record INDEXED BY record_account WHERE account_id = $walk0',
  model: 'SELECT call_id FROM record INDEXED BY record_model WHERE model = $walk0 AND provider = $provider',
  failed: `SELECT call_id FROM record INDEXED BY record_failure WHERE outcome = $walk0 AND outcome <> 'completed'`,
  none: 'SELECT call_id FROM record WHERE true',
} as const

export type Walk = keyof typeof walks
export const walkNames = Object.keys(walks) as readonly Walk[]

const RANGE = ' AND call_id >= $from AND call_id < $before'

/** The ids that are looked at, in order. */
export function walkSql(walk: Walk, count: number, oldestFirst: boolean): string {
  const ways = Array.from({ length: count }, (_, at) => walks[walk].replace('$walk0', `$walk${at}`).concat(RANGE))
  return ways.join(' UNION ALL ').concat(oldestFirst ? ' ORDER BY call_id' : ' ORDER BY call_id DESC')
}

const OUTCOMES = `WITH RECURSIVE way (outcome) AS (
    SELECT min(outcome) FROM record INDEXED BY record_failure WHERE outcome <> 'completed'
    UNION ALL SELECT (SELECT min(r.outcome) FROM record r INDEXED BY record_failure
      WHERE r.outcome > way.outcome AND r.outcome <> 'completed') FROM way WHERE outcome IS NOT NULL)
  SELECT outcome FROM way WHERE outcome IS NOT NULL`

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

type Bound = Record<string, Value>

interface Walking {
  readonly walk: Walk
  readonly values: readonly Value[]
}

/** Undefined where there is nothing that they may look at. */
function walkingFor(db: Database, { scope, filter }: RecordAsk): Walking | undefined {
  const { callId, keyId, endUser, accountId, model, outcome, status, error } = filter
  if (scope !== null && !isOwn(db, scope, filter)) return undefined
  if (callId !== undefined) return { walk: 'callId', values: [callId] }
  if (keyId !== undefined) return { walk: 'keyId', values: [keyId] }
  // Where a page ends would tell members how many calls others have of that name.
  if (endUser !== undefined && scope === null) return { walk: 'endUser', values: [endUser] }
  if (accountId !== undefined) return { walk: 'accountId', values: [accountId] }
  if (scope !== null) return walkingOwn(db, scope)
  if (model !== undefined) return { walk: 'model', values: [model.name] }
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

/** Whether the key and the account that are asked for are theirs: nothing of others is walked, however it would end. */
function isOwn(db: Database, scope: Scope, filter: RecordFilter): boolean {
  return (['keyId', 'accountId'] as const).every(name => {
    const id = filter[name]
    return id === undefined || db.query<Row, [Bound]>(OWNERS[name]).get({ id, ...scopeValues(scope) }) !== null
  })
}

/** All accounts of a person. */
function walkingOwn(db: Database, scope: Scope): Walking | undefined {
  const sql = 'SELECT id FROM account WHERE '.concat(scopeSql('id'), ' LIMIT $most')
  const rows = db.query<{ id: bigint }, [Bound]>(sql).all({ ...scopeValues(scope), most: WALKED_MAX + 1 })
  if (rows.length === 0) return undefined
  if (rows.length > WALKED_MAX) return { walk: 'none', values: [null] }
  return { walk: 'accountId', values: rows.map(({ id }) => id) }
}

export function findRecords<C extends Columns>(db: Database, columns: C, ask: RecordAsk): RecordPage<Told<C>> {
  const walking = walkingFor(db, ask)
  if (walking === undefined) return { rows: [], next: null, early: false }
  const { filter, scope, oldestFirst = false, limit } = ask
  const ids = walkSql(walking.walk, walking.values.length, oldestFirst)
  const asked = Object.entries(conditions).filter(([name]) => filter[name as keyof RecordFilter] !== undefined)
  const wanted = [
    ...asked.map(([, sql]) => sql),
    ...(filter.model === undefined ? [] : ['r.model = $model AND r.provider = $provider']),
    ...(scope === null ? [] : [scopeSql('r.account_id')]),
  ]
  const walked = { ...rangeOf(ask), ...walkedValues(walking, filter) }
  // In the order of the ids, without sorting again: the page ends as soon as it is full.
  const sql = 'SELECT '.concat(
    selectOf(columns),
    ' FROM (SELECT call_id FROM (',
    ids,
    ') LIMIT $looked) w CROSS JOIN record r ON r.call_id = w.call_id WHERE ',
    wanted.length === 0 ? 'true' : wanted.join(' AND '),
    ' LIMIT $limit',
  )
  const rows = all(db, sql, {
    ...{ ...walked, ...askedValues(filter), ...scopeValues(scope), looked: ROWS_LOOKED_AT, limit: limit + 1 },
  })
  const shown = rows.slice(0, limit).map(row => told(columns, row))
  if (rows.length > limit) return { rows: shown, next: Number(rows[limit - 1]!.callId), early: false }
  const [end] = all(db, ids.concat(' LIMIT 1 OFFSET $looked - 1'), { ...walked, looked: ROWS_LOOKED_AT })
  return { rows: shown, next: end === undefined ? null : Number(end.call_id), early: end !== undefined }
}

function all(db: Database, sql: string, values: Bound): readonly Row[] {
  const statement = db.prepare<Row, [Bound]>(sql)
  try {
    return statement.all(values)
  } finally {
    statement.finalize()
  }
}

function rangeOf({ filter, oldestFirst = false, after }: RecordAsk): Bound {
  const { from = 0, before = Number.MAX_SAFE_INTEGER } = filter
  if (after === undefined) return { from, before }
  return oldestFirst ? { from: Math.max(from, after + 1), before } : { from, before: Math.min(before, after) }
}

const walkedValues = ({ walk, values }: Walking, { model }: RecordFilter): Bound => ({
  ...(walk !== 'none' && Object.fromEntries(values.map((value, at) => [`walk${at}`, value]))),
  ...(walk === 'model' && { provider: model!.provider }),
})

function askedValues({ model, from: _from, before: _before, ...filter }: RecordFilter): Bound {
  const values: Bound = {}
  for (const [name, value] of Object.entries(filter)) {
    if (value === undefined) continue
    values[name] = typeof value === 'boolean' ? Number(value) : name.startsWith('cost') ? BigInt(value) : value
  }
  return model === undefined ? values : { ...values, model: model.name, provider: model.provider }
}
