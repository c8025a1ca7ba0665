// All limits together, call for call as limits that are plainly right: random rules, random callers, random arrivals,
// random endings, and a clock that may jump either way. And in every window of every limit no more than B + r·W.

import { expect, test } from 'bun:test'
import fc from 'fast-check'
import type { LimitLease } from '../../src/limits/limits.ts'
import { Limits } from '../../src/limits/limits.ts'
import type { LimitRow, LimitScope } from '../../src/store/rules.ts'
import type { SlowSubject } from './slow-limits.ts'
import { SlowLimits } from './slow-limits.ts'

const callers = [
  { keyId: 1, accountId: 10, tier: 'free', qpm: 7 },
  { keyId: 2, accountId: 10, tier: 'pro', qpm: 60 },
  { keyId: 3, accountId: 11, tier: 'pro', qpm: 1_000 },
]
const models = ['openai/gpt-x', 'openai/gpt-x-mini', 'anthropic/claude']

const maybe = <T>(...values: T[]) => fc.option(fc.constantFrom(...values), { nil: null, freq: 2 })

const row = fc.record({
  what: fc.constantFrom(
    ...([['requests', 'minute'], ['requests', 'day'], ['tokens', 'minute'], ['tokens', 'day']] as const),
    ['concurrency', null] as const,
  ),
  amount: fc.oneof(fc.integer({ min: 1, max: 12 }), fc.integer({ min: 1, max: 5_000 })),
  keyId: maybe(1, 2, 3),
  accountId: maybe(10, 11),
  tier: maybe('free', 'pro'),
  model: maybe('openai/*', '*', '*-mini', 'anthropic/claude'),
  per: fc.subarray<LimitScope>(['key', 'account', 'model']),
})

const rows = fc.array(row, { minLength: 1, maxLength: 8 }).map(all =>
  all.map(({ what: [resource, span], ...rest }, at): LimitRow => ({ id: at + 1, resource, span, ...rest })),
)

const step = fc.record({
  /** Bursts, moments, minutes, hours; and a clock that is set back. */
  waitMs: fc.oneof(
    { weight: 4, arbitrary: fc.constant(0) },
    { weight: 4, arbitrary: fc.double({ min: 0, max: 900, noNaN: true }) },
    { weight: 2, arbitrary: fc.integer({ min: 0, max: 90_000 }) },
    { weight: 1, arbitrary: fc.integer({ min: 0, max: 40_000_000 }) },
    { weight: 1, arbitrary: fc.integer({ min: -700_000, max: 0 }) },
  ),
  caller: fc.constantFrom(...callers),
  model: fc.constantFrom(...models),
  tokens: fc.oneof(fc.constant(0), fc.nat(40), fc.nat(8_000)),
  /** Which of the calls under way ends then, and with how much of what it was taken for. */
  ends: fc.nat(8),
  used: fc.double({ min: 0, max: 2.5, noNaN: true }),
})

interface Open {
  readonly id: number
  readonly lease: LimitLease
  readonly tokens: number
}

test('admits what slow limits admit, to the call, and keeps every window', () => {
  fc.assert(
    fc.property(rows, fc.array(step, { minLength: 60, maxLength: 120 }), (rules, steps) => {
      const limits = new Limits()
      limits.setRules(rules)
      const slow = new SlowLimits(rules)
      const open: Open[] = []
      let ms = 1_000_000
      steps.forEach(({ waitMs, caller, model, tokens, ends, used }, id) => {
        ms = Math.max(0, ms + waitMs)
        const [ending] = open.splice(ends, 1)
        if (ending !== undefined) {
          const came = Math.floor(ending.tokens * used)
          ending.lease.correct(came, ms)
          ending.lease.release()
          slow.correct(ending.id, came, ms)
          slow.release(ending.id)
        }
        const subject: SlowSubject = { ...caller, model, tokens }
        const [found, right] = [limits.admit(subject, ms), slow.admit(id, subject, ms)]
        const left = (resource: string): number | undefined =>
          found.quotas.find(quota => quota.resource === resource)?.remaining
        const { admitted } = found
        const told = { admitted, waitMs: admitted ? 0 : found.retryAfterMs, requests: left('requests') }
        expect({ ...told, tokens: left('tokens') }).toEqual(right)
        if (admitted) open.push({ id, lease: found.lease, tokens })
      })
      expect(slow.excess).toBeLessThanOrEqual(0n)
    }),
    { numRuns: 400 },
  )
})

test('of what calls at the same time did not use, all is there again, in whatever order they end', () => {
  const order = fc.uniqueArray(fc.nat(11), { minLength: 12, maxLength: 12 })
  fc.assert(
    fc.property(order, fc.array(fc.nat(100), { minLength: 12, maxLength: 12 }), (ended, used) => {
      const limits = new Limits()
      const row = { resource: 'tokens', span: 'day', amount: 100_000, keyId: null, accountId: null } as const
      limits.setRules([{ id: 1, ...row, tier: null, model: null, per: ['key'] }])
      const subject = { ...callers[1]!, model: models[0]!, tokens: 100 }
      const leases = ended.map(() => limits.admit(subject, 1_000))
      for (const at of ended) {
        const admission = leases[at]!
        if (admission.admitted) admission.lease.correct(used[at]!, 1_000)
      }
      const left = limits.look(subject, 1_000).find(({ resource }) => resource === 'tokens')
      expect(left?.remaining).toBe(100_000 - used.reduce((sum, one) => sum + one, 0))
    }),
  )
})
