// How many calls may be tried again: a fifth of those under way, and three at least; and a fifth of those of the last
// ten seconds, and thirty at least. The first keeps a provider that hangs from being hung upon three times over, the
// second one that fails at once from being asked three times as often. For each name of a model by itself.
//
// A call holds its place until its end, or until no call can last that long: nothing is counted up and down.

import { bounds } from '../base/bounds.ts'
import type { Place } from '../base/ring.ts'
import { Ring } from '../base/ring.ts'
import { Recent } from './recent.ts'

const PERCENT = 20
const FLOOR = 3
/** Of ten seconds: a caller that calls now and then is not left without the other channel that would answer. */
const RECENT_FLOOR = 30

export interface RetryLease {
  /** Takes a place among those that are tried again, if there is one. */
  mayRetry(nowMs: number): boolean
  /** A second end is nothing. */
  end(): void
}

export class RetryBudget {
  readonly #groups = new Map<string, Group>()
  #sweeper: Iterator<[string, Group]> | undefined

  /** Names of models that are counted at the moment. */
  get size(): number {
    return this.#groups.size
  }

  begin(name: string, nowMs: number): RetryLease {
    this.#sweep(nowMs)
    let group = this.#groups.get(name)
    if (group === undefined) {
      group = new Group()
      // Beyond the bound it counts by itself: it is not bound less, only not together with its like.
      if (this.#groups.size < bounds.retryGroupsMax) this.#groups.set(name, group)
    }
    return group.begin(nowMs)
  }

  #sweep(nowMs: number): void {
    this.#sweeper ??= this.#groups.entries()
    const { value, done } = this.#sweeper.next()
    if (done) this.#sweeper = undefined
    else if (value[1].isIdle(nowMs)) this.#groups.delete(value[0])
  }
}

class Group {
  readonly #calls = new Ring<Lease>()
  /** Good: calls. Bad: what was tried again. */
  readonly #recent = new Recent()
  #retried = 0

  begin(nowMs: number): Lease {
    for (let first = this.#calls.first; first !== undefined && first.expiresMs <= nowMs; first = this.#calls.first) {
      first.end()
    }
    const lease = new Lease(this, nowMs + bounds.turnMsMax)
    lease.place = this.#calls.add(lease)
    this.#recent.note(false, nowMs)
    return lease
  }

  isIdle(nowMs: number): boolean {
    return this.#calls.size === 0 && this.#recent.good(nowMs) === 0
  }

  mayRetry(lease: Lease, nowMs: number): boolean {
    const others = lease.isRetried ? this.#retried - 1 : this.#retried
    if (others >= most(this.#calls.size, FLOOR)) return false
    if (this.#recent.bad(nowMs) >= most(this.#recent.good(nowMs), RECENT_FLOOR)) return false
    if (!lease.isRetried) this.#retried++
    lease.isRetried = true
    this.#recent.note(true, nowMs)
    return true
  }

  end({ place, isRetried }: Lease): void {
    this.#calls.remove(place!)
    if (isRetried) this.#retried--
  }
}

const most = (calls: number, floor: number): number => Math.max(floor, Math.floor((calls * PERCENT) / 100))

class Lease implements RetryLease {
  readonly #group: Group
  readonly expiresMs: number
  place: Place<Lease> | undefined
  isRetried = false

  constructor(group: Group, expiresMs: number) {
    this.#group = group
    this.expiresMs = expiresMs
  }

  mayRetry(nowMs: number): boolean {
    return this.place !== undefined && this.#group.mayRetry(this, nowMs)
  }

  end(): void {
    if (this.place === undefined) return
    this.#group.end(this)
    this.place = undefined
  }
}
