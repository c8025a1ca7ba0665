// Queries for statistics. The tables of the ledger decide here which accounts and keys an actor may see. The figures are
// in the schema `stats` (see statistics-queries.ts).

import type { Steps } from '../engine/steps.ts'
import { query, RequestQuery } from '../engine/steps.ts'
import type { Cut, Span, SpanRetention } from '../statistics/plan.ts'
import { endUserKeepMs, failureKeepMs, keepMs, msOfSpan, spanAt } from '../statistics/plan.ts'
import type { SpanRanges, TimeRange } from '../statistics/ranges.ts'
import { isRangeKept, splitIntoSpans, widenToSpan } from '../statistics/ranges.ts'
import type {
  CutOwners,
  EndUserRow,
  FailureRow,
  FigureView,
  Metric,
  SplitPoint,
  StepRows,
  TopRequest,
  TopRow,
} from '../statistics/statistics-queries.ts'
import {
  countMembers,
  listQuery,
  readFailures,
  readOutcomes,
  readSeries,
  readSplit,
  readSum,
  readTop,
  readTopEndUsers,
} from '../statistics/statistics-queries.ts'
import type { Scope } from './paging.ts'
import { scopeSql } from './paging.ts'

/** Which calls are counted. */
export interface StatisticsFilter {
  /** Null: of all accounts. */
  readonly scope: Scope | null
  readonly account?: number | undefined
  readonly key?: number | undefined
  /** `<provider>/<model>` */
  readonly model?: string | undefined
  readonly channel?: string | undefined
  readonly fromMs: number
  readonly beforeMs: number
  readonly nowMs: number
  /** Spans that are finer than this are not used. */
  readonly coarsest?: Span | undefined
}

/** The part of each result that says which time and which records it covers. */
export interface StatisticsRange {
  readonly fromMs: number
  readonly beforeMs: number
  /** The share of the existing records that has been summed up, from 0 to 1. */
  readonly scanned: number
}

/** `unknown`: the key or account does not exist or is outside the scope. `unfit`: there are no sums for this filter. */
export type StatisticsRefusal = { readonly done: 'unknown' | 'unfit' }

/** The steps of a series: spans, or the days of a time zone, which are made from hours. */
export interface SeriesSteps {
  readonly span: Span
  /** The starts of these days in milliseconds, and the end of the last one. All are whole hours in UTC. */
  readonly days?: readonly number[] | undefined
}

/** The points of one member; `others`: of all that have no group of their own. Tokens and cost are null for outcomes. */
export interface SplitGroup {
  readonly id: number | null
  readonly name: string | null
  readonly others: boolean
  readonly points: readonly SplitGroupPoint[]
}

export interface SplitGroupPoint {
  readonly atMs: number
  readonly calls: number
  readonly errors: number
  readonly inputTokens: number | null
  readonly outputTokens: number | null
  readonly cost: string | null
}

export const topKinds = ['account', 'key', 'model', 'channel'] as const
export type TopKind = (typeof topKinds)[number]

export interface NamedTopRow extends TopRow {
  readonly name: string | null
}

export interface StatisticsQueries {
  statisticsSummary: {
    input: StatisticsFilter
    result: StatisticsRefusal | (StatisticsRange & { readonly done: 'found'; readonly figures: FigureView })
  }
  statisticsSeries: {
    input: StatisticsFilter & SeriesSteps
    result:
      | StatisticsRefusal
      | { readonly done: 'too_fine' }
      | (StatisticsRange & {
          readonly done: 'found'
          readonly points: readonly (FigureView & { readonly atMs: number })[]
        })
  }
  /** The series of the largest members, by a metric, and of all others together. */
  statisticsSplit: {
    input: StatisticsFilter &
      SeriesSteps & { readonly split: TopKind | 'outcome'; readonly metric: Metric; readonly limit: number }
    result:
      | StatisticsRefusal
      | { readonly done: 'too_fine' }
      | (StatisticsRange & {
          readonly done: 'found'
          readonly points: readonly (FigureView & { readonly atMs: number })[]
          readonly groups: readonly SplitGroup[]
        })
  }
  statisticsTop: {
    input: StatisticsFilter & {
      readonly of: TopKind
      readonly metric: Metric
      readonly limit: number
      /** Default: TOP_ROWS_MAX */
      readonly rowsMax?: number
    }
    result: StatisticsRefusal | (StatisticsRange & { readonly done: 'found'; readonly rows: readonly NamedTopRow[] })
  }
  statisticsEndUsers: {
    input: StatisticsFilter & { readonly metric: Metric; readonly limit: number }
    result: StatisticsRefusal | (StatisticsRange & { readonly done: 'found'; readonly rows: readonly EndUserRow[] })
  }
  statisticsFailures: {
    input: StatisticsFilter
    result: StatisticsRefusal | (StatisticsRange & { readonly done: 'found'; readonly rows: readonly FailureRow[] })
  }
}

