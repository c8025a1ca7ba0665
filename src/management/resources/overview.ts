// The endpoint for an overview: what a first page shows, in one request.

import * as z from 'zod'
import { DAY_MS, HOUR_MS, timeOrNull } from '../../base/time.ts'
import type { OverviewRows } from '../../store/queries/overview.ts'
import type { NamedTopRow, StatisticsFilter, TopKind } from '../../store/queries/statistics.ts'
import type { Span } from '../../store/statistics/plan.ts'
import { keepMs, spans } from '../../store/statistics/plan.ts'
import { isRangeKept, widenToSpan } from '../../store/statistics/ranges.ts'
import type { ManagementParts } from '../management-parts.ts'
import { channelViews } from '../services/channel-views.ts'
import { Account, shownAccount } from './accounts.ts'
import { Budget, shownBudget } from './budgets.ts'
import type { WebEndpoint } from './endpoint.ts'
import { endpoint, time } from './endpoint.ts'
import { books, booksOf } from './ledger.ts'
import {
  callsOf,
  checkedAnswer,
  ErrorCount,
  figures,
  parameters,
  range,
  refuseManySteps,
  SeriesPoint,
  shownFigures,
  shownPoint,
  shownRange,
  shownTop,
  TopRow,
  zone,
  zoneDays,
} from './statistics.ts'

/** Rows of each top list. */
const TOP_ROWS = 5
/** Channels that are listed because they cannot take calls now. */
const TROUBLED_MAX = 10

const ownRange = { from: time, before: time }
const PeriodFigures = z.object({ ...ownRange, ...figures }).meta({ id: 'PeriodFigures' })
const TopList = z.object({ ...ownRange, data: z.array(TopRow) }).meta({
  id: 'TopList',
  description: 'With many rows to choose from, the range is widened to whole days or months',
})
const ErrorList = z.object({ ...ownRange, data: z.array(ErrorCount) }).meta({
  id: 'ErrorList',
  description: 'Errors older than eight days are counted by whole days',
})

const TroubledChannel = z
  .object({
    id: z.string(),
    name: z.string().nullable(),
    state: z.enum(['enabled', 'disabled', 'unusable', 'gone']),
    health: z.string().nullable(),
    availableInMs: z.number().nullable(),
  })
  .meta({ id: 'TroubledChannel' })
const ChannelSummary = z
  .object({
    enabled: z.number(),
    disabled: z.number(),
    unusable: z.number(),
    gone: z.number(),
    health: z.record(z.string(), z.number()).meta({
      description:
        'How many enabled channels are in each state of health; `unused`: without a call since the start. Each gateway process knows the health of its own calls.',
    }),
    troubled: z
      .array(TroubledChannel)
      .meta({ description: `Channels that are unusable, or enabled and not available; at most ${TROUBLED_MAX}` }),
  })
  .meta({ id: 'ChannelSummary' })

const Overview = z
  .object({
    ...range,
    step: z.enum(spans),
    current: PeriodFigures,
    previous: PeriodFigures.meta({ description: 'The period before, as long as what has passed of this one' }),
    series: z.array(SeriesPoint),
    top: z.object({
      models: TopList.nullable(),
      keys: TopList.nullable(),
      accounts: TopList.nullable(),
      channels: TopList.nullable().meta({ description: 'Only for staff, and without `account`' }),
    }),
    errors: ErrorList,
    account: Account.nullable().meta({
      description: 'The requested account, or the only one that you are a member of',
    }),
    budgets: z.array(Budget).nullable().meta({ description: 'The budgets of this account' }),
    channels: ChannelSummary.nullable().meta({ description: 'Only for staff' }),
    ledger: z
      .object({ books, audited: time.nullable(), findings: z.number() })
      .meta({ id: 'LedgerSummary' })
      .nullable()
      .meta({ description: 'Only for staff' }),
  })
  .meta({ id: 'Overview' })

