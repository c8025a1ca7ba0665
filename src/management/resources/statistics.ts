// Endpoints for statistics, from sums that are stored beside the records. Members see the statistics of their accounts;
// only staff see provider costs and margins.

import * as z from 'zod'
import { bounds } from '../../base/bounds.ts'
import { Refusal } from '../../base/errors.ts'
import { textId } from '../../base/ids.ts'
import { usdText } from '../../base/money/money.ts'
import { DAY_MS, timeText } from '../../base/time.ts'
import type { Scope } from '../../store/queries/paging.ts'
import type { NamedTopRow, StatisticsFilter, StatisticsRange } from '../../store/queries/statistics.ts'
import { topKinds } from '../../store/queries/statistics.ts'
import { spanAt, spans } from '../../store/statistics/plan.ts'
import type { FigureView } from '../../store/statistics/statistics-queries.ts'
import { metrics } from '../../store/statistics/statistics-queries.ts'
import type { ManagementParts } from '../management-parts.ts'
import type { WebEndpoint } from './endpoint.ts'
import { endpoint, idOf, time, timeInput, usd } from './endpoint.ts'
import { tokenFields } from './fields.ts'
import { resourceUnknown } from './list-queries.ts'

const ROWS_MAX = 100

const parameters = {
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
    .refine(ms => ms < Date.UTC(2100, 0), 'must be before the year 2100')
    .optional()
    .meta({ description: 'Default: now' }),
}

const top = {
  by: z.enum(metrics).default('cost'),
  limit: z.coerce.number().int().min(1).max(ROWS_MAX).default(10),
}

const range = {
  from: time,
  before: time,
  /** Less than 1 while older records are still being added to the sums. */
  summedUp: z.number(),
}

const percentiles = z.object({ p50: z.number(), p90: z.number(), p95: z.number(), p99: z.number() }).nullable()

const figures = {
  calls: z.number(),
  errors: z.number(),
  streamed: z.number(),
  ...tokenFields,
  cost: usd,
  shortfall: usd,
  refunded: usd,
  cacheSavings: usd,
  /** Null for members. */
  providerCost: usd.nullable(),
  margin: usd.nullable(),
  firstContentMs: percentiles,
  durationMs: percentiles,
}

const Figures = z.object({ ...range, ...figures }).meta({ id: 'Figures' })
const topFigures = {
  calls: z.number(),
  errors: z.number(),
  inputTokens: z.number(),
  outputTokens: z.number(),
  cost: usd,
}

type StatisticsQuery = z.output<z.ZodObject<typeof parameters>>

/** The query for the query worker. Refuses an invalid range. */
function callsOf(query: StatisticsQuery, scope: Scope | null, nowMs: number): StatisticsFilter {
  const { account, key, model, channel, before: beforeMs = nowMs, from: fromMs = beforeMs - DAY_MS } = query
  if (fromMs >= beforeMs || fromMs < 0) {
    throw new Refusal('field_invalid', 'from', { param: 'from', hint: '"from" must be before "before".' })
  }
  if (channel !== undefined && scope !== null) {
    throw new Refusal('role_too_low', 'channel', { param: 'channel', hint: 'Only staff can see channels.' })
  }
  return { scope, account, key, model, channel, fromMs, beforeMs, nowMs }
}

const shownRange = ({ fromMs, beforeMs, scanned }: StatisticsRange) => ({
  from: timeText(fromMs),
  before: timeText(beforeMs),
  summedUp: Math.floor(scanned * 1_000) / 1_000,
})

function shownFigures({ cost, shortfall, refunded, cacheSavings, providerCost, ...rest }: FigureView, staff: boolean) {
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
function checkedAnswer<T extends { readonly done: string }>(answer: T): Extract<T, { readonly done: 'told' }> {
  if (answer.done === 'unknown') throw resourceUnknown()
  const hint =
    answer.done === 'too_fine'
      ? 'Such fine steps are not stored for such an old range: use a coarser step.'
      : 'There are no statistics for this combination of filters. docs/guides/statistics.md lists the combinations.'
  if (answer.done !== 'told') throw new Refusal('field_invalid', answer.done, { hint })
  return answer as Extract<T, { readonly done: 'told' }>
}

const idPrefixes = { account: 'acc', key: 'key' } as const

export function statisticsEndpoints({
  queryWorker,
  statisticsAggregator,
  dateMs,
}: ManagementParts): readonly WebEndpoint[] {
  const calls = async (query: StatisticsQuery, scope: Scope | null): Promise<StatisticsFilter> => {
    const ask = callsOf(query, scope, dateMs())
    await statisticsAggregator.ready()
    return ask
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
      query: z.strictObject({ ...parameters, step: z.enum(spans).default('hour') }),
      answer: z.object({ ...range, step: z.enum(spans), data: z.array(z.object({ at: time, ...figures })) }),
      async run({ query: { step, ...query }, scope }) {
        const ask = await calls(query, scope)
        if (spanAt(step, ask.beforeMs) - spanAt(step, ask.fromMs) > bounds.seriesPointsMax) {
          throw new Refusal('field_invalid', 'step', {
            param: 'step',
            hint: `An answer may have at most ${bounds.seriesPointsMax} steps: use a larger step or a shorter range.`,
          })
        }
        const answer = checkedAnswer(await queryWorker.query('statisticsSeries', { ...ask, span: step }))
        const data = answer.points.map(({ atMs, ...point }) => ({
          at: timeText(atMs),
          ...shownFigures(point, scope === null),
        }))
        return { body: { ...shownRange(answer), step, data } }
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
        data: z.array(z.object({ id: z.string().nullable(), name: z.string().nullable(), ...topFigures })),
      }),
      async run({ query: { of, by, limit, ...query }, scope }) {
        if (of === 'channel' && scope !== null) throw new Refusal('role_too_low', 'of', { param: 'of' })
        const ask = { ...(await calls(query, scope)), of, metric: by, limit }
        const answer = checkedAnswer(await queryWorker.query('statisticsTop', ask))
        const data = answer.rows.map(({ id, name, cost, ...row }: NamedTopRow) => ({
          id: of === 'account' || of === 'key' ? textId(idPrefixes[of], id) : null,
          name: name === '' ? null : name,
          ...row,
          cost: usdText(cost),
        }))
        return { body: { ...shownRange(answer), data } }
      },
    }),
    endpoint({
      method: 'GET',
      path: '/api/web/statistics/end-users',
      who: { account: 'viewer' },
      summary:
        'List the end users of an account with the most calls, errors, tokens or cost. An empty name sums up all others.',
      query: z.strictObject({ account: parameters.account, from: parameters.from, before: parameters.before, ...top }),
      answer: z.object({ ...range, data: z.array(z.object({ endUser: z.string(), ...topFigures })) }),
      async run({ query: { by, limit, ...query }, scope }) {
        const ask = { ...(await calls(query, scope)), metric: by, limit }
        const answer = checkedAnswer(await queryWorker.query('statisticsEndUsers', ask))
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
        data: z.array(z.object({ outcome: z.string(), error: z.string().nullable(), calls: z.number() })),
      }),
      async run({ query, scope }) {
        const answer = checkedAnswer(await queryWorker.query('statisticsFailures', await calls(query, scope)))
        return { body: { ...shownRange(answer), data: [...answer.rows] } }
      },
    }),
  ]
}
