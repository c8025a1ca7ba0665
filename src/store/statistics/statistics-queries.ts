// The queries on the statistics: sums over a range, a series of sums, top lists, and failures. The tables are in the
// schema `stats` on PostgreSQL; on SQLite this is the name of the attached statistics file.

import type { LatencyHistogram } from '../../base/collections/latency-histogram.ts'
import { addEncodedHistogram, percentile } from '../../base/collections/latency-histogram.ts'
import type { Query, Steps } from '../engine/steps.ts'
import { query } from '../engine/steps.ts'
import type { Figures } from './figures.ts'
import { noFigures } from './figures.ts'
import type { Cut } from './plan.ts'
import { counts, cuts, spanNumber, sums } from './plan.ts'
import type { SpanRange, SpanRanges } from './ranges.ts'

/** Which rows of a cut are read. Several `ones` are added up. `other` is the second dimension of a cut with two. */
export interface CutOwners {
  readonly cut: Cut
  readonly ones: readonly number[]
  readonly other?: number | undefined
}

export interface Percentiles {
  readonly p50: number
  readonly p90: number
  readonly p95: number
  readonly p99: number
}

/** Money in decimal digits, nano-USD. */
export interface FigureView {
  readonly calls: number
  readonly errors: number
  readonly streamed: number
  readonly inputTokens: number
  readonly cacheReadTokens: number
  readonly cacheWriteTokens: number
  readonly outputTokens: number
  readonly reasoningTokens: number
  readonly cost: string
  readonly shortfall: string
  readonly refunded: string
  readonly providerCost: string
  readonly cacheSavings: string
  readonly firstContentMs: Percentiles | null
  readonly durationMs: Percentiles | null
}

export const metrics = ['calls', 'errors', 'tokens', 'cost'] as const
export type Metric = (typeof metrics)[number]

export interface TopRow {
  readonly id: number
  readonly calls: number
  readonly errors: number
  readonly inputTokens: number
  readonly outputTokens: number
  readonly cost: string
}

type RawRow = Readonly<Record<string, bigint | string | Uint8Array | null>>

/** A list of numbers as a table with the column `value`. The list is bound as a JSON array. */
const numberList = {
  sqlite: (parameter: string) => `json_each(${parameter})`,
  postgres: (parameter: string) =>
    `(SELECT CAST(value AS BIGINT) AS value FROM json_array_elements_text(CAST(CAST(${parameter} AS TEXT) AS JSON)))`,
}

/** A query on a list of numbers. */
export const listQuery = <Row>(parameter: string, sql: (list: string) => string): Query<Row> =>
  query({ sqlite: sql(numberList.sqlite(parameter)), postgres: sql(numberList.postgres(parameter)) })

const findFigures = listQuery<RawRow>('?3', list =>
  'SELECT f.* FROM '.concat(
    list,
    ` j CROSS JOIN stats.figure f
     WHERE f.cut = ?1 AND f.span = ?2 AND f.one = j.value AND f.other = ?4 AND f.at >= ?5 AND f.at < ?6`,
  ),
)

/** Sums over the whole range. */
export function* readSum({ cut, ones, other = 0 }: CutOwners, { pieces }: SpanRanges): Steps<FigureView> {
  const figures = noFigures()
  for (const { span, from, before } of pieces) {
    const values = [cuts[cut], spanNumber[span], JSON.stringify(ones), other, from, before]
    for (const row of yield* findFigures.all(...values)) addRow(figures, row)
  }
  return figureView(figures)
}

/** The rows of a series. */
export interface StepRows extends SpanRange {
  /** The start of the step to which a span belongs. */
  startOf(at: number): number
}

/** Sums for each step of a range; steps without calls are left out. */
export function* readSeries(
  { cut, ones, other = 0 }: CutOwners,
  { span, from, before, startOf }: StepRows,
): Steps<readonly (FigureView & { readonly atMs: number })[]> {
  const points = new Map<number, Figures>()
  for (const row of yield* findFigures.all(cuts[cut], spanNumber[span], JSON.stringify(ones), other, from, before)) {
    const atMs = startOf(Number(row.at))
    const figures = points.get(atMs) ?? noFigures()
    points.set(atMs, figures)
    addRow(figures, row)
  }
  const inOrder = [...points].sort(([one], [next]) => one - next)
  return inOrder.map(([atMs, figures]) => ({ atMs, ...figureView(figures) }))
}

