// Rows of limits and callers for tests.

import type { LimitLease } from '../../src/limits/leases.ts'
import type { LimitedCall } from '../../src/limits/limited-call.ts'
import type { LimitAdmission, Limits } from '../../src/limits/limits.ts'
import type { LimitRow } from '../../src/store/rules/rules.ts'

export function row(id: number, what: Pick<LimitRow, 'resource' | 'span' | 'amount'> & Partial<LimitRow>): LimitRow {
  return { id, keyId: null, accountId: null, tier: null, model: null, per: [], ...what }
}

export const requests = (amount: number, span: 'minute' | 'day' = 'minute') =>
  ({ resource: 'requests', span, amount }) as const
export const tokens = (amount: number, span: 'minute' | 'day' = 'minute') =>
  ({ resource: 'tokens', span, amount }) as const
export const concurrency = (amount: number) => ({ resource: 'concurrency', span: null, amount }) as const

/** A caller that its own calls per minute do not stop. */
export const subject = (more: Partial<LimitedCall> = {}): LimitedCall => ({
  keyId: 1,
  accountId: 10,
  tier: 'pro',
  qpm: 100_000,
  model: 'openai/gpt-x',
  tokens: 100,
  ...more,
})

/** How many of the calls are admitted, one after the other. */
export function howMany(
  limits: Limits,
  wanted: LimitedCall,
  { nowMs, most = 1_000 }: { nowMs: number; most?: number },
) {
  let count = 0
  while (count < most && limits.admit(wanted, nowMs).admitted) count++
  return count
}

export function leaseOf(admission: LimitAdmission): LimitLease {
  if (!admission.admitted) throw new Error(`refused: ${JSON.stringify(admission.by)}`)
  return admission.lease
}
