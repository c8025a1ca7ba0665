// Limits how many calls start a second when more calls arrive than the processor can serve. The sign of overload is an
// event loop that is late again and again: work queues up, and every call waits in that queue. Then fewer calls are
// started until the queue is short, and the rest are refused quickly.
//
// Time is divided into ticks. Half of the calls of a tick go to any account, first come first served; the other half
// goes to accounts that have not had their share in this tick.

import { WindowPercentile } from './percentile.ts'

/** What Pace stores for an account. */
export interface PacedAccount {
  /** The tick to which `started` belongs. */
  tick: number
  /** Calls that were started in that tick. */
  started: number
}

/** Limiting starts when the median delay of half a second exceeds this, */
const START_LATE_MS = 100
/** or when two delays in a row exceed this. */
const START_NOW_LATE_MS = 200
/** While limiting, the delay is held at this value. */
const TARGET_LATE_MS = 60
const ADJUST_MS = 100
const SLOWER = 0.9
/** For a delay of several times the target. */
const MUCH_SLOWER = 0.7
const FASTER = 1.03
/** For hardly any delay. */
const MUCH_FASTER = 1.05
/** The first rate is the rate at which calls ended lately; or, for long calls, this part of the rate of starts. */
const START_SHARE = 0.3
/** Limiting ends when no call was refused for this long. */
const OVER_MS = 2_000
const PER_MS_MIN = 0.01
/** The period over which the rate of ended calls is averaged. */
const ENDED_MS = 1_000
/**
 * The lowest rate, as a part of the rate of ended calls. Refusals cost time as well: if they alone are too much work,
 * a lower and lower rate would serve nobody.
 */
const FLOOR_SHARE = 0.4
/** The lowest rate itself sinks slowly, because calls may have become more expensive. */
const FLOOR_SLOWER = 0.998
/** Unused starts can be used for this long. */
const SAVED_MS = 100

export class Pace {
  readonly #late = new WindowPercentile({ share: 0.5, windowMs: 500, samplesMin: 3 })
  /** The recent rate of ended calls. */
  #endedPerMs = 0
  /** The limit; undefined while there is none. */
  #perMs: number | undefined
  #floorPerMs = 0
  /** Calls that may still start now, and how many there were at the beginning of the tick. */
  #available = 0
  #availableInTick = 0
  #tick = 0
  #tickMs = 0
  #adjustedMs = 0
  #leastLateMs = Number.POSITIVE_INFINITY
  #lastLateMs = 0
  #started = 0
  #ended = 0
  #refused = 0
  #refusedMs = 0

  /** Calls a second; undefined while there is no limit. */
  get perSecond(): number | undefined {
    return this.#perMs === undefined ? undefined : this.#perMs * 1_000
  }

  /** Begins a new tick with the measured delay of the event loop. */
  beginTick(lateMs: number, nowMs: number): void {
    this.#late.add(lateMs, nowMs)
    this.#leastLateMs = Math.min(this.#leastLateMs, lateMs)
    const isVeryLate = Math.min(lateMs, this.#lastLateMs) > START_NOW_LATE_MS
    this.#lastLateMs = lateMs
    if (nowMs - this.#adjustedMs >= ADJUST_MS) this.#adjust(nowMs, isVeryLate)
    const perMs = this.#perMs
    if (perMs !== undefined) {
      const availableMax = Math.max(1, perMs * SAVED_MS)
      this.#available = Math.min(this.#available + perMs * (nowMs - this.#tickMs), availableMax)
      this.#availableInTick = this.#available
    }
    this.#tick++
    this.#tickMs = nowMs
  }

  /** Whether a call of this account may start; `accounts` is the number of accounts that sent calls lately. */
  mayStart(account: PacedAccount, accounts: number): boolean {
    if (this.#perMs === undefined || this.#isAvailable(account, accounts)) return true
    this.#refused++
    return false
  }

  /** Counts the start of a call for which `mayStart` returned true. */
  start(account: PacedAccount): void {
    this.#started++
    if (this.#perMs === undefined) return
    account.started++
    this.#available--
  }

  /** Counts the end of a call. */
  end(): void {
    this.#ended++
  }

  #isAvailable(account: PacedAccount, accounts: number): boolean {
    if (this.#available < 1) return false
    if (account.tick !== this.#tick) [account.tick, account.started] = [this.#tick, 0]
    const ownShare = Math.max(1, Math.floor(this.#availableInTick / accounts))
    return this.#available > this.#availableInTick / 2 || account.started < ownShare
  }

  #adjust(nowMs: number, isVeryLate: boolean): void {
    const passedMs = nowMs - this.#adjustedMs
    const weight = Math.min(1, passedMs / ENDED_MS)
    this.#endedPerMs += weight * (this.#ended / passedMs - this.#endedPerMs)
    if (this.#refused > 0) this.#refusedMs = nowMs
    if (this.#perMs === undefined) {
      if (isVeryLate || this.#late.read(nowMs) > START_LATE_MS) this.#startLimiting(this.#started / passedMs, nowMs)
    } else if (this.#leastLateMs > TARGET_LATE_MS) {
      this.#floorPerMs = Math.max(PER_MS_MIN, this.#floorPerMs * FLOOR_SLOWER)
      const slower = this.#leastLateMs > 3 * TARGET_LATE_MS ? MUCH_SLOWER : SLOWER
      this.#perMs = Math.max(this.#floorPerMs, this.#perMs * slower)
    } else if (this.#refused > 0) this.#perMs *= this.#leastLateMs < TARGET_LATE_MS / 4 ? MUCH_FASTER : FASTER
    else if (nowMs - this.#refusedMs > OVER_MS) this.#perMs = undefined
    this.#adjustedMs = nowMs
    this.#leastLateMs = Number.POSITIVE_INFINITY
    this.#started = 0
    this.#ended = 0
    this.#refused = 0
  }

  #startLimiting(startedPerMs: number, nowMs: number): void {
    this.#perMs = Math.max(PER_MS_MIN, this.#endedPerMs, startedPerMs * START_SHARE)
    this.#floorPerMs = Math.max(PER_MS_MIN, this.#endedPerMs * FLOOR_SHARE)
    this.#available = 0
    this.#refusedMs = nowMs
  }
}
