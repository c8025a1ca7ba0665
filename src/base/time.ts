// Units of time, and times as ISO text, which is how every interface of the gateway shows them.

export const MINUTE_MS = 60_000
export const HOUR_MS = 60 * MINUTE_MS
export const DAY_MS = 24 * HOUR_MS

/** From milliseconds since 1970. Rows of the store that were read with exact integers have them as bigint. */
export const timeText = (ms: number | bigint): string => new Date(Number(ms)).toISOString()
export const timeOrNull = (ms: number | bigint | null): string | null => (ms === null ? null : timeText(ms))
