// Leases of active calls: concurrency slots, and tokens that are only estimated so far. A lease records what it took
// from which limit owner, and is released once: by its call or, if that should fail, by a timeout.

import { bounds } from '../base/bounds.ts'
import type { MeterPosition } from '../base/collections/gcra.ts'
import { refundedWith, refundOf } from '../base/collections/gcra.ts'
import type { ListNode } from '../base/collections/linked-list.ts'
import { LinkedList } from '../base/collections/linked-list.ts'
import type { LimitOwner, LimitPlan } from './limit-owner.ts'
import type { LimitRule } from './limit-rule.ts'

/** What an admitted call has taken. Of each method, only the first call has an effect. */
export interface LimitLease {
  /** Sets the tokens that the call really used. The difference to the estimate is refunded or counted. */
  correct(tokens: number, nowMs: number): void
  /** The call is over; frees its concurrency slots. */
  release(): void
}

/** For a call without limits of tokens or concurrency. */
export const noLimitLease: LimitLease = { correct: () => {}, release: () => {} }

/** What a call has taken in two steps. */
export const joinLeases = (one: LimitLease, other: LimitLease): LimitLease => ({
  correct(tokens, nowMs) {
    one.correct(tokens, nowMs)
    other.correct(tokens, nowMs)
  },
  release() {
    one.release()
    other.release()
  },
})

export interface LimitLeasesParts {
  /** Returns the latest time so far, so that time never goes back. */
  advance(nowMs: number): number
  /** The use of a rule was corrected by so many units. */
  onUse(owner: LimitOwner, rule: LimitRule, units: number): void
}

export class LimitLeases {
  readonly #open = new LinkedList<CallLease>()
  readonly #parts: LimitLeasesParts

  constructor(parts: LimitLeasesParts) {
    this.#parts = parts
  }

  get size(): number {
    return this.#open.size
  }

  /** Takes tokens and concurrency slots. All owners of the plan must have been refilled before. */
  open({ owners, shape }: LimitPlan, tokens: number, nowMs: number): LimitLease {
    const taken: LeaseTake[] = []
    for (let index = 0; index < owners.length; index++) {
      const owner = owners[index]!
      for (const at of shape.ruleIndexes[index]!) {
        const rule = owner.rules[at]!
        if (!rule.countsTokens && !rule.countsConcurrency) continue
        const count = rule.countOf(tokens)
        owner.take(at, count)
        owner.refCount++
        taken.push({ owner, rule, at, count, used: owner.counters[2 * at]!, refunded: owner.counters[2 * at + 1]! })
      }
    }
    const lease = new CallLease(taken, nowMs, this)
    lease.node = this.#open.add(lease)
    return lease
  }

  /** Ends leases that are too old. They are in the order in which they were opened. */
  reap(nowMs: number): void {
    for (;;) {
      const oldest = this.#open.first
      if (oldest === undefined || nowMs - oldest.sinceMs < bounds.leaseMsMax) return
      oldest.expire()
    }
  }

  close(node: ListNode<CallLease>): void {
    this.#open.remove(node)
  }

  /** Replaces estimated tokens by the real number. */
  correct(taken: LeaseTake, tokens: number, { sinceMs, nowMs }: { sinceMs: number; nowMs: number }): void {
    const { owner, rule } = taken
    const at = ruleIndexOf(taken)
    if (at < 0) return
    const clockMs = this.#parts.advance(nowMs)
    owner.refill(clockMs)
    const currentRule = owner.rules[at]!
    let units = (tokens - taken.count) * rule.unitsEach
    if (units >= 0) owner.take(at, tokens - taken.count)
    else if (currentRule.amount === rule.amount) {
      const ticks = Math.floor(clockMs / rule.tickMs) - Math.floor(sinceMs / rule.tickMs)
      const refunded = owner.counters[2 * at + 1]!
      const refund = refundOf(currentRule, taken, { count: tokens, ticks, given: refunded })
      owner.counters[2 * at]! -= refund
      owner.counters[2 * at + 1] = refundedWith(refunded, refund)
      units = -refund
    } else units = 0
    this.#parts.onUse(owner, currentRule, units)
  }
}

interface LeaseTake extends MeterPosition {
  readonly owner: LimitOwner
  readonly rule: LimitRule
  /** The index of the rule at that time. */
  readonly at: number
}

/** The index of the rule now: the rules of the owner may have changed. -1 if the rule is gone. */
const ruleIndexOf = ({ owner, rule, at }: LeaseTake): number => (owner.rules[at] === rule ? at : owner.indexOf(rule))

class CallLease implements LimitLease {
  readonly sinceMs: number
  readonly #leases: LimitLeases
  readonly #taken: readonly LeaseTake[]
  #isCorrected = false
  node: ListNode<CallLease> | undefined

  constructor(taken: readonly LeaseTake[], sinceMs: number, leases: LimitLeases) {
    this.#taken = taken
    this.sinceMs = sinceMs
    this.#leases = leases
  }

  correct(tokens: number, nowMs: number): void {
    if (this.#isCorrected) return
    this.#isCorrected = true
    for (const taken of this.#taken) {
      if (taken.rule.countsTokens) this.#leases.correct(taken, tokens, { sinceMs: this.sinceMs, nowMs })
    }
  }

  /** No call lasts that long, so a later correction is ignored. */
  expire(): void {
    this.#isCorrected = true
    this.release()
  }

  release(): void {
    if (this.node === undefined) return
    this.#leases.close(this.node)
    this.node = undefined
    for (const taken of this.#taken) {
      taken.owner.refCount--
      const at = taken.rule.countsConcurrency ? ruleIndexOf(taken) : -1
      if (at >= 0) taken.owner.counters[2 * at]!--
    }
  }
}
