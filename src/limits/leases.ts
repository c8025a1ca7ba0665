// What calls under way have taken: places among those at the same time, and tokens that are only guessed. Each lease
// knows from whom it took what, and is let go of once: by its call or, should that ever fail, by time.

import { bounds } from '../base/bounds.ts'
import type { InLine } from '../base/collections/gcra.ts'
import { givenBack, givenWith } from '../base/collections/gcra.ts'
import type { Place } from '../base/collections/linked-list.ts'
import { Ring } from '../base/collections/linked-list.ts'
import type { Owner, Plan } from './owner.ts'
import type { Rule } from './rule.ts'

/** What an admitted call has taken. Both may be told more than once; the first counts. */
export interface LimitLease {
  /** What it used in the end: the difference to what was taken is given back, or owed. */
  correct(tokens: number, nowMs: number): void
  /** It is over, and its place is free. */
  release(): void
}

/** Of a call that has nothing to correct and nothing to let go of. */
export const noLease: LimitLease = { correct: () => {}, release: () => {} }

export interface LeasesParts {
  /** The latest time that there was. */
  advance(nowMs: number): number
  /** What somebody owes has changed. */
  onOwed(owner: Owner, rule: Rule): void
}

export class Leases {
  readonly #open = new Ring<CallLease>()
  readonly #parts: LeasesParts

  constructor(parts: LeasesParts) {
    this.#parts = parts
  }

  get size(): number {
    return this.#open.size
  }

  /** Takes tokens and places; all owners of the plan have been paid for. */
  open({ owners, shape }: Plan, tokens: number, nowMs: number): LimitLease {
    const taken: LeaseTaken[] = []
    for (let index = 0; index < owners.length; index++) {
      const owner = owners[index]!
      for (const at of shape.fits[index]!) {
        const rule = owner.rules[at]!
        if (!rule.countsTokens && !rule.countsPlaces) continue
        const count = rule.countOf(tokens)
        owner.take(at, count)
        owner.users++
        taken.push({ owner, rule, at, count, owed: owner.numbers[2 * at]!, given: owner.numbers[2 * at + 1]! })
      }
    }
    const lease = new CallLease(taken, nowMs, this)
    lease.place = this.#open.add(lease)
    return lease
  }

  /** They stand in the order in which they were taken. */
  reap(nowMs: number): void {
    for (;;) {
      const oldest = this.#open.first
      if (oldest === undefined || nowMs - oldest.sinceMs < bounds.leaseMsMax) return
      oldest.expire()
    }
  }

  close(place: Place<CallLease>): void {
    this.#open.remove(place)
  }

  /** It is known now how many it were. */
  correct(taken: LeaseTaken, tokens: number, { sinceMs, nowMs }: { sinceMs: number; nowMs: number }): void {
    const { owner, rule } = taken
    const at = placeOf(taken)
    if (at < 0) return
    const clockMs = this.#parts.advance(nowMs)
    owner.pay(clockMs)
    const now = owner.rules[at]!
    if (tokens >= taken.count) owner.take(at, tokens - taken.count)
    else if (now.amount === rule.amount) {
      const ticks = Math.floor(clockMs / rule.tickMs) - Math.floor(sinceMs / rule.tickMs)
      const given = owner.numbers[2 * at + 1]!
      const back = givenBack(now, taken, { count: tokens, ticks, given })
      owner.numbers[2 * at]! -= back
      owner.numbers[2 * at + 1] = givenWith(given, back)
    }
    this.#parts.onOwed(owner, now)
  }
}

interface LeaseTaken extends InLine {
  readonly owner: Owner
  readonly rule: Rule
  /** Where that rule stood then. */
  readonly at: number
}

/** Its owner may have other rules by now. */
const placeOf = ({ owner, rule, at }: LeaseTaken): number => (owner.rules[at] === rule ? at : owner.indexOf(rule))

class CallLease implements LimitLease {
  readonly sinceMs: number
  readonly #leases: Leases
  readonly #taken: readonly LeaseTaken[]
  #isCorrected = false
  place: Place<CallLease> | undefined

  constructor(taken: readonly LeaseTaken[], sinceMs: number, leases: Leases) {
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

  /** No call lasts that long: whoever comes with it now is not believed. */
  expire(): void {
    this.#isCorrected = true
    this.release()
  }

  release(): void {
    if (this.place === undefined) return
    this.#leases.close(this.place)
    this.place = undefined
    for (const taken of this.#taken) {
      taken.owner.users--
      const at = taken.rule.countsPlaces ? placeOf(taken) : -1
      if (at >= 0) taken.owner.numbers[2 * at]!--
    }
  }
}
