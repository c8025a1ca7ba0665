// Checks all limits of a call in one step: the call passes all limits and is counted by all, or one limit refuses the
// call and none counts it.
//
// Nothing in this file is asynchronous, so that no other call can come between the check and the count.

import { remainingOf, resetMsOf, waitMsFor } from '../base/collections/gcra.ts'
import type { LimitDebt } from '../store/ledger/limit-debts.ts'
import type { LimitRow } from '../store/rules/rules.ts'
import type { LimitLease } from './leases.ts'
import { LimitLeases, noLimitLease } from './leases.ts'
import type { CountedCall, LimitOwner, LimitPlan } from './limit-owner.ts'
import { LimitOwners } from './limit-owners.ts'
import type { LimitRule } from './limit-rule.ts'
import { LimitRuleSet } from './limit-rule.ts'
import type { LimitedCall, LimitedCaller } from './limited-call.ts'

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

interface Admitted {
  readonly admitted: true
  readonly quotas: readonly Quota[]
  readonly lease: LimitLease
  /** The rules that have counted the call. */
  readonly rules: LimitRuleSet
}

export type LimitAdmission = Admitted | LimitRefusal

export interface LimitRefusal {
  readonly admitted: false
  /** For each resource, the limit with the least left. */
  readonly quotas: readonly Quota[]
  readonly by: Quota
  /** The time until no limit refuses the call any more, as far as it is known. */
  readonly retryAfterMs: number
}

export interface LimitPlans {
  readonly plan: LimitPlan
  /** The limits that have not counted the call yet. */
  readonly rest: LimitPlan
  /** All rules at that time. */
  readonly rules: LimitRuleSet
}

/** Hears of each use of a day limit: the time in which the whole limit refills it. Negative for a refund. */
type DayUseListener = (name: string, ms: number) => void

/** The retry time for concurrency: it is unknown when an active call ends. */
export const CONCURRENCY_WAIT_MS = 1_000
/** A key that calls too many different models waits until some of them are forgotten. */
const MODELS_WAIT_MS = 10_000

export class Limits {
  readonly #owners: LimitOwners
  readonly #leases: LimitLeases
  /** Owners whose use of day limits has changed since it was last saved. */
  #unsaved: LimitOwner[] = []
  #clockMs = 0

  readonly #onDayUse: DayUseListener | undefined

