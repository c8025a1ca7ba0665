// Checks all limits of a call in one step: the call passes all limits and is counted by all, or one limit refuses the
// call and none counts it.
//
// Nothing in this file is asynchronous, so that no other call can come between the check and the count.

import { leftOf, resetMsOf, waitMsFor } from '../base/collections/gcra.ts'
import type { LimitDebt } from '../store/ledger/limit-debts.ts'
import type { LimitRow } from '../store/rules/rules.ts'
import type { LimitLease } from './leases.ts'
import { Leases, noLease } from './leases.ts'
import type { Owner, Plan } from './owner.ts'
import { Owners } from './owners.ts'
import type { Rule } from './rule.ts'
import { LimitBook } from './rule.ts'
import type { Subject, Who } from './subject.ts'

/** One limit, and what is left of it. */
export interface Quota {
  readonly resource: LimitRow['resource']
  readonly span: LimitRow['span']
  readonly limit: number
  readonly remaining: number
  /** The time until the whole limit is available again. */
  readonly resetMs: number
  /** Whom the limit applies to, as text for a caller. Names no other caller. */
  readonly whose: string
}

export type Admission =
  | { readonly admitted: true; readonly quotas: readonly Quota[]; readonly lease: LimitLease }
  | Refused

export interface Refused {
  readonly admitted: false
  /** For each resource, the limit with the least left. */
  readonly quotas: readonly Quota[]
  readonly by: Quota
  /** The time until no limit refuses the call any more, as far as it is known. */
  readonly retryAfterMs: number
}

/** The retry time for concurrency: it is unknown when an active call ends. */
const CONCURRENCY_WAIT_MS = 1_000
/** A key that calls too many different models waits until some of them are forgotten. */
const MODELS_WAIT_MS = 10_000

export class Limits {
  readonly #owners: Owners
  readonly #leases: Leases
  /** Owners whose use of day limits has changed since it was last saved. */
  #unsaved: Owner[] = []
  #clockMs = 0

  /** `restored`: the saved use of day limits, as the time at which each is refilled, by name. */
  constructor(restored: ReadonlyMap<string, number> = new Map()) {
    this.#owners = new Owners(restored)
    this.#leases = new Leases({
      advance: nowMs => this.#advance(nowMs),
      onOwed: (owner, rule) => rule.isOfDay && this.#markUnsaved(owner),
    })
  }

  /** Replaces all rules. The use of a rule that stays is kept. */
  setRules(rows: readonly LimitRow[]): void {
    this.#owners.book = new LimitBook(rows)
  }

  admit(subject: Subject, nowMs: number): Admission {
    const clockMs = this.#advance(nowMs)
    this.#owners.sweep(clockMs)
    this.#leases.reap(clockMs)
    const plan = this.#owners.planFor(subject, clockMs)
    if ('tooMany' in plan) return tooManyModels(plan.tooMany)
    return this.#refusal(plan, subject.tokens, clockMs) ?? this.#take(plan, subject.tokens, clockMs)
  }

  /** The limit of requests that refuses any call of the key at this moment. Counts nothing. */
  exhausted(who: Who, nowMs: number): Refused | undefined {
    const clockMs = this.#advance(nowMs)
    const plan = this.#owners.plainPlan(who, clockMs)
    const countsRequests = (owner: Owner, at: number): boolean => owner.rules[at]!.row.resource === 'requests'
    const fits = plan.shape.fits.map((rules, index) => rules.filter(at => countsRequests(plan.owners[index]!, at)))
    return this.#refusal({ ...plan, shape: { fits, isLeased: false } }, 0, clockMs)
  }

  /** Each limit of a key that does not depend on the model, and what is left of it. Counts nothing. */
  ofKey(who: Who, nowMs: number): readonly Quota[] {
    const clockMs = this.#advance(nowMs)
    return quotasOf(this.#owners.plainPlan(who, clockMs), clockMs)
  }

  /** The limit that would refuse this call. Counts nothing. */
  refusalOf(subject: Subject, nowMs: number): Refused | undefined {
    const clockMs = this.#advance(nowMs)
    const plan = this.#owners.planFor(subject, clockMs)
    return 'tooMany' in plan ? tooManyModels(plan.tooMany) : this.#refusal(plan, subject.tokens, clockMs)
  }

  /** Each limit that applies to a call, and what is left of it. Counts nothing. */
  look(subject: Subject, nowMs: number): readonly Quota[] {
    const clockMs = this.#advance(nowMs)
    const plan = this.#owners.planFor(subject, clockMs)
    return 'tooMany' in plan ? [] : quotasOf(plan, clockMs)
  }

  /** The use of day limits that has changed since the last call of this method, with the date of its refill. */
  takeDayNotes(nowMs: number, dateMs: number): readonly LimitDebt[] {
    const clockMs = this.#advance(nowMs)
    const notedMs = Math.ceil(dateMs)
    const owners = this.#unsaved
    this.#unsaved = []
    const rows: LimitDebt[] = []
    for (const owner of owners) {
      owner.isNoted = true
      owner.pay(clockMs)
      for (const [at, rule] of owner.rules.entries()) {
        if (!rule.isOfDay) continue
        rows.push({ name: owner.noteName(rule), paidMs: notedMs + resetMsOf(rule, owner.numbers[2 * at]!), notedMs })
      }
    }
    return rows
  }

  /** The number of owners in memory, and of open leases. */
  get size(): { readonly owners: number; readonly leases: number } {
    return { owners: this.#owners.size, leases: this.#leases.size }
  }

  /** If the clock goes back, the time stands still here until the clock has caught up. */
  #advance(nowMs: number): number {
    if (nowMs > this.#clockMs) this.#clockMs = nowMs
    return this.#clockMs
  }

  #refusal({ owners, shape }: Plan, tokens: number, clockMs: number): Refused | undefined {
    let retryAfterMs = 0
    let by: Quota | undefined
    for (let index = 0; index < owners.length; index++) {
      const owner = owners[index]!
      owner.pay(clockMs)
      for (const at of shape.fits[index]!) {
        const waitMs = waitMsAt(owner, at, tokens)
        if (waitMs <= retryAfterMs) continue
        by = quotaAt(owner, at)
        retryAfterMs = waitMs
      }
    }
    return by && { admitted: false, quotas: tightest(owners, shape.fits), by: { ...by, remaining: 0 }, retryAfterMs }
  }

  /** Counts a call that no limit refuses. From here on it must succeed. */
  #take(plan: Plan, tokens: number, clockMs: number): Admission {
    const { owners, shape } = plan
    for (let index = 0; index < owners.length; index++) {
      const owner = owners[index]!
      for (const at of shape.fits[index]!) {
        const rule = owner.rules[at]!
        if (rule.isOfDay && owner.isNoted) this.#markUnsaved(owner)
        if (!rule.countsTokens && !rule.countsPlaces) owner.take(at, 1)
      }
    }
    const lease = shape.isLeased ? this.#leases.open(plan, tokens, clockMs) : noLease
    return { admitted: true, quotas: tightest(owners, shape.fits), lease }
  }

  #markUnsaved(owner: Owner): void {
    if (!owner.isNoted) return
    owner.isNoted = false
    this.#unsaved.push(owner)
  }
}

