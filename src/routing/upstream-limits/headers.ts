// What an upstream's own headers say of its limits.

import type { Header } from './times.ts'
import { EPOCH_S_MIN, readDate, readDuration, readNumber, upstreamNowMs } from './times.ts'

export interface ToldLimit {
  readonly resource: 'requests' | 'tokens'
  readonly limit?: number
  readonly remaining?: number
  readonly resetMs?: number
}

/** How headers are named; of several that speak of the same, the first that is there counts. */
const FAMILIES: readonly (readonly [ToldLimit['resource'], (what: string) => string])[] = [
  ['requests', what => `x-ratelimit-${what}-requests`],
  ['tokens', what => `x-ratelimit-${what}-tokens`],
  ['requests', what => `anthropic-ratelimit-requests-${what}`],
  ['tokens', what => `anthropic-ratelimit-tokens-${what}`],
  ['tokens', what => `anthropic-ratelimit-input-tokens-${what}`],
]
const ROWS = FAMILIES.map(([resource, name]) => {
  return { resource, limit: name('limit'), remaining: name('remaining'), reset: name('reset') }
})

/** Beyond that nothing is limited. */
const LIMIT_MAX = 1e10

/** Undefined when nothing is said. `nowDateMs`: for an upstream that tells a date and not what time it is there. */
export function readToldLimits(header: Header, nowDateMs?: number): readonly ToldLimit[] | undefined {
  let told: ToldLimit[] | undefined
  for (const row of ROWS) {
    const remaining = readNumber(header(row.remaining))
    if (remaining === undefined || told?.some(({ resource }) => resource === row.resource)) continue
    const limit = readNumber(header(row.limit))
    const resetMs = readReset(header(row.reset)?.trim(), header, nowDateMs)
    const known = limit !== undefined && limit > 0 && limit <= LIMIT_MAX
    told ??= []
    told.push({
      resource: row.resource,
      remaining,
      ...(known && { limit }),
      ...(resetMs !== undefined && { resetMs }),
    })
  }
  return told
}

/** A span, or a date; a plain number is of seconds. */
function readReset(text: string | undefined, header: Header, nowDateMs: number | undefined): number | undefined {
  if (!text) return undefined
  const seconds = readNumber(text)
  if (seconds !== undefined && seconds < EPOCH_S_MIN) return seconds * 1_000
  const spanMs = readDuration(text)
  if (spanMs !== undefined) return spanMs
  // Since 1970, and in milliseconds if it would else be a date in thirty thousand years.
  const dateMs = seconds === undefined ? readDate(text) : seconds < EPOCH_S_MIN * 1_000 ? seconds * 1_000 : seconds
  const nowMs = upstreamNowMs(header, nowDateMs ?? Number.NaN)
  return dateMs === undefined || Number.isNaN(nowMs) ? undefined : Math.max(0, dateMs - nowMs)
}
