// How many calls a moment are begun when more come than the processor can serve. The sign of that is an event loop
// that is late again and again: then there is a queue, and whoever is served has waited in it. So fewer are begun,
// until the queue is short, and the rest are refused while that is still quick.
//
// Within one moment half of the room is for whoever comes first, and half for accounts that have not had their share.

import { Percentile } from './percentile.ts'

/** What is kept of an account for this. */
export interface Paced {
  /** In which moment it had what it had. */
  moment: number
  had: number
}

/** A loop that is late by this much, more often than not for half a second, has a queue, */
const BEGIN_LATE_MS = 100
/** and one that is twice in a row as late as this, too; */
const AT_ONCE_LATE_MS = 200
/** it is held at this. */
const AIM_LATE_MS = 60
const ADJUST_MS = 100
const SLOWER = 0.9
/** For a queue that is several times too long. */
const MUCH_SLOWER = 0.7
const FASTER = 1.03
/** While there is hardly any. */
const MUCH_FASTER = 1.05
/** The first guess is what came to its end lately, or this part of what was begun, where calls last longer. */
const BEGIN_SHARE = 0.3
/** With nobody refused for so long, it is over. */
const OVER_MS = 2_000
const PER_MS_MIN = 0.01
/** Over how long what comes to its end is averaged. */
const ENDED_MS = 1_000
/** Refusals cost something, too: where they alone are too much, to begin less and less would only serve nobody. */
const LEAST_SHARE = 0.4
/** What it begins at least sinks only slowly, each time: calls may have become dearer. */
const LEAST_SLOWER = 0.998
/** Room that nobody used is kept for so long. */
const KEPT_MS = 100

export class Pace {
  readonly #late = new Percentile({ share: 0.5, windowMs: 500, samplesMin: 3 })
  /** Calls a millisecond that came to their end lately. */
  #endedPerMs = 0
  /** Undefined: as many as come. */
  #perMs: number | undefined
  #leastPerMs = 0
  #room = 0
  #roomOfMoment = 0
  #moment = 0
  #momentMs = 0
  #adjustedMs = 0
  #leastLateMs = Number.POSITIVE_INFINITY
  #lastLateMs = 0
  #begun = 0
  #ended = 0
  #refused = 0
  #refusedMs = 0

  /** Calls a second; undefined when all are begun. */
  get perSecond(): number | undefined {
    return this.#perMs === undefined ? undefined : this.#perMs * 1_000
  }

  /** A new moment. */
  look(lateMs: number, nowMs: number): void {
    this.#late.note(lateMs, nowMs)
    this.#leastLateMs = Math.min(this.#leastLateMs, lateMs)
    const isVeryLate = Math.min(lateMs, this.#lastLateMs) > AT_ONCE_LATE_MS
    this.#lastLateMs = lateMs
    if (nowMs - this.#adjustedMs >= ADJUST_MS) this.#adjust(nowMs, isVeryLate)
    const perMs = this.#perMs
    if (perMs !== undefined) {
      const most = Math.max(1, perMs * KEPT_MS)
      this.#room = Math.min(this.#room + perMs * (nowMs - this.#momentMs), most)
      this.#roomOfMoment = this.#room
    }
    this.#moment++
    this.#momentMs = nowMs
  }

  /** Whether a call of this account may be begun; `accounts` have asked lately. */
  mayBegin(paced: Paced, accounts: number): boolean {
    if (this.#perMs === undefined || this.#hasRoom(paced, accounts)) return true
    this.#refused++
    return false
  }

  /** One that may be is begun. */
  begin(paced: Paced): void {
    this.#begun++
    if (this.#perMs === undefined) return
    paced.had++
    this.#room--
  }

  /** A call that was begun is over. */
  end(): void {
    this.#ended++
  }

  #hasRoom(paced: Paced, accounts: number): boolean {
    if (this.#room < 1) return false
    if (paced.moment !== this.#moment) [paced.moment, paced.had] = [this.#moment, 0]
    const ownShare = Math.max(1, Math.floor(this.#roomOfMoment / accounts))
    return this.#room > this.#roomOfMoment / 2 || paced.had < ownShare
  }

  #adjust(nowMs: number, isVeryLate: boolean): void {
    const passedMs = nowMs - this.#adjustedMs
    const weight = Math.min(1, passedMs / ENDED_MS)
    this.#endedPerMs += weight * (this.#ended / passedMs - this.#endedPerMs)
    if (this.#refused > 0) this.#refusedMs = nowMs
    if (this.#perMs === undefined) {
      if (isVeryLate || this.#late.read(nowMs) > BEGIN_LATE_MS) this.#start(this.#begun / passedMs, nowMs)
    } else if (this.#leastLateMs > AIM_LATE_MS) {
      this.#leastPerMs = Math.max(PER_MS_MIN, this.#leastPerMs * LEAST_SLOWER)
      const slower = this.#leastLateMs > 3 * AIM_LATE_MS ? MUCH_SLOWER : SLOWER
      this.#perMs = Math.max(this.#leastPerMs, this.#perMs * slower)
    } else if (this.#refused > 0) this.#perMs *= this.#leastLateMs < AIM_LATE_MS / 4 ? MUCH_FASTER : FASTER
    else if (nowMs - this.#refusedMs > OVER_MS) this.#perMs = undefined
    this.#adjustedMs = nowMs
    this.#leastLateMs = Number.POSITIVE_INFINITY
    this.#begun = 0
    this.#ended = 0
    this.#refused = 0
  }

  #start(begunPerMs: number, nowMs: number): void {
    this.#perMs = Math.max(PER_MS_MIN, this.#endedPerMs, begunPerMs * BEGIN_SHARE)
    this.#leastPerMs = Math.max(PER_MS_MIN, this.#endedPerMs * LEAST_SHARE)
    this.#room = 0
    this.#refusedMs = nowMs
  }
}
