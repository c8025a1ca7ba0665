import { expect, test } from 'bun:test'
import { daysOfZone } from './zone-days.ts'

const daysOf = (zone: string, from: string, before: string) => {
  const found = daysOfZone(zone, { fromMs: Date.parse(from), beforeMs: Date.parse(before) })
  return found.done === 'found' ? found.days.map(ms => new Date(ms).toISOString().slice(0, 16)) : found.done
}

test('the days of a zone begin at its midnights', () => {
  expect(daysOf('UTC', '2026-03-01T00:00Z', '2026-03-02T00:00Z')).toEqual(['2026-03-01T00:00', '2026-03-02T00:00'])
  expect(daysOf('Asia/Shanghai', '2026-03-01T17:30Z', '2026-03-02T16:01Z')).toEqual([
    ...['2026-03-01T16:00', '2026-03-02T16:00', '2026-03-03T16:00'],
  ])
  expect(daysOf('America/New_York', '2026-12-31T23:00Z', '2027-01-01T06:00Z')).toEqual([
    ...['2026-12-31T05:00', '2027-01-01T05:00', '2027-01-02T05:00'],
  ])
})

test('a day on which the clocks change has 23 or 25 hours', () => {
  expect(daysOf('Europe/Berlin', '2026-03-28T23:00Z', '2026-03-30T22:00Z')).toEqual([
    ...['2026-03-28T23:00', '2026-03-29T22:00', '2026-03-30T22:00'],
  ])
  expect(daysOf('Europe/Berlin', '2026-10-24T22:00Z', '2026-10-26T23:00Z')).toEqual([
    ...['2026-10-24T22:00', '2026-10-25T23:00', '2026-10-26T23:00'],
  ])
  // In Chile the clocks change at midnight: this day begins at one o'clock.
  expect(daysOf('America/Santiago', '2026-09-05T12:00Z', '2026-09-07T03:00Z')).toEqual([
    ...['2026-09-05T04:00', '2026-09-06T04:00', '2026-09-07T03:00'],
  ])
  // Samoa left out a date when it moved to the other side of the date line.
  expect(daysOf('Pacific/Apia', '2011-12-29T12:00Z', '2011-12-30T12:00Z')).toEqual([
    ...['2011-12-29T10:00', '2011-12-30T10:00', '2011-12-31T10:00'],
  ])
})

test('days that do not begin at whole hours of UTC, and unknown zones, are refused', () => {
  for (const zone of ['Asia/Kolkata', 'Asia/Kathmandu', 'Australia/Adelaide']) {
    expect(daysOf(zone, '2026-03-01T00:00Z', '2026-03-02T00:00Z')).toBe('not_whole_hours')
  }
  // Lord Howe is half an hour from whole hours in winter, and not in summer.
  expect(daysOf('Australia/Lord_Howe', '2026-01-01T00:00Z', '2026-01-02T00:00Z')).toHaveLength(3)
  expect(daysOf('Australia/Lord_Howe', '2026-07-01T00:00Z', '2026-07-02T00:00Z')).toBe('not_whole_hours')
  expect(daysOf('Nowhere/Land', '2026-03-01T00:00Z', '2026-03-02T00:00Z')).toBe('zone_unknown')
})
