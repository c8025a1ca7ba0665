// All owners of limits in memory, and the plans of their calls. An owner is kept while it has use or active calls, and
// for a few seconds longer. Each call checks a few owners, so that no pass over all owners is ever needed.

import { bounds } from '../base/bounds.ts'
import { Refusal } from '../base/errors.ts'
import type { OwnerName, Plan, Shape } from './owner.ts'
import { isPlanFor, KeyOwner, ModelOwner, Owner } from './owner.ts'
import type { Kind, Rule } from './rule.ts'
import { kinds, LimitBook } from './rule.ts'
import type { Subject, Who } from './subject.ts'

/** Owners that are checked for each new owner, so that idle ones are removed faster than new ones come. */
const SWEPT_FOR_NEW = 3
/** An idle owner is kept this long, because removing it and adding it again costs more. */
const IDLE_MS = 10_000
/** Far more than rules can produce. Beyond this the cache is cleared. */
const SHAPES_MAX = 10_000

const [keyKind] = kinds as [Kind]

/** The key has called too many models; the rule counts each model on its own. */
export interface TooMany {
  readonly tooMany: Rule
}

export class Owners {
  book = new LimitBook([])
  readonly #owners = new Map<OwnerName, Owner>()
  readonly #shapes = new Map<string, Shape>()
  /** Saved use of day limits that no owner has restored yet: when each is refilled, by name. */
  readonly #saved: Map<string, number>
  #sweeper: Iterator<Owner> | undefined
  /** How many owners the next call checks. */
  #sweeps = 1

  constructor(saved: ReadonlyMap<string, number>) {
    this.#saved = new Map(saved)
  }

  get size(): number {
    return this.#owners.size
  }

  planFor(subject: Subject, nowMs: number): Plan | TooMany {
    if (subject.model === null) return this.#planWithoutModel(subject, nowMs)
    const key = this.keyOf(subject, nowMs)
    const { plan } = key
    if (plan !== undefined && isPlanFor(plan, subject)) return plan
    const newPlan = this.#makePlan(key, subject, nowMs)
    if (!('tooMany' in newPlan)) key.plan = newPlan
    return newPlan
  }

  keyOf(who: Who, nowMs: number): KeyOwner {
    const { keyId } = who
    const { book } = this
    let key = this.#owners.get(keyId) as KeyOwner | undefined
    if (key === undefined) {
      key = new KeyOwner(keyId, keyKind)
      this.#add(key)
    } else if (key.book === book && key.isLike(who)) return key
    key.plan = undefined
    key.become(who)
    this.#setRules(key, who, nowMs)
    return key
  }

  /** The limits of a key that do not depend on the model. */
  plainPlan(who: Who, nowMs: number): Plan {
    const key = this.keyOf(who, nowMs)
    const owners: Owner[] = []
    const fits: number[][] = []
    for (const kind of kinds) {
      if (kind.perModel || this.book.rulesOf(kind, who).length === 0) continue
      const owner = kind === keyKind ? key : this.#ownerOf(kind, { ...who, model: '', tokens: 0 }, { key, nowMs })!
      const applies = (rule: Rule): boolean => !rule.looksAtModel && rule.fits(who, [])
      owners.push(owner)
      fits.push(owner.rules.flatMap((rule, at) => (applies(rule) ? [at] : [])))
    }
    return { model: undefined, asked: undefined, owners, shape: { fits, isLeased: false } }
  }

  /** A request without a model: limits of requests for any model. Concurrency and days only if a provider is called. */
  #planWithoutModel(subject: Subject, nowMs: number): Plan {
    const { owners, shape, ...plan } = this.plainPlan(subject, nowMs)
    const applies = ({ countsTokens, countsPlaces, isOfDay }: Rule): boolean =>
      !countsTokens && (subject.asksProvider === true || !(countsPlaces || isOfDay))
    const fits = shape.fits.map((rules, index) => rules.filter(at => applies(owners[index]!.rules[at]!)))
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

