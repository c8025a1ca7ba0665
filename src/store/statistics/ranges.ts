// Splits a range of time into spans: whole months, then the days at its ends, and so on. So a year needs about seventy
// rows instead of half a million.

import { DAY_MS } from '../../base/time.ts'
import type { Span, SpanRetention } from './plan.ts'
import { msOfSpan, spanAt, spans } from './plan.ts'

export interface TimeRange {
  readonly fromMs: number
  readonly beforeMs: number
}

/** Consecutive rows of one span, from `from` up to but not including `before`. */
export interface SpanRange {
  readonly span: Span
  readonly from: number
  readonly before: number
}

export interface SpanRanges extends TimeRange {
  /** The finest span that is used. The range begins and ends at a border of this span. */
  readonly finest: Span
  readonly pieces: readonly SpanRange[]
}

/** The longest range for which each span is used as the finest. */
const rangeMsMax: Readonly<Record<Span, number>> = {
  minute: 2 * DAY_MS,
  hour: 62 * DAY_MS,
  day: Number.POSITIVE_INFINITY,
  month: Number.POSITIVE_INFINITY,
}

export interface RangeRequest extends TimeRange {
  /** How long the requested sums are kept. */
  readonly keeps: SpanRetention
  readonly nowMs: number
  /** Spans that are finer than this are not used. */
  readonly coarsest?: Span | undefined
}

/** Widens the range to whole spans that are still kept, and splits it. */
export function splitIntoSpans({ fromMs, beforeMs, keeps, nowMs, coarsest = 'minute' }: RangeRequest): SpanRanges {
  const fits = (span: Span): boolean =>
    beforeMs - fromMs <= rangeMsMax[span] && isRangeKept(keeps, span, { fromMs, nowMs }) && !isFiner(span, coarsest)
  const finest = spans.find(fits) ?? 'month'
  const range = widenToSpan(finest, { fromMs, beforeMs })
  return { ...range, finest, pieces: splitRange(range, finest) }
}

const isFiner = (span: Span, than: Span): boolean => spans.indexOf(span) < spans.indexOf(than)

/** Whether all spans from `fromMs` on are still kept. */
export const isRangeKept = (
  keeps: SpanRetention,
  span: Span,
  { fromMs, nowMs }: { fromMs: number; nowMs: number },
): boolean => keeps[span] > 0 && fromMs >= nowMs - keeps[span]

export function widenToSpan(span: Span, { fromMs, beforeMs }: TimeRange): TimeRange {
  const last = spanAt(span, beforeMs - 1)
  return { fromMs: msOfSpan(span, spanAt(span, fromMs)), beforeMs: msOfSpan(span, last + 1) }
}

function splitRange({ fromMs, beforeMs }: TimeRange, finest: Span, coarsest: Span = 'month'): readonly SpanRange[] {
  if (fromMs >= beforeMs) return []
  if (coarsest === finest) {
    return [{ span: finest, from: spanAt(finest, fromMs), before: spanAt(finest, beforeMs - 1) + 1 }]
  }
  const finer = spans[spans.indexOf(coarsest) - 1]!
  const [from, before] = [spanAt(coarsest, fromMs - 1) + 1, spanAt(coarsest, beforeMs)]
  if (from >= before) return splitRange({ fromMs, beforeMs }, finest, finer)
  return [
    ...splitRange({ fromMs, beforeMs: msOfSpan(coarsest, from) }, finest, finer),
    { span: coarsest, from, before },
    ...splitRange({ fromMs: msOfSpan(coarsest, before), beforeMs }, finest, finer),
  ]
}
