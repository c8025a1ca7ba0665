// Owners of limits: a key, an account, either of these together with one model, or all callers together. An owner keeps
// two numbers for each of its rules and nothing else, because there are many owners and every call reads their numbers.

import { convertUsed, resetMsOf, usedAfter, usedWith } from '../base/collections/gcra.ts'
import type { RuleNames } from '../base/text/rule-names.ts'
import { hasSameNames } from '../base/text/rule-names.ts'
import type { LimitOwnerKind, LimitRule, LimitRuleSet } from './limit-rule.ts'
import type { LimitedCall, LimitedCaller } from './limited-call.ts'

/** The name of a key is its id. */
export type LimitOwnerName = number | string

const DAY_TICK_MS = 1_000

const noRules: readonly LimitRule[] = []
const noNumbers = new Float64Array(0)

export class LimitOwner {
  readonly name: LimitOwnerName
  readonly kind: LimitOwnerKind
  ruleSet: LimitRuleSet | undefined
  rules: readonly LimitRule[] = noRules
  /**
   * For the rule at index `i`: at `2i` the used units, or the taken concurrency slots; at `2i + 1` all units that were
   * ever refunded. All rules are refilled up to `refilledMs`.
   */
  counters = noNumbers
  refilledMs = 0
  /** The number of leases and of other owners' plans that refer to this owner. */
  refCount = 0
  /** The use of day limits is saved in its current state. */
  isSaved = true

  constructor(name: LimitOwnerName, kind: LimitOwnerKind) {
    this.name = name
    this.kind = kind
  }

  /** Replaces the rules. The use of rules that stay is kept. */
  setRules(book: LimitRuleSet, rules: readonly LimitRule[]): void {
    const before = { rules: this.rules, numbers: this.counters }
    this.ruleSet = book
    if (rules === before.rules) return
    this.rules = rules
    this.counters = new Float64Array(2 * rules.length)
    before.rules.forEach((rule, from) => {
      const to = this.indexOf(rule)
      if (to < 0) return
      const used = before.numbers[2 * from]!
      this.counters[2 * to] = rule.countsConcurrency ? used : convertUsed(rules[to]!, used, rule)
      this.counters[2 * to + 1] = before.numbers[2 * from + 1]!
    })
  }

  /** The index of this rule, or of a newer version of it; -1 if there is none any more. */
  indexOf(rule: LimitRule): number {
    return this.rules.findIndex(other => other === rule || other.isSameRule(rule))
  }

  /** A clock that goes back refills nothing until it has caught up. */
  refill(nowMs: number): void {
    const ms = Math.floor(nowMs)
    if (ms <= this.refilledMs) return
    const ticks = ms - this.refilledMs
    const dayTicks = Math.floor(ms / DAY_TICK_MS) - Math.floor(this.refilledMs / DAY_TICK_MS)
    const { rules, counters } = this
    for (let at = 0; at < rules.length; at++) {
      const used = counters[2 * at]!
      const rule = rules[at]!
      if (used > 0 && !rule.countsConcurrency) counters[2 * at] = usedAfter(rule, used, rule.isOfDay ? dayTicks : ticks)
    }
    this.refilledMs = ms
  }

  /** Takes `count` items, whether they fit or not. */
  take(at: number, count: number): void {
    this.counters[2 * at] = usedWith(this.rules[at]!, this.counters[2 * at]!, count)
  }

  /** Restores saved use: as much as takes `ms` to refill. */
  restoreUse(at: number, ms: number): void {
    const { amount, tickMs } = this.rules[at]!
    this.counters[2 * at] = Math.ceil(ms / tickMs) * amount
  }

  /** Whether the owner can be forgotten: nothing refers to it, and all its limits were refilled at `ms`. */
  isIdleSince(ms: number): boolean {
    if (this.refCount > 0 || this.refilledMs > ms) return false
    const { rules, counters } = this
    for (let at = 0; at < rules.length; at++) {
      const used = counters[2 * at]!
      if (used === 0) continue
      const rule = rules[at]!
      if (rule.countsConcurrency || this.refilledMs + resetMsOf(rule, used) > ms) return false
    }
    return true
  }

  /** The name under which the use of a day limit is saved. */
  savedName({ row }: LimitRule): string {
    return `${row.id} ${this.name}`
  }
}