function addRow(figures: Figures, row: RawRow): void {
  counts.forEach((name, index) => (figures.counts[index]! += Number(row[name])))
  sums.forEach((name, index) => (figures.sums[index]! += row[name] as bigint))
  addEncodedHistogram(figures.first, row.first_steps as Uint8Array)
  addEncodedHistogram(figures.duration, row.took_steps as Uint8Array)
}

export function figureView({ counts: counted, sums: summed, first, duration }: Figures): FigureView {
  const [calls, errors, streamed, input, cacheRead, cacheWrite, output, reasoning] = counted as [number, ...number[]]
  const [cost, shortfall, refunded, providerCost, cacheSavings] = summed.map(String) as [string, ...string[]]
  return {
    calls,
    errors: errors!,
    streamed: streamed!,
    inputTokens: input!,
    cacheReadTokens: cacheRead!,
    cacheWriteTokens: cacheWrite!,
    outputTokens: output!,
    reasoningTokens: reasoning!,
    cost,
    shortfall: shortfall!,
    refunded: refunded!,
    providerCost: providerCost!,
    cacheSavings: cacheSavings!,
    firstContentMs: percentilesOf(first),
    durationMs: percentilesOf(duration),
  }
}

function percentilesOf(histogram: LatencyHistogram): Percentiles | null {
  const at = (part: number): number => percentile(histogram, part) ?? 0
  return histogram.size === 0 ? null : { p50: at(0.5), p90: at(0.9), p95: at(0.95), p99: at(0.99) }
}

export interface TopRequest extends Omit<CutOwners, 'ones'> {
  /** `any`: all that exist. An empty list matches nothing. */
  readonly ones: readonly number[] | 'any'
  /** The dimension by which rows are grouped. */
  readonly by: 'one' | 'other'
  readonly metric: Metric
  readonly limit: number
}

const SUMS = `CAST(sum(f.calls) AS BIGINT) AS calls, CAST(sum(f.errors) AS BIGINT) AS errors,
  CAST(sum(f.input_tokens) AS BIGINT) AS input, CAST(sum(f.output_tokens) AS BIGINT) AS output,
  CAST(sum(f.cost) AS BIGINT) AS cost`

const OF_MONTHS = `f.cut = ?1 AND f.span = 3 AND (CAST(?2 AS BIGINT) IS NULL OR f.other = ?2)
  AND f.at >= ?3 AND f.at <= ?4`
/** The members that have calls in these months. Finer rows are looked up for these members only. */
const ALL_MEMBERS = 'SELECT DISTINCT f.one, f.other FROM stats.figure f WHERE '.concat(OF_MONTHS)
/** The same for the members of a list. */
const listedMembers = (list: string): string =>
  `SELECT DISTINCT f.one, f.other FROM ${list} j CROSS JOIN stats.figure f WHERE f.one = j.value AND `.concat(OF_MONTHS)

const countSql = (members: string): string => 'SELECT count(*) AS n FROM ('.concat(members, ') d')
const countAll = query<{ n: bigint }>(countSql(ALL_MEMBERS))
const countListed = listQuery<{ n: bigint }>('?5', list => countSql(listedMembers(list)))

const topSql = (by: 'one' | 'other', members: string): string =>
  `SELECT d.${by} AS id, `.concat(
    SUMS,
    ' FROM (',
    members,
    `) d CROSS JOIN stats.figure f WHERE f.cut = ?1 AND f.span = ?5 AND f.one = d.one AND f.other = d.other
       AND f.at >= ?6 AND f.at < ?7 GROUP BY 1`,
  )
const topQueries = (by: 'one' | 'other') => ({
  all: query<RawRow>(topSql(by, ALL_MEMBERS)),
  listed: listQuery<RawRow>('?8', list => topSql(by, listedMembers(list))),
})
const findTop = { one: topQueries('one'), other: topQueries('other') }

const splitSql = (by: 'one' | 'other', list: (parameter: string) => string): string =>
  `SELECT f.${by} AS id, f.at, `.concat(
    SUMS,
    ` FROM ${list('?3')} j CROSS JOIN ${list('?4')} k CROSS JOIN stats.figure f`,
    ` WHERE f.cut = ?1 AND f.span = ?2 AND f.one = j.value AND f.other = k.value AND f.at >= ?5 AND f.at < ?6
      GROUP BY 1, 2 ORDER BY 1, 2`,
  )
