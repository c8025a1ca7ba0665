// Limits how often a guess (a password, a code) or an expensive action may be attempted: by one person, from one
// address, or for one name.
//
// Several processes count together in Redis. Without Redis, or while it is away, each has its share of each limit.

import { createHash } from 'node:crypto'
import { bounds } from '../base/bounds.ts'
import type { Rate } from '../base/collections/gcra.ts'
import { RateMeter, rateOf, waitMsFor } from '../base/collections/gcra.ts'
import { Refusal } from '../base/errors.ts'
import type { LimitCounters, LimitReadings, RateDemand } from '../store/redis/limit-counters.ts'

/** Refunds an attempt: it was right, or was not checked. */
export type RefundAttempt = () => void

/** The processes that share the limits of attempts. */
export interface AttemptSharing {
  /** How many are alive, with this one. */
  processes(): number
  /** Undefined without Redis. */
  readonly counters: LimitCounters | undefined
}

export interface AttemptCounterParts {
  nowMs(): number
  /** Undefined for a gateway of one process. */
  readonly attemptSharing?: AttemptSharing | undefined
}

/** One limit of an attempt. */
export interface AttemptLimit {
  readonly counter: AttemptCounter
  readonly name: string
  /** The limit may refuse the attempt, and does not count it. */
  readonly isOnlyChecked?: boolean
}

/** Counts the attempts of each name. Only the most recent names are kept. */
export class AttemptCounter {
  readonly #kind: string
  readonly #rate: Rate
  readonly #parts: AttemptCounterParts
  readonly #meters = new Map<string, RateMeter>()
  #processes = 1
  #share: Rate

  /** `kind`: what is attempted. No two counters of a gateway have the same. */
  constructor(kind: string, rate: Rate, parts: AttemptCounterParts) {
    this.#kind = kind
    this.#rate = rate
    this.#share = rate
    this.#parts = parts
  }

  get sharedCounters(): LimitCounters | undefined {
    return this.#parts.attemptSharing?.counters
  }

  /** The time until this process alone would admit so many attempts; more than its share: until that is full. */
  waitMs(name: string, attempts = 1): number {
    const meter = this.#meters.get(name)
    return meter === undefined ? 0 : this.#refilled(meter).waitMs(Math.min(attempts, this.#share.amount))
  }

  /** Counts attempts in this process. The name with the oldest attempt is forgotten first: its limit has refilled the most. */
  count(name: string, attempts = 1): RefundAttempt {
    const meter = this.#refilled(this.#meters.get(name) ?? new RateMeter(this.#rate))
    const taken = meter.take(attempts)
    this.#meters.delete(name)
    this.#meters.set(name, meter)
    if (this.#meters.size > bounds.attemptCountersMax) this.#meters.delete(this.#meters.keys().next().value!)
    return () => this.#refilled(meter).correct(taken, 0)
  }

  /** Counts one attempt for each name; or throws and counts nothing. */
  countOrRefuse(...names: readonly string[]): Promise<RefundAttempt> {
    return countAttempt(names.map(name => ({ counter: this, name })))
  }

  /** Counts attempts at once: other processes do not count them. */
  countHereOrRefuse(name: string, attempts = 1): void {
    refuseDuringWait(this.waitMs(name, attempts))
    this.count(name, attempts)
  }

  /** What an attempt takes in Redis. People's addresses do not belong there, and a name may be long. */
  demandOf(counters: LimitCounters, name: string, count: number): RateDemand {
    const digest = createHash('sha256').update(name).digest('base64url')
    return { key: counters.keyOf(`${this.#kind}:${digest}`), rate: this.#rate, count }
  }

  #refilled(meter: RateMeter): RateMeter {
    const processes = Math.max(1, this.#parts.attemptSharing?.processes() ?? 1)
    if (processes !== this.#processes) {
      const { amount, tickMs, unitsEach } = this.#rate
      this.#processes = processes
      this.#share = rateOf(Math.max(1, Math.floor(amount / processes)), tickMs * unitsEach)
    }
    meter.refill(this.#parts.nowMs())
    if (meter.rate.amount !== this.#share.amount) meter.change(this.#share)
    return meter
  }
}

/** Counts an attempt in all of its limits; or throws and counts it in none. */
export async function countAttempt(limits: readonly AttemptLimit[]): Promise<RefundAttempt> {
  const refundShared = await countShared(limits)
  if (refundShared === undefined) refuseDuringWait(Math.max(...limits.map(({ counter, name }) => counter.waitMs(name))))
  // Also with Redis, so that this process knows what it has used of its share when Redis goes away.
  const refunds = limits.filter(({ isOnlyChecked }) => !isOnlyChecked).map(({ counter, name }) => counter.count(name))
  return () => {
    refundShared?.()
    for (const refund of refunds) refund()
  }
}

/** Counts an attempt for all processes. Returns undefined if Redis cannot be used. */
async function countShared(limits: readonly AttemptLimit[]): Promise<RefundAttempt | undefined> {
  const counters = limits[0]?.counter.sharedCounters
  if (!counters?.isUp) return undefined
  const demands = limits.map(({ counter, name, isOnlyChecked }) =>
    counter.demandOf(counters, name, isOnlyChecked ? 0 : 1),
  )
  const reply = await admitted(counters, demands).catch(() => undefined)
  if (reply === undefined) return undefined
  const refund = (): void =>
    demands.forEach((demand, at) => {
      const take = { ...demand, ...reply.rates[at]!, takenMs: reply.nowMs }
      counters.correct({ take, count: 0, rate: demand.rate })
    })
  const waitsMs = demands.map(({ rate, count }, at) =>
    reply.isAdmitted && count > 0 ? 0 : waitMsFor(rate, reply.rates[at]!.used, 1),
  )
  const waitMs = Math.max(...waitsMs)
  if (reply.isAdmitted && waitMs > 0) refund()
  refuseDuringWait(waitMs)
  return refund
}

/** A Redis that has lost its data is used at once: nothing of attempts is saved elsewhere. */
async function admitted(counters: LimitCounters, demands: readonly RateDemand[]): Promise<LimitReadings | undefined> {
  const reply = await counters.admit(demands, [])
  if (reply !== undefined) return reply
  await counters.fill(async () => [])
  return await counters.admit(demands, [])
}

export function refuseDuringWait(waitMs: number): void {
  if (waitMs > 0) throw new Refusal('tried_too_often', `${waitMs} ms`, { retryAfterMs: waitMs })
}
