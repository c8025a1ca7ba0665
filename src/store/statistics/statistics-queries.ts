// The queries on the statistics file: sums over a range, a series of sums, top lists, and failures.

import type { Database } from 'bun:sqlite'
import type { LatencyHistogram } from '../../base/collections/latency-histogram.ts'
import { addEncodedHistogram, percentile } from '../../base/collections/latency-histogram.ts'
import type { Figures } from './figures.ts'
import { noFigures } from './figures.ts'
import type { Cut, Span } from './plan.ts'
import { counts, cuts, msOfSpan, spanNumber, sums } from './plan.ts'
import type { SpanRanges } from './ranges.ts'

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

type Values = (number | string | bigint | null)[]
type RawRow = Readonly<Record<string, bigint | string | Uint8Array | null>>

const FIGURE_ROWS = `SELECT f.* FROM json_each(?3) j CROSS JOIN figure f
  ON f.cut = ?1 AND f.span = ?2 AND f.one = j.value AND f.other = ?4 AND f.at >= ?5 AND f.at < ?6`

/** Sums over the whole range. */
export function readSum(db: Database, { cut, ones, other = 0 }: CutOwners, { pieces }: SpanRanges): FigureView {
  const query = db.query<RawRow, Values>(FIGURE_ROWS)
  const figures = noFigures()
  for (const { span, from, before } of pieces) {
    const values = [cuts[cut], spanNumber[span], JSON.stringify(ones), other, from, before]
    for (const row of query.all(...values)) addRow(figures, row)
  }
  return figureView(figures)
}

/** Sums for each span of a range; spans without calls are left out. */
export function readSeries(
  db: Database,
  { cut, ones, other = 0 }: CutOwners,
  { span, from, before }: { readonly span: Span; readonly from: number; readonly before: number },
): readonly (FigureView & { readonly atMs: number })[] {
  const query = db.query<RawRow, Values>(FIGURE_ROWS)
  const points = new Map<number, Figures>()
  for (const row of query.all(cuts[cut], spanNumber[span], JSON.stringify(ones), other, from, before)) {
    const at = Number(row.at)
    const figures = points.get(at) ?? noFigures()
    points.set(at, figures)
    addRow(figures, row)
  }
  const inOrder = [...points].sort(([one], [next]) => one - next)
  return inOrder.map(([at, figures]) => ({ atMs: msOfSpan(span, at), ...figureView(figures) }))
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

const TOP_SUMS = `sum(f.calls) AS calls, sum(f.errors) AS errors, sum(f.input_tokens) AS input,
  sum(f.output_tokens) AS output, sum(f.cost) AS cost`

/** The members that have calls in these months. Finer rows are looked up for these members only. */
const ALL_MEMBERS = `SELECT DISTINCT one, other FROM figure
  WHERE cut = ?1 AND span = 3 AND ?2 IS NULL AND (?3 IS NULL OR other = ?3) AND at >= ?4 AND at <= ?5`
/** The same for the members of a list. */
const LISTED_MEMBERS = `SELECT DISTINCT f.one, f.other FROM json_each(?2) j CROSS JOIN figure f
  ON f.cut = ?1 AND f.span = 3 AND f.one = j.value AND (?3 IS NULL OR f.other = ?3) AND f.at >= ?4 AND f.at <= ?5`

const membersSql = (ones: TopRequest['ones']): string => (ones === 'any' ? ALL_MEMBERS : LISTED_MEMBERS)
const listOf = (ones: TopRequest['ones']): string | null => (ones === 'any' ? null : JSON.stringify(ones))

const topSql = (by: 'one' | 'other', ones: TopRequest['ones']): string =>
  `SELECT d.${by} AS id, `.concat(
    TOP_SUMS,
    ' FROM (',
    membersSql(ones),
    `) d CROSS JOIN figure f ON f.cut = ?1 AND f.span = ?6 AND f.one = d.one AND f.other = d.other
       AND f.at >= ?7 AND f.at < ?8 GROUP BY 1`,
  )

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
export function readTop(db: Database, ask: TopRequest, range: SpanRanges & MonthRange): readonly TopRow[] {
  const { cut, ones, other, by, metric, limit } = ask
  const query = db.query<RawRow, Values>(topSql(by, ones))
  const totals = new Map<number, TopSum>()
  for (const { span, from, before } of range.pieces) {
    const values = [cuts[cut], listOf(ones), other ?? null, range.first, range.last, spanNumber[span], from, before]
    for (const row of query.all(...values)) addTop(totals, row)
  }
  const valueOf = metricValues[metric]
  const rows = [...totals].filter(([, sum]) => valueOf(sum) > 0)
  rows.sort(([idOne, one], [idNext, next]) => descending(valueOf(one), valueOf(next)) || idOne - idNext)
  return rows.slice(0, limit).map(([id, { calls, errors, input, output, cost }]) => ({
    id,
    calls,
    errors,
    inputTokens: input,
    outputTokens: output,
    cost: String(cost),
  }))
}

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
export function countMembers(
  db: Database,
  ask: Pick<TopRequest, 'cut' | 'ones' | 'other'>,
  { first, last }: MonthRange,
): number {
  const { cut, ones, other = null } = ask
  const query = db.query<{ n: bigint }, Values>('SELECT count(*) AS n FROM ('.concat(membersSql(ones), ')'))
  return Number(query.get(cuts[cut], listOf(ones), other, first, last)!.n)
}

export interface EndUserRow extends Omit<TopRow, 'id'> {
  readonly endUser: string
}

/** The top end users of some accounts. The row without a name is the sum of all unnamed end users. */
export function readTopEndUsers(
  db: Database,
  { ones, metric, limit }: Pick<CutOwners, 'ones'> & Pick<TopRequest, 'metric' | 'limit'>,
  { pieces }: SpanRanges,
): readonly EndUserRow[] {
  const query = db.query<RawRow, Values>(
    `SELECT name, sum(calls) AS calls, sum(errors) AS errors, sum(input_tokens) AS input, sum(output_tokens) AS output,
       sum(cost) AS cost FROM end_user WHERE account_id = ?1 AND span = ?2 AND at >= ?3 AND at < ?4 GROUP BY name`,
  )
  const names = new Map<string, number>()
  const totals = new Map<number, TopSum>()
  for (const one of ones) {
    for (const { span, from, before } of pieces) {
      for (const row of query.all(one, spanNumber[span], from, before)) {
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
  return rows.slice(0, limit).map(({ endUser, sum: { calls, errors, input, output, cost } }) => ({
    endUser,
    calls,
    errors,
    inputTokens: input,
    outputTokens: output,
    cost: String(cost),
  }))
}

export interface FailureRow {
  readonly outcome: string
  readonly error: string | null
  readonly calls: number
}

export function readFailures(db: Database, { cut, ones }: CutOwners, { pieces }: SpanRanges): readonly FailureRow[] {
  const query = db.query<RawRow, Values>(
    `SELECT outcome, error, sum(calls) AS calls FROM failure
     WHERE cut = ?1 AND span = ?2 AND one = ?3 AND at >= ?4 AND at < ?5 GROUP BY outcome, error`,
  )
  const totals = new Map<string, { -readonly [Name in keyof FailureRow]: FailureRow[Name] }>()
  for (const { span, from, before } of pieces) {
    for (const one of ones) {
      for (const { outcome, error, calls } of query.all(cuts[cut], spanNumber[span], one, from, before)) {
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
