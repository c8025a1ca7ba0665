// Endpoints for statistics, from sums that are stored beside the records. Members see the statistics of their accounts;
// only staff see provider costs and margins.

import * as z from 'zod'
import { bounds } from '../../base/bounds.ts'
import { Refusal } from '../../base/errors.ts'
import type { Hint } from '../../base/hints.ts'
import { hintOf } from '../../base/hints.ts'
import { textId } from '../../base/ids.ts'
import { usdText } from '../../base/money/money.ts'
import { DAY_MS, timeText } from '../../base/time.ts'
import type { Scope } from '../../store/queries/paging.ts'
import type {
  NamedTopRow,
  SplitGroup,
  StatisticsFilter,
  StatisticsRange,
  TopKind,
} from '../../store/queries/statistics.ts'
import { topKinds } from '../../store/queries/statistics.ts'
import type { Span } from '../../store/statistics/plan.ts'
import { keepMs, spanAt, spans } from '../../store/statistics/plan.ts'
import type { TimeRange } from '../../store/statistics/ranges.ts'
import type { FigureView } from '../../store/statistics/statistics-queries.ts'
import { metrics } from '../../store/statistics/statistics-queries.ts'
import type { ManagementParts } from '../management-parts.ts'
import { daysOfZone } from '../services/zone-days.ts'
import { must } from '../web/issue-text.ts'
import type { WebEndpoint } from './endpoint.ts'
import { endpoint, idOf, numberOfText, time, timeInput } from './endpoint.ts'
import { tokenFields } from './fields.ts'
import { resourceUnknown } from './list-queries.ts'
import { money } from './money-input.ts'

const ROWS_MAX = 100
const SPLIT_GROUPS_MAX = 10

export const parameters = {
  account: idOf('acc').optional(),
  key: idOf('key').optional(),
  model: z
    .string()
    .min(1)
    .max(300)
    .optional()
    .meta({ description: 'The model name as callers write it: <provider>/<model>' }),
  channel: z.string().min(1).max(200).optional(),
  from: timeInput.optional().meta({ description: 'Default: one day before `before`' }),
  before: timeInput
    .refine(ms => ms < Date.UTC(2100, 0), must('must_be_early'))
    .optional()
    .meta({ description: 'Default: now' }),
}

/** Days of a zone are made from hours. */
const ZONE_RANGE_MS_MAX = keepMs.account.hour
export const zone = z
  .string()
  .max(100)
  .optional()
  .meta({ description: 'A time zone such as Europe/Berlin, for `step=day`: its days instead of those of UTC' })

const top = {
  by: z.enum(metrics).default('cost'),
  limit: numberOfText(z.number().int().min(1).max(ROWS_MAX).default(10)),
}

export const range = {
  from: time,
  before: time,
  summedUp: z.number().meta({ description: 'Less than 1 while older records are still being added to the sums' }),
}

const percentiles = z
  .object({ p50: z.number(), p90: z.number(), p95: z.number(), p99: z.number() })
  .meta({ id: 'Percentiles' })
  .nullable()

export const figures = {
  calls: z.number(),
  errors: z.number(),
  streamed: z.number(),
  ...tokenFields,
  cost: money,
  shortfall: money,
  refunded: money,
  cacheSavings: money,
  providerCost: money.nullable().meta({ description: 'Null for members' }),
  margin: money.nullable().meta({ description: 'Null for members' }),
  firstContentMs: percentiles,
  durationMs: percentiles,
}

const Figures = z.object({ ...range, ...figures }).meta({ id: 'Figures' })
const topFigures = {
  calls: z.number(),
  errors: z.number(),
  inputTokens: z.number(),
  outputTokens: z.number(),
  cost: money,
}

export const SeriesPoint = z.object({ at: time, ...figures }).meta({ id: 'SeriesPoint' })
const GroupPoint = z
  .object({
    at: time,
    calls: z.number(),
    errors: z.number(),
    inputTokens: z.number().nullable(),
    outputTokens: z.number().nullable(),
    cost: money.nullable(),
  })
  .meta({ id: 'GroupPoint', description: 'Outcomes have no tokens and no cost' })
const SeriesGroup = z
  .object({
    id: z.string().nullable(),
    name: z.string().nullable(),
    others: z.boolean().meta({
      description: 'True for the sum of all that have no group; with `split=outcome` also of calls that succeeded',
    }),
    data: z.array(GroupPoint),
  })
  .meta({ id: 'SeriesGroup' })
export const TopRow = z
  .object({ id: z.string().nullable(), name: z.string().nullable(), ...topFigures })
  .meta({ id: 'TopRow' })
const EndUser = z.object({ endUser: z.string(), ...topFigures }).meta({ id: 'EndUser' })
export const ErrorCount = z
  .object({ outcome: z.string(), error: z.string().nullable(), calls: z.number() })
  .meta({ id: 'ErrorCount' })