/** A call that was admitted before, as it was then. */
export interface CountedCall {
  readonly call: LimitedCall
  /** The rules of that time. */
  readonly rules: LimitRuleSet
}

/** The limits that apply to the calls of one key for one model. Built once for many calls that are alike. */
export interface LimitPlan {
  /** Undefined if no rule depends on the model. */
  readonly model: string | null | undefined
  /** All names of the model, if it has several. They may change, when models are found or lost. */
  readonly names: RuleNames | undefined
  readonly owners: readonly LimitOwner[]
  readonly shape: LimitPlanShape
  /** Only the limits of requests that do not depend on the model: those that are known before the body is read. */
  readonly requestShape?: LimitPlanShape
}

/** The part of a plan that most keys share. */
export interface LimitPlanShape {
  /** For each owner, the indexes of its rules that apply to the call. */
  readonly ruleIndexes: readonly (readonly number[])[]
  /** The call needs a lease: something must be corrected or released when it is over. */
  readonly needsLease: boolean
}

export function isPlanFor({ model, names }: LimitPlan, subject: Pick<LimitedCall, 'model' | 'names'>): boolean {
  if (model === undefined) return true
  if (model !== subject.model) return false
  return names === undefined || subject.names === undefined
    ? names === subject.names
    : hasSameNames(names, subject.names)
}

/** Whether limits count both in the same way. */
export const isSameCaller = (one: LimitedCaller, other: LimitedCaller): boolean =>
  one.qpm === other.qpm &&
  one.tier === other.tier &&
  one.accountId === other.accountId &&
  (one.hasOwnLimit ?? false) === (other.hasOwnLimit ?? false) &&
  (one.sharesLimits ?? false) === (other.sharesLimits ?? false)

/** A key, together with those of its models that have limits of their own. */
export class KeyLimitOwner extends LimitOwner {
  #who: LimitedCaller | undefined
  /** The number of models with limits that other keys share, which this key was the first to call. */
  sharedModels = 0
  #ofModels: readonly ModelLimitOwner[] = noModels
  #plan: LimitPlan | undefined

  /** Whether nothing has changed that limits depend on. */
  matches(who: LimitedCaller): boolean {
    return this.#who !== undefined && isSameCaller(this.#who, who)
  }

  update(who: LimitedCaller): void {
    this.#who = who
  }

  /** The plan of the previous call. Most calls of a key have the same plan. */
  get plan(): LimitPlan | undefined {
    return this.#plan
  }

  set plan(plan: LimitPlan | undefined) {
    for (const owner of plan?.owners ?? []) if (owner.kind.sharing !== 'key') owner.refCount++
    for (const owner of this.#plan?.owners ?? []) if (owner.kind.sharing !== 'key') owner.refCount--
    this.#plan = plan
  }

  /** The number of models that are in memory because of this key. */
  get modelsOwned(): number {
    return this.sharedModels + this.#ofModels.length
  }

  ofModel(model: string): ModelLimitOwner | undefined {
    return this.#ofModels.find(owner => owner.model === model)
  }

  addModel(owner: ModelLimitOwner): void {
    this.#ofModels = [...this.#ofModels, owner]
  }

  /** Forgets models that have not been called for a while. */
  forgetModels(ms: number): void {
    let idle = 0
    for (const owner of this.#ofModels) if (owner.isIdleSince(ms)) idle++
    if (idle === 0) return
    this.#ofModels = this.#ofModels.filter(owner => !owner.isIdleSince(ms))
    this.plan = undefined
  }
}

/** A key, an account or all callers, together with one model. */
export class ModelLimitOwner extends LimitOwner {
  readonly model: string
  /** The key that called the model first. The number of models that one key may add is bounded. */
  readonly firstKey: KeyLimitOwner

  constructor(name: LimitOwnerName, kind: LimitOwnerKind, { model, first }: { model: string; first: KeyLimitOwner }) {
    super(name, kind)
    this.model = model
    this.firstKey = first
  }

  override savedName(rule: LimitRule): string {
    const name = super.savedName(rule)
    return this.kind.sharing === 'key' ? `${name}/${this.model}` : name
  }
}

const noModels: readonly ModelLimitOwner[] = []
