// All owners of limits in memory, and the plans of their calls. An owner is kept while it has use or active calls, and
// for a few seconds longer. Each call checks a few owners, so that no pass over all owners is ever needed.

import { bounds } from '../base/bounds.ts'
import { Refusal } from '../base/errors.ts'
import { plainNames } from '../base/text/rule-names.ts'
import type { CountedCall, LimitOwnerName, LimitPlan, LimitPlanShape } from './limit-owner.ts'
import { isPlanFor, KeyLimitOwner, LimitOwner, ModelLimitOwner } from './limit-owner.ts'
import type { LimitOwnerKind, LimitRule } from './limit-rule.ts'
import { LimitRuleSet, limitOwnerKinds } from './limit-rule.ts'
import type { LimitedCall, LimitedCaller } from './limited-call.ts'

/** Owners that are checked for each new owner, so that idle ones are removed faster than new ones come. */
const SWEPT_FOR_NEW = 3
/** An idle owner is kept this long, because removing it and adding it again costs more. */
const IDLE_MS = 10_000
/** Far more than rules can produce. Beyond this the cache is cleared. */
const SHAPES_MAX = 10_000

const [keyKind] = limitOwnerKinds as [LimitOwnerKind]

/** The key has called too many models; the rule counts each model on its own. */
export interface TooManyModels {
  readonly tooMany: LimitRule
}

export class LimitOwners {
  ruleSet = new LimitRuleSet([])
  readonly #owners = new Map<LimitOwnerName, LimitOwner>()
  readonly #shapes = new Map<string, LimitPlanShape>()
  /** Saved use of day limits that no owner has restored yet: when each is refilled, by name. */
  readonly #saved: Map<string, number>
  #sweeper: Iterator<LimitOwner> | undefined
  /** How many owners the next call checks. */
  #sweeps = 1

  constructor(saved: ReadonlyMap<string, number>) {
    this.#saved = new Map(saved)
  }

  get size(): number {
    return this.#owners.size
  }

  planFor(subject: LimitedCall, nowMs: number): LimitPlan | TooManyModels {
    if (subject.model === null) return this.#planWithoutModel(subject, nowMs)
    const key = this.keyOf(subject, nowMs)
    const { plan } = key
    if (plan !== undefined && isPlanFor(plan, subject)) return plan
    const newPlan = this.#makePlan(key, subject, nowMs)
    if (!('tooMany' in newPlan)) key.plan = newPlan
    return newPlan
  }

  keyOf(who: LimitedCaller, nowMs: number): KeyLimitOwner {
    const { keyId } = who
    const { ruleSet } = this
    let key = this.#owners.get(keyId) as KeyLimitOwner | undefined
    if (key === undefined) {
      key = new KeyLimitOwner(keyId, keyKind)
      this.#add(key)
    } else if (key.ruleSet === ruleSet && key.matches(who)) return key
    key.plan = undefined
    key.update(who)
    this.#setRules(key, who, nowMs)
    return key
  }

  /** The limits of a key that do not depend on the model. */
  plainPlan(who: LimitedCaller, nowMs: number): LimitPlan {
    const key = this.keyOf(who, nowMs)
    const owners: LimitOwner[] = []
    const fits: number[][] = []
    for (const kind of limitOwnerKinds) {
      if (kind.perModel || this.ruleSet.rulesOf(kind, who).length === 0) continue
      const owner = kind === keyKind ? key : this.#ownerOf(kind, { ...who, model: '', tokens: 0 }, { key, nowMs })!
      const applies = (rule: LimitRule): boolean => !rule.dependsOnModel && rule.appliesTo(who, undefined)
      owners.push(owner)
      fits.push(owner.rules.flatMap((rule, at) => (applies(rule) ? [at] : [])))
    }
    return { model: undefined, names: undefined, owners, shape: { ruleIndexes: fits, needsLease: false } }
  }