type StatisticsQuery = z.output<z.ZodObject<typeof parameters>>

/** The query for the query worker. Refuses an invalid range. */
export function callsOf(query: StatisticsQuery, scope: Scope | null, nowMs: number): StatisticsFilter {
  const { account, key, model, channel, before: beforeMs = nowMs, from: fromMs = beforeMs - DAY_MS } = query
  if (fromMs >= beforeMs || fromMs < 0) {
    throw new Refusal('field_invalid', 'from', { param: 'from', hint: hintOf('from_before') })
  }
  if (channel !== undefined && scope !== null) {
    throw new Refusal('role_too_low', 'channel', { param: 'channel', hint: hintOf('channels_for_staff') })
  }
  return { scope, account, key, model, channel, fromMs, beforeMs, nowMs }
}

export const shownRange = ({ fromMs, beforeMs, scanned }: StatisticsRange) => ({
  from: timeText(fromMs),
  before: timeText(beforeMs),
  summedUp: Math.floor(scanned * 1_000) / 1_000,
})

export function shownFigures(
  { cost, shortfall, refunded, cacheSavings, providerCost, ...rest }: FigureView,
  staff: boolean,
) {
  const margin = BigInt(cost) - BigInt(refunded) - BigInt(providerCost)
  return {
    ...rest,
    cost: usdText(cost),
    shortfall: usdText(shortfall),
    refunded: usdText(refunded),
    cacheSavings: usdText(cacheSavings),
    providerCost: staff ? usdText(providerCost) : null,
    margin: staff ? usdText(String(margin)) : null,
  }
}

/** Returns the answer of the query worker; throws a refusal if there is none. */
export function checkedAnswer<T extends { readonly done: string }>(answer: T): Extract<T, { readonly done: 'found' }> {
  if (answer.done === 'unknown') throw resourceUnknown()
  const hint = answer.done === 'too_fine' ? hintOf('steps_too_fine') : hintOf('statistics_none')
  if (answer.done !== 'found') throw new Refusal('field_invalid', answer.done, { hint })
  return answer as Extract<T, { readonly done: 'found' }>
}

export function refuseManySteps({ fromMs, beforeMs }: TimeRange, step: Span): void {
  if (spanAt(step, beforeMs) - spanAt(step, fromMs) <= bounds.seriesPointsMax) return
  throw new Refusal('field_invalid', 'step', {
    param: 'step',
    hint: hintOf('steps_max', { max: bounds.seriesPointsMax }),
  })
}

/** The days of a time zone, for a series by day; undefined: days of UTC. */
export function zoneDays(range: TimeRange, step: Span, timeZone: string | undefined): readonly number[] | undefined {
  if (timeZone === undefined) return undefined
  if (step !== 'day') throw zoneRefusal(hintOf('zone_by_day'))
  if (range.beforeMs - range.fromMs > ZONE_RANGE_MS_MAX) {
    throw zoneRefusal(hintOf('zone_range'))
  }
  const found = daysOfZone(timeZone, range)
  if (found.done === 'found') return found.days
  throw zoneRefusal(hintOf(found.done === 'zone_unknown' ? 'zone_unknown' : 'zone_hours'))
}

const zoneRefusal = (hint: Hint): Refusal => new Refusal('field_invalid', 'zone', { param: 'zone', hint })

export const shownPoint = ({ atMs, ...point }: FigureView & { readonly atMs: number }, staff: boolean) => ({
  at: timeText(atMs),
  ...shownFigures(point, staff),
})

const idPrefixes = { account: 'acc', key: 'key' } as const

const shownGroup = (
  split: TopKind | 'outcome',
  { id, name, others, points }: SplitGroup,
): z.input<typeof SeriesGroup> => ({
  id: id !== null && (split === 'account' || split === 'key') ? textId(idPrefixes[split], id) : null,
  name: name === '' ? null : name,
  others,
  data: points.map(({ atMs, cost, ...point }) => ({
    at: timeText(atMs),
    ...point,
    cost: cost === null ? null : usdText(cost),
  })),
})

export const shownTop = (of: TopKind, { id, name, cost, ...row }: NamedTopRow): z.input<typeof TopRow> => ({
  id: of === 'account' || of === 'key' ? textId(idPrefixes[of], id) : null,
  name: name === '' ? null : name,
  ...row,
  cost: usdText(cost),
})

