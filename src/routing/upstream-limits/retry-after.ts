// How long an upstream wants to be left alone, from whatever it says about that.
//
// Nothing that it says is believed beyond an hour. What makes no sense, is over, or is no time at all is as if it had
// not been said: then the gateway's own patience counts. Dates are held against the upstream's own clock where it
// tells it, so that a jump of ours changes nothing.

import { bounds } from '../../base/bounds.ts'
import { readToldLimits } from './headers.ts'
import type { Header } from './times.ts'
import { EPOCH_S_MIN, readDate, readDuration, readNumber, upstreamNowMs } from './times.ts'

/** What an upstream refuses a call with. */
export interface RefusedWith {
  readonly header: Header
  /** What its error says of a wait, and its sentence. */
  readonly words: { readonly status: number; readonly retryAfter?: string; readonly message: string }
}

/** Statuses that say that it is too much now, so that what else is said of limits is about this. */
const LATER: ReadonlySet<number> = new Set([429, 503, 529])

/**
 * From all that a refusal says: its headers, then its error, then the sentence of that, and at last when the limits
 * that are used up begin anew. Undefined when nothing usable is said.
 */
export function readWait({ header, words }: RefusedWith, nowDateMs: number): number | undefined {
  const said = readRetryAfter(header, nowDateMs) ?? readWaitText(words.retryAfter, header, nowDateMs)
  if (said !== undefined || !LATER.has(words.status)) return said
  return readSentence(words.message) ?? readReset(header, nowDateMs)
}

/** Only the first words: further on a sentence may repeat what the caller wrote. */
const SENTENCE_CHARS = 300
const IN_SENTENCE =
  /\b(?:try again|retry|wait)(?: in| after| for)? ((?:\d+(?:\.\d+)?(?:ms|[hms]))+|\d+(?:\.\d+)?)\b ?(\w*)/i
const WORDS_MS: Readonly<Record<string, number>> = { milli: 1, minut: 60_000, hours: 3_600_000, hour: 3_600_000 }

/** As in `Please try again in 6m0s.` or `Please retry in 34.4s.`; no more than callers are told to wait. */
function readSentence(message: string): number | undefined {
  const [, span, word = ''] = IN_SENTENCE.exec(message.slice(0, SENTENCE_CHARS)) ?? []
  if (span === undefined) return undefined
  const each = WORDS_MS[word.toLowerCase().slice(0, 5)] ?? 1_000
  const ms = readDuration(span) ?? Number(span) * each
  return believed(Math.min(ms, bounds.retryAfterSecondsMax * 1_000))
}

/** When the limits that are used up begin anew: the last of them, since all must. */
function readReset(header: Header, nowDateMs: number): number | undefined {
  let longest: number | undefined
  for (const { remaining, resetMs } of readToldLimits(header, nowDateMs) ?? []) {
    if (remaining === 0 && resetMs !== undefined) longest = Math.max(longest ?? 0, resetMs)
  }
  return believed(longest)
}

/** Undefined when nothing usable is said. */
export function readRetryAfter(header: Header, nowDateMs: number): number | undefined {
  const ms = believed(readNumber(header('retry-after-ms')))
  return ms ?? readWaitText(header('retry-after'), header, nowDateMs)
}

/** A span, of seconds where it has no unit, or a date. */
function readWaitText(value: string | null | undefined, header: Header, nowDateMs: number): number | undefined {
  const text = value?.trim()
  if (!text) return undefined
  const seconds = readNumber(text)
  if (seconds !== undefined && seconds < EPOCH_S_MIN) return believed(seconds * 1_000)
  const spanMs = seconds === undefined ? readDuration(text) : undefined
  if (spanMs !== undefined) return believed(spanMs)
  const dateMs = seconds === undefined ? readDate(text) : seconds * 1_000
  return dateMs === undefined ? undefined : believed(dateMs - upstreamNowMs(header, nowDateMs))
}

function believed(ms: number | undefined): number | undefined {
  return ms !== undefined && ms > 0 ? Math.min(ms, bounds.channelClosedMsMax) : undefined
}
