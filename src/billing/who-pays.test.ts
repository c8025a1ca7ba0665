// The table of who pays, cell by cell.

import { expect, test } from 'bun:test'
import { noUsage } from '../base/usage.ts'
import type { Outcome } from './who-pays.ts'
import { chargedUsage } from './who-pays.ts'

const reported = { input: 7, cacheRead: 0, output: 5 }
const estimated = { input: 70, cacheRead: 0, output: 50 }

type Charged = 'none' | 'reported' | 'estimated'
/** With usage reported, and without. */
type Row = readonly [Outcome, content: boolean, charged: readonly [Charged, Charged]]

const rows: readonly Row[] = [
  ['completed', true, ['reported', 'estimated']],
  ['completed', false, ['reported', 'none']],
  ['client_left', true, ['reported', 'estimated']],
  ['client_left', false, ['reported', 'none']],
  ['upstream_failed', true, ['reported', 'none']],
  ['upstream_failed', false, ['none', 'none']],
  ['refused', true, ['none', 'none']],
  ['refused', false, ['none', 'none']],
  ['gateway_fault', true, ['none', 'none']],
  ['gateway_fault', false, ['none', 'none']],
]

const usageOf = { none: noUsage, reported, estimated }

test.each(rows)('%s, content %p: %p', (outcome, content, [withUsage, withoutUsage]) => {
  const estimate = () => estimated
  const known = chargedUsage({ outcome, content, reported, estimate })
  const unknown = chargedUsage({ outcome, content, reported: undefined, estimate })
  expect(known).toEqual([usageOf[withUsage], withUsage])
  expect(unknown).toEqual([usageOf[withoutUsage], withoutUsage])
})

test('nothing is estimated that is not needed', () => {
  const estimate = (): never => {
    throw new Error('estimated')
  }
  expect(chargedUsage({ outcome: 'completed', content: true, reported, estimate })).toEqual([reported, 'reported'])
})
