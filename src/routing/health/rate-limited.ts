// Blocks a channel after the upstream has refused calls for a rate limit or a quota: for as long as the upstream asks, or
// else twice as long after each refusal.

import { bounds } from '../../base/bounds.ts'
import { Until } from './until.ts'

export interface LimitedTimes {
  readonly firstMs: number
  /** Each further refusal doubles the time, up to this. */
  readonly mostMs: number
}

export interface RefusedTurn {
  /** The number of the refused attempt, and of the latest attempt on the channel. */
  readonly step: number
  readonly steps: number
  /** How long the upstream asks to wait, limited to a plausible time. */
  readonly retryAfterMs: number | undefined
  /** A random factor about 1. */
  readonly spread: number
}

export class Limited {
  readonly #times: LimitedTimes
  readonly #until = new Until()
  #refusedStep = 0
  #refusals = 0

  constructor(times: LimitedTimes) {
    this.#times = times
  }

  leftMs(nowMs: number): number {
    return this.#until.leftMs(nowMs)
  }

  /** Returns whether this is the first refusal since the last success. */
  refuse({ step, steps, retryAfterMs, spread }: RefusedTurn, nowMs: number): boolean {
    const isFirst = this.#refusals === 0
    // Attempts that ran at the same time are refused together. They count as one refusal.
    if (isFirst || step > this.#refusedStep) {
      this.#refusals++
      this.#refusedStep = steps
    }
    const { firstMs, mostMs } = this.#times
    const doubledMs = Math.min(firstMs * 2 ** (this.#refusals - 1), mostMs) * spread
    this.#until.extend(Math.min(retryAfterMs ?? doubledMs, bounds.channelClosedMsMax), nowMs)
    return isFirst
  }

  /** An attempt was answered. Returns whether that ends the block. */
  well(step: number): boolean {
    if (this.#refusals === 0 || step <= this.#refusedStep) return false
    this.#refusals = 0
    this.#until.clear()
    return true
  }
}