  /** The limits of requests of a key that do not depend on the model. Mostly known from the key's previous call. */
  requestPlan(who: LimitedCaller, nowMs: number): Pick<LimitPlan, 'owners' | 'shape'> {
    const { plan } = this.keyOf(who, nowMs)
    if (plan?.requestShape !== undefined) return { owners: plan.owners, shape: plan.requestShape }
    const { owners, shape } = this.plainPlan(who, nowMs)
    return { owners, shape: this.#requestShapeOf(owners, shape.ruleIndexes) }
  }

  /** The limits of the plan of a call that have not counted it, when it was admitted by the rules of another time. */
  planWithout({ owners, shape, ...plan }: LimitPlan, { model }: LimitedCall, { call, rules }: CountedCall): LimitPlan {
    const fits = shape.ruleIndexes.map((indexes, index) => {
      const owner = owners[index]!
      if (owner.kind.perModel && call.model !== model) return indexes
      const counted = applyingRules(rules.rulesOf(owner.kind, call), call)
      return indexes.filter(at => !counted.some(rule => rule.isSameRule(owner.rules[at]!)))
    })
    return { ...plan, owners, shape: this.#shapeOf(owners, fits) }
  }

  /** A request without a model: limits of requests for any model. Concurrency and days only if a provider is called. */
  #planWithoutModel(subject: LimitedCall, nowMs: number): LimitPlan {
    const { owners, shape, ...plan } = this.plainPlan(subject, nowMs)
    const fits = shape.ruleIndexes.map((rules, index) =>
      rules.filter(at => countsWithoutModel(owners[index]!.rules[at]!, subject)),
    )
    return { ...plan, owners, shape: this.#shapeOf(owners, fits) }
  }

  sweep(nowMs: number): void {
    for (; this.#sweeps > 0; this.#sweeps--) {
      this.#sweeper ??= this.#owners.values()
      const { value: owner, done } = this.#sweeper.next()
      if (done) this.#sweeper = undefined
      else this.#removeIfIdle(owner, nowMs - IDLE_MS)
    }
    this.#sweeps = 1
  }

  #removeIfIdle(owner: LimitOwner, ms: number): void {
    if (owner instanceof KeyLimitOwner) owner.forgetModels(ms)
    if (!owner.isIdleSince(ms)) return
    if (owner instanceof KeyLimitOwner) {
      owner.plan = undefined
      if (owner.modelsOwned > 0) return
    }
    if (owner instanceof ModelLimitOwner) owner.firstKey.sharedModels--
    this.#owners.delete(owner.name)
  }

  #makePlan(key: KeyLimitOwner, subject: LimitedCall, nowMs: number): LimitPlan | TooManyModels {
    const { model } = subject
    const names = subject.names ?? plainNames(model!)
    const owners: LimitOwner[] = []
    const fits: number[][] = []
    let dependsOnModel = false
    for (const kind of limitOwnerKinds) {
      const rules = kind === keyKind ? key.rules : this.ruleSet.rulesOf(kind, subject)
      dependsOnModel ||= rules.some(rule => rule.dependsOnModel)
      const applying = rules.flatMap((rule, at) => (rule.appliesTo(subject, names) ? [at] : []))
      if (applying.length === 0) continue
      const owner = kind === keyKind ? key : this.#ownerOf(kind, subject, { key, nowMs })
      if (owner === undefined) return { tooMany: rules[applying[0]!]! }
      owners.push(owner)
      fits.push(applying)
    }
    const shape = this.#shapeOf(owners, fits)
    const requestShape = this.#requestShapeOf(owners, fits)
    return { model: dependsOnModel ? model : undefined, names: subject.names, owners, shape, requestShape }
  }

