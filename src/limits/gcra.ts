// Exact rate limiting by the generic cell rate algorithm: n a minute means a burst of n, refilled at n a minute, so
// at most 2n in any 60 seconds and n + n·W/60 in any W.
//
// Time is counted in units of 1/n millisecond: the interval between two calls is then the integer 60,000 and no
// rounding can creep in. A limiter holds one number for each name that has called within its burst.

import { assert } from '../base/assert.ts'

const MINUTE_MS = 60_000
const SWEEP_PER_CALL = 2
/** A busy name is not forgotten between two calls: to come and go costs more than to stay. */
const IDLE_MS = 10_000

export interface Quota {
  readonly allowed: boolean
  readonly limit: number
  /** How many more would be allowed at this instant. */
  readonly remaining: number
  /** Until a refused call may come again; 0 when allowed. */
  readonly retryAfterMs: number
  /** Until the whole burst is there again. */
  readonly resetMs: number
}

interface Debt {
  perMinute: number
  /** The theoretical arrival time, in units of 1/perMinute ms. */
  at: number
}

export class RateLimiter<Name> {
  readonly #debts = new Map<Name, Debt>()
  #sweeper: Iterator<[Name, Debt]> | undefined

  /** Names held at the moment. */
  get size(): number {
    return this.#debts.size
  }

  /** Counts one call, unless it is refused. `nowMs` must not go back. */
  take(name: Name, perMinute: number, nowMs: number): Quota {
    assert(Number.isSafeInteger(perMinute) && perMinute > 0, 'a rate is a positive integer')
    this.#sweep(nowMs)
    const now = Math.floor(nowMs) * perMinute
    const burst = MINUTE_MS * perMinute
    const debt = this.#debts.get(name)
    const earliest = Math.max(now, arrivalOf(debt, perMinute))
    const next = earliest + MINUTE_MS
    if (next - now > burst) {
      const verdict = { allowed: false, limit: perMinute, remaining: 0 }
      return { ...verdict, retryAfterMs: (next - now - burst) / perMinute, resetMs: (earliest - now) / perMinute }
    }
    if (debt === undefined) this.#debts.set(name, { perMinute, at: next })
    else [debt.perMinute, debt.at] = [perMinute, next]
    const remaining = Math.floor((burst - (next - now)) / MINUTE_MS)
    return { allowed: true, limit: perMinute, remaining, retryAfterMs: 0, resetMs: (next - now) / perMinute }
  }

  /** Forgets names whose debt has been paid for a while: for them a new start and no start are the same. */
  #sweep(nowMs: number): void {
    for (let step = 0; step < SWEEP_PER_CALL; step++) {
      this.#sweeper ??= this.#debts.entries()
      const { value, done } = this.#sweeper.next()
      if (done) {
        this.#sweeper = undefined
        return
      }
      const [name, debt] = value
      if (debt.at <= (Math.floor(nowMs) - IDLE_MS) * debt.perMinute) this.#debts.delete(name)
    }
  }
}

function arrivalOf(debt: Debt | undefined, perMinute: number): number {
  if (debt === undefined) return 0
  // After a change of limit the debt is kept in time, not in calls.
  return debt.perMinute === perMinute ? debt.at : Math.ceil((debt.at / debt.perMinute) * perMinute)
}