const splitQuery = (by: 'one' | 'other'): Query<RawRow> =>
  query({ sqlite: splitSql(by, numberList.sqlite), postgres: splitSql(by, numberList.postgres) })
const findSplit = { one: splitQuery('one'), other: splitQuery('other') }

/** The sums of one step, without those that a split does not have. */
export interface SplitPoint extends Omit<TopRow, 'id'> {
  readonly atMs: number
}

/** Sums for each step and each of these members. */
export function* readSplit(
  { cut, by, ones, others }: Pick<TopRequest, 'cut' | 'by'> & Readonly<Record<'ones' | 'others', readonly number[]>>,
  { span, from, before, startOf }: StepRows,
): Steps<ReadonlyMap<number, readonly SplitPoint[]>> {
  const members = new Map<number, Map<number, TopSum>>()
  const values = [cuts[cut], spanNumber[span], JSON.stringify(ones), JSON.stringify(others), from, before]
  for (const row of yield* findSplit[by].all(...values)) {
    const id = Number(row.id)
    const points = members.get(id) ?? new Map<number, TopSum>()
    members.set(id, points)
    addTop(points, { ...row, id: BigInt(startOf(Number(row.at))) })
  }
  const shown = (points: ReadonlyMap<number, TopSum>): readonly SplitPoint[] =>
    [...points].map(([atMs, sum]) => ({ atMs, ...topFigures(sum) }))
  return new Map([...members].map(([id, points]) => [id, shown(points)]))
}

const findOutcomes = listQuery<RawRow>('?3', list =>
  'SELECT f.outcome, f.at, CAST(sum(f.calls) AS BIGINT) AS calls FROM '.concat(
    list,
    ` j CROSS JOIN stats.failure f WHERE f.cut = ?1 AND f.span = ?2 AND f.one = j.value AND f.at >= ?4 AND f.at < ?5
      GROUP BY 1, 2 ORDER BY 1, 2`,
  ),
)

/** Failed calls for each step and outcome. */
export function* readOutcomes(
  { cut, ones }: CutOwners,
  { span, from, before, startOf }: StepRows,
): Steps<ReadonlyMap<string, ReadonlyMap<number, number>>> {
  const outcomes = new Map<string, Map<number, number>>()
  for (const row of yield* findOutcomes.all(cuts[cut], spanNumber[span], JSON.stringify(ones), from, before)) {
    const outcome = String(row.outcome)
    const points = outcomes.get(outcome) ?? new Map<number, number>()
    outcomes.set(outcome, points)
    const atMs = startOf(Number(row.at))
    points.set(atMs, (points.get(atMs) ?? 0) + Number(row.calls))
  }
  return outcomes
}

interface TopSum {
  calls: number
  errors: number
  input: number
  output: number
  cost: bigint
}

export interface MonthRange {
  readonly first: number
  readonly last: number
}

/** The members with the highest values of a metric, highest first. */
export function* readTop(ask: TopRequest, range: SpanRanges & MonthRange): Steps<readonly TopRow[]> {
  const { cut, ones, other = null, by, metric, limit } = ask
  const totals = new Map<number, TopSum>()
  for (const { span, from, before } of range.pieces) {
    const values = [cuts[cut], other, range.first, range.last, spanNumber[span], from, before]
    const { all, listed } = findTop[by]
    const rows = yield* ones === 'any' ? all.all(...values) : listed.all(...values, JSON.stringify(ones))
    for (const row of rows) addTop(totals, row)
  }
  const valueOf = metricValues[metric]
  const rows = [...totals].filter(([, sum]) => valueOf(sum) > 0)
  rows.sort(([idOne, one], [idNext, next]) => descending(valueOf(one), valueOf(next)) || idOne - idNext)
  return rows.slice(0, limit).map(([id, sum]) => ({ id, ...topFigures(sum) }))
}

const topFigures = ({ calls, errors, input, output, cost }: TopSum): Omit<TopRow, 'id'> => ({
  calls,
  errors,
  inputTokens: input,
  outputTokens: output,
  cost: String(cost),
})