/** The longest range for which each step is the default. */
const rangeMsMax: Readonly<Record<Span, number>> = {
  minute: 6 * HOUR_MS,
  hour: 7 * DAY_MS,
  day: 400 * DAY_MS,
  month: Number.POSITIVE_INFINITY,
}

const stepFor = (filter: StatisticsFilter): Span => {
  const isFit = (span: Span): boolean =>
    filter.beforeMs - filter.fromMs <= rangeMsMax[span] &&
    isRangeKept(keepMs.account, span, { fromMs: widenToSpan(span, filter).fromMs, nowMs: filter.nowMs })
  return spans.find(isFit)!
}

function channelSummary(parts: ManagementParts): z.input<typeof ChannelSummary> {
  const views = channelViews(parts)
  const counts = { enabled: 0, disabled: 0, unusable: 0, gone: 0 }
  const health: Record<string, number> = {}
  for (const view of views) {
    counts[view.state]++
    const state = view.health?.state ?? 'unused'
    if (view.state === 'enabled') health[state] = (health[state] ?? 0) + 1
  }
  const isTroubled = (view: (typeof views)[number]): boolean =>
    view.state === 'unusable' || (view.state === 'enabled' && (view.health?.state ?? 'available') !== 'available')
  const troubled = views.filter(isTroubled).slice(0, TROUBLED_MAX)
  return {
    ...counts,
    health,
    troubled: troubled.map(({ id, name, state, health: found }) => ({
      id,
      name,
      state,
      health: found?.state ?? null,
      availableInMs: found?.availableInMs ?? null,
    })),
  }
}

export function overviewEndpoints(parts: ManagementParts): readonly WebEndpoint[] {
  const { queryWorker, statisticsAggregator, auditor, dateMs } = parts
  const topList = (of: TopKind, top: OverviewRows<NamedTopRow> | undefined): z.input<typeof TopList> | null =>
    top === undefined ? null : { ...shownRange(top), data: top.rows.map(row => shownTop(of, row)) }
  return [
    endpoint({
      method: 'GET',
      path: '/api/web/statistics/overview',
      who: { account: 'viewer' },
      summary:
        'Show an overview: the sums of a period and of the one before, the largest of each kind, errors and money.',
      query: z.strictObject({
        account: parameters.account,
        from: parameters.from,
        before: parameters.before,
        step: z.enum(spans).optional().meta({ description: 'The step of the series; by default it fits the range' }),
        zone,
      }),
      answer: Overview,
      async run({ query: { step, zone: timeZone, ...query }, scope }) {
        const nowMs = dateMs()
        const filter = callsOf(query, scope, nowMs)
        const span = step ?? (timeZone === undefined ? stepFor(filter) : 'day')
        refuseManySteps(filter, span)
        await statisticsAggregator.ready()
        const wanted = { ...filter, span, days: zoneDays(filter, span, timeZone), top: TOP_ROWS }
        const found = checkedAnswer(await queryWorker.query('statisticsOverview', wanted))
        const isStaff = scope === null
        const { current, previous, points, tops, failures, account, budgets } = found
        return {
          body: {
            ...shownRange(current),
            step: span,
            current: { ...shownRange(current), ...shownFigures(current.figures, isStaff) },
            previous: { ...shownRange(previous), ...shownFigures(previous.figures, isStaff) },
            series: points.map(point => shownPoint(point, isStaff)),
            top: {
              models: topList('model', tops.model),
              keys: topList('key', tops.key),
              accounts: topList('account', tops.account),
              channels: topList('channel', tops.channel),
            },
            errors: { ...shownRange(failures), data: [...failures.rows] },
            account: account && shownAccount(account),
            budgets: budgets?.map(budget => shownBudget(budget, nowMs)) ?? null,
            channels: isStaff ? channelSummary(parts) : null,
            ledger: isStaff
              ? {
                  books: booksOf(auditor),
                  audited: timeOrNull(auditor.state.auditedMs),
                  findings: auditor.findings.length,
                }
              : null,
          },
        }
      },
    }),
  ]
}