export function statisticsEndpoints({
  queryWorker,
  statisticsAggregator,
  dateMs,
}: ManagementParts): readonly WebEndpoint[] {
  const calls = async (query: StatisticsQuery, scope: Scope | null): Promise<StatisticsFilter> => {
    const filter = callsOf(query, scope, dateMs())
    await statisticsAggregator.ready()
    return filter
  }
  return [
    endpoint({
      method: 'GET',
      path: '/api/web/statistics/summary',
      who: { account: 'viewer' },
      summary: 'Show the sums of calls: how many, what they cost and how long they took.',
      query: z.strictObject(parameters),
      answer: Figures,
      async run({ query, scope }) {
        const answer = checkedAnswer(await queryWorker.query('statisticsSummary', await calls(query, scope)))
        return { body: { ...shownRange(answer), ...shownFigures(answer.figures, scope === null) } }
      },
    }),
    endpoint({
      method: 'GET',
      path: '/api/web/statistics/series',
      who: { account: 'viewer' },
      summary: 'Show the same sums per minute, hour, day or month. Steps without calls are left out.',
      query: z.strictObject({
        ...parameters,
        step: z.enum(spans).default('hour'),
        zone,
        split: z
          .enum([...topKinds, 'outcome'])
          .optional()
          .meta({ description: 'Also show the series of the largest of these, and of all others together' }),
        by: top.by.meta({ description: 'What is largest, with `split`; outcomes are always compared by calls' }),
        top: numberOfText(z.number().int().min(1).max(SPLIT_GROUPS_MAX).default(8)).meta({
          description: 'Groups of a split',
        }),
      }),
      answer: z.object({
        ...range,
        step: z.enum(spans),
        data: z.array(SeriesPoint),
        groups: z.array(SeriesGroup).nullable().meta({ description: 'Null without `split`' }),
      }),
      async run({ query: { step, zone: timeZone, split, by, top: limit, ...query }, scope }) {
        if (split === 'channel' && scope !== null) throw new Refusal('role_too_low', 'split', { param: 'split' })
        const filter = await calls(query, scope)
        refuseManySteps(filter, step)
        const steps = { ...filter, span: step, days: zoneDays(filter, step, timeZone) }
        if (split === undefined) {
          const answer = checkedAnswer(await queryWorker.query('statisticsSeries', steps))
          const data = answer.points.map(point => shownPoint(point, scope === null))
          return { body: { ...shownRange(answer), step, data, groups: null } }
        }
        const wanted = { ...steps, split, metric: by, limit }
        const answer = checkedAnswer(await queryWorker.query('statisticsSplit', wanted))
        const data = answer.points.map(point => shownPoint(point, scope === null))
        const groups = answer.groups.map(group => shownGroup(split, group))
        return { body: { ...shownRange(answer), step, data, groups } }
      },
    }),
    ...topEndpoints({ queryWorker, calls }),
  ]
}

interface TopParts extends Pick<ManagementParts, 'queryWorker'> {
  calls(query: StatisticsQuery, scope: Scope | null): Promise<StatisticsFilter>
}

function topEndpoints({ queryWorker, calls }: TopParts): readonly WebEndpoint[] {
  return [
    endpoint({
      method: 'GET',
      path: '/api/web/statistics/top',
      who: { account: 'viewer' },
      summary: 'List the accounts, keys, models or channels with the most calls, errors, tokens or cost.',
      query: z.strictObject({ ...parameters, of: z.enum(topKinds), ...top }),
      answer: z.object({
        ...range,
        data: z.array(TopRow),
      }),
      async run({ query: { of, by, limit, ...query }, scope }) {
        if (of === 'channel' && scope !== null) throw new Refusal('role_too_low', 'of', { param: 'of' })
        const filter = { ...(await calls(query, scope)), of, metric: by, limit }
        const answer = checkedAnswer(await queryWorker.query('statisticsTop', filter))
        return { body: { ...shownRange(answer), data: answer.rows.map(row => shownTop(of, row)) } }
      },
    }),
    endpoint({
      method: 'GET',
      path: '/api/web/statistics/end-users',
      who: { account: 'viewer' },
      summary:
        'List the end users of an account with the most calls, errors, tokens or cost. An empty name sums up all others.',
      query: z.strictObject({ account: parameters.account, from: parameters.from, before: parameters.before, ...top }),
      answer: z.object({ ...range, data: z.array(EndUser) }),
      async run({ query: { by, limit, ...query }, scope }) {
        const filter = { ...(await calls(query, scope)), metric: by, limit }
        const answer = checkedAnswer(await queryWorker.query('statisticsEndUsers', filter))
        const data = answer.rows.map(({ cost, ...row }) => ({ ...row, cost: usdText(cost) }))
        return { body: { ...shownRange(answer), data } }
      },
    }),
    endpoint({
      method: 'GET',
      path: '/api/web/statistics/errors',
      who: { account: 'viewer' },
      summary: 'List the errors of calls, most frequent first.',
      query: z.strictObject(parameters),
      answer: z.object({
        ...range,
        data: z.array(ErrorCount),
      }),
      async run({ query, scope }) {
        const answer = checkedAnswer(await queryWorker.query('statisticsFailures', await calls(query, scope)))
        return { body: { ...shownRange(answer), data: [...answer.rows] } }
      },
    }),
  ]
}