  #removeIfIdle(owner: Owner, ms: number): void {
    if (owner instanceof KeyOwner) owner.forgetModels(ms)
    if (!owner.isIdleSince(ms)) return
    if (owner instanceof KeyOwner) {
      owner.plan = undefined
      if (owner.modelsOwned > 0) return
    }
    if (owner instanceof ModelOwner) owner.first.models--
    this.#owners.delete(owner.name)
  }

  #makePlan(key: KeyOwner, subject: Subject, nowMs: number): Plan | TooMany {
    const { model } = subject
    const { names = [model!] } = subject
    const [requestedName] = subject.names ?? []
    const owners: Owner[] = []
    const fits: number[][] = []
    let dependsOnModel = false
    for (const kind of kinds) {
      const rules = kind === keyKind ? key.rules : this.book.rulesOf(kind, subject)
      dependsOnModel ||= rules.some(rule => rule.looksAtModel)
      const applying = rules.flatMap((rule, at) => (rule.fits(subject, names) ? [at] : []))
      if (applying.length === 0) continue
      const owner = kind === keyKind ? key : this.#ownerOf(kind, subject, { key, nowMs })
      if (owner === undefined) return { tooMany: rules[applying[0]!]! }
      owners.push(owner)
      fits.push(applying)
    }
    const shape = this.#shapeOf(owners, fits)
    return { model: dependsOnModel ? model : undefined, asked: requestedName, owners, shape }
  }

  #shapeOf(owners: readonly Owner[], fits: readonly (readonly number[])[]): Shape {
    const isLeased = fits.some((rules, index) => rules.some(at => needsLease(owners[index]!.rules[at]!)))
    const name = `${isLeased} ${fits.join(';')}`
    let shape = this.#shapes.get(name)
    if (shape === undefined) {
      if (this.#shapes.size >= SHAPES_MAX) this.#shapes.clear()
      shape = { fits, isLeased }
      this.#shapes.set(name, shape)
    }
    return shape
  }

  #ownerOf(kind: Kind, subject: Subject, { key, nowMs }: { key: KeyOwner; nowMs: number }): Owner | undefined {
    const isOfKey = kind.sharing === 'key'
    const name = nameOf(kind, subject)
    let owner = isOfKey ? key.ofModel(subject.model!) : this.#owners.get(name)
    if (owner === undefined) {
      if (kind.perModel && key.modelsOwned >= bounds.limitedModelsOfKeyMax) return undefined
      owner = kind.perModel ? new ModelOwner(name, kind, { model: subject.model!, first: key }) : new Owner(name, kind)
      if (isOfKey) key.addModel(owner as ModelOwner)
      else this.#add(owner)
      if (!isOfKey && kind.perModel) key.models++
    }
    if (owner.book !== this.book) this.#setRules(owner, subject, nowMs)
    return owner
  }

  #add(owner: Owner): void {
    if (this.#owners.size >= bounds.limitOwnersMax) {
      throw new Refusal('overloaded', 'too many owners of limits', { retryAfterMs: IDLE_MS })
    }
    this.#owners.set(owner.name, owner)
    this.#sweeps += SWEPT_FOR_NEW
  }

  #setRules(owner: Owner, who: Who, nowMs: number): void {
    owner.pay(nowMs)
    owner.follow(this.book, this.book.rulesOf(owner.kind, who))
    if (this.#saved.size > 0) this.#restore(owner, nowMs)
  }

  #restore(owner: Owner, nowMs: number): void {
    owner.rules.forEach((rule, at) => {
      if (!rule.isOfDay) return
      const name = owner.noteName(rule)
      const refilledMs = this.#saved.get(name)
      if (refilledMs !== undefined && refilledMs > nowMs) owner.oweFor(at, refilledMs - nowMs)
      this.#saved.delete(name)
    })
  }
}

const needsLease = ({ countsTokens, countsPlaces }: Rule): boolean => countsTokens || countsPlaces

/** The name of a key is its id, also together with a model, so that it equals no other name. */
function nameOf({ sharing, perModel }: Kind, { keyId, accountId, model }: Subject): OwnerName {
  if (sharing === 'key') return keyId
  const accountName = sharing === 'account' ? `a${accountId}` : ''
  return perModel ? `${accountName}/${model}` : accountName
}
