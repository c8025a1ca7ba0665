// Metrics of several processes in one text, which a strict reader must understand.

import { expect, test } from 'bun:test'
import { readExposition, valueOf } from '../../../test/metrics/exposition.ts'
import { Metrics } from '../../base/metrics.ts'
import { MetricsSum } from './metrics-sum.ts'

/** The text of a process with these calls: for each the model and how long it took. */
function textOf(calls: readonly (readonly [model: string, seconds: number])[], active: number): string {
  const metrics = new Metrics()
  const count = metrics.counters('calls_total', 'Calls.', ['model'])
  const took = metrics.histograms('seconds', 'Time.', { labels: ['model'], upTo: [1, 10] })
  metrics.gauge('active', 'Active calls.', () => active)
  metrics.gauge('state', 'States.', { labels: ['of'], read: () => [[['a "b", c'], active]] })
  for (const [model, seconds] of calls) {
    count(model).add()
    took(model).observe(seconds)
  }
  return metrics.write('prometheus')
}

test('counters and histograms are added, gauges have the number of their process', () => {
  const sum = new MetricsSum()
  sum.note(
    2,
    textOf(
      [
        ['m', 20],
        ['other one', 0.5],
      ],
      7,
    ),
  )
  sum.note(
    1,
    textOf(
      [
        ['m', 2],
        ['m', 3],
      ],
      5,
    ),
  )
  const read = readExposition(sum.write())
  expect(valueOf(read, 'calls_total', { model: 'm' })).toBe(3)
  expect(valueOf(read, 'calls_total', { model: 'other one' })).toBe(1)
  expect(valueOf(read, 'seconds_bucket', { model: 'm', le: '10' })).toBe(2)
  expect(valueOf(read, 'seconds_count', { model: 'm' })).toBe(3)
  expect(valueOf(read, 'seconds_sum', { model: 'm' })).toBe(25)
  expect(valueOf(read, 'active', { process: '1' })).toBe(5)
  expect(valueOf(read, 'active', { process: '2' })).toBe(7)
  expect(valueOf(read, 'state', { process: '2', of: 'a "b", c' })).toBe(7)
})

test('what an ended process has counted stays, its gauges do not', () => {
  const sum = new MetricsSum()
  sum.note(1, textOf([['m', 2]], 5))
  sum.note(
    1,
    textOf(
      [
        ['m', 2],
        ['m', 2],
      ],
      6,
    ),
  )
  sum.end(1)
  sum.end(1)
  expect(valueOf(readExposition(sum.write()), 'calls_total')).toBe(2)
  expect(valueOf(readExposition(sum.write()), 'active')).toBeUndefined()
  sum.note(1, textOf([['m', 2]], 1))
  const read = readExposition(sum.write())
  expect(valueOf(read, 'calls_total')).toBe(3)
  expect(valueOf(read, 'seconds_count')).toBe(3)
  expect(valueOf(read, 'active')).toBe(1)
})
