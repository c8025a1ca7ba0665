// How many calls may be tried again: a fifth of those under way, and three at least; and a fifth of those of the last
// ten seconds, and thirty at least. The first keeps a provider that hangs from being hung upon three times over, the
// second one that fails at once from being asked three times as often. For each name of a model by itself; and while
// others call it as well, no account may have more than half of it, for it could use up all by calls that must fail.
//
// A call holds its place until its end, or until no call can last that long: nothing is counted up and down.

import { bounds } from '../base/bounds.ts'
import type { Place } from '../base/collections/linked-list.ts'
import { Ring } from '../base/collections/linked-list.ts'
import { Others } from './health/other-accounts.ts'
import { Recent } from './health/recent-counts.ts'

const PERCENT = 20
const FLOOR = 3
/** Of ten seconds: a caller that calls now and then is not left without the other channel that would answer. */
const RECENT_FLOOR = 30
/** What an account has had of it is counted anew then. */
const COUNTED_MS = 10_000

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

  begin(name: string, nowMs: number, accountId = 0): RetryLease {
    this.#sweep(nowMs)
    let group = this.#groups.get(name)
    if (group === undefined) {
      group = new Group()
      // Beyond the bound it counts by itself: it is not bound less, only not together with its like.
      if (this.#groups.size < bounds.retryGroupsMax) this.#groups.set(name, group)
    }
    return group.begin(nowMs, accountId)
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
  readonly #callers = new Others()
  /** Of whom most of what was tried again lately may be, and by how many more than of all others. */
  #mostOf = 0
  #mostBy = 0
  #countedSinceMs = 0

  begin(nowMs: number, accountId: number): Lease {
    this.#callers.note(accountId, nowMs)
    for (let first = this.#calls.first; first !== undefined && first.expiresMs <= nowMs; first = this.#calls.first) {
      first.end()
    }
    const lease = new Lease(this, nowMs + bounds.turnMsMax, accountId)
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
    const recently = most(this.#recent.good(nowMs), RECENT_FLOOR)
    if (this.#recent.bad(nowMs) >= recently) return false
    if (!this.#isInShare(lease, recently, nowMs)) return false
    if (!lease.isRetried) this.#retried++
    lease.isRetried = true
    this.#note(lease.accountId, nowMs)
    return true
  }

  #isInShare({ accountId }: Lease, recently: number, nowMs: number): boolean {
    if (!(Math.abs(nowMs - this.#countedSinceMs) < COUNTED_MS)) {
      this.#mostBy = 0
      this.#countedSinceMs = nowMs
    }
    const hasHalf = accountId === this.#mostOf && this.#mostBy * 2 >= recently
    return !hasHalf || !this.#callers.areThere(accountId, nowMs)
  }

  #note(accountId: number, nowMs: number): void {
    this.#recent.note(true, nowMs)
    if (this.#mostBy === 0) this.#mostOf = accountId
    this.#mostBy += this.#mostOf === accountId ? 1 : -1
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
  readonly accountId: number
  place: Place<Lease> | undefined
  isRetried = false

  constructor(group: Group, expiresMs: number, accountId: number) {
    this.#group = group
    this.expiresMs = expiresMs
    this.accountId = accountId
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
