// Breakers of single accounts, whose calls fail on a channel that answers others.

import { bounds } from '../../base/bounds.ts'
import type { Failure, Tripper } from './breaker.ts'
import { Breaker } from './breaker.ts'

/** So long after its last failure an account is like any other again. */
const FORGET_MS = 60_000

interface Own<By extends Tripper> {
  readonly breaker: Breaker<By>
  failedMs: number
}

export class OwnBreakers<By extends Tripper> {
  readonly #own = new Map<number, Own<By>>()

  of(accountId: number): Breaker<By> | undefined {
    return this.#own.size === 0 ? undefined : this.#own.get(accountId)?.breaker
  }

  /** Whether the account has one, which has counted it. */
  noteFailed(by: By, failure: Failure, nowMs: number): boolean {
    const own = this.#own.size === 0 ? undefined : this.#own.get(by.accountId)
    if (own === undefined) return false
    if (nowMs - own.failedMs > FORGET_MS) {
      this.#own.delete(by.accountId)
      return false
    }
    own.failedMs = nowMs
    own.breaker.noteFailed(by, { ...failure, answersOthers: () => false }, nowMs)
    return true
  }

  /** Whether there was room for it. */
  open(accountId: number, failure: Failure, nowMs: number): boolean {
    for (const [id, { failedMs }] of this.#own) if (nowMs - failedMs > FORGET_MS) this.#own.delete(id)
    if (this.#own.size >= bounds.ownBreakersMax) return false
    const breaker = new Breaker<By>()
    breaker.close(failure, nowMs)
    this.#own.set(accountId, { breaker, failedMs: nowMs })
    return true
  }
}
