// Caller → Permit: one call against the key's calls a minute.

import { bounds } from '../base/bounds.ts'
import { Refusal } from '../base/errors.ts'
import { RateLimiter } from '../limits/gcra.ts'
import { quotaHeaders } from './answer-headers.ts'
import type { Caller, Permit } from './exchange.ts'

export interface LimitRateParts {
  readonly limiter: RateLimiter<number>
  nowMs(): number
}

export type LimitRate = (caller: Caller) => Permit

/** The same for a call that is only explained: nothing is counted. */
export function buildLookAtLimits(): LimitRate {
  return caller => {
    const { qpm: limit } = caller
    return { caller, quota: { allowed: true, limit, remaining: limit, retryAfterMs: 0, resetMs: 0 } } as Permit
  }
}

/** Calls that are only explained count in no other limit. */
export function buildExplanationLimit(nowMs: () => number): (caller: Caller) => void {
  const limiter = new RateLimiter<number>()
  return ({ keyId, qpm }) => {
    const { allowed, retryAfterMs } = limiter.take(keyId, Math.min(qpm, bounds.explainedPerMinuteMax), nowMs())
    if (!allowed) throw new Refusal('explained_too_often', `key ${keyId}`, { retryAfterMs })
  }
}

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