/** A query that would read more rows than this uses sums of longer spans. */
export const TOP_ROWS_MAX = 250_000

type StatisticsHandlers = {
  readonly [Name in keyof StatisticsQueries]: (
    input: StatisticsQueries[Name]['input'],
  ) => Steps<StatisticsQueries[Name]['result']>
}

export const statisticsQueries: StatisticsHandlers = {
  *statisticsSummary(ask) {
    const owners = yield* ownersOf(ask)
    if ('done' in owners) return owners
    const range = splitIntoSpans({ ...ask, keeps: keepMs[owners.cut] })
    return { done: 'found', ...(yield* coverageOf(range)), figures: yield* readSum(owners, range) }
  },
  *statisticsSeries(ask) {
    const owners = yield* ownersOf(ask)
    if ('done' in owners) return owners
    const steps = stepRows(keepMs[owners.cut], ask)
    if (steps === undefined) return { done: 'too_fine' }
    return { done: 'found', ...(yield* coverageOf(steps)), points: yield* readSeries(owners, steps) }
  },
  *statisticsSplit(ask) {
    const series = yield* statisticsQueries.statisticsSeries(ask)
    if (series.done !== 'found') return series
    const groups = yield* ask.split === 'outcome' ? outcomeGroups(ask) : memberGroups({ ...ask, of: ask.split })
    if ('done' in groups) return groups
    const rest = restOf(series.points, groups)
    return { ...series, groups: rest.length === 0 ? groups : [...groups, { ...others, points: rest }] }
  },
  *statisticsTop(ask) {
    const owners = yield* topOwners(ask)
    if ('done' in owners) return owners
    const range = yield* affordableRange(owners, ask, ask.rowsMax ?? TOP_ROWS_MAX)
    const rows = yield* readTop({ ...owners, metric: ask.metric, limit: ask.limit }, range)
    const found = yield* nameQueries[ask.of].all(JSON.stringify(rows.map(({ id }) => id)))
    const names = new Map(found.map(({ id, text }) => [Number(id), text]))
    const named = rows.map(row => ({ ...row, name: names.get(row.id) ?? null }))
    return { done: 'found', ...(yield* coverageOf(range)), rows: named }
  },
  *statisticsEndUsers(ask) {
    const owners = yield* ownersOf({ ...ask, key: undefined, model: undefined, channel: undefined })
    if ('done' in owners) return owners
    if (owners.cut !== 'account' || ask.key !== undefined || ask.model !== undefined || ask.channel !== undefined) {
      return { done: 'unfit' }
    }
    const range = splitIntoSpans({ ...ask, keeps: endUserKeepMs })
    const rows = yield* readTopEndUsers({ ...ask, ones: owners.ones }, range)
    return { done: 'found', ...(yield* coverageOf(range)), rows }
  },
  *statisticsFailures(ask) {
    const owners = yield* ownersOf(ask)
    if ('done' in owners) return owners
    if (owners.other !== undefined) return { done: 'unfit' }
    const range = splitIntoSpans({ ...ask, keeps: failureKeepMs })
    return { done: 'found', ...(yield* coverageOf(range)), rows: yield* readFailures(owners, range) }
  },
}

/** The rows that a series reads; undefined where they are not kept any more. */
function stepRows(keeps: SpanRetention, ask: StatisticsFilter & SeriesSteps): (StepRows & TimeRange) | undefined {
  const { days, nowMs } = ask
  const span = days === undefined ? ask.span : 'hour'
  const range = days === undefined ? widenToSpan(span, ask) : { fromMs: days[0]!, beforeMs: days.at(-1)! }
  if (!isRangeKept(keeps, span, { fromMs: range.fromMs, nowMs })) return undefined
  return {
    ...range,
    span,
    from: spanAt(span, range.fromMs),
    before: spanAt(span, range.beforeMs - 1) + 1,
    startOf(at) {
      const atMs = msOfSpan(span, at)
      return days === undefined ? atMs : days.findLast(startMs => startMs <= atMs)!
    },
  }
}

type SplitRequest = StatisticsQueries['statisticsSplit']['input']
type SplitRefusal = StatisticsRefusal | { readonly done: 'too_fine' }

const others = { id: null, name: null, others: true } as const

