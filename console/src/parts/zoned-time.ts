// Dates with times of day in a time zone, as `<input type="datetime-local">` has them: 2026-11-17T08:41.

const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS
const DAY_MS = 24 * HOUR_MS
/** The gateway looks at the days around a range, too. */
const AROUND_MS = 2 * DAY_MS
const FIELDS = { year: 'numeric', month: '2-digit', day: '2-digit', hour: '2-digit', minute: '2-digit' } as const

/** The names of all zones. Some browsers leave out UTC. */
export function zoneNames(): readonly string[] {
  const names = Intl.supportedValuesOf('timeZone')
  return names.includes('UTC') ? names : ['UTC', ...names]
}

const formats = new Map<string | undefined, Intl.DateTimeFormat>()

function formatIn(zone: string | undefined): Intl.DateTimeFormat {
  let format = formats.get(zone)
  if (format === undefined)
    formats.set(zone, (format = new Intl.DateTimeFormat('en-US', { ...FIELDS, hourCycle: 'h23', timeZone: zone })))
  return format
}

/** `zone`: as `Intl` takes it; undefined: the zone of this browser. */
export function localTime(atMs: number, zone: string | undefined): string {
  const parts = formatIn(zone).formatToParts(atMs)
  const { year, month, day, hour, minute } = Object.fromEntries(parts.map(({ type, value }) => [type, value]))
  // While somebody types a year, it is the year 2, then 20, then 202.
  return `${year!.padStart(4, '0')}-${month}-${day}T${hour}:${minute}`
}

/** How much the clocks of the zone are ahead of UTC at this time. */
const aheadMs = (atMs: number, zone: string | undefined): number =>
  Date.parse(`${localTime(atMs, zone)}Z`) - Math.floor(atMs / MINUTE_MS) * MINUTE_MS

/**
 * The time at which the clocks of the zone show this. If the clocks show it twice or never, because they are put back or
 * forward, it is a time within the hour of the change.
 */
export function instantOf(local: string, zone: string | undefined): number {
  const asUtcMs = Date.parse(`${local}Z`)
  const firstMs = asUtcMs - aheadMs(asUtcMs, zone)
  // The first try may have used the difference on the other side of a change of the clocks.
  return asUtcMs - aheadMs(firstMs, zone)
}

/** Whether the days around a range begin at whole hours of UTC. Clocks are changed for longer than a day. */
export function hasWholeHours(zone: string, fromMs: number, beforeMs: number): boolean {
  const endMs = beforeMs + AROUND_MS
  for (let atMs = fromMs - AROUND_MS; atMs < endMs; atMs += DAY_MS)
    if (aheadMs(atMs, zone) % HOUR_MS !== 0) return false
  return aheadMs(endMs, zone) % HOUR_MS === 0
}
