import { expect, test } from 'bun:test'
import { instantOf, localTime } from './zoned-time.ts'

const HOUR_MS = 3_600_000

test('what a field shows is what it stands for, also around the days on which clocks are changed', () => {
  for (const zone of ['UTC', 'Asia/Shanghai', 'Asia/Kathmandu', 'America/New_York', 'Australia/Lord_Howe']) {
    const wrong: string[] = []
    for (let hour = 0; hour < 365 * 24; hour++) {
      const atMs = Date.UTC(2026, 0, 1) + hour * HOUR_MS
      // Clocks are changed at the beginning of March, April, October or November, or at the end of March.
      if (![2, 3, 9, 10].includes(new Date(atMs).getUTCMonth())) continue
      const local = localTime(atMs, zone)
      // Where the clocks are put back, a local time stands for two hours.
      if (localTime(instantOf(local, zone), zone) !== local) wrong.push(local)
    }
    expect({ zone, wrong }).toEqual({ zone, wrong: [] })
  }
})

test('times are those of the zone', () => {
  expect(localTime(Date.parse('2026-11-16T16:30:00Z'), 'Asia/Shanghai')).toBe('2026-11-17T00:30')
  expect(instantOf('2026-11-17T00:30', 'Asia/Shanghai')).toBe(Date.parse('2026-11-16T16:30:00Z'))
  expect(instantOf('2026-07-01T12:00', 'America/New_York')).toBe(Date.parse('2026-07-01T16:00:00Z'))
  expect(instantOf('2026-12-01T12:00', 'America/New_York')).toBe(Date.parse('2026-12-01T17:00:00Z'))
})

test('the clocks put forward: an hour that does not exist is near the change', () => {
  const atMs = instantOf('2026-03-08T02:30', 'America/New_York')
  expect(Math.abs(atMs - Date.parse('2026-03-08T07:00:00Z'))).toBeLessThanOrEqual(HOUR_MS)
})

test('a year that is being typed is no fault', () => {
  expect(localTime(instantOf('0002-11-17T08:41', 'UTC'), 'UTC')).toBe('0002-11-17T08:41')
})
