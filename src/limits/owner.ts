// Whoever has limits of their own: a key, an account, one of them with one model, or all together. Of each of its rules
// an owner has two numbers, and nothing else: there are many owners, and every call looks at all their numbers.

import { owedAfter, owedOf, owedWith, resetMsOf } from '../base/collections/gcra.ts'
import type { Kind, LimitBook, Rule } from './rule.ts'
import type { Subject, Who } from './subject.ts'

/** Of a key its number. */
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
   * For the rule at `i`: at `2i` what is owed, or how many places are taken; at `2i + 1` what was ever given back.
   * All of it is paid for until `paidMs`.
   */
  numbers = noNumbers
  paidMs = 0
  /** Leases, and plans of others, that would miss it. */
  users = 0
  /** What it owes of days is written down as it is. */
  isNoted = true

  constructor(name: OwnerName, kind: Kind) {
    this.name = name
    this.kind = kind
  }

  /** From now on it has these rules; what it owes by rules that stay, it owes still. */
  follow(book: LimitBook, rules: readonly Rule[]): void {
    const before = { rules: this.rules, numbers: this.numbers }
    this.book = book
    if (rules === before.rules) return
    this.rules = rules
    this.numbers = new Float64Array(2 * rules.length)
    before.rules.forEach((rule, from) => {
      const to = this.indexOf(rule)
      if (to < 0) return
      const owed = before.numbers[2 * from]!
      this.numbers[2 * to] = rule.countsPlaces ? owed : owedOf(rules[to]!, owed, rule)
      this.numbers[2 * to + 1] = before.numbers[2 * from + 1]!
    })
  }

  /** Of what may by now be another rule of the same meaning; -1 when there is none any more. */
  indexOf(rule: Rule): number {
    return this.rules.findIndex(one => one === rule || one.isLike(rule))
  }

  /** A clock that goes back pays nothing until it has caught up. */
  pay(nowMs: number): void {
    const ms = Math.floor(nowMs)
    if (ms <= this.paidMs) return
    const ticks = ms - this.paidMs
    const dayTicks = Math.floor(ms / DAY_TICK_MS) - Math.floor(this.paidMs / DAY_TICK_MS)
    const { rules, numbers } = this
    for (let at = 0; at < rules.length; at++) {
      const owed = numbers[2 * at]!
      const rule = rules[at]!
      if (owed > 0 && !rule.countsPlaces) numbers[2 * at] = owedAfter(rule, owed, rule.isOfDay ? dayTicks : ticks)
    }
    this.paidMs = ms
  }

  /** Takes it, whether it fits or not. */
  take(at: number, count: number): void {
    this.numbers[2 * at] = owedWith(this.rules[at]!, this.numbers[2 * at]!, count)
  }

  /** As much as takes this long to pay. */
  oweFor(at: number, ms: number): void {
    const { amount, tickMs } = this.rules[at]!
    this.numbers[2 * at] = Math.ceil(ms / tickMs) * amount
  }

  /** For one who has owed nothing for a while, a new start and no start are the same. */
  isIdleSince(ms: number): boolean {
    if (this.users > 0 || this.paidMs > ms) return false
    const { rules, numbers } = this
    for (let at = 0; at < rules.length; at++) {
      const owed = numbers[2 * at]!
      if (owed === 0) continue
      const rule = rules[at]!
      if (rule.countsPlaces || this.paidMs + resetMsOf(rule, owed) > ms) return false
    }
    return true
  }

  /** Under which what it owes of a day is written down. */
  noteName({ row }: Rule): string {
    return `${row.id} ${this.name}`
  }
}

/** What the calls of one key for one model meet: worked out once for many calls that are alike. */
export interface Plan {
  /** Undefined where no rule asks for it. */
  readonly model: string | null | undefined
  /** The name that was asked for, where it may be another. */
  readonly asked: string | undefined
  readonly owners: readonly Owner[]
  readonly shape: Shape
}

/** Most keys have the same. */
export interface Shape {
  /** For each of the owners, which of its rules the call meets. */
  readonly fits: readonly (readonly number[])[]
  /** There is something to correct or to let go of when a call is over. */
  readonly isLeased: boolean
}

export function isPlanFor({ model, asked }: Plan, subject: Pick<Subject, 'model' | 'names'>): boolean {
  if (model === undefined) return true
  return model === subject.model && asked === subject.names?.[0]
}

/** A key. Those of its models that have limits of their own are with it. */
export class KeyOwner extends Owner {
  #who: Pick<Who, 'accountId' | 'tier' | 'qpm' | 'hasOwnLimit'> | undefined
  /** Models that others share, and that it was the first to call. */
  models = 0
  #ofModels: readonly ModelOwner[] = noModels
  #plan: Plan | undefined

  /** Nothing of it has changed that limits look at. */
  isLike({ qpm, tier, accountId, hasOwnLimit = false }: Who): boolean {
    const who = this.#who
    return (
      who?.qpm === qpm && who.tier === tier && who.accountId === accountId && (who.hasOwnLimit ?? false) === hasOwnLimit
    )
  }

  become(who: Who): void {
    this.#who = who
  }

  /** Of the call before, which most calls are like. */
  get plan(): Plan | undefined {
    return this.#plan
  }

  set plan(plan: Plan | undefined) {
    for (const owner of plan?.owners ?? []) if (owner.kind.sharing !== 'key') owner.users++
    for (const owner of this.#plan?.owners ?? []) if (owner.kind.sharing !== 'key') owner.users--
    this.#plan = plan
  }

  /** How many models are remembered because of it. */
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

/** With one model of its own. */
export class ModelOwner extends Owner {
  readonly model: string
  /** Called it first, and may not do so with any number of models. */
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
