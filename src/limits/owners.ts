// All owners of limits, and the plans of what their calls meet. An owner is remembered while anything is owed or under
// way, and for a moment longer; some are looked at with every call, so that they never have to be looked through.

import { bounds } from '../base/bounds.ts'
import { Refusal } from '../base/errors.ts'
import type { OwnerName, Plan, Shape } from './owner.ts'
import { isPlanFor, KeyOwner, ModelOwner, Owner } from './owner.ts'
import type { Kind, Rule } from './rule.ts'
import { kinds, LimitBook } from './rule.ts'
import type { Subject, Who } from './subject.ts'

/** For each one that is new, so many are looked at: more go than come. */
const SWEPT_FOR_NEW = 3
/** To come and go costs more than to stay. */
const IDLE_MS = 10_000
/** Far more than rules give rise to; beyond that they are found again. */
const SHAPES_MAX = 10_000

const [keyKind] = kinds as [Kind]

/** A rule by which each model has a limit of its own, and the key has called too many models. */
export interface TooMany {
  readonly tooMany: Rule
}

export class Owners {
  book = new LimitBook([])
  readonly #owners = new Map<OwnerName, Owner>()
  readonly #shapes = new Map<string, Shape>()
  /** Until when debts of days take to be paid that were written down before this start. */
  readonly #remembered: Map<string, number>
  #sweeper: Iterator<Owner> | undefined
  /** To be looked at with the next call. */
  #sweeps = 1

  constructor(remembered: ReadonlyMap<string, number>) {
    this.#remembered = new Map(remembered)
  }

  get size(): number {
    return this.#owners.size
  }

  planFor(subject: Subject, nowMs: number): Plan | TooMany {
    if (subject.model === null) return this.#planWithoutModel(subject, nowMs)
    const key = this.keyOf(subject, nowMs)
    const { plan } = key
    if (plan !== undefined && isPlanFor(plan, subject)) return plan
    const made = this.#makePlan(key, subject, nowMs)
    if (!('tooMany' in made)) key.plan = made
    return made
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
    this.#follow(key, who, nowMs)
    return key
  }

  /** What a key meets whichever model it calls. */
  plainPlan(who: Who, nowMs: number): Plan {
    const key = this.keyOf(who, nowMs)
    const owners: Owner[] = []
    const fits: number[][] = []
    for (const kind of kinds) {
      if (kind.perModel || this.book.rulesOf(kind, who).length === 0) continue
      const owner = kind === keyKind ? key : this.#ownerOf(kind, { ...who, model: '', tokens: 0 }, { key, nowMs })!
      const isMet = (rule: Rule): boolean => !rule.looksAtModel && rule.fits(who, [])
      owners.push(owner)
      fits.push(owner.rules.flatMap((rule, at) => (isMet(rule) ? [at] : [])))
    }
    return { model: undefined, asked: undefined, owners, shape: { fits, isLeased: false } }
  }

  /** Requests of every limit that is for any model. Places and days count only where a provider is asked. */
  #planWithoutModel(subject: Subject, nowMs: number): Plan {
    const { owners, shape, ...plan } = this.plainPlan(subject, nowMs)
    const isMet = ({ countsTokens, countsPlaces, isOfDay }: Rule): boolean =>
      !countsTokens && (subject.asksProvider === true || !(countsPlaces || isOfDay))
    const fits = shape.fits.map((some, index) => some.filter(at => isMet(owners[index]!.rules[at]!)))
    return { ...plan, owners, shape: this.#shapeOf(owners, fits) }
  }

  sweep(nowMs: number): void {
    for (; this.#sweeps > 0; this.#sweeps--) {
      this.#sweeper ??= this.#owners.values()
      const { value: owner, done } = this.#sweeper.next()
      if (done) this.#sweeper = undefined
      else this.#lookAt(owner, nowMs - IDLE_MS)
    }
    this.#sweeps = 1
  }

  #lookAt(owner: Owner, ms: number): void {
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
    const [asked] = subject.names ?? []
    const owners: Owner[] = []
    const fits: number[][] = []
    let asksModel = false
    for (const kind of kinds) {
      const rules = kind === keyKind ? key.rules : this.book.rulesOf(kind, subject)
      asksModel ||= rules.some(rule => rule.looksAtModel)
      const fitting = rules.flatMap((rule, at) => (rule.fits(subject, names) ? [at] : []))
      if (fitting.length === 0) continue
      const owner = kind === keyKind ? key : this.#ownerOf(kind, subject, { key, nowMs })
      if (owner === undefined) return { tooMany: rules[fitting[0]!]! }
      owners.push(owner)
      fits.push(fitting)
    }
    return { model: asksModel ? model : undefined, asked, owners, shape: this.#shapeOf(owners, fits) }
  }

  #shapeOf(owners: readonly Owner[], fits: readonly (readonly number[])[]): Shape {
    const isLeased = fits.some((some, index) => some.some(at => isLeasedBy(owners[index]!.rules[at]!)))
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
    const isKeys = kind.sharing === 'key'
    const name = nameOf(kind, subject)
    let owner = isKeys ? key.ofModel(subject.model!) : this.#owners.get(name)
    if (owner === undefined) {
      if (kind.perModel && key.modelsOwned >= bounds.limitedModelsOfKeyMax) return undefined
      owner = kind.perModel ? new ModelOwner(name, kind, { model: subject.model!, first: key }) : new Owner(name, kind)
      if (isKeys) key.addModel(owner as ModelOwner)
      else this.#add(owner)
      if (!isKeys && kind.perModel) key.models++
    }
    if (owner.book !== this.book) this.#follow(owner, subject, nowMs)
    return owner
  }

  #add(owner: Owner): void {
    if (this.#owners.size >= bounds.limitOwnersMax) {
      throw new Refusal('overloaded', 'too many limits to remember', { retryAfterMs: IDLE_MS })
    }
    this.#owners.set(owner.name, owner)
    this.#sweeps += SWEPT_FOR_NEW
  }

  #follow(owner: Owner, who: Who, nowMs: number): void {
    owner.pay(nowMs)
    owner.follow(this.book, this.book.rulesOf(owner.kind, who))
    if (this.#remembered.size > 0) this.#recall(owner, nowMs)
  }

  #recall(owner: Owner, nowMs: number): void {
    owner.rules.forEach((rule, at) => {
      if (!rule.isOfDay) return
      const name = owner.noteName(rule)
      const paidMs = this.#remembered.get(name)
      if (paidMs !== undefined && paidMs > nowMs) owner.oweFor(at, paidMs - nowMs)
      this.#remembered.delete(name)
    })
  }
}

const isLeasedBy = ({ countsTokens, countsPlaces }: Rule): boolean => countsTokens || countsPlaces

/** A key's is its number, also with a model of its own, so that it is no one else's. */
function nameOf({ sharing, perModel }: Kind, { keyId, accountId, model }: Subject): OwnerName {
  if (sharing === 'key') return keyId
  const whose = sharing === 'account' ? `a${accountId}` : ''
  return perModel ? `${whose}/${model}` : whose
}
