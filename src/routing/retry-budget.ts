// Limits how many calls may be retried, for each model name: 20 % of the active calls (at least 3), and 20 % of the
// calls of the last ten seconds (at least 30). The first limit protects a provider that hangs, the second one that fails
// at once: neither gets three times its load. While several accounts call a model, one account may use at most half of
// its budget; otherwise it could use up the whole budget with calls that must fail.
//
// Each call has a lease until it ends, or until no call can last that long. So a call that never ends leaks nothing.

import { bounds } from '../base/bounds.ts'
import type { ListNode } from '../base/collections/linked-list.ts'
import { LinkedList } from '../base/collections/linked-list.ts'
import { OtherAccounts } from './health/other-accounts.ts'
import { RecentCounts } from './health/recent-counts.ts'

const PERCENT = 20
const FLOOR = 3
/** Retries in ten seconds that are always allowed, so that a caller with few calls can still reach another channel. */
const RECENT_FLOOR = 30
/** The shares of accounts are counted over periods of this length. */
const SHARE_PERIOD_MS = 10_000

export interface RetryLease {
  /** Whether this call may be retried now. A yes counts against the budget. */
  mayRetry(nowMs: number): boolean
  /** Ends the lease. A second call has no effect. */
  end(): void
}

export class RetryBudget {
  readonly #groups = new Map<string, Group>()
  #sweeper: Iterator<[string, Group]> | undefined

  /** The number of model names that are counted now. */
  get size(): number {
    return this.#groups.size
  }

  begin(name: string, nowMs: number, accountId = 0): RetryLease {
    this.#sweep(nowMs)
    let group = this.#groups.get(name)
    if (group === undefined) {
      group = new Group()
      // Beyond the bound a call gets a group of its own, which limits this call but not together with others.
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
  readonly #calls = new LinkedList<Lease>()
  /** Good: calls. Bad: retries. */
  readonly #recent = new RecentCounts()
  #retried = 0
  readonly #accounts = new OtherAccounts()
  /** Majority vote (Boyer–Moore): the account that may have most of the recent retries, and its lead over all others. */
  #majorityAccount = 0
  #majorityLead = 0
  #countedSinceMs = 0

  begin(nowMs: number, accountId: number): Lease {
    this.#accounts.note(accountId, nowMs)
    for (let first = this.#calls.first; first !== undefined && first.expiresMs <= nowMs; first = this.#calls.first) {
      first.end()
    }
    const lease = new Lease(this, nowMs + bounds.channelUseMsMax, accountId)
    lease.node = this.#calls.add(lease)
    this.#recent.note(false, nowMs)
    return lease
  }

  isIdle(nowMs: number): boolean {
    return this.#calls.size === 0 && this.#recent.good(nowMs) === 0
  }

  mayRetry(lease: Lease, nowMs: number): boolean {
    const others = lease.isRetried ? this.#retried - 1 : this.#retried
    if (others >= budgetOf(this.#calls.size, FLOOR)) return false
    const recentBudget = budgetOf(this.#recent.good(nowMs), RECENT_FLOOR)
    if (this.#recent.bad(nowMs) >= recentBudget) return false
    if (!this.#isWithinShare(lease, recentBudget, nowMs)) return false
    if (!lease.isRetried) this.#retried++
    lease.isRetried = true
    this.#countRetry(lease.accountId, nowMs)
    return true
  }

  #isWithinShare({ accountId }: Lease, recentBudget: number, nowMs: number): boolean {
    if (!(Math.abs(nowMs - this.#countedSinceMs) < SHARE_PERIOD_MS)) {
      this.#majorityLead = 0
      this.#countedSinceMs = nowMs
    }
    const hasHalf = accountId === this.#majorityAccount && this.#majorityLead * 2 >= recentBudget
    return !hasHalf || !this.#accounts.wereSeen(accountId, nowMs)
  }

  #countRetry(accountId: number, nowMs: number): void {
    this.#recent.note(true, nowMs)
    if (this.#majorityLead === 0) this.#majorityAccount = accountId
    this.#majorityLead += this.#majorityAccount === accountId ? 1 : -1
  }

  end({ node, isRetried }: Lease): void {
    this.#calls.remove(node!)
    if (isRetried) this.#retried--
  }
}

const budgetOf = (calls: number, floor: number): number => Math.max(floor, Math.floor((calls * PERCENT) / 100))

class Lease implements RetryLease {
  readonly #group: Group
  readonly expiresMs: number
  readonly accountId: number
  node: ListNode<Lease> | undefined
  isRetried = false

  constructor(group: Group, expiresMs: number, accountId: number) {
    this.#group = group
    this.expiresMs = expiresMs
    this.accountId = accountId
  }

  mayRetry(nowMs: number): boolean {
    return this.node !== undefined && this.#group.mayRetry(this, nowMs)
  }

  end(): void {
    if (this.node === undefined) return
    this.#group.end(this)
    this.node = undefined
  }
}
