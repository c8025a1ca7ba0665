// Owners of limits: a key, an account, either of these together with one model, or all callers together. An owner keeps
// two numbers for each of its rules and nothing else, because there are many owners and every call reads their numbers.

import { owedAfter, owedOf, owedWith, resetMsOf } from '../base/collections/gcra.ts'
import type { Kind, LimitBook, Rule } from './rule.ts'
import type { Subject, Who } from './subject.ts'

/** The name of a key is its id. */
export type OwnerName = number | string

const DAY_TICK_MS = 1_000

const noRules: readonly Rule[] = []
const noNumbers = new Float64Array(0)

export class Owner {
  readonly name: OwnerName
  readonly kind: Kind
  book: LimitBook | undefined
  rules: readonly Rule[] = noRules
  /**
   * For the rule at index `i`: at `2i` the used units, or the taken concurrency slots; at `2i + 1` all units that were
   * ever refunded. All rules are refilled up to `refilledMs`.
   */
  numbers = noNumbers
  paidMs = 0
  /** The number of leases and of other owners' plans that refer to this owner. */
  users = 0
  /** The use of day limits is saved in its current state. */
  isNoted = true

  constructor(name: OwnerName, kind: Kind) {
    this.name = name
    this.kind = kind
  }

  /** Replaces the rules. The use of rules that stay is kept. */
  follow(book: LimitBook, rules: readonly Rule[]): void {
    const before = { rules: this.rules, numbers: this.numbers }
    this.book = book
    if (rules === before.rules) return
    this.rules = rules
    this.numbers = new Float64Array(2 * rules.length)
    before.rules.forEach((rule, from) => {
      const to = this.indexOf(rule)
      if (to < 0) return
      const used = before.numbers[2 * from]!
      this.numbers[2 * to] = rule.countsPlaces ? used : owedOf(rules[to]!, used, rule)
      this.numbers[2 * to + 1] = before.numbers[2 * from + 1]!
    })
  }

  /** The index of this rule, or of a newer version of it; -1 if there is none any more. */
  indexOf(rule: Rule): number {
    return this.rules.findIndex(other => other === rule || other.isLike(rule))
  }

  /** A clock that goes back refills nothing until it has caught up. */
  pay(nowMs: number): void {
    const ms = Math.floor(nowMs)
    if (ms <= this.paidMs) return
    const ticks = ms - this.paidMs
    const dayTicks = Math.floor(ms / DAY_TICK_MS) - Math.floor(this.paidMs / DAY_TICK_MS)
    const { rules, numbers } = this
    for (let at = 0; at < rules.length; at++) {
      const used = numbers[2 * at]!
      const rule = rules[at]!
      if (used > 0 && !rule.countsPlaces) numbers[2 * at] = owedAfter(rule, used, rule.isOfDay ? dayTicks : ticks)
    }
    this.paidMs = ms
  }

  /** Takes `count` items, whether they fit or not. */
  take(at: number, count: number): void {
    this.numbers[2 * at] = owedWith(this.rules[at]!, this.numbers[2 * at]!, count)
  }

  /** Restores saved use: as much as takes `ms` to refill. */
  oweFor(at: number, ms: number): void {
    const { amount, tickMs } = this.rules[at]!
    this.numbers[2 * at] = Math.ceil(ms / tickMs) * amount
  }

  /** Whether the owner can be forgotten: nothing refers to it, and all its limits were refilled at `ms`. */
  isIdleSince(ms: number): boolean {
    if (this.users > 0 || this.paidMs > ms) return false
    const { rules, numbers } = this
    for (let at = 0; at < rules.length; at++) {
      const used = numbers[2 * at]!
      if (used === 0) continue
      const rule = rules[at]!
      if (rule.countsPlaces || this.paidMs + resetMsOf(rule, used) > ms) return false
    }
    return true
  }

  /** The name under which the use of a day limit is saved. */
  noteName({ row }: Rule): string {
    return `${row.id} ${this.name}`
  }
}

/** The limits that apply to the calls of one key for one model. Built once for many calls that are alike. */
export interface Plan {
  /** Undefined if no rule depends on the model. */
  readonly model: string | null | undefined
  /** The requested model name, if the call has several names. */
  readonly asked: string | undefined
  readonly owners: readonly Owner[]
  readonly shape: Shape
}

/** The part of a plan that most keys share. */
export interface Shape {
  /** For each owner, the indexes of its rules that apply to the call. */
  readonly fits: readonly (readonly number[])[]
  /** The call needs a lease: something must be corrected or released when it is over. */
  readonly isLeased: boolean
}

export function isPlanFor({ model, asked }: Plan, subject: Pick<Subject, 'model' | 'names'>): boolean {
  if (model === undefined) return true
  return model === subject.model && asked === subject.names?.[0]
}

/** A key, together with those of its models that have limits of their own. */
export class KeyOwner extends Owner {
  #who: Pick<Who, 'accountId' | 'tier' | 'qpm' | 'hasOwnLimit'> | undefined
  /** The number of models with limits that other keys share, which this key was the first to call. */
  models = 0
  #ofModels: readonly ModelOwner[] = noModels
  #plan: Plan | undefined

  /** Whether nothing has changed that limits depend on. */
  isLike({ qpm, tier, accountId, hasOwnLimit = false }: Who): boolean {
    const who = this.#who
    return (
      who?.qpm === qpm && who.tier === tier && who.accountId === accountId && (who.hasOwnLimit ?? false) === hasOwnLimit
    )
  }

  become(who: Who): void {
    this.#who = who
  }

  /** The plan of the previous call. Most calls of a key have the same plan. */
  get plan(): Plan | undefined {
    return this.#plan
  }

  set plan(plan: Plan | undefined) {
    for (const owner of plan?.owners ?? []) if (owner.kind.sharing !== 'key') owner.users++
    for (const owner of this.#plan?.owners ?? []) if (owner.kind.sharing !== 'key') owner.users--
    this.#plan = plan
  }

  /** The number of models that are in memory because of this key. */
  get modelsOwned(): number {
    return this.models + this.#ofModels.length
  }

  ofModel(model: string): ModelOwner | undefined {
    return this.#ofModels.find(owner => owner.model === model)
  }

  addModel(owner: ModelOwner): void {
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
export class ModelOwner extends Owner {
  readonly model: string
  /** The key that called the model first. The number of models that one key may add is bounded. */
  readonly first: KeyOwner

  constructor(name: OwnerName, kind: Kind, { model, first }: { model: string; first: KeyOwner }) {
    super(name, kind)
    this.model = model
    this.first = first
  }

  override noteName(rule: Rule): string {
    const name = super.noteName(rule)
    return this.kind.sharing === 'key' ? `${name}/${this.model}` : name
  }
}

const noModels: readonly ModelOwner[] = []
