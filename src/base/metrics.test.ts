// Tests the exact text formats of metrics.

import { expect, test } from 'bun:test'
import { readExposition, valueOf } from '../../test/metrics/exposition.ts'
import { bounds } from './bounds.ts'
import { Metrics } from './metrics.ts'

function sampleMetrics(): Metrics {
  const metrics = new Metrics()
  const plain = metrics.counter('weir_a_total', 'As.')
  const countersByKind = metrics.counters('weir_b_total', 'Bs.', ['kind', 'of'])
  let level = 3
  metrics.gauge('weir_level', 'Level.', () => level)
  metrics.observableCounter('weir_c_total', 'Cs.', () => 7.5)
  metrics.gauge('weir_each', 'Each.', {
    labels: ['name'],
    read: () => [
      [['x'], 1],
      [['y'], Infinity],
    ],
  })
  metrics.gauge('weir_unknown', 'Nothing yet.', () => undefined)
  metrics.gauge('weir_broken', 'Broken.', () => {
    throw new Error('closed')
  })
  const times = metrics.histograms('weir_d', 'Ds.', { labels: ['at'], upTo: [0.1, 1] })
  for (const value of [0.1, 0.5, 9]) times('here').observe(value)
  plain.add()
  plain.add(4)
  for (const kind of ['x', 'x', 'say "\\"\n']) countersByKind(kind, 'y').add()
  level = 2
  return metrics
}

const EXPECTED_TEXT = `# HELP weir_a_total As.
# TYPE weir_a_total counter
weir_a_total 5
# HELP weir_b_total Bs.
# TYPE weir_b_total counter
weir_b_total{kind="x",of="y"} 2
weir_b_total{kind="say \\"\\\\\\"\\n",of="y"} 1
# HELP weir_level Level.
# TYPE weir_level gauge
weir_level 2
# HELP weir_c_total Cs.
# TYPE weir_c_total counter
weir_c_total 7.5
# HELP weir_each Each.
# TYPE weir_each gauge
weir_each{name="x"} 1
weir_each{name="y"} +Inf
# HELP weir_unknown Nothing yet.
# TYPE weir_unknown gauge
# HELP weir_broken Broken.
# TYPE weir_broken gauge
# HELP weir_d Ds.
# TYPE weir_d histogram
weir_d_bucket{at="here",le="0.1"} 1
weir_d_bucket{at="here",le="1"} 2
weir_d_bucket{at="here",le="+Inf"} 3
weir_d_sum{at="here"} 9.6
weir_d_count{at="here"} 3
`

test('the text has counters, gauges and escaped labels, and leaves out a gauge that throws', () => {
  const text = sampleMetrics().write()
  expect(text).toBe(EXPECTED_TEXT)
  expect(valueOf(readExposition(text), 'weir_b_total', { kind: 'say "\\"\n' })).toBe(1)
})

test('OpenMetrics names counters without _total and ends with # EOF', () => {
  const text = sampleMetrics().write('openmetrics')
  expect(text).toBe(`${EXPECTED_TEXT.replace(/^(# (?:HELP|TYPE) \w+)_total /gm, '$1 ')}# EOF\n`)
  readExposition(text, 'openmetrics')
})

test('the series of a metric are bounded: later ones are counted as other', () => {
  const metrics = new Metrics()
  const manyCounters = metrics.counters('weir_many_total', 'Many.', ['a', 'b'])
  const [times, extra] = [metrics.histograms('weir_long', 'Long.', { labels: ['a'], upTo: [1] }), 500]
  for (let index = 0; index < bounds.metricSeriesMax + extra; index++) {
    manyCounters(`a${index}`, 'b').add()
    times(`a${index}`).observe(index)
  }
  metrics.gauge('weir_rows', 'Rows.', {
    labels: ['a'],
    read: () => Array.from({ length: bounds.metricSeriesMax + extra }, (_, index) => [[`a${index}`], index] as const),
  })
  const [many, long, rows] = readExposition(metrics.write())
  expect(many!.samples).toHaveLength(bounds.metricSeriesMax + 1)
  expect(valueOf([many!], 'weir_many_total', { a: 'other', b: 'other' })).toBe(extra)
  expect(valueOf([long!], 'weir_long_count', { a: 'other' })).toBe(extra)
  expect(rows!.samples).toHaveLength(bounds.metricSeriesMax)
})

test('the name of a metric is registered once, and only names of counters end in _total', () => {
  const metrics = new Metrics()
  metrics.counter('weir_a_total', 'As.')
  expect(() => metrics.counter('weir_a_total', 'Again.')).toThrow()
  expect(() => metrics.counter('weir_b', 'Bs.')).toThrow()
  expect(() => metrics.gauge('weir_c_total', 'Cs.', () => 1)).toThrow()
})
