// Circuit breakers of single accounts: for an account whose calls fail on a channel that answers other accounts.

import { bounds } from '../../base/bounds.ts'
import type { BreakerCall, BreakerFailure } from './breaker.ts'
import { Breaker } from './breaker.ts'

/** An account's breaker is deleted this long after its last failure. */
const FORGET_MS = 60_000

interface AccountBreaker<Call extends BreakerCall> {
  readonly breaker: Breaker<Call>
  failedMs: number
}

export class AccountBreakers<Call extends BreakerCall> {
  readonly #breakers = new Map<number, AccountBreaker<Call>>()

  get(accountId: number): Breaker<Call> | undefined {
    return this.#breakers.size === 0 ? undefined : this.#breakers.get(accountId)?.breaker
  }

  /** Counts a failure if the account has a breaker of its own. Returns whether it has one. */
  noteFailure(call: Call, failure: BreakerFailure, nowMs: number): boolean {
    const own = this.#breakers.size === 0 ? undefined : this.#breakers.get(call.accountId)
    if (own === undefined) return false
    if (nowMs - own.failedMs > FORGET_MS) {
      this.#breakers.delete(call.accountId)
      return false
    }
    own.failedMs = nowMs
    own.breaker.noteFailure(call, { ...failure, answersOthers: () => false }, nowMs)
    return true
  }

  /** Creates an open breaker for the account. Returns false when there are too many breakers already. */
  trip(accountId: number, failure: BreakerFailure, nowMs: number): boolean {
    for (const [id, { failedMs }] of this.#breakers) if (nowMs - failedMs > FORGET_MS) this.#breakers.delete(id)
    if (this.#breakers.size >= bounds.accountBreakersMax) return false
    const breaker = new Breaker<Call>()
    breaker.trip(failure, nowMs)
    this.#breakers.set(accountId, { breaker, failedMs: nowMs })
    return true
  }
}
