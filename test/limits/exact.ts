// Compares all limits together, call for call, with a slow, obviously correct implementation: random rules, random
// callers, random arrivals, random endings, and a clock that may jump either way. And no window of any limit admits
// more than B + r·W.

import { deepStrictEqual } from 'node:assert'
import fc from 'fast-check'
import type { LimitLease } from '../../src/limits/leases.ts'
import { Limits } from '../../src/limits/limits.ts'
import type { LimitRow, LimitScope } from '../../src/store/rules/rules.ts'
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
    ...([
      ['requests', 'minute'],
      ['requests', 'day'],
      ['tokens', 'minute'],
      ['tokens', 'day'],
    ] as const),
    ['concurrency', null] as const,
  ),
  amount: fc.oneof(fc.integer({ min: 1, max: 12 }), fc.integer({ min: 1, max: 5_000 })),
  keyId: maybe(1, 2, 3),
  accountId: maybe(10, 11),
  tier: maybe('free', 'pro'),
  model: maybe('openai/*', '*', '*-mini', 'anthropic/claude'),
  per: fc.subarray<LimitScope>(['key', 'account', 'model']),
})

const rows = fc
  .array(row, { minLength: 1, maxLength: 8 })
  .map(all => all.map(({ what: [resource, span], ...rest }, at): LimitRow => ({ id: at + 1, resource, span, ...rest })))

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
  /** Which of the running calls ends then, and with how much of its estimate. */
  ends: fc.nat(8),
  used: fc.double({ min: 0, max: 2.5, noNaN: true }),
  /** The same rules are set again, which changes nothing. */
  resets: fc.boolean(),
})

interface Open {
  readonly id: number
  readonly lease: LimitLease
  readonly tokens: number
}

/** Throws at the first difference, with its seed. Returns how many calls were compared. */
export function compareLimits(numRuns: number, seed?: number): number {
  let calls = 0
  fc.assert(
    fc.property(rows, fc.array(step, { minLength: 60, maxLength: 120 }), (rules, steps) => {
      const limits = new Limits()
      limits.setRules(rules)
      const slow = new SlowLimits(rules)
      const open: Open[] = []
      let ms = 1_000_000
      steps.forEach(({ waitMs, caller, model, tokens, ends, used, resets }, id) => {
        ms = Math.max(0, ms + waitMs)
        if (resets) limits.setRules(id % 2 === 0 ? rules.toReversed() : rules)
        const [ending] = open.splice(ends, 1)
        if (ending !== undefined) {
          const usedTokens = Math.floor(ending.tokens * used)
          ending.lease.correct(usedTokens, ms)
          ending.lease.release()
          slow.correct(ending.id, usedTokens, ms)
          slow.release(ending.id)
        }
        const subject: SlowSubject = { ...caller, model, tokens }
        const [actual, expected] = [limits.admit(subject, ms), slow.admit(id, subject, ms)]
        const left = (resource: string): number | undefined =>
          actual.quotas.find(quota => quota.resource === resource)?.remaining
        const { admitted } = actual
        const summary = { admitted, waitMs: admitted ? 0 : actual.retryAfterMs, requests: left('requests') }
        deepStrictEqual({ ...summary, tokens: left('tokens') }, expected)
        calls++
        if (admitted) open.push({ id, lease: actual.lease, tokens })
      })
      if (slow.excess > 0n) throw new Error(`a window holds ${slow.excess} units too much`)
    }),
    { numRuns, ...(seed !== undefined && { seed }) },
  )
  return calls
}
