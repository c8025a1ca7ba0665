// Limits against limits that are plainly right, in the size for every day; scripts/proof/limits.ts runs more of it.

import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { Limits } from '../../src/limits/limits.ts'
import { compareLimits } from './exact.ts'
import { leaseOf, row, subject, tokens } from './rows.ts'

test('admits what slow limits admit, to the call, and keeps every window', () => {
  expect(compareLimits(400)).toBeGreaterThan(20_000)
})

test('of what calls at the same time did not use, all is there again, in whatever order they end', () => {
  const order = fc.uniqueArray(fc.nat(11), { minLength: 12, maxLength: 12 })
  fc.assert(
    fc.property(order, fc.array(fc.nat(100), { minLength: 12, maxLength: 12 }), (ended, used) => {
      const limits = new Limits()
      limits.setRules([row(1, { ...tokens(100_000, 'day'), per: ['key'] })])
      const of = subject({ tokens: 100 })
      const leases = ended.map(() => leaseOf(limits.admit(of, 1_000)))
      for (const at of ended) leases[at]!.correct(used[at]!, 1_000)
      const left = limits.quotasOfCall(of, 1_000).find(({ resource }) => resource === 'tokens')
      expect(left?.remaining).toBe(100_000 - used.reduce((sum, one) => sum + one, 0))
    }),
  )
})
