// Blocks a channel after the upstream has refused calls for a rate limit or a quota: for as long as the upstream asks, or
// else twice as long after each refusal.

import { bounds } from '../../base/bounds.ts'
import { Cooldown } from './cooldown.ts'

export interface RateLimitTimes {
  readonly firstMs: number
  /** Each further refusal doubles the time, up to this. */
  readonly maxMs: number
}

export interface RefusedUse {
  /** The number of the refused attempt, and of the latest attempt on the channel. */
  readonly step: number
  readonly latestStep: number
  /** How long the upstream asks to wait, limited to a plausible time. */
  readonly retryAfterMs: number | undefined
  /** A random factor about 1. */
  readonly jitter: number
}

export class RateLimitBlock {
  readonly #times: RateLimitTimes
  readonly #until = new Cooldown()
  #refusedStep = 0
  #refusals = 0

  constructor(times: RateLimitTimes) {
    this.#times = times
  }

  remainingMs(nowMs: number): number {
    return this.#until.remainingMs(nowMs)
  }

  /** Returns whether this is the first refusal since the last success. */
  noteRefusal({ step, latestStep, retryAfterMs, jitter }: RefusedUse, nowMs: number): boolean {
    const isFirst = this.#refusals === 0
    // Attempts that ran at the same time are refused together. They count as one refusal.
    if (isFirst || step > this.#refusedStep) {
      this.#refusals++
      this.#refusedStep = latestStep
    }
    const { firstMs, maxMs } = this.#times
    const doubledMs = Math.min(firstMs * 2 ** (this.#refusals - 1), maxMs) * jitter
    this.#until.extend(Math.min(retryAfterMs ?? doubledMs, bounds.channelPauseMsMax), nowMs)
    return isFirst
  }

  /** An attempt was answered. Returns whether that ends the block. */
  noteSuccess(step: number): boolean {
    if (this.#refusals === 0 || step <= this.#refusedStep) return false
    this.#refusals = 0
    this.#until.clear()
    return true
  }
}
