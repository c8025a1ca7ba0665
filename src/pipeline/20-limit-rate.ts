// Caller → Permit: one call against the key's calls a minute.

import { Refusal } from '../base/errors.ts'
import type { RateLimiter } from '../limits/gcra.ts'
import { quotaHeaders } from './answer-headers.ts'
import type { Caller, Permit } from './exchange.ts'

export interface LimitRateParts {
  readonly limiter: RateLimiter<number>
  nowMs(): number
}

export type LimitRate = (caller: Caller) => Permit

export function buildLimitRate(parts: LimitRateParts): LimitRate {
  return function limitRate(caller) {
    const quota = parts.limiter.take(caller.keyId, caller.qpm, parts.nowMs())
    if (!quota.allowed) {
      throw new Refusal('qpm_exceeded', `key ${caller.keyId}, ${caller.qpm} a minute`, {
        retryAfterMs: quota.retryAfterMs,
        headers: quotaHeaders(quota),
        hint: `The limit of this key is ${caller.qpm} a minute.`,
      })
    }
    return { caller, quota } as Permit
  }
}
