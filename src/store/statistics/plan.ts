// The plan of the statistics: which groups of calls are summed up, over which spans of time, and how long sums are
// kept.

import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../base/time.ts'

export const spans = ['minute', 'hour', 'day', 'month'] as const
export type Span = (typeof spans)[number]

/** The numbers of the spans in the file. They must never change. */
export const spanNumber: Readonly<Record<Span, number>> = { minute: 0, hour: 1, day: 2, month: 3 }

const spanMs = { minute: MINUTE_MS, hour: HOUR_MS, day: DAY_MS } as const

/** The number of the span that contains a time: spans since 1970, in UTC. */
export function spanAt(span: Span, ms: number): number {
  if (span !== 'month') return Math.floor(ms / spanMs[span])
  const date = new Date(ms)
  return (date.getUTCFullYear() - 1970) * 12 + date.getUTCMonth()
}

export const msOfSpan = (span: Span, at: number): number =>
  span === 'month' ? Date.UTC(1970, at, 1) : at * spanMs[span]

/**
 * The groupings of calls: all calls together, by one dimension, or by two. The models of an account are summed up by
 * its keys. The numbers are those in the file and must never change.
 */
export const cuts = {
  all: 0,
  account: 1,
  key: 2,
  model: 3,
  channel: 4,
  modelChannel: 5,
  keyModel: 6,
} as const
export type Cut = keyof typeof cuts
export const cutNames = Object.keys(cuts) as readonly Cut[]

const FOR_EVER = Number.POSITIVE_INFINITY
const oneDimension: SpanRetention = { minute: 2 * DAY_MS, hour: 92 * DAY_MS, day: FOR_EVER, month: FOR_EVER }
const twoDimensions: SpanRetention = { minute: 0, hour: 8 * DAY_MS, day: 400 * DAY_MS, month: FOR_EVER }

/** How long the sums of each span are kept, in milliseconds; 0: they are not stored. */
export type SpanRetention = Readonly<Record<Span, number>>

export const keepMs: Readonly<Record<Cut, SpanRetention>> = {
  all: oneDimension,
  account: oneDimension,
  key: oneDimension,
  model: oneDimension,
  channel: oneDimension,
  modelChannel: twoDimensions,
  keyModel: twoDimensions,
}

/** The cuts for which failures are counted by outcome and error. */
export const failureCuts = ['all', 'account', 'key', 'model', 'channel'] as const satisfies readonly Cut[]
export const failureKeepMs: SpanRetention = { minute: 0, hour: 8 * DAY_MS, day: FOR_EVER, month: FOR_EVER }
export const endUserKeepMs: SpanRetention = { minute: 0, hour: 0, day: 92 * DAY_MS, month: 400 * DAY_MS }

/** The most named end users of one account in one span. All others share one row without a name. */
export const END_USERS_PER_SPAN_MAX = 1_000

/** Whether the sums of a span are still kept: it must not have ended longer ago than `keeps` allows. */
export const isKept = (keeps: SpanRetention, span: Span, { at, nowMs }: { at: number; nowMs: number }): boolean =>
  msOfSpan(span, at + 1) > nowMs - keeps[span] && keeps[span] > 0

/** The sums of a span that lie before this one are not kept any more. */
export const expiredBefore = (keeps: SpanRetention, span: Span, nowMs: number): number =>
  keeps[span] === FOR_EVER ? 0 : spanAt(span, nowMs - keeps[span])

/** The columns that are counts. */
export const counts = [
  'calls',
  'errors',
  'streamed',
  'input_tokens',
  'cache_read_tokens',
  'cache_write_tokens',
  'output_tokens',
  'reasoning_tokens',
] as const
export type Count = (typeof counts)[number]

/** The columns in nano-USD. `provider_cost` and `cache_savings` are computed; the others come from the ledger. */
export const sums = ['cost', 'shortfall', 'refunded', 'provider_cost', 'cache_savings'] as const
export type Sum = (typeof sums)[number]
