// Closed because the upstream says that it was asked for too much: for as long as it says, else longer each time.

import { bounds } from '../../base/bounds.ts'
import { Until } from './until.ts'

export interface LimitedTimes {
  readonly firstMs: number
  /** Each time that it is refused again it stays closed twice as long, up to this. */
  readonly mostMs: number
}

export interface RefusedTurn {
  /** Of the turn that was refused, and of the credential at this time. */
  readonly step: number
  readonly steps: number
  /** What the upstream asked for, as far as it can be believed. */
  readonly retryAfterMs: number | undefined
  /** About 1. */
  readonly spread: number
}

export class Limited {
  readonly #times: LimitedTimes
  readonly #until = new Until()
  #sinceStep = 0
  #refused = 0

  constructor(times: LimitedTimes) {
    this.#times = times
  }

  leftMs(nowMs: number): number {
    return this.#until.leftMs(nowMs)
  }

  /** Whether it is the first since it was well. */
  refuse({ step, steps, retryAfterMs, spread }: RefusedTurn, nowMs: number): boolean {
    const isFirst = this.#refused === 0
    // Many that were under way together are refused together: that is one refusal.
    if (isFirst || step > this.#sinceStep) {
      this.#refused++
      this.#sinceStep = steps
    }
    const { firstMs, mostMs } = this.#times
    const doubledMs = Math.min(firstMs * 2 ** (this.#refused - 1), mostMs) * spread
    this.#until.extend(Math.min(retryAfterMs ?? doubledMs, bounds.channelClosedMsMax), nowMs)
    return isFirst
  }

  /** One was answered: whether that ends it. */
  well(step: number): boolean {
    if (this.#refused === 0 || step <= this.#sinceStep) return false
    this.#refused = 0
    this.#until.clear()
    return true
  }
}
