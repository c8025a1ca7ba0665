// What an upstream is believed to have left, by what its headers told last. It is taken for a warning.

import { bounds } from '../../base/bounds.ts'
import { Until } from '../health/until.ts'
import { ToldBucket } from './bucket.ts'
import type { ToldLimit } from './headers.ts'

export class Told {
  #requests: ToldBucket | undefined
  #tokens: ToldBucket | undefined
  /** Nothing is left, and all that is known is when there will be. */
  readonly #nothing = new Until()

  take(tokens: number, nowMs: number): void {
    this.#requests?.add(1, nowMs)
    this.#tokens?.add(tokens, nowMs)
  }

  /** So many more or fewer than were taken. */
  correct(tokens: number, nowMs: number): void {
    this.#tokens?.add(tokens, nowMs)
  }

  waitMs(tokens: number, nowMs: number): number {
    const requestsMs = this.#requests?.waitMs(1, nowMs) ?? 0
    const tokensMs = this.#tokens?.waitMs(tokens, nowMs) ?? 0
    return Math.max(requestsMs, tokensMs, this.#nothing.leftMs(nowMs))
  }

  tell(told: readonly ToldLimit[], nowMs: number): void {
    for (const row of told) {
      if (row.resource === 'requests') this.#requests = this.#heard(this.#requests, row, nowMs)
      else this.#tokens = this.#heard(this.#tokens, row, nowMs)
    }
  }

  /**
   * The reset that upstreams tell is when all will be there again, so that from it, the limit and what remains follows
   * how fast it comes back. Rounded to seconds that is only true once much is used, and only then does it matter.
   */
  #heard(bucket: ToldBucket | undefined, told: ToldLimit, nowMs: number): ToldBucket | undefined {
    const { limit, remaining } = told
    if (remaining === undefined || told.resetMs === undefined) return bucket
    const resetMs = Math.min(told.resetMs, bounds.channelClosedMsMax)
    if (limit === undefined || limit <= 0) {
      if (remaining <= 0) this.#nothing.extend(resetMs, nowMs)
      return undefined
    }
    if (remaining * 2 > limit || resetMs <= 0) return undefined
    const periodMs = (resetMs * limit) / (limit - Math.max(0, remaining))
    const heard = bucket ?? new ToldBucket(limit, periodMs)
    heard.resize(limit, periodMs)
    heard.atLeast(resetMs, nowMs)
    return heard
  }
}
