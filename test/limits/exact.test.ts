// Limits compared with a slow, obviously correct implementation, as a short run; scripts/proof/limits.ts runs longer.

import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { Limits } from '../../src/limits/limits.ts'
import { compareLimits } from './exact.ts'
import { leaseOf, row, subject, tokens } from './rows.ts'

test('limits admit exactly what the slow implementation admits, and keep every window', () => {
  expect(compareLimits(400)).toBeGreaterThan(20_000)
})

test('tokens that concurrent calls did not use are all available again, in whatever order the calls end', () => {
  const order = fc.uniqueArray(fc.nat(11), { minLength: 12, maxLength: 12 })
  fc.assert(
    fc.property(order, fc.array(fc.nat(100), { minLength: 12, maxLength: 12 }), (ended, used) => {
      const limits = new Limits()
      limits.setRules([row(1, { ...tokens(100_000, 'day'), per: ['key'] })])
      const call = subject({ tokens: 100 })
      const leases = ended.map(() => leaseOf(limits.admit(call, 1_000)))
      for (const at of ended) leases[at]!.correct(used[at]!, 1_000)
      const left = limits.quotasOfCall(call, 1_000).find(({ resource }) => resource === 'tokens')
      expect(left?.remaining).toBe(100_000 - used.reduce((sum, one) => sum + one, 0))
    }),
  )
})
