// The days of a time zone. Statistics are stored by hours of UTC, so a day of a zone is made from hours. Where the days of
// a zone do not begin at whole hours of UTC, as in India, this is not possible.

import { DAY_MS, HOUR_MS } from '../../base/time.ts'
import type { TimeRange } from '../../store/statistics/ranges.ts'

export type ZoneDays =
  /** The starts of the days in milliseconds, and the end of the last one. */
  { readonly done: 'found'; readonly days: readonly number[] } | { readonly done: 'zone_unknown' | 'not_whole_hours' }

/** No day is longer than 25 hours, or 48 where a zone has left out a date. */
const AROUND_MS = 2 * DAY_MS

/** The days that contain a range. On days when the clocks change they have 23 or 25 hours. */
export function daysOfZone(zone: string, { fromMs, beforeMs }: TimeRange): ZoneDays {
  let format: Intl.DateTimeFormat
  try {
    const parts = { year: 'numeric', month: '2-digit', day: '2-digit', minute: '2-digit' } as const
    format = new Intl.DateTimeFormat('en-CA', { ...parts, hour: '2-digit', hourCycle: 'h23', timeZone: zone })
  } catch {
    return { done: 'zone_unknown' }
  }
  const starts: number[] = []
  let date = ''
  const hour = (ms: number): number => Math.floor(ms / HOUR_MS) * HOUR_MS
  for (let ms = hour(fromMs) - AROUND_MS; ms < beforeMs + AROUND_MS; ms += HOUR_MS) {
    const local = format.format(ms)
    if (!local.endsWith(':00')) return { done: 'not_whole_hours' }
    const localDate = local.slice(0, 10)
    // The first hour may be in the middle of its day.
    if (date !== '' && localDate !== date) starts.push(ms)
    date = localDate
  }
  const first = starts.findLastIndex(ms => ms <= fromMs)
  const end = starts.findIndex(ms => ms >= beforeMs)
  return { done: 'found', days: starts.slice(first, end + 1) }
}
