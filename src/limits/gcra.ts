// Exact rate limiting by the generic cell rate algorithm: n a minute means a burst of n, refilled at n a minute, so
// at most 2n in any 60 seconds and n + n·W/60 in any W.
//
// Time is counted in units of 1/n millisecond: the interval between two calls is then the integer 60,000 and no
// rounding can creep in. A limiter holds one number for each name that has called within its burst.

import { assert } from '../base/assert.ts'

const MINUTE_MS = 60_000
const SWEEP_PER_CALL = 2

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
  readonly perMinute: number
  /** The theoretical arrival time, in units of 1/perMinute ms. */
  readonly at: number
}

export class RateLimiter<Name> {
  readonly #arrivals = new Map<Name, Debt>()
  #sweeper: Iterator<[Name, Debt]> | undefined

  /** Names held at the moment. */
  get size(): number {
    return this.#arrivals.size
  }

  /** Counts one call, unless it is refused. `nowMs` must not go back. */
  take(name: Name, perMinute: number, nowMs: number): Quota {
    assert(Number.isSafeInteger(perMinute) && perMinute > 0, 'a rate is a positive integer')
    this.#sweep(nowMs)
    const now = Math.floor(nowMs) * perMinute
    const burst = MINUTE_MS * perMinute
    const earliest = Math.max(now, this.#arrivalOf(name, perMinute))
    const next = earliest + MINUTE_MS
    if (next - now > burst) {
      const verdict = { allowed: false, limit: perMinute, remaining: 0 }
      return { ...verdict, retryAfterMs: (next - now - burst) / perMinute, resetMs: (earliest - now) / perMinute }
    }
    // Re-inserted, so that the map stays in the order of last use and the sweep finds idle names first.
    this.#arrivals.delete(name)
    this.#arrivals.set(name, { perMinute, at: next })
    const remaining = Math.floor((burst - (next - now)) / MINUTE_MS)
    return { allowed: true, limit: perMinute, remaining, retryAfterMs: 0, resetMs: (next - now) / perMinute }
  }

  /** Whether a call would be refused now; counts nothing. */
  isFull(name: Name, perMinute: number, nowMs: number): boolean {
    const now = Math.floor(nowMs) * perMinute
    return Math.max(now, this.#arrivalOf(name, perMinute)) + MINUTE_MS - now > MINUTE_MS * perMinute
  }

  #arrivalOf(name: Name, perMinute: number): number {
    const arrival = this.#arrivals.get(name)
    if (arrival === undefined) return 0
    // After a change of limit the debt is kept in time, not in calls.
    return arrival.perMinute === perMinute ? arrival.at : Math.ceil((arrival.at / arrival.perMinute) * perMinute)
  }

  /** Forgets names whose debt is paid: for them a new start and no start are the same. */
  #sweep(nowMs: number): void {
    for (let step = 0; step < SWEEP_PER_CALL; step++) {
      this.#sweeper ??= this.#arrivals.entries()
      const { value, done } = this.#sweeper.next()
      if (done) {
        this.#sweeper = undefined
        return
      }
      const [name, arrival] = value
      if (arrival.at <= Math.floor(nowMs) * arrival.perMinute) this.#arrivals.delete(name)
    }
  }
}