  /** `restored`: the saved use of day limits, as the time at which each is refilled, by name. */
  constructor(restored: ReadonlyMap<string, number> = new Map(), onDayUse?: DayUseListener) {
    this.#owners = new LimitOwners(restored)
    this.#onDayUse = onDayUse
    this.#leases = new LimitLeases({
      advance: nowMs => this.#advance(nowMs),
      onUse: (owner, rule, units) => rule.isOfDay && this.#noteDayUse(owner, rule, units),
    })
  }

  /** Replaces all rules. The use of a rule that stays is kept. This process has its share of them. */
  setRules(rows: readonly LimitRow[], processes = 1): void {
    this.#owners.ruleSet = new LimitRuleSet(rows, processes)
  }

  admit(subject: LimitedCall, nowMs: number): LimitAdmission {
    const clockMs = this.#advance(nowMs)
    this.#owners.sweep(clockMs)
    this.#leases.reap(clockMs)
    const plan = this.#owners.planFor(subject, clockMs)
    if ('tooMany' in plan) return tooManyModels(plan.tooMany)
    return this.#refusal(plan, subject.tokens, clockMs) ?? this.#take(plan, subject.tokens, clockMs)
  }

  /**
   * Admits a call again whose model has got other names since `counted`, or whose rules have changed: only limits that have
   * not counted the call check and count it now. The lease is for these limits alone.
   */
  admitRest(subject: LimitedCall, counted: CountedCall, nowMs: number): LimitAdmission {
    const clockMs = this.#advance(nowMs)
    const plan = this.#owners.planFor(subject, clockMs)
    if ('tooMany' in plan) return tooManyModels(plan.tooMany)
    const rest = this.#owners.planWithout(plan, subject, counted)
    return (
      this.#refusal(rest, subject.tokens, clockMs) ?? {
        ...this.#take(rest, subject.tokens, clockMs),
        quotas: tightest(plan.owners, plan.shape.ruleIndexes),
      }
    )
  }

  /** The limits of a call, for counting them elsewhere; some have counted it before. */
  plansOf(subject: LimitedCall, counted: CountedCall | undefined, nowMs: number): LimitPlans | LimitRefusal {
    const clockMs = this.#advance(nowMs)
    this.#owners.sweep(clockMs)
    this.#leases.reap(clockMs)
    const plan = this.#owners.planFor(subject, clockMs)
    if ('tooMany' in plan) return tooManyModels(plan.tooMany)
    const rest = counted === undefined ? plan : this.#owners.planWithout(plan, subject, counted)
    return { plan, rest, rules: this.#owners.ruleSet }
  }

  /** The limits of a key that do not depend on the model, for looking at them elsewhere. */
  planOfKey(who: LimitedCaller, nowMs: number): LimitPlan {
    return this.#owners.plainPlan(who, this.#advance(nowMs))
  }

  /**
   * Counts a call that was admitted elsewhere, whether it fits here or not. If the rules have changed since its plan was
   * made, the plan means other rules now, and nothing is counted.
   */
  count({ rest, rules }: LimitPlans, tokens: number, nowMs: number): LimitLease {
    if (rules !== this.#owners.ruleSet) return noLimitLease
    const clockMs = this.#advance(nowMs)
    for (const owner of rest.owners) owner.refill(clockMs)
    return this.#take(rest, tokens, clockMs).lease
  }

  /** The limit of requests that refuses any call of the key at this moment. Counts nothing. */
  refusalOfKey(who: LimitedCaller, nowMs: number): LimitRefusal | undefined {
    const clockMs = this.#advance(nowMs)
    return this.#refusal(this.#owners.requestPlan(who, clockMs), 0, clockMs)
  }

  /** Each limit of a key that does not depend on the model, and what is left of it. Counts nothing. */
  quotasOfKey(who: LimitedCaller, nowMs: number): readonly Quota[] {
    const clockMs = this.#advance(nowMs)
    return quotasOf(this.#owners.plainPlan(who, clockMs), clockMs)
  }

  /** The limit that would refuse this call. Counts nothing. */
  refusalOfCall(subject: LimitedCall, nowMs: number): LimitRefusal | undefined {
    const clockMs = this.#advance(nowMs)
    const plan = this.#owners.planFor(subject, clockMs)
    return 'tooMany' in plan ? tooManyModels(plan.tooMany) : this.#refusal(plan, subject.tokens, clockMs)
  }

  /** Each limit that applies to a call, and what is left of it. Counts nothing. */
  quotasOfCall(subject: LimitedCall, nowMs: number): readonly Quota[] {
    const clockMs = this.#advance(nowMs)
    const plan = this.#owners.planFor(subject, clockMs)
    return 'tooMany' in plan ? [] : quotasOf(plan, clockMs)
  }

  /** The use of day limits that has changed since the last call of this method, with the date of its refill. */
  takeDayUsage(nowMs: number, dateMs: number): readonly LimitDebt[] {
    const clockMs = this.#advance(nowMs)
    const notedMs = Math.ceil(dateMs)
    const owners = this.#unsaved
    this.#unsaved = []
    const rows: LimitDebt[] = []
    for (const owner of owners) {
      owner.isSaved = true
      owner.refill(clockMs)
      for (const [at, rule] of owner.rules.entries()) {
        if (!rule.isOfDay) continue
        rows.push({ name: owner.savedName(rule), paidMs: notedMs + resetMsOf(rule, owner.counters[2 * at]!), notedMs })
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

  #refusal(
    { owners, shape }: Pick<LimitPlan, 'owners' | 'shape'>,
    tokens: number,
    clockMs: number,
  ): LimitRefusal | undefined {
    let retryAfterMs = 0
    let by: Quota | undefined
    for (let index = 0; index < owners.length; index++) {
      const owner = owners[index]!
      owner.refill(clockMs)
      for (const at of shape.ruleIndexes[index]!) {
        const waitMs = waitMsAt(owner, at, tokens)
        if (waitMs <= retryAfterMs) continue
        by = quotaAt(owner, at)
        retryAfterMs = waitMs
      }
    }
    return (
      by && { admitted: false, quotas: tightest(owners, shape.ruleIndexes), by: { ...by, remaining: 0 }, retryAfterMs }
    )
  }

  /** Counts a call that no limit refuses. From here on it must succeed. */
  #take(plan: LimitPlan, tokens: number, clockMs: number): Admitted {
    const { owners, shape } = plan
    for (let index = 0; index < owners.length; index++) {
      const owner = owners[index]!
      for (const at of shape.ruleIndexes[index]!) {
        const rule = owner.rules[at]!
        if (rule.isOfDay) this.#noteDayUse(owner, rule, rule.countOf(tokens) * rule.unitsEach)
        if (!rule.countsTokens && !rule.countsConcurrency) owner.take(at, 1)
      }
    }
    const lease = shape.needsLease ? this.#leases.open(plan, tokens, clockMs) : noLimitLease
    return { admitted: true, quotas: tightest(owners, shape.ruleIndexes), lease, rules: this.#owners.ruleSet }
  }

  #noteDayUse(owner: LimitOwner, rule: LimitRule, units: number): void {
    this.#onDayUse?.(owner.savedName(rule), (units / rule.whole.amount) * rule.tickMs)
    if (!owner.isSaved) return
    owner.isSaved = false
    this.#unsaved.push(owner)
  }
}

function quotasOf({ owners, shape }: LimitPlan, clockMs: number): readonly Quota[] {
  return owners.flatMap((owner, index) => {
    owner.refill(clockMs)
    return shape.ruleIndexes[index]!.map(at => quotaAt(owner, at))
  })
}

function tooManyModels(rule: LimitRule): LimitRefusal {
  const by = quotaOf(rule, { remaining: 0, resetMs: MODELS_WAIT_MS })
  return { admitted: false, quotas: [by], by, retryAfterMs: MODELS_WAIT_MS }
}

function waitMsAt(owner: LimitOwner, at: number, tokens: number): number {
  const rule = owner.rules[at]!
  const used = owner.counters[2 * at]!
  if (rule.countsConcurrency) return used < rule.amount ? 0 : CONCURRENCY_WAIT_MS
  const count = rule.countOf(tokens)
  return count === 0 ? 0 : waitMsFor(rule, used, count)
}

/** For requests and for tokens, the limit with the least left. */
function tightest(owners: readonly LimitOwner[], fits: LimitPlan['shape']['ruleIndexes']): readonly Quota[] {
  let [requestsOwner, requestsAt, requestsLeft]: Tightest = [undefined, -1, Infinity]
  let [tokensOwner, tokensAt, tokensLeft]: Tightest = [undefined, -1, Infinity]
  for (let index = 0; index < owners.length; index++) {
    const owner = owners[index]!
    for (const at of fits[index]!) {
      const rule = owner.rules[at]!
      if (rule.countsConcurrency) continue
      const left = remainingOf(rule, owner.counters[2 * at]!)
      if (rule.countsTokens && left < tokensLeft) [tokensOwner, tokensAt, tokensLeft] = [owner, at, left]
      if (!rule.countsTokens && left < requestsLeft) [requestsOwner, requestsAt, requestsLeft] = [owner, at, left]
    }
  }
  const found: Quota[] = []
  if (requestsOwner !== undefined) found.push(quotaAt(requestsOwner, requestsAt))
  if (tokensOwner !== undefined) found.push(quotaAt(tokensOwner, tokensAt))
  return found
}

type Tightest = [owner: LimitOwner | undefined, at: number, left: number]

function quotaAt(owner: LimitOwner, at: number): Quota {
  const rule = owner.rules[at]!
  const used = owner.counters[2 * at]!
  return quotaOf(rule, {
    remaining: remainingOf(rule, used),
    resetMs: rule.countsConcurrency ? 0 : resetMsOf(rule, used),
  })
}

/** If the limit is divided, the caller is told about the whole: other processes probably have as much left. */
const quotaOf = (
  { row, whole, processes, ownerText }: LimitRule,
  left: Pick<Quota, 'remaining' | 'resetMs'>,
): Quota => ({
  resource: row.resource,
  span: row.span,
  limit: whole.amount,
  remaining: Math.min(left.remaining * processes, whole.amount),
  resetMs: left.resetMs,
  whose: ownerText,
})
