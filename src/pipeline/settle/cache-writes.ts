// Prices what is written to a prompt cache for an hour, which costs more than for five minutes. Some reports only say how
// much was written. Then the request decides: if it asks for an hour anywhere, all of it counts as written for an hour.

import type { Usage } from '../../base/money/usage.ts'
import { isObject } from '../../protocols/request/json-body.ts'
import type { Candidate, Exchange, Hold } from '../exchange.ts'

const HOUR = '1h'
/** How a text may hide the word: JSON can write any character as `\u` and its number. */
const ESCAPE = '\\u00'

/** Notes what the request asks for, before its body is released. */
export function noteHourCache({ route, call }: Hold): void {
  const hasOwnRate = ({ price }: Candidate): boolean => price?.price.rates.cacheWrite1h !== undefined
  if (!route.candidates.some(hasOwnRate)) return
  if (!call.body.includes(HOUR) && !call.body.includes(ESCAPE)) return
  if (asksForHour(call.json)) call.cachesForHour = true
}

/** A breakpoint can be on the request itself, a tool, a message or a part. */
function asksForHour(value: unknown): boolean {
  if (Array.isArray(value)) return (value as readonly unknown[]).some(asksForHour)
  if (!isObject(value)) return false
  const { cache_control: mark } = value
  return (isObject(mark) && mark.ttl === HOUR) || Object.values(value).some(asksForHour)
}

/** Another dialect than the caller's has no breakpoint for an hour, or reports what it wrote for it. */
export function withHourWrites(usage: Usage, { call, attempt: { candidate } }: Exchange): Usage {
  const { untimedWrites = 0, ...timed } = usage
  if (untimedWrites === 0) return usage
  if (!call?.cachesForHour || candidate?.upstreamProtocol.name !== call.dialect) return timed
  const { cacheWrite = 0, cacheWrite1h = 0 } = timed
  return { ...timed, cacheWrite: cacheWrite - untimedWrites, cacheWrite1h: cacheWrite1h + untimedWrites }
}
