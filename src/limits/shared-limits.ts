// The limits of a gateway with several processes. With Redis, all processes count together, exactly. Without Redis, or
// while it is away, each process counts by itself and has its share of each limit: the amount divided by the number of
// live processes, and at least 1.
//
// Each process also counts its own calls while Redis counts them, so that it knows what it has used of its share when
// Redis goes away. At the beginning and at the end of an outage, a limit may admit at most one more burst.
//
// What each process has used of day limits is added to what is saved for all. A process that starts begins with the sum.
// Redis gets it whenever it can be reached again: it may be empty, have an old snapshot, or lack what was counted without it.

import { bounds } from '../base/bounds.ts'
import { remainingOf, resetMsOf, waitMsFor } from '../base/collections/gcra.ts'
import type { ListNode } from '../base/collections/linked-list.ts'
import { LinkedList } from '../base/collections/linked-list.ts'
import type { LimitDebt } from '../store/ledger/limit-debts.ts'
import type { LimitCounters, LimitReadings, RateTake, RateUse } from '../store/redis/limit-counters.ts'
import type { LimitRow } from '../store/rules/rules.ts'
import { restoreDayUsage } from './day-usage.ts'
import type { LimitLease } from './leases.ts'
import { noLimitLease } from './leases.ts'
import type { LimitCounter } from './limit-counter.ts'
import type { CountedCall, LimitOwner, LimitPlan } from './limit-owner.ts'
import { isSameCaller } from './limit-owner.ts'
import { LimitRule } from './limit-rule.ts'
import type { LimitedCall, LimitedCaller } from './limited-call.ts'
import type { LimitAdmission, LimitPlans, LimitRefusal, Quota } from './limits.ts'
import { CONCURRENCY_WAIT_MS, Limits } from './limits.ts'

export interface SharedLimitsParts {
  /** How many processes are alive, with this one. */
  processes(): number
  /** The saved use of day limits, as the time at which each is refilled, by name. */
  readonly restored?: ReadonlyMap<string, number>
  /** Undefined without Redis. */
  readonly redis?: LimitCounters | undefined
  /** The saved use of day limits, for a Redis that may lack it. */
  loadDebts(): Promise<readonly LimitDebt[]>
  dateMs(): number
  onTrouble(fault: unknown): void
}

/** A refusal of all requests of a key is remembered this long, so that their bodies are not read. */
const REFUSED_MS = 1_000
/** When Redis is given the saved use again after that has failed, or was left to another process. */
const FILL_AGAIN_MS = 500
/** Far more than are refused in that time. */
const REFUSED_KEYS_MAX = 10_000

/** One limit of a call. */
interface CallLimit {
  readonly owner: LimitOwner
  readonly rule: LimitRule
  readonly key: string
  /** How much the call takes. 0 if the limit has counted the call before. */
  readonly count: number
  readonly isNew: boolean
}

/** A limit, and how much of it is used: units, or concurrent calls. */
interface ReadLimit extends CallLimit {
  readonly used: number
}

interface RefusedKey {
  readonly who: LimitedCaller
  readonly untilMs: number
  readonly sinceMs: number
  readonly refusal: LimitRefusal
}

export class SharedLimits implements LimitCounter {
  readonly #parts: SharedLimitsParts
  readonly #redis: LimitCounters | undefined
  /** The calls of this process. */
  readonly #own: Limits
  readonly #leases = new LinkedList<SharedLease>()
  readonly #refused = new Map<number, RefusedKey>()
  /** What this process has used of each day limit since it was last saved: the time of its refill, by name. */
  #dayUse = new Map<string, number>()
  #rows: readonly LimitRow[] = []
  #processes = 1
  #isFilling = false
  /** Whether Redis may lack saved use of day limits: it was out of reach. */
  #mayLackUse = true

  constructor(parts: SharedLimitsParts) {
    this.#parts = parts
    this.#redis = parts.redis
    parts.redis?.onUp(() => (this.#mayLackUse = true))
    this.#own = new Limits(parts.restored, (name, ms) => {
      this.#dayUse.set(name, (this.#dayUse.get(name) ?? 0) + ms)
    })
  }

  setRules(rows: readonly LimitRow[]): void {
    this.#rows = rows
    this.#refused.clear()
    this.#own.setRules(rows, this.#processes)
  }

  admit(subject: LimitedCall, nowMs: number): LimitAdmission | Promise<LimitAdmission> {
    return this.#admit(subject, undefined, nowMs)
  }

  admitRest(subject: LimitedCall, counted: CountedCall, nowMs: number): LimitAdmission | Promise<LimitAdmission> {
    return this.#admit(subject, counted, nowMs)
  }

