// What is summed up: of which calls, by which spans of time, and how long each of them is kept.

const MINUTE_MS = 60_000
const HOUR_MS = 3_600_000
const DAY_MS = 86_400_000

export const spans = ['minute', 'hour', 'day', 'month'] as const
export type Span = (typeof spans)[number]

/** As they stand in the file: in this order, and never in another. */
export const spanNumber: Readonly<Record<Span, number>> = { minute: 0, hour: 1, day: 2, month: 3 }

const spanMs = { minute: MINUTE_MS, hour: HOUR_MS, day: DAY_MS } as const

/** Spans since 1970, UTC. */
export function spanAt(span: Span, ms: number): number {
  if (span !== 'month') return Math.floor(ms / spanMs[span])
  const date = new Date(ms)
  return (date.getUTCFullYear() - 1970) * 12 + date.getUTCMonth()
}

export const msOfSpan = (span: Span, at: number): number =>
  span === 'month' ? Date.UTC(1970, at, 1) : at * spanMs[span]

/**
 * Of which calls a row is: all, or those of one of something, or of one of something and one of another. Models of an
 * account are those of its keys. Numbers as in the file.
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
const ofOne: Keeps = { minute: 2 * DAY_MS, hour: 92 * DAY_MS, day: FOR_EVER, month: FOR_EVER }
const ofTwo: Keeps = { minute: 0, hour: 8 * DAY_MS, day: 400 * DAY_MS, month: FOR_EVER }

/** For how long, of each span; 0: not at all. */
export type Keeps = Readonly<Record<Span, number>>

export const keepMs: Readonly<Record<Cut, Keeps>> = {
  all: ofOne,
  account: ofOne,
  key: ofOne,
  model: ofOne,
  channel: ofOne,
  modelChannel: ofTwo,
  keyModel: ofTwo,
}

/** What went wrong, counted by outcome and error. */
export const failureCuts = ['all', 'account', 'key', 'model', 'channel'] as const satisfies readonly Cut[]
export const failureKeepMs: Keeps = { minute: 0, hour: 8 * DAY_MS, day: FOR_EVER, month: FOR_EVER }
export const endUserKeepMs: Keeps = { minute: 0, hour: 0, day: 92 * DAY_MS, month: 400 * DAY_MS }

/** Of one account on one day; what more there are is one row without a name. */
export const END_USERS_A_SPAN_MAX = 1_000

/** A whole span that ended this long ago is let go. */
export const isKept = (keeps: Keeps, span: Span, { at, nowMs }: { at: number; nowMs: number }): boolean =>
  msOfSpan(span, at + 1) > nowMs - keeps[span] && keeps[span] > 0

/** Counts; added up as numbers. */
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

/** Nano-USD. `provider_cost` and `cache_savings` are worked out; the others are the ledger's own. */
export const sums = ['cost', 'shortfall', 'refunded', 'provider_cost', 'cache_savings'] as const
export type Sum = (typeof sums)[number]
