// Which rows together are a range of time: whole months as months, the days at its ends as days, and so on, so that a
// year is some seventy rows and not half a million.

import type { Keeps, Span } from './plan.ts'
import { msOfSpan, spanAt, spans } from './plan.ts'

export interface Range {
  readonly fromMs: number
  readonly beforeMs: number
}

/** Rows of one span, from one up to another. */
export interface Piece {
  readonly span: Span
  readonly from: number
  readonly before: number
}

export interface Pieces extends Range {
  /** The finest span that is in it: the range begins and ends with one of these. */
  readonly finest: Span
  readonly pieces: readonly Piece[]
}

const DAY_MS = 86_400_000
/** Where a range is longer than this, nobody sees so fine a part of it. */
const longest: Readonly<Record<Span, number>> = {
  minute: 2 * DAY_MS,
  hour: 62 * DAY_MS,
  day: Number.POSITIVE_INFINITY,
  month: Number.POSITIVE_INFINITY,
}

export interface Asked extends Range {
  /** For how long what is asked for is kept. */
  readonly keeps: Keeps
  readonly nowMs: number
  /** No finer than this. */
  readonly coarsest?: Span
}

/** The range, made wider to whole spans of those that are kept for it. */
export function piecesOf({ fromMs, beforeMs, keeps, nowMs, coarsest = 'minute' }: Asked): Pieces {
  const fits = (span: Span): boolean =>
    beforeMs - fromMs <= longest[span] && isWhole(keeps, span, { fromMs, nowMs }) && !isFiner(span, coarsest)
  const finest = spans.find(fits) ?? 'month'
  const range = widened(finest, { fromMs, beforeMs })
  return { ...range, finest, pieces: split(range, finest) }
}

const isFiner = (span: Span, than: Span): boolean => spans.indexOf(span) < spans.indexOf(than)

/** Whether all of the spans from then on are still there. */
export const isWhole = (keeps: Keeps, span: Span, { fromMs, nowMs }: { fromMs: number; nowMs: number }): boolean =>
  keeps[span] > 0 && fromMs >= nowMs - keeps[span]

export function widened(span: Span, { fromMs, beforeMs }: Range): Range {
  const last = spanAt(span, beforeMs - 1)
  return { fromMs: msOfSpan(span, spanAt(span, fromMs)), beforeMs: msOfSpan(span, last + 1) }
}

function split({ fromMs, beforeMs }: Range, finest: Span, coarsest: Span = 'month'): readonly Piece[] {
  if (fromMs >= beforeMs) return []
  if (coarsest === finest) {
    return [{ span: finest, from: spanAt(finest, fromMs), before: spanAt(finest, beforeMs - 1) + 1 }]
  }
  const finer = spans[spans.indexOf(coarsest) - 1]!
  const [from, before] = [spanAt(coarsest, fromMs - 1) + 1, spanAt(coarsest, beforeMs)]
  if (from >= before) return split({ fromMs, beforeMs }, finest, finer)
  return [
    ...split({ fromMs, beforeMs: msOfSpan(coarsest, from) }, finest, finer),
    { span: coarsest, from, before },
    ...split({ fromMs: msOfSpan(coarsest, before), beforeMs }, finest, finer),
  ]
}
