// Estimates what is left of the rate limits of an upstream, from its last headers. The estimate is a warning only: the
// upstream itself decides.

import { bounds } from '../../base/bounds.ts'
import { Until } from '../health/until.ts'
import { ToldBucket } from './bucket.ts'
import type { ToldLimit } from './headers.ts'

export class Told {
  #requests: ToldBucket | undefined
  #tokens: ToldBucket | undefined
  /** For limits of unknown size that are used up: blocked until their reset. */
  readonly #exhausted = new Until()

  take(tokens: number, nowMs: number): void {
    this.#requests?.add(1, nowMs)
    this.#tokens?.add(tokens, nowMs)
  }

  /** Corrects an estimate: this many tokens more (or fewer, if negative) were used than taken. */
  correct(tokens: number, nowMs: number): void {
    this.#tokens?.add(tokens, nowMs)
  }

  waitMs(tokens: number, nowMs: number): number {
    const requestsMs = this.#requests?.waitMs(1, nowMs) ?? 0
    const tokensMs = this.#tokens?.waitMs(tokens, nowMs) ?? 0
    return Math.max(requestsMs, tokensMs, this.#exhausted.leftMs(nowMs))
  }

  /** Takes over the limits of new headers. */
  tell(limits: readonly ToldLimit[], nowMs: number): void {
    for (const limit of limits) {
      if (limit.resource === 'requests') this.#requests = this.#update(this.#requests, limit, nowMs)
      else this.#tokens = this.#update(this.#tokens, limit, nowMs)
    }
  }

  /**
   * The reset time of upstreams says when the limit is full again. So limit, remaining amount and reset give the speed of
   * the refill. Upstreams round to seconds, so this is precise only when much is used, and only then does it matter.
   */
  #update(bucket: ToldBucket | undefined, stated: ToldLimit, nowMs: number): ToldBucket | undefined {
    const { limit, remaining } = stated
    if (remaining === undefined || stated.resetMs === undefined) return bucket
    const resetMs = Math.min(stated.resetMs, bounds.channelClosedMsMax)
    if (limit === undefined || limit <= 0) {
      if (remaining <= 0) this.#exhausted.extend(resetMs, nowMs)
      return undefined
    }
    if (remaining * 2 > limit || resetMs <= 0) return undefined
    const periodMs = (resetMs * limit) / (limit - Math.max(0, remaining))
    const updated = bucket ?? new ToldBucket(limit, periodMs)
    updated.resize(limit, periodMs)
    updated.atLeast(resetMs, nowMs)
    return updated
  }
}