  #requestShapeOf(owners: readonly LimitOwner[], fits: readonly (readonly number[])[]): LimitPlanShape {
    const isKnown = ({ row, dependsOnModel }: LimitRule): boolean => row.resource === 'requests' && !dependsOnModel
    return this.#shapeOf(
      owners,
      fits.map((rules, index) => rules.filter(at => isKnown(owners[index]!.rules[at]!))),
    )
  }

  #shapeOf(owners: readonly LimitOwner[], fits: readonly (readonly number[])[]): LimitPlanShape {
    const isLeased = fits.some((rules, index) => rules.some(at => needsLease(owners[index]!.rules[at]!)))
    const name = `${isLeased} ${fits.join(';')}`
    let shape = this.#shapes.get(name)
    if (shape === undefined) {
      if (this.#shapes.size >= SHAPES_MAX) this.#shapes.clear()
      shape = { ruleIndexes: fits, needsLease: isLeased }
      this.#shapes.set(name, shape)
    }
    return shape
  }

  #ownerOf(
    kind: LimitOwnerKind,
    subject: LimitedCall,
    { key, nowMs }: { key: KeyLimitOwner; nowMs: number },
  ): LimitOwner | undefined {
    const isOfKey = kind.sharing === 'key'
    const name = nameOf(kind, subject)
    let owner = isOfKey ? key.ofModel(subject.model!) : this.#owners.get(name)
    if (owner === undefined) {
      if (kind.perModel && key.modelsOwned >= bounds.limitedModelsOfKeyMax) return undefined
      owner = kind.perModel
        ? new ModelLimitOwner(name, kind, { model: subject.model!, first: key })
        : new LimitOwner(name, kind)
      if (isOfKey) key.addModel(owner as ModelLimitOwner)
      else this.#add(owner)
      if (!isOfKey && kind.perModel) key.sharedModels++
    }
    if (owner.ruleSet !== this.ruleSet) this.#setRules(owner, subject, nowMs)
    return owner
  }

  #add(owner: LimitOwner): void {
    if (this.#owners.size >= bounds.limitOwnersMax) {
      throw new Refusal('overloaded', 'too many owners of limits', { retryAfterMs: IDLE_MS })
    }
    this.#owners.set(owner.name, owner)
    this.#sweeps += SWEPT_FOR_NEW
  }

  #setRules(owner: LimitOwner, who: LimitedCaller, nowMs: number): void {
    owner.refill(nowMs)
    owner.setRules(this.ruleSet, this.ruleSet.rulesOf(owner.kind, who))
    if (this.#saved.size > 0) this.#restore(owner, nowMs)
  }

  #restore(owner: LimitOwner, nowMs: number): void {
    owner.rules.forEach((rule, at) => {
      if (!rule.isOfDay) return
      const name = owner.savedName(rule)
      const refilledMs = this.#saved.get(name)
      if (refilledMs !== undefined && refilledMs > nowMs) owner.restoreUse(at, refilledMs - nowMs)
      this.#saved.delete(name)
    })
  }
}

const countsWithoutModel = (
  { countsTokens, countsConcurrency, isOfDay }: LimitRule,
  { callsProvider }: LimitedCall,
): boolean => !countsTokens && (callsProvider === true || !(countsConcurrency || isOfDay))

/** Those rules of an owner that count this call. */
function applyingRules(rules: readonly LimitRule[], call: LimitedCall): readonly LimitRule[] {
  const { model } = call
  if (model === null) {
    return rules.filter(
      rule => !rule.dependsOnModel && rule.appliesTo(call, undefined) && countsWithoutModel(rule, call),
    )
  }
  const names = call.names ?? plainNames(model)
  return rules.filter(rule => rule.appliesTo(call, names))
}

const needsLease = ({ countsTokens, countsConcurrency }: LimitRule): boolean => countsTokens || countsConcurrency

/** The name of a key is its id, also together with a model, so that it equals no other name. */
function nameOf({ sharing, perModel }: LimitOwnerKind, { keyId, accountId, model }: LimitedCall): LimitOwnerName {
  if (sharing === 'key') return keyId
  const accountName = sharing === 'account' ? `a${accountId}` : ''
  return perModel ? `${accountName}/${model}` : accountName
}