function* memberGroups(ask: SplitRequest & { readonly of: TopKind }): Steps<readonly SplitGroup[] | SplitRefusal> {
  const owners = yield* topOwners(ask)
  if ('done' in owners) return owners
  const top = yield* statisticsQueries.statisticsTop(ask)
  if (top.done !== 'found') return top
  const { cut, by, other = 0 } = owners
  const steps = stepRows(keepMs[cut], ask)
  if (steps === undefined) return { done: 'too_fine' }
  const members = top.rows.map(({ id }) => id)
  // Members that are grouped by their second dimension belong to listed ones: the models of keys.
  const lists =
    by === 'one' ? { ones: members, others: [other] } : { ones: owners.ones as readonly number[], others: members }
  const points = yield* readSplit({ cut, by, ...lists }, steps)
  return top.rows.map(({ id, name }) => ({ id, name, others: false, points: points.get(id) ?? [] }))
}

/** Failed calls by their outcome. Calls that succeeded are among the others, because they are not counted by outcome. */
function* outcomeGroups(ask: SplitRequest): Steps<readonly SplitGroup[] | SplitRefusal> {
  const owners = yield* ownersOf(ask)
  if ('done' in owners) return owners
  if (owners.other !== undefined) return { done: 'unfit' }
  const steps = stepRows(failureKeepMs, ask)
  if (steps === undefined) return { done: 'too_fine' }
  const outcomes = [...(yield* readOutcomes(owners, steps))]
  const callsOf = (points: ReadonlyMap<number, number>): number =>
    points.values().reduce((sum, calls) => sum + calls, 0)
  const largest = outcomes.toSorted(([, one], [, next]) => callsOf(next) - callsOf(one)).slice(0, ask.limit)
  return largest.map(([name, points]) => ({
    id: null,
    name,
    others: false,
    points: [...points].map(([atMs, calls]) => ({
      ...{ atMs, calls, errors: calls },
      ...{ inputTokens: null, outputTokens: null, cost: null },
    })),
  }))
}

/** What is left of each point of a series after its groups. */
function restOf(series: readonly SplitPoint[], groups: readonly SplitGroup[]): readonly SplitGroupPoint[] {
  const rest = new Map(
    series.map(({ atMs, calls, errors, inputTokens, outputTokens, cost }) => [
      atMs,
      { calls, errors, input: inputTokens, output: outputTokens, cost: BigInt(cost) },
    ]),
  )
  const hasTokens = groups.every(({ points }) => points.every(({ cost }) => cost !== null))
  for (const point of groups.flatMap(({ points }) => points)) {
    const left = rest.get(point.atMs)
    if (left === undefined) continue
    left.calls -= point.calls
    left.errors -= point.errors
    left.input -= point.inputTokens ?? 0
    left.output -= point.outputTokens ?? 0
    left.cost -= BigInt(point.cost ?? 0)
  }
  return [...rest]
    .filter(([, { calls }]) => calls > 0)
    .map(([atMs, { calls, errors, input, output, cost }]) => ({
      ...{ atMs, calls, errors },
      ...(hasTokens
        ? { inputTokens: input, outputTokens: output, cost: String(cost) }
        : { inputTokens: null, outputTokens: null, cost: null }),
    }))
}

type TopOwners = Pick<TopRequest, 'cut' | 'ones' | 'other' | 'by'>

/** Chooses the finest spans that do not read too many rows. */
function* affordableRange(
  owners: TopOwners,
  ask: StatisticsFilter,
  rowsMax: number,
): Steps<SpanRanges & { first: number; last: number }> {
  const keeps: SpanRetention = keepMs[owners.cut]
  const months = { first: spanAt('month', ask.fromMs), last: spanAt('month', ask.beforeMs - 1) }
  const members = yield* countMembers(owners, months)
  for (const coarsest of ['minute', 'hour', 'day'] as const) {
    const range = splitIntoSpans({ ...ask, keeps, coarsest })
    const rows = range.pieces.reduce((sum, { from, before }) => sum + before - from, 0)
    if (rows * members <= rowsMax) return { ...range, ...months }
  }
  return { ...splitIntoSpans({ ...ask, keeps, coarsest: 'month' }), ...months }
}

/** Finds the rows of the sums that contain exactly the requested calls. */
function* ownersOf(ask: StatisticsFilter): Steps<CutOwners | StatisticsRefusal> {
  const { key, model, channel } = ask
  const accounts = yield* accountsOf(ask)
  if (accounts === 'unknown') return { done: 'unknown' }
  const number = model === undefined ? undefined : yield* numberOf(model)
  if (channel !== undefined) {
    if (key !== undefined || accounts !== 'all') return { done: 'unfit' }
    if (number === undefined) return { cut: 'channel', ones: [yield* numberOf(channel)] }
    return { cut: 'modelChannel', ones: [number], other: yield* numberOf(channel) }
  }
  if (key !== undefined) return { cut: number === undefined ? 'key' : 'keyModel', ones: [key], other: number }
  if (accounts !== 'all') {
    if (number === undefined) return { cut: 'account', ones: accounts }
    return { cut: 'keyModel', ones: yield* keysOf(accounts), other: number }
  }
  return number === undefined ? { cut: 'all', ones: [0] } : { cut: 'model', ones: [number] }
}