  /** With Redis, what it said a moment ago. Requests are never refunded, so the refusal still holds. */
  refusalOfKey(who: LimitedCaller, nowMs: number): LimitRefusal | undefined {
    this.#divide()
    if (!this.#redis?.isUp) return this.#own.refusalOfKey(who, nowMs)
    const refused = this.#refused.get(who.keyId)
    if (refused === undefined) return undefined
    const { refusal, sinceMs, untilMs } = refused
    const retryAfterMs = refusal.retryAfterMs - (nowMs - sinceMs)
    if (nowMs < untilMs && retryAfterMs > 0 && isSameCaller(who, refused.who)) return { ...refusal, retryAfterMs }
    this.#refused.delete(who.keyId)
    return undefined
  }

  async refusalOfCall(subject: LimitedCall, nowMs: number): Promise<LimitRefusal | undefined> {
    this.#divide()
    const plans = this.#own.plansOf(subject, undefined, nowMs)
    if ('admitted' in plans) return plans
    const limits = await this.#look(plans.plan, subject.tokens)
    return limits === undefined ? this.#own.refusalOfCall(subject, nowMs) : refusalBy(limits)
  }

  async quotasOfCall(subject: LimitedCall, nowMs: number): Promise<readonly Quota[]> {
    this.#divide()
    const plans = this.#own.plansOf(subject, undefined, nowMs)
    if ('admitted' in plans) return []
    const limits = await this.#look(plans.plan, subject.tokens)
    return limits?.map(quotaOf) ?? this.#own.quotasOfCall(subject, nowMs)
  }

  async quotasOfKey(who: LimitedCaller, nowMs: number): Promise<readonly Quota[]> {
    this.#divide()
    const limits = await this.#look(this.#own.planOfKey(who, nowMs), 0)
    return limits?.map(quotaOf) ?? this.#own.quotasOfKey(who, nowMs)
  }

  /** What this process has used since the last call of this method. */
  takeDayUsage(nowMs: number, dateMs: number): readonly LimitDebt[] {
    this.#own.takeDayUsage(nowMs, dateMs)
    const use = this.#dayUse
    this.#dayUse = new Map()
    const notedMs = Math.ceil(dateMs)
    return Array.from(use, ([name, ms]) => ({ name, paidMs: notedMs + Math.ceil(ms), notedMs, isIncrease: true }))
  }

  get size(): { readonly owners: number; readonly leases: number } {
    return this.#own.size
  }

  #admit(
    subject: LimitedCall,
    counted: CountedCall | undefined,
    nowMs: number,
  ): LimitAdmission | Promise<LimitAdmission> {
    this.#divide()
    const redis = this.#redis
    if (redis === undefined) return this.#admitOwn(subject, counted, nowMs)
    this.#reap(nowMs)
    if (!redis.isUp) return this.#admitAway(redis, subject, { counted, nowMs })
    const plans = this.#own.plansOf(subject, counted, nowMs)
    return 'admitted' in plans ? plans : this.#admitShared(redis, plans, { subject, counted, nowMs })
  }

  /** Each process has its share of each limit. */
  #divide(): void {
    const processes = Math.max(1, this.#parts.processes())
    if (processes === this.#processes) return
    this.#processes = processes
    this.#own.setRules(this.#rows, processes)
  }

  #admitOwn(subject: LimitedCall, counted: CountedCall | undefined, nowMs: number): LimitAdmission {
    return counted === undefined ? this.#own.admit(subject, nowMs) : this.#own.admitRest(subject, counted, nowMs)
  }

