// Parses durations and dates as upstreams write them into headers and errors.

export type HeaderReader = (name: string) => string | null | undefined

/** A number of seconds from here on is a Unix time, not a duration: as a duration it would be thirty years. */
export const EPOCH_S_MIN = 1_000_000_000

/** The upstream's clock by its `date` header, else ours. */
export function upstreamNowMs(header: HeaderReader, nowDateMs: number): number {
  return readDate(header('date')?.trim()) ?? nowDateMs
}

/** Plain decimals only: neither `1e9` nor `0x10` nor `Infinity`. */
export function readNumber(text: string | null | undefined): number | undefined {
  const trimmed = text?.trim()
  return trimmed && trimmed.length <= 20 && /^\d+(\.\d+)?$/.test(trimmed) ? Number(trimmed) : undefined
}

const UNITS_MS: Readonly<Record<string, number>> = {
  d: 86_400_000,
  h: 3_600_000,
  m: 60_000,
  s: 1_000,
  ms: 1,
  us: 0.001,
  µs: 0.001,
  ns: 0.000_001,
}

/** As in `6m0s`, `1.5s`, `20ms`. */
export function readDuration(text: string): number | undefined {
  if (text.length > 32 || !/^(\d+(\.\d+)?(d|h|ms|m|us|µs|ns|s))+$/.test(text)) return undefined
  let ms = 0
  for (const [, count, unit] of text.matchAll(/(\d+(?:\.\d+)?)(d|h|ms|m|us|µs|ns|s)/g)) {
    ms += Number(count) * UNITS_MS[unit!]!
  }
  return ms
}

/** Reads an HTTP date or an RFC 3339 date. */
export function readDate(text: string | null | undefined): number | undefined {
  if (!text || text.length > 40 || !/^([A-Za-z]{3,9},? |\d{4}-\d\d-\d\dT)/.test(text)) return undefined
  const ms = Date.parse(text)
  return Number.isFinite(ms) ? ms : undefined
}
