// Reads how long an upstream asks callers to wait before they retry, from its headers and its error.
//
// A wait is limited to an hour. Values that are invalid, zero or in the past are ignored; then the gateway's own backoff
// applies. Dates are compared with the upstream's own clock (its `date` header) where it sends one, so that a jump of
// our clock changes nothing.

import { bounds } from '../../base/bounds.ts'
import { readUpstreamLimits } from './headers.ts'
import type { HeaderReader } from './times.ts'
import { EPOCH_S_MIN, readDate, readDuration, readNumber, upstreamNowMs } from './times.ts'

/** The answer of an upstream that refuses a call. */
export interface RefusalResponse {
  readonly header: HeaderReader
  /** Its error: the wait that it names, and its message. */
  readonly error: { readonly status: number; readonly retryAfter?: string; readonly message: string }
}

/** Statuses of overload and rate limits. Only with these do the message and the limit headers name a wait. */
const RETRY_LATER: ReadonlySet<number> = new Set([429, 503, 529])

/**
 * Looks at the retry headers, then at the error's own field, then at its message, and last at the reset times of limits
 * that are used up. Undefined when none of them names a usable wait.
 */
export function readRetryDelay({ header, error }: RefusalResponse, nowDateMs: number): number | undefined {
  const statedMs = readRetryAfter(header, nowDateMs) ?? readWaitText(error.retryAfter, header, nowDateMs)
  if (statedMs !== undefined || !RETRY_LATER.has(error.status)) return statedMs
  return readMessage(error.message) ?? readReset(header, nowDateMs)
}

/** Only the start of a message is read, because the rest may quote the caller's own text. */
const MESSAGE_CHARS = 300
const WAIT_IN_MESSAGE =
  /\b(?:try again|retry|wait)(?: in| after| for)? ((?:\d+(?:\.\d+)?(?:ms|[hms]))+|\d+(?:\.\d+)?)\b ?(\w*)/i
const UNIT_WORDS_MS: Readonly<Record<string, number>> = { milli: 1, minut: 60_000, hours: 3_600_000, hour: 3_600_000 }

/** As in `Please try again in 6m0s.` or `Please retry in 34.4s.`; at most the longest Retry-After that callers get. */
function readMessage(message: string): number | undefined {
  const [, amount, unit = ''] = WAIT_IN_MESSAGE.exec(message.slice(0, MESSAGE_CHARS)) ?? []
  if (amount === undefined) return undefined
  const unitMs = UNIT_WORDS_MS[unit.toLowerCase().slice(0, 5)] ?? 1_000
  const ms = readDuration(amount) ?? Number(amount) * unitMs
  return clampWait(Math.min(ms, bounds.retryAfterSecondsMax * 1_000))
}

/** The longest time until the limits that are used up are reset. */
function readReset(header: HeaderReader, nowDateMs: number): number | undefined {
  let longest: number | undefined
  for (const { remaining, resetMs } of readUpstreamLimits(header, nowDateMs) ?? []) {
    if (remaining === 0 && resetMs !== undefined) longest = Math.max(longest ?? 0, resetMs)
  }
  return clampWait(longest)
}

/** Reads the retry headers alone. Undefined when they name no usable wait. */
export function readRetryAfter(header: HeaderReader, nowDateMs: number): number | undefined {
  const ms = clampWait(readNumber(header('retry-after-ms')))
  return ms ?? readWaitText(header('retry-after'), header, nowDateMs)
}

/** Reads a duration, in seconds where it has no unit, or a date. */
function readWaitText(value: string | null | undefined, header: HeaderReader, nowDateMs: number): number | undefined {
  const text = value?.trim()
  if (!text) return undefined
  const seconds = readNumber(text)
  if (seconds !== undefined && seconds < EPOCH_S_MIN) return clampWait(seconds * 1_000)
  const durationMs = seconds === undefined ? readDuration(text) : undefined
  if (durationMs !== undefined) return clampWait(durationMs)
  const dateMs = seconds === undefined ? readDate(text) : seconds * 1_000
  return dateMs === undefined ? undefined : clampWait(dateMs - upstreamNowMs(header, nowDateMs))
}

/** Drops a wait that is not positive, and limits it to an hour. */
function clampWait(ms: number | undefined): number | undefined {
  return ms !== undefined && ms > 0 ? Math.min(ms, bounds.channelPauseMsMax) : undefined
}