function quotasOf({ owners, shape }: Plan, clockMs: number): readonly Quota[] {
  return owners.flatMap((owner, index) => {
    owner.pay(clockMs)
    return shape.fits[index]!.map(at => quotaAt(owner, at))
  })
}

function tooManyModels(rule: Rule): Refused {
  const by = quotaOf(rule, { remaining: 0, resetMs: MODELS_WAIT_MS })
  return { admitted: false, quotas: [by], by, retryAfterMs: MODELS_WAIT_MS }
}

function waitMsAt(owner: Owner, at: number, tokens: number): number {
  const rule = owner.rules[at]!
  const used = owner.numbers[2 * at]!
  if (rule.countsPlaces) return used < rule.amount ? 0 : CONCURRENCY_WAIT_MS
  const count = rule.countOf(tokens)
  return count === 0 ? 0 : waitMsFor(rule, used, count)
}

/** For requests and for tokens, the limit with the least left. */
function tightest(owners: readonly Owner[], fits: Plan['shape']['fits']): readonly Quota[] {
  const requests = { left: Infinity, index: -1, at: -1 }
  const tokens = { left: Infinity, index: -1, at: -1 }
  for (let index = 0; index < owners.length; index++) {
    const owner = owners[index]!
    for (const at of fits[index]!) {
      const rule = owner.rules[at]!
      if (rule.countsPlaces) continue
      const left = leftOf(rule, owner.numbers[2 * at]!)
      const least = rule.countsTokens ? tokens : requests
      if (left >= least.left) continue
      least.left = left
      least.index = index
      least.at = at
    }
  }
  const found = [requests, tokens].filter(({ index }) => index >= 0)
  return found.map(({ index, at }) => quotaAt(owners[index]!, at))
}

function quotaAt(owner: Owner, at: number): Quota {
  const rule = owner.rules[at]!
  const used = owner.numbers[2 * at]!
  return quotaOf(rule, { remaining: leftOf(rule, used), resetMs: rule.countsPlaces ? 0 : resetMsOf(rule, used) })
}

const quotaOf = ({ row, amount, whose }: Rule, left: Pick<Quota, 'remaining' | 'resetMs'>): Quota => ({
  resource: row.resource,
  span: row.span,
  limit: amount,
  remaining: left.remaining,
  resetMs: left.resetMs,
  whose,
})
