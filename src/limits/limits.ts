// Every limit that a call meets, in one step: it passes all of them and is counted by all, or is refused by one and
// counted by none.
//
// Nothing waits here and nothing is read: between looking and taking no other call can come.

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

/** What is left of one limit. */
export interface Quota {
  readonly resource: LimitRow['resource']
  readonly span: LimitRow['span']
  readonly limit: number
  readonly remaining: number
  /** Until all of it is there again. */
  readonly resetMs: number
  /** Whose it is, in words for a caller, who is not told of others. */
  readonly whose: string
}

export type Admission =
  | { readonly admitted: true; readonly quotas: readonly Quota[]; readonly lease: LimitLease }
  | Refused

export interface Refused {
  readonly admitted: false
  /** Of each resource the one of which the least is left. */
  readonly quotas: readonly Quota[]
  readonly by: Quota
  /** Until none of them refuses it any more, as far as can be known. */
  readonly retryAfterMs: number
}

/** Nobody knows when one of the calls under way ends. */
const PLACE_WAIT_MS = 1_000
/** A key that asks for too many different models waits until some of them are forgotten. */
const MODELS_WAIT_MS = 10_000

export class Limits {
  readonly #owners: Owners
  readonly #leases: Leases
  #unnoted: Owner[] = []
  #clockMs = 0

  /** `remembered`: until when debts of days, by their names, take to be paid that were written down before. */
  constructor(remembered: ReadonlyMap<string, number> = new Map()) {
    this.#owners = new Owners(remembered)
    this.#leases = new Leases({
      advance: nowMs => this.#advance(nowMs),
      onOwed: (owner, rule) => rule.isOfDay && this.#note(owner),
    })
  }

  /** From now on these are the rules. What is owed by a rule that stays is owed still. */
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

  /** What would refuse any call of the key at this moment, whatever it asks for. Counts nothing. */
  exhausted(who: Who, nowMs: number): Refused | undefined {
    const clockMs = this.#advance(nowMs)
    const plan = this.#owners.plainPlan(who, clockMs)
    const counts = (owner: Owner, at: number): boolean => owner.rules[at]!.row.resource === 'requests'
    const fits = plan.shape.fits.map((some, index) => some.filter(at => counts(plan.owners[index]!, at)))
    return this.#refusal({ ...plan, shape: { fits, isLeased: false } }, 0, clockMs)
  }

  /** Each limit of a key that holds whichever model it calls, and what is left of it. Counts nothing. */
  ofKey(who: Who, nowMs: number): readonly Quota[] {
    const clockMs = this.#advance(nowMs)
    return quotasOf(this.#owners.plainPlan(who, clockMs), clockMs)
  }

  /** What would refuse this one. Counts nothing. */
  refusalOf(subject: Subject, nowMs: number): Refused | undefined {
    const clockMs = this.#advance(nowMs)
    const plan = this.#owners.planFor(subject, clockMs)
    return 'tooMany' in plan ? tooManyModels(plan.tooMany) : this.#refusal(plan, subject.tokens, clockMs)
  }

  /** Each limit that a call meets, and what is left of it. Counts nothing. */
  look(subject: Subject, nowMs: number): readonly Quota[] {
    const clockMs = this.#advance(nowMs)
    const plan = this.#owners.planFor(subject, clockMs)
    return 'tooMany' in plan ? [] : quotasOf(plan, clockMs)
  }

  /** What is owed of days, and when it will be paid by the calendar; of all in whom it has changed since last asked. */
  takeDayNotes(nowMs: number, dateMs: number): readonly LimitDebt[] {
    const clockMs = this.#advance(nowMs)
    const notedMs = Math.ceil(dateMs)
    const owners = this.#unnoted
    this.#unnoted = []
    const notes: LimitDebt[] = []
    for (const owner of owners) {
      owner.isNoted = true
      owner.pay(clockMs)
      for (const [at, rule] of owner.rules.entries()) {
        if (!rule.isOfDay) continue
        notes.push({ name: owner.noteName(rule), paidMs: notedMs + resetMsOf(rule, owner.numbers[2 * at]!), notedMs })
      }
    }
    return notes
  }

  /** Owners that are remembered, and leases that are open. */
  get size(): { readonly owners: number; readonly leases: number } {
    return { owners: this.#owners.size, leases: this.#leases.size }
  }

  /** A clock that goes back stands still here, until it has caught up. */
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

  /** Nothing refuses it, and from here on nothing may. */
  #take(plan: Plan, tokens: number, clockMs: number): Admission {
    const { owners, shape } = plan
    for (let index = 0; index < owners.length; index++) {
      const owner = owners[index]!
      for (const at of shape.fits[index]!) {
        const rule = owner.rules[at]!
        if (rule.isOfDay && owner.isNoted) this.#note(owner)
        if (!rule.countsTokens && !rule.countsPlaces) owner.take(at, 1)
      }
    }
    const lease = shape.isLeased ? this.#leases.open(plan, tokens, clockMs) : noLease
    return { admitted: true, quotas: tightest(owners, shape.fits), lease }
  }

  #note(owner: Owner): void {
    if (!owner.isNoted) return
    owner.isNoted = false
    this.#unnoted.push(owner)
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
  const owed = owner.numbers[2 * at]!
  if (rule.countsPlaces) return owed < rule.amount ? 0 : PLACE_WAIT_MS
  const count = rule.countOf(tokens)
  return count === 0 ? 0 : waitMsFor(rule, owed, count)
}

/** Of requests and of tokens the one of which the least is left. */
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
  const owed = owner.numbers[2 * at]!
  return quotaOf(rule, { remaining: leftOf(rule, owed), resetMs: rule.countsPlaces ? 0 : resetMsOf(rule, owed) })
}

const quotaOf = ({ row, amount, whose }: Rule, left: Pick<Quota, 'remaining' | 'resetMs'>): Quota => ({
  resource: row.resource,
  span: row.span,
  limit: amount,
  remaining: left.remaining,
  resetMs: left.resetMs,
  whose,
})