/** Finds the rows of the sums for the requested calls, grouped by account, key, model or channel. */
function* topOwners(ask: StatisticsFilter & { readonly of: TopKind }): Steps<TopOwners | StatisticsRefusal> {
  const owners = yield* ownersOf(ask)
  if ('done' in owners) return owners
  const row = topCuts[ask.of][owners.cut]
  if (row === undefined) return { done: 'unfit' }
  const [cut, by] = row
  if (owners.cut === 'account' && cut !== 'account') return { cut, by, ones: yield* keysOf(owners.ones) }
  // The cut has two dimensions: one is the group, and the other is the filter.
  if (by === 'other' || cut === owners.cut) return { cut, by, ones: owners.ones }
  return { cut, by, ones: 'any', other: owners.cut === 'all' ? undefined : owners.ones[0]! }
}

type TopCut = readonly [cut: Cut, by: 'one' | 'other']

/** The cut to read, by the requested grouping and by the cut of the filter. */
const topCuts: Readonly<Record<TopKind, Readonly<Partial<Record<Cut, TopCut>>>>> = {
  account: { all: ['account', 'one'], account: ['account', 'one'] },
  key: { all: ['key', 'one'], account: ['key', 'one'], model: ['keyModel', 'one'] },
  model: {
    all: ['model', 'one'],
    account: ['keyModel', 'other'],
    key: ['keyModel', 'other'],
    channel: ['modelChannel', 'one'],
  },
  channel: { all: ['channel', 'one'], model: ['modelChannel', 'other'] },
}

/** The requested accounts within the scope. For a key this is its account, which must be in the scope. */
export function* accountsOf({ scope, account, key }: StatisticsFilter): Steps<readonly number[] | 'all' | 'unknown'> {
  if (account === undefined && key === undefined && scope === null) return 'all'
  const ask = new RequestQuery()
  const conditions: string[] = []
  if (key !== undefined) conditions.push(`a.id IN (SELECT account_id FROM api_key WHERE id = ${ask.bind(key)})`)
  if (account !== undefined) conditions.push(`a.id = ${ask.bind(account)}`)
  if (scope !== null) conditions.push(scopeSql('a.id', ask.bind(scope.actorId), ask.bind(scope.rank)))
  const rows = yield* ask.all<{ id: bigint }>('SELECT a.id FROM account a WHERE', conditions.join(' AND '))
  const isNamed = account !== undefined || key !== undefined
  return isNamed && rows.length === 0 ? 'unknown' : rows.map(({ id }) => Number(id))
}

const findKeys = listQuery<{ id: bigint }>('?1', list =>
  'SELECT k.id FROM '.concat(list, ' j CROSS JOIN api_key k WHERE k.account_id = j.value'),
)

function* keysOf(accounts: readonly number[]): Steps<readonly number[]> {
  return (yield* findKeys.all(JSON.stringify(accounts))).map(({ id }) => Number(id))
}

// On PostgreSQL no records are older than the statistics.
const findScan = query<Record<string, bigint>>({
  sqlite: 'SELECT scan_before, scan_top, scan_bottom FROM stats.mark',
  postgres: 'SELECT CAST(0 AS BIGINT) AS scan_before',
})

function* coverageOf({ fromMs, beforeMs }: TimeRange): Steps<StatisticsRange> {
  const row = yield* findScan.get()
  const [before, top, bottom] = [row?.scan_before ?? 0n, row?.scan_top ?? 0n, row?.scan_bottom ?? 0n].map(Number)
  return { fromMs, beforeMs, scanned: before === 0 ? 1 : (top! - before!) / Math.max(1, top! - bottom!) }
}

const findNumber = query<{ id: bigint }>('SELECT id FROM stats.name WHERE text = ?1')

/** The number of a model or channel name; -1 for a name that was never called. */
function* numberOf(name: string): Steps<number> {
  return Number((yield* findNumber.get(name))?.id ?? -1)
}

const namesQuery = (table: string, column: string) =>
  listQuery<{ id: bigint; text: string }>('?1', list =>
    `SELECT n.id, n.${column} AS text FROM ${list} j CROSS JOIN `.concat(table, ' n WHERE n.id = j.value'),
  )
const findNames = namesQuery('stats.name', 'text')
const nameQueries = {
  account: namesQuery('account', 'name'),
  key: namesQuery('api_key', 'name'),
  model: findNames,
  channel: findNames,
} as const satisfies Readonly<Record<TopKind, unknown>>
