// Numbers, durations and times as text, in the language and the time zone of the viewer. Money is in money.ts.

import { currentLanguage, preferences } from '../preferences.ts'
import { instantOf, localTime } from './zoned-time.ts'

export * from './money.ts'

const locale = (): string => (currentLanguage() === 'zh' ? 'zh-CN' : 'en-US')

/** A way to write numbers. What a browser needs for it is made once for a language: `toLocaleString` makes it each time. */
function numberWriter(options?: Intl.NumberFormatOptions): (value: number) => string {
  const formats = new Map<string, Intl.NumberFormat>()
  return value => {
    let format = formats.get(locale())
    if (format === undefined) formats.set(locale(), (format = new Intl.NumberFormat(locale(), options)))
    return format.format(value)
  }
}

export const decimal = numberWriter()

export const wholeNumber = (value: number): string => decimal(Math.round(value))

/** For tiles and axes: 12.3K, 1.2万. */
export const shortNumber = numberWriter({ notation: 'compact', maximumFractionDigits: 1 })

const share = numberWriter({ style: 'percent', minimumFractionDigits: 1, maximumFractionDigits: 1 })

export const percent = (part: number, whole: number): string => (whole === 0 ? '\u2013' : share(part / whole))

/** `47 ms`, `1.32 s`, `2 min 5 s`, `3 h 20 min`, `5 d 2 h`. Units are written in all languages in this way. */
export function duration(ms: number | null): string {
  if (ms === null) return '\u2013'
  if (ms < 10) return `${(Math.round(ms * 10) / 10).toString()} ms`
  if (ms < 1_000) return `${Math.round(ms)} ms`
  if (ms < 60_000) return `${(ms / 1_000).toFixed(ms < 10_000 ? 2 : 1)} s`
  const seconds = Math.round(ms / 1_000)
  if (seconds < 3_600) return `${Math.floor(seconds / 60)} min ${seconds % 60} s`
  const minutes = Math.round(seconds / 60)
  if (minutes < 1_440) return `${Math.floor(minutes / 60)} h ${minutes % 60} min`
  const hours = Math.round(minutes / 60)
  return `${Math.floor(hours / 24)} d ${hours % 24} h`
}

export function bytes(count: number): string {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB']
  let value = count
  let unit = 0
  while (value >= 1_024 && unit < units.length - 1) {
    value /= 1_024
    unit++
  }
  return `${unit === 0 ? value : value.toFixed(1)} ${units[unit]}`
}

/** The time zone that times are shown in, as `Intl` takes it. Undefined: the zone of this browser. */
export const zoneName = (): string | undefined => {
  const { zone } = preferences()
  return zone === 'local' ? undefined : zone
}

const DAY = { year: 'numeric', month: '2-digit', day: '2-digit' } as const
const CLOCK = { hour: '2-digit', minute: '2-digit', second: '2-digit' } as const
const DAY_AND_CLOCK = { ...DAY, ...CLOCK } as const
const ZONE = { timeZoneName: 'shortOffset' } as const
type Options = typeof DAY | typeof CLOCK | typeof ZONE

/** By the options, and then by the language and the zone. */
const allFormats = new Map<Options, Map<string, Intl.DateTimeFormat>>()

function formatter(options: Options, zone: string | undefined): Intl.DateTimeFormat {
  let formats = allFormats.get(options)
  if (formats === undefined) allFormats.set(options, (formats = new Map()))
  const key = `${locale()} ${zone ?? ''}`
  let format = formats.get(key)
  if (format === undefined) {
    format = new Intl.DateTimeFormat(locale(), {
      ...options,
      hourCycle: 'h23',
      ...(zone !== undefined && { timeZone: zone }),
    })
    formats.set(key, format)
  }
  return format
}

type DateInput = string | number | Date
const partsOf = (at: DateInput, options: Options, zone = zoneName()): Readonly<Record<string, string>> =>
  Object.fromEntries(
    formatter(options, zone)
      .formatToParts(new Date(at))
      .map(({ type, value }) => [type, value]),
  )

/** `2026-11-17`. `zone`: if it is not that of the viewer. */
export function day(at: DateInput, zone?: string): string {
  const { year, month, day: date } = partsOf(at, DAY, zone)
  return `${year}-${month}-${date}`
}

/** `2026-11-17 08:41:07`, the same in every language: it sorts, and nobody mistakes the month for the day. */
export function time(
  at: DateInput,
  { seconds = true, zone }: { seconds?: boolean; zone?: string | undefined } = {},
): string {
  const { year, month, day: date, hour, minute, second } = partsOf(at, DAY_AND_CLOCK, zone)
  return `${year}-${month}-${date} ${hour}:${minute}${seconds ? `:${second}` : ''}`
}

export function clock(at: DateInput, { seconds = true } = {}): string {
  const { hour, minute, second } = partsOf(at, CLOCK)
  return `${hour}:${minute}${seconds ? `:${second}` : ''}`
}

/** `UTC+8`: the zone of the shown times, for the heads of tables and charts. */
export function zoneLabel(at: DateInput = Date.now(), zone?: string): string {
  const name = partsOf(at, ZONE, zone).timeZoneName ?? 'UTC'
  return name.replace('GMT', 'UTC')
}

/** A time as a field for times shows it, in the zone of the viewer; empty if it is no time. */
export function fieldTime(at: string | null | undefined): string {
  const atMs = Date.parse(at ?? '')
  return Number.isNaN(atMs) ? '' : localTime(atMs, zoneName())
}

/** What was typed into a field for times, as the gateway takes it; undefined if the field is empty. */
export const timeOfField = (text: string): string | undefined =>
  text === '' ? undefined : new Date(instantOf(text, zoneName())).toISOString()

const relative = new Map<string, Intl.RelativeTimeFormat>()
const AGES = [
  ['second', 60],
  ['minute', 60],
  ['hour', 24],
  ['day', 30],
  ['month', 12],
] as const

/** `5 minutes ago`, `in 3 days`. */
export function ago(at: DateInput, nowMs = Date.now()): string {
  let format = relative.get(locale())
  if (format === undefined)
    relative.set(locale(), (format = new Intl.RelativeTimeFormat(locale(), { numeric: 'auto' })))
  let value = (new Date(at).getTime() - nowMs) / 1_000
  for (const [unit, size] of AGES) {
    if (Math.abs(value) < size) return format.format(Math.round(value), unit)
    value /= size
  }
  return format.format(Math.round(value), 'year')
}
