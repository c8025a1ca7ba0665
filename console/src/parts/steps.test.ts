import { expect, test } from 'bun:test'
import { Steps } from './steps.ts'

const texts = ({ times }: Steps): string[] => times.map(ms => new Date(ms).toISOString().slice(0, 16))
const calls = ({ calls }: { readonly calls: number }): number => calls

test('steps without calls are zero, and each value is at its own step', () => {
  const range = { from: '2026-11-17T08:20:00Z', before: '2026-11-17T12:10:00Z', step: 'hour' } as const
  const all = [
    { at: '2026-11-17T09:00:00.000Z', calls: 5 },
    { at: '2026-11-17T12:00:00.000Z', calls: 7 },
  ]
  const steps = new Steps(range, all)
  expect(texts(steps)).toEqual([8, 9, 10, 11, 12].map(hour => `2026-11-17T${String(hour).padStart(2, '0')}:00`))
  expect(steps.values(all, calls)).toEqual([0, 5, 0, 0, 7])
  // A group of calls that has only some of the steps.
  expect(steps.values(all.slice(1), calls)).toEqual([0, 0, 0, 0, 7])
  expect(steps.values([], calls)).toEqual([0, 0, 0, 0, 0])
})

test('days begin at midnight of the zone, also when the clocks change', () => {
  const range = { from: '2026-10-23T22:00:00Z', before: '2026-10-27T00:00:00Z', step: 'day' } as const
  expect(texts(new Steps({ ...range, zone: 'Europe/Berlin' }, []))).toEqual([
    '2026-10-23T22:00',
    '2026-10-24T22:00',
    '2026-10-25T23:00',
    '2026-10-26T23:00',
  ])
  expect(texts(new Steps(range, []))).toEqual(['23', '24', '25', '26'].map(day => `2026-10-${day}T00:00`))
})

test('a day whose midnight the clocks skip is one step', () => {
  // In Santiago the clocks are put forward from midnight to one o'clock on 6 September 2026.
  const zone = 'America/Santiago'
  const points = [{ at: '2026-09-06T04:00:00.000Z', calls: 3 }]
  const steps = new Steps({ from: '2026-09-05T05:00:00Z', before: '2026-09-08T00:00:00Z', step: 'day', zone }, points)
  expect(steps.times).toHaveLength(3)
  expect(steps.values(points, calls)).toEqual([0, 3, 0])
})

test('months and minutes', () => {
  const months = { from: '2026-11-30T00:00:00Z', before: '2027-02-01T00:00:00Z', step: 'month' } as const
  expect(texts(new Steps(months, []))).toEqual(['2026-11-01T00:00', '2026-12-01T00:00', '2027-01-01T00:00'])
  const minutes = { from: '2026-11-17T08:59:30Z', before: '2026-11-17T09:01:00Z', step: 'minute' } as const
  expect(texts(new Steps(minutes, []))).toEqual(['2026-11-17T08:59', '2026-11-17T09:00'])
})
