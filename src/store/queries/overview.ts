// The query for the overview of a site or an account: its figures beside those of the period before, a series, the top
// lists, its errors, and the money of one account. It consists of other queries, which here read the same snapshot.

import type { Steps } from '../engine/steps.ts'
import type { Span } from '../statistics/plan.ts'
import { keepMs, msOfSpan, spanAt } from '../statistics/plan.ts'
import type { TimeRange } from '../statistics/ranges.ts'
import { splitIntoSpans } from '../statistics/ranges.ts'
import type { FailureRow, FigureView } from '../statistics/statistics-queries.ts'
import type { AccountDetails, BudgetDetails } from './accounts.ts'
import { accountQueries } from './accounts.ts'
import type {
  NamedTopRow,
  SeriesSteps,
  StatisticsFilter,
  StatisticsQueries,
  StatisticsRange,
  TopKind,
} from './statistics.ts'
import { accountsOf, statisticsQueries, TOP_ROWS_MAX, topKinds } from './statistics.ts'

export type OverviewFilter = Omit<StatisticsFilter, 'key' | 'model' | 'channel' | 'coarsest'>

export interface OverviewFigures extends StatisticsRange {
  readonly figures: FigureView
}

export interface OverviewRows<Row> extends StatisticsRange {
  readonly rows: readonly Row[]
}

export interface Overview {
  readonly done: 'found'
  readonly current: OverviewFigures
  readonly previous: OverviewFigures
  readonly points: readonly (FigureView & { readonly atMs: number })[]
  /** Without those that the actor may not see, and those that are not stored for one account. */
  readonly tops: Readonly<Partial<Record<TopKind, OverviewRows<NamedTopRow>>>>
  readonly failures: OverviewRows<FailureRow>
  /** The requested account, or the only one that the actor may see. */
  readonly account: AccountDetails | null
  readonly budgets: readonly BudgetDetails[] | null
}

export interface OverviewQueries {
  statisticsOverview: {
    input: OverviewFilter & SeriesSteps & { readonly top: number }
    result: Overview | Exclude<StatisticsQueries['statisticsSeries']['result'], { readonly done: 'found' }>
  }
}

/** All top lists together read as many rows as one that is asked for alone. */
const rowsMax = TOP_ROWS_MAX / topKinds.length

export const overviewQueries = {
  *statisticsOverview(
    ask: OverviewQueries['statisticsOverview']['input'],
  ): Steps<OverviewQueries['statisticsOverview']['result']> {
    const coarsest = finestOfBoth(ask)
    const current = yield* statisticsQueries.statisticsSummary({ ...ask, coarsest })
    if (current.done !== 'found') return current
    const before = { ...ask, coarsest, ...periodBefore(current, coarsest, ask.nowMs) }
    const previous = yield* statisticsQueries.statisticsSummary(before)
    if (previous.done !== 'found') return previous
    const series = yield* statisticsQueries.statisticsSeries(ask)
    if (series.done !== 'found') return series
    const failures = yield* statisticsQueries.statisticsFailures(ask)
    if (failures.done !== 'found') return failures
    const tops: Partial<Record<TopKind, OverviewRows<NamedTopRow>>> = {}
    for (const of of topKinds) {
      if (of === 'channel' && ask.scope !== null) continue
      const top = yield* statisticsQueries.statisticsTop({ ...ask, of, metric: 'cost', limit: ask.top, rowsMax })
      if (top.done === 'found') tops[of] = top
    }
    const accounts = yield* accountsOf(ask)
    const id = typeof accounts !== 'string' && accounts.length === 1 ? accounts[0]! : null
    const { scope, nowMs } = ask
    const account = id === null ? null : yield* accountQueries.account({ id, scope })
    const budgets = id === null ? null : yield* accountQueries.budgets({ id, of: 'account', scope, nowMs })
    return { done: 'found', current, previous, points: series.points, tops, failures, account, budgets }
  },
}

/** The finest span that is kept for both periods. Sums of different spans would not be comparable. */
function finestOfBoth({ fromMs, beforeMs, nowMs }: OverviewFilter): Span {
  return splitIntoSpans({ fromMs: 2 * fromMs - beforeMs, beforeMs, nowMs, keeps: keepMs.account }).finest
}

/** The period before, which is as long as what has passed of this one, in whole spans. */
function periodBefore({ fromMs, beforeMs }: TimeRange, span: Span, nowMs: number): TimeRange {
  const first = spanAt(span, fromMs)
  const spanMs = msOfSpan(span, first + 1) - fromMs
  const length = Math.max(1, Math.round((Math.min(beforeMs, Math.max(nowMs, fromMs)) - fromMs) / spanMs))
  return { fromMs: Math.max(0, msOfSpan(span, first - length)), beforeMs: fromMs }
}
