// The text format, to the letter.

import { expect, test } from 'bun:test'
import { Metrics } from './metrics.ts'

test('counters grow, gauges are read, labels are escaped, and what cannot be read is left out', () => {
  const metrics = new Metrics()
  const plain = metrics.counter('weir_a_total', 'As.')
  const count = metrics.counters('weir_b_total', 'Bs.', 'kind')
  let level = 3
  metrics.gauge('weir_level', 'Level.', () => level)
  metrics.counted('weir_c_total', 'Cs.', () => 7.5)
  metrics.gauge('weir_unknown', 'Nothing yet.', () => undefined)
  metrics.gauge('weir_broken', 'Broken.', () => {
    throw new Error('closed')
  })
  plain.add()
  plain.add(4)
  for (const kind of ['x', 'x', 'say "\\"\n']) count(kind)
  level = 2
  expect(metrics.write()).toBe(`# HELP weir_a_total As.
# TYPE weir_a_total counter
weir_a_total 5
# HELP weir_b_total Bs.
# TYPE weir_b_total counter
weir_b_total{kind="x"} 2
weir_b_total{kind="say \\"\\\\\\"\\n"} 1
# HELP weir_level Level.
# TYPE weir_level gauge
weir_level 2
# HELP weir_c_total Cs.
# TYPE weir_c_total counter
weir_c_total 7.5
# HELP weir_unknown Nothing yet.
# TYPE weir_unknown gauge
# HELP weir_broken Broken.
# TYPE weir_broken gauge
`)
})
