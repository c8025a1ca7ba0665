// Tests what `weir record` prints about the cost of a call.

import { expect, test } from 'bun:test'
import { recordLines } from './records.ts'

/** 1000 and 2000 tokens at 0.10 dollars for a million: 0.0003 dollars. */
const lines = [1_000, 2_000].map(count => ({ what: 'input', count, rate: '0.10' }))

test.each([
  ['0.00036', 'multiplier 1.2'],
  ['0.00015', 'multiplier 0.5'],
  ['0.000300001', undefined],
  ['0.0003', undefined],
  ['0.00', undefined],
])('a cost of %s has the line: %s', (cost, line) => {
  expect(recordLines({ cost, lines }).find(shown => shown.startsWith('multiplier'))).toBe(line)
})

test('a small cost that several multipliers give has none', () => {
  const few = [{ what: 'input', count: 5, rate: '0.02' }]
  expect(recordLines({ cost: '0.000000113', lines: few }).join()).not.toContain('multiplier')
})

test('a call without lines has no multiplier', () => {
  expect(recordLines({ cost: '0.00', lines: [] })).toEqual(['cost     0.00'])
})
