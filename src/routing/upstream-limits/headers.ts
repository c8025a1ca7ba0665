// Reads the rate-limit headers of an upstream.

import type { HeaderReader } from './times.ts'
import { EPOCH_S_MIN, readDate, readDuration, readNumber, upstreamNowMs } from './times.ts'

export interface UpstreamLimit {
  readonly resource: 'requests' | 'tokens'
  readonly limit?: number
  readonly remaining?: number
  readonly resetMs?: number
}

/** The header names of providers. If several name the same resource, the first one that is present counts. */
const FAMILIES: readonly (readonly [UpstreamLimit['resource'], (field: string) => string])[] = [
  ['requests', field => `x-ratelimit-${field}-requests`],
  ['tokens', field => `x-ratelimit-${field}-tokens`],
  ['requests', field => `anthropic-ratelimit-requests-${field}`],
  ['tokens', field => `anthropic-ratelimit-tokens-${field}`],
  ['tokens', field => `anthropic-ratelimit-input-tokens-${field}`],
]
const ROWS = FAMILIES.map(([resource, name]) => {
  return { resource, limit: name('limit'), remaining: name('remaining'), reset: name('reset') }
})

/** A larger number means: no limit. */
const LIMIT_MAX = 1e10

/** Undefined without such headers. `nowDateMs`: our clock, used for reset dates of an upstream that sends no `date`. */
export function readUpstreamLimits(header: HeaderReader, nowDateMs?: number): readonly UpstreamLimit[] | undefined {
  let limits: UpstreamLimit[] | undefined
  for (const row of ROWS) {
    const remaining = readNumber(header(row.remaining))
    if (remaining === undefined || limits?.some(({ resource }) => resource === row.resource)) continue
    const limit = readNumber(header(row.limit))
    const resetMs = readReset(header(row.reset)?.trim(), header, nowDateMs)
    const isLimitKnown = limit !== undefined && limit > 0 && limit <= LIMIT_MAX
    limits ??= []
    limits.push({
      resource: row.resource,
      remaining,
      ...(isLimitKnown && { limit }),
      ...(resetMs !== undefined && { resetMs }),
    })
  }
  return limits
}

/** Reads a duration or a date. A plain number is a number of seconds. */
function readReset(text: string | undefined, header: HeaderReader, nowDateMs: number | undefined): number | undefined {
  if (!text) return undefined
  const seconds = readNumber(text)
  if (seconds !== undefined && seconds < EPOCH_S_MIN) return seconds * 1_000
  const durationMs = readDuration(text)
  if (durationMs !== undefined) return durationMs
  // A Unix time in seconds, or in milliseconds if as seconds it would be thousands of years ahead.
  const dateMs = seconds === undefined ? readDate(text) : seconds < EPOCH_S_MIN * 1_000 ? seconds * 1_000 : seconds
  const nowMs = upstreamNowMs(header, nowDateMs ?? Number.NaN)
  return dateMs === undefined || Number.isNaN(nowMs) ? undefined : Math.max(0, dateMs - nowMs)
}
