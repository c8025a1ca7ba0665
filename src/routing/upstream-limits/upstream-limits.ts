// Estimates what is left of the rate limits of an upstream, from its last headers. The estimate is a warning only: the
// upstream itself decides.

import { bounds } from '../../base/bounds.ts'
import { Cooldown } from '../health/cooldown.ts'
import { LimitBucket } from './bucket.ts'
import type { UpstreamLimit } from './headers.ts'

export class UpstreamLimits {
  #requests: LimitBucket | undefined
  #tokens: LimitBucket | undefined
  /** For limits of unknown size that are used up: blocked until their reset. */
  readonly #exhausted = new Cooldown()

  take(tokens: number, nowMs: number): void {
    this.#requests?.take(1, nowMs)
    this.#tokens?.take(tokens, nowMs)
  }

  /** Corrects an estimate: this many tokens more (or fewer, if negative) were used than taken. */
  correct(tokens: number, nowMs: number): void {
    this.#tokens?.take(tokens, nowMs)
  }

  waitMs(tokens: number, nowMs: number): number {
    const requestsMs = this.#requests?.waitMs(1, nowMs) ?? 0
    const tokensMs = this.#tokens?.waitMs(tokens, nowMs) ?? 0
    return Math.max(requestsMs, tokensMs, this.#exhausted.remainingMs(nowMs))
  }

  /** Takes over the limits of new headers. */
  update(limits: readonly UpstreamLimit[], nowMs: number): void {
    for (const limit of limits) {
      if (limit.resource === 'requests') this.#requests = this.#update(this.#requests, limit, nowMs)
      else this.#tokens = this.#update(this.#tokens, limit, nowMs)
    }
  }

  /**
   * The reset time of upstreams says when the limit is full again. So limit, remaining amount and reset give the speed of
   * the refill. Upstreams round to seconds, so this is precise only when much is used, and only then does it matter.
   */
  #update(bucket: LimitBucket | undefined, stated: UpstreamLimit, nowMs: number): LimitBucket | undefined {
    const { limit, remaining } = stated
    if (remaining === undefined || stated.resetMs === undefined) return bucket
    const resetMs = Math.min(stated.resetMs, bounds.channelPauseMsMax)
    if (limit === undefined || limit <= 0) {
      if (remaining <= 0) this.#exhausted.extend(resetMs, nowMs)
      return undefined
    }
    if (remaining * 2 > limit || resetMs <= 0) return undefined
    const periodMs = (resetMs * limit) / (limit - Math.max(0, remaining))
    const updated = bucket ?? new LimitBucket(limit, periodMs)
    updated.resize(limit, periodMs)
    updated.noteFullIn(resetMs, nowMs)
    return updated
  }
}