  /** Without an answer of Redis. When it is back, it gets to know the concurrent calls that were admitted without it. */
  #admitAway(
    redis: LimitCounters,
    subject: LimitedCall,
    { counted, nowMs }: { counted: CountedCall | undefined; nowMs: number },
  ): LimitAdmission {
    const admission = this.#admitOwn(subject, counted, nowMs)
    if (!admission.admitted || admission.lease === noLimitLease) return admission
    const plans = this.#own.plansOf(subject, counted, nowMs) as LimitPlans
    const places = limitsOf(redis, plans, subject.tokens)
      .filter(({ rule, isNew }) => isNew && rule.countsConcurrency)
      .map(({ key }) => key)
    redis.addPlaces(places)
    return { ...admission, lease: this.#open({ redis, own: admission.lease, takes: [], places, sinceMs: nowMs }) }
  }

  async #admitShared(
    redis: LimitCounters,
    plans: LimitPlans,
    { subject, counted, nowMs }: { subject: LimitedCall; counted: CountedCall | undefined; nowMs: number },
  ): Promise<LimitAdmission> {
    const limits = limitsOf(redis, plans, subject.tokens)
    if (this.#mayLackUse) void this.#fill(redis)
    const reply = await redis.admit(ratesOf(limits), placesOf(limits)).catch(() => 'failed' as const)
    if (reply === undefined) void this.#fill(redis)
    if (reply === undefined || reply === 'failed') return this.#admitAway(redis, subject, { counted, nowMs })
    const read = readLimits(limits, reply)
    if (!reply.isAdmitted) {
      this.#rememberRefusal(subject, read, nowMs)
      return refusalBy(read.filter(({ isNew }) => isNew))!
    }
    const own = this.#own.count(plans, subject.tokens, nowMs)
    const { rules } = plans
    const quotas = tightestOf(read)
    if (!plans.rest.shape.needsLease) return { admitted: true, quotas, lease: noLimitLease, rules }
    const takes = limits
      .filter(({ rule }) => !rule.countsConcurrency)
      .map(({ owner, rule, key, count, isNew }, at) => {
        return { owner, rule, key, rate: rule.whole, count, isNew, ...reply.rates[at]!, takenMs: reply.nowMs }
      })
      .filter(({ rule, isNew }) => isNew && rule.countsTokens)
    const places = placesOf(limits).map(({ key }) => key)
    return { admitted: true, quotas, rules, lease: this.#open({ redis, own, takes, places, sinceMs: nowMs }) }
  }

  /** What Redis says about limits, without counting; undefined if it says nothing. */
  async #look(plan: LimitPlan, tokens: number): Promise<readonly ReadLimit[] | undefined> {
    const redis = this.#redis
    if (!redis?.isUp) return undefined
    const limits = limitsOf(redis, { plan, rest: plan }, tokens)
    const reply = await redis.look(ratesOf(limits), placesOf(limits)).catch(() => undefined)
    return reply && readLimits(limits, reply)
  }

  #rememberRefusal(who: LimitedCaller, limits: readonly ReadLimit[], nowMs: number): void {
    const refusal = refusalBy(limits.filter(({ rule }) => rule.row.resource === 'requests' && !rule.dependsOnModel))
    if (refusal === undefined) return
    if (this.#refused.size >= REFUSED_KEYS_MAX) this.#refused.clear()
    this.#refused.set(who.keyId, { who, refusal, sinceMs: nowMs, untilMs: nowMs + REFUSED_MS })
  }

  #open(parts: SharedLeaseParts): SharedLease {
    const lease = new SharedLease(parts, this.#leases)
    lease.node = this.#leases.add(lease)
    return lease
  }

  /** Ends leases that are too old. They are in the order in which they were opened. */
  #reap(nowMs: number): void {
    for (;;) {
      const oldest = this.#leases.first
      if (oldest === undefined || nowMs - oldest.sinceMs < bounds.leaseMsMax) return
      oldest.expire()
    }
  }

  /** Gives Redis the saved use of day limits. While it is empty, each process counts by itself. */
  async #fill(redis: LimitCounters): Promise<void> {
    if (this.#isFilling) return
    this.#isFilling = true
    this.#mayLackUse = false
    let isFilled = false
    try {
      isFilled = await redis.fill(async () => this.#savedUse(redis, await this.#parts.loadDebts()))
    } catch (fault) {
      if (redis.isUp) this.#parts.onTrouble(fault) // otherwise Redis has gone away meanwhile
    } finally {
      this.#isFilling = false
    }
    if (!isFilled) setTimeout(() => (this.#mayLackUse = true), FILL_AGAIN_MS).unref()
  }

  #savedUse(redis: LimitCounters, debts: readonly LimitDebt[]): readonly RateUse[] {
    const rules = new Map(this.#rows.filter(({ span }) => span === 'day').map(row => [row.id, new LimitRule(row)]))
    const remaining = restoreDayUsage(debts, { nowMs: 0, dateMs: this.#parts.dateMs() })
    return Array.from(remaining).flatMap(([name, ms]) => {
      const rule = rules.get(Number(name.slice(0, name.indexOf(' '))))
      if (rule === undefined) return []
      const used = Math.ceil(ms / rule.tickMs) * rule.amount
      return [{ key: redis.keyOf(`${kindOf(rule)}:${name}`), rate: rule.whole, used }]
    })
  }
}

interface LimitTake extends RateTake {
  readonly owner: LimitOwner
  readonly rule: LimitRule
}

interface SharedLeaseParts {
  readonly redis: LimitCounters
  readonly own: LimitLease
  /** What the call has taken from limits of tokens. */
  readonly takes: readonly LimitTake[]
  /** The limits of concurrency that count the call. */
  readonly places: readonly string[]
  readonly sinceMs: number
}

class SharedLease implements LimitLease {
  readonly #parts: SharedLeaseParts
  readonly #leases: LinkedList<SharedLease>
  #isCorrected = false
  node: ListNode<SharedLease> | undefined

  constructor(parts: SharedLeaseParts, leases: LinkedList<SharedLease>) {
    this.#parts = parts
    this.#leases = leases
  }

  get sinceMs(): number {
    return this.#parts.sinceMs
  }

  correct(tokens: number, nowMs: number): void {
    if (this.#isCorrected) return
    this.#isCorrected = true
    const { own, redis, takes } = this.#parts
    own.correct(tokens, nowMs)
    for (const { owner, rule, ...take } of takes) {
      const now = owner.rules[owner.indexOf(rule)]
      if (now !== undefined) redis.correct({ take, count: tokens, rate: now.whole })
    }
  }

  expire(): void {
    this.#isCorrected = true
    this.release()
  }

  release(): void {
    if (this.node === undefined) return
    this.#leases.remove(this.node)
    this.node = undefined
    const { own, redis, places } = this.#parts
    own.release()
    redis.freePlaces(places)
  }
}

/** All limits of a call, in the order of its plan. */
function limitsOf(
  redis: LimitCounters,
  { plan, rest }: Pick<LimitPlans, 'plan' | 'rest'>,
  tokens: number,
): readonly CallLimit[] {
  return plan.owners.flatMap((owner, index) =>
    plan.shape.ruleIndexes[index]!.map(at => {
      const isNew = rest.shape.ruleIndexes[index]!.includes(at)
      return limitOf(redis, owner, { rule: owner.rules[at]!, isNew, tokens })
    }),
  )
}

function limitOf(
  redis: LimitCounters,
  owner: LimitOwner,
  { rule, isNew, tokens }: { rule: LimitRule; isNew: boolean; tokens: number },
): CallLimit {
  const name = owner.savedName(rule)
  const count = !isNew ? 0 : rule.countsTokens ? Math.min(tokens, rule.whole.amount) : 1
  return { owner, rule, key: redis.keyOf(`${kindOf(rule)}:${name}`), count, isNew }
}

/** A rule may get another resource or window. Its use is another then. */
const kindOf = ({ row: { resource, span } }: LimitRule): string => `${resource}-${span ?? 'now'}`

const ratesOf = (limits: readonly CallLimit[]) =>
  limits.filter(({ rule }) => !rule.countsConcurrency).map(({ key, rule, count }) => ({ key, rate: rule.whole, count }))

const placesOf = (limits: readonly CallLimit[]) =>
  limits
    .filter(({ rule, isNew }) => rule.countsConcurrency && isNew)
    .map(({ key, rule }) => ({ key, amount: rule.whole.amount }))

function readLimits(limits: readonly CallLimit[], { rates, places }: LimitReadings): readonly ReadLimit[] {
  let [rateAt, placeAt] = [0, 0]
  return limits.map(limit => {
    if (!limit.rule.countsConcurrency) return { ...limit, used: rates[rateAt++]!.used }
    return { ...limit, used: limit.isNew ? places[placeAt++]! : 0 }
  })
}

/** The refusal by the limit with the longest wait; undefined if no limit refuses the call. */
function refusalBy(limits: readonly ReadLimit[]): LimitRefusal | undefined {
  let retryAfterMs = 0
  let by: ReadLimit | undefined
  for (const limit of limits) {
    const waitMs = waitMsOf(limit)
    if (waitMs > retryAfterMs) [by, retryAfterMs] = [limit, waitMs]
  }
  if (by === undefined) return undefined
  return { admitted: false, quotas: tightestOf(limits), by: { ...quotaOf(by), remaining: 0 }, retryAfterMs }
}

function waitMsOf({ rule, used, count }: ReadLimit): number {
  if (rule.countsConcurrency) return used < rule.whole.amount ? 0 : CONCURRENCY_WAIT_MS
  return count === 0 ? 0 : waitMsFor(rule.whole, used, count)
}

/** For requests and for tokens, the limit with the least left. */
function tightestOf(limits: readonly ReadLimit[]): readonly Quota[] {
  return (['requests', 'tokens'] as const).flatMap(resource => {
    const quotas = limits.filter(({ rule }) => rule.row.resource === resource).map(quotaOf)
    const least = Math.min(...quotas.map(({ remaining }) => remaining))
    return quotas.filter(({ remaining }) => remaining === least).slice(0, 1)
  })
}

const quotaOf = ({ rule: { row, whole, countsConcurrency, ownerText }, used }: ReadLimit): Quota => ({
  resource: row.resource,
  span: row.span,
  limit: whole.amount,
  remaining: remainingOf(whole, used),
  resetMs: countsConcurrency ? 0 : resetMsOf(whole, used),
  whose: ownerText,
})