function addTop(totals: Map<number, TopSum>, row: RawRow): void {
  const id = Number(row.id)
  const sum = totals.get(id) ?? { calls: 0, errors: 0, input: 0, output: 0, cost: 0n }
  totals.set(id, sum)
  sum.calls += Number(row.calls)
  sum.errors += Number(row.errors)
  sum.input += Number(row.input)
  sum.output += Number(row.output)
  sum.cost += row.cost as bigint
}

const metricValues: Readonly<Record<Metric, (sum: TopSum) => number | bigint>> = {
  calls: ({ calls }) => calls,
  errors: ({ errors }) => errors,
  tokens: ({ input, output }) => input + output,
  cost: ({ cost }) => cost,
}

/** Compares descending, and exactly also for sums of money with more digits than a double has. */
const descending = <N extends number | bigint>(one: N, next: N): number => (one === next ? 0 : one > next ? -1 : 1)

const ascendingText = (one: string, next: string): number => (one === next ? 0 : one < next ? -1 : 1)

/** The number of members that a top list chooses from. */
export function* countMembers(
  { cut, ones, other }: Pick<TopRequest, 'cut' | 'ones' | 'other'>,
  { first, last }: MonthRange,
): Steps<number> {
  const values = [cuts[cut], other ?? null, first, last]
  const row = yield* ones === 'any' ? countAll.get(...values) : countListed.get(...values, JSON.stringify(ones))
  return Number(row!.n)
}

export interface EndUserRow extends Omit<TopRow, 'id'> {
  readonly endUser: string
}

const findEndUsers = query<RawRow>(
  'SELECT f.name, '.concat(
    SUMS,
    ' FROM stats.end_user f WHERE f.account_id = ?1 AND f.span = ?2 AND f.at >= ?3 AND f.at < ?4 GROUP BY f.name',
  ),
)

/** The top end users of some accounts. The row without a name is the sum of all unnamed end users. */
export function* readTopEndUsers(
  { ones, metric, limit }: Pick<CutOwners, 'ones'> & Pick<TopRequest, 'metric' | 'limit'>,
  { pieces }: SpanRanges,
): Steps<readonly EndUserRow[]> {
  const names = new Map<string, number>()
  const totals = new Map<number, TopSum>()
  for (const one of ones) {
    for (const { span, from, before } of pieces) {
      for (const row of yield* findEndUsers.all(one, spanNumber[span], from, before)) {
        const name = String(row.name)
        const id = names.get(name) ?? names.size
        names.set(name, id)
        addTop(totals, { ...row, id: BigInt(id) })
      }
    }
  }
  const valueOf = metricValues[metric]
  const all = [...names].map(([endUser, id]) => ({ endUser, sum: totals.get(id)! }))
  const rows = all.filter(({ sum }) => valueOf(sum) > 0)
  rows.sort((one, next) => descending(valueOf(one.sum), valueOf(next.sum)) || ascendingText(one.endUser, next.endUser))
  return rows.slice(0, limit).map(({ endUser, sum }) => ({ endUser, ...topFigures(sum) }))
}

export interface FailureRow {
  readonly outcome: string
  readonly error: string | null
  readonly calls: number
}

const findFailures = query<RawRow>(
  `SELECT outcome, error, CAST(sum(calls) AS BIGINT) AS calls FROM stats.failure
   WHERE cut = ?1 AND span = ?2 AND one = ?3 AND at >= ?4 AND at < ?5 GROUP BY outcome, error`,
)

export function* readFailures({ cut, ones }: CutOwners, { pieces }: SpanRanges): Steps<readonly FailureRow[]> {
  const totals = new Map<string, { -readonly [Name in keyof FailureRow]: FailureRow[Name] }>()
  for (const { span, from, before } of pieces) {
    for (const one of ones) {
      for (const { outcome, error, calls } of yield* findFailures.all(cuts[cut], spanNumber[span], one, from, before)) {
        const name = `${String(outcome)} ${String(error)}`
        const newRow = { outcome: String(outcome), error: error === '' ? null : String(error), calls: 0 }
        const row = totals.get(name) ?? newRow
        row.calls += Number(calls)
        totals.set(name, row)
      }
    }
  }
  const byName = (one: FailureRow, next: FailureRow): number =>
    ascendingText(one.outcome, next.outcome) || ascendingText(one.error ?? '', next.error ?? '')
  return [...totals.values()].sort((one, next) => descending(one.calls, next.calls) || byName(one, next))
}
