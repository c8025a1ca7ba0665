// Where the days of a chart begin. The gateway makes the days of a time zone from hours of UTC, which it keeps for 92 days.
// So it has no days of a zone that is half an hour off, as in India, and none for older times: it refuses to be asked.

import { zoneName } from './format.ts'
import type { Range } from './search.ts'
import { hasWholeHours } from './zoned-time.ts'

const HOURS_KEPT_MS = 92 * 86_400_000

export interface ChartDays {
  /** For a request by days, and for the steps of its chart. Undefined: days of UTC. */
  readonly zone: string | undefined
  /** The days are those of UTC, although the viewer has another zone. */
  readonly isInstead: boolean
}

/** The days of the viewer's zone where the gateway has them, else those of UTC. */
export function chartDays({ from, before }: Pick<Range, 'from' | 'before'>, nowMs = Date.now()): ChartDays {
  const zone = zoneName() ?? Intl.DateTimeFormat().resolvedOptions().timeZone
  if (zone === 'UTC') return { zone: undefined, isInstead: false }
  const [fromMs, beforeMs] = [Date.parse(from), before === undefined ? nowMs : Date.parse(before)]
  const isKept = fromMs >= nowMs - HOURS_KEPT_MS && beforeMs - fromMs <= HOURS_KEPT_MS
  const isOffered = isKept && hasWholeHours(zone, fromMs, beforeMs)
  return isOffered ? { zone, isInstead: false } : { zone: undefined, isInstead: true }
}
