// What a credential may still be asked for: by its operator's caps, which hold, and by what its upstream tells of its
// own limits, which is taken for a warning.

import { bounds } from '../base/bounds.ts'
import { Bucket } from './bucket.ts'
import type { Caps, ToldLimit } from './health.ts'
import { Until } from './until.ts'

const MINUTE_MS = 60_000

export class Allowance {
  #requests: Bucket | undefined
  #tokens: Bucket | undefined
  #toldRequests: Bucket | undefined
  #toldTokens: Bucket | undefined
  /** Nothing is left, and all that is known is when there will be. */
  readonly #toldNothing = new Until()

  take(caps: Caps, tokens: number, nowMs: number): void {
    this.#resize(caps)
    this.#requests?.add(1, nowMs)
    this.#tokens?.add(tokens, nowMs)
    this.#toldRequests?.add(1, nowMs)
    this.#toldTokens?.add(tokens, nowMs)
  }

  /** More or fewer tokens than were taken. */
  correct(tokens: number, nowMs: number): void {
    if (tokens === 0) return
    this.#tokens?.add(tokens, nowMs)
    this.#toldTokens?.add(tokens, nowMs)
  }

  cappedBy(caps: Caps, tokens: number, nowMs: number): 'requests_capped' | 'tokens_capped' | undefined {
    this.#resize(caps)
    if (this.#requests !== undefined && this.#requests.waitMs(1, nowMs) > 0) return 'requests_capped'
    return this.#tokens !== undefined && this.#tokens.waitMs(tokens, nowMs) > 0 ? 'tokens_capped' : undefined
  }

  cappedMs(caps: Caps, tokens: number, nowMs: number): number {
    this.#resize(caps)
    return Math.max(this.#requests?.waitMs(1, nowMs) ?? 0, this.#tokens?.waitMs(tokens, nowMs) ?? 0)
  }

  toldWaitMs(tokens: number, nowMs: number): number {
    const requestsMs = this.#toldRequests?.waitMs(1, nowMs) ?? 0
    const tokensMs = this.#toldTokens?.waitMs(tokens, nowMs) ?? 0
    return Math.max(requestsMs, tokensMs, this.#toldNothing.leftMs(nowMs))
  }

  tell(told: readonly ToldLimit[], nowMs: number): void {
    for (const row of told) {
      if (row.resource === 'requests') this.#toldRequests = this.#heard(this.#toldRequests, row, nowMs)
      else this.#toldTokens = this.#heard(this.#toldTokens, row, nowMs)
    }
  }

  /**
   * The reset that upstreams tell is when all will be there again, so that from it, the limit and what remains follows
   * how fast it comes back. Rounded to seconds that is only true once much is used, and only then does it matter.
   */
  #heard(bucket: Bucket | undefined, { limit, remaining, resetMs }: ToldLimit, nowMs: number): Bucket | undefined {
    if (remaining === undefined || resetMs === undefined) return bucket
    if (limit === undefined || limit <= 0) {
      if (remaining <= 0) this.#toldNothing.extend(Math.min(resetMs, bounds.channelClosedMsMax), nowMs)
      return undefined
    }
    if (remaining * 2 > limit || resetMs <= 0) return undefined
    const periodMs = (resetMs * limit) / (limit - Math.max(0, remaining))
    const heard = bucket ?? new Bucket(limit, periodMs)
    heard.resize(limit, periodMs)
    heard.atLeast(resetMs, nowMs)
    return heard
  }

  #resize({ requestsPerMinute, tokensPerMinute }: Caps): void {
    if (this.#requests?.limit !== requestsPerMinute) this.#requests = resized(this.#requests, requestsPerMinute)
    if (this.#tokens?.limit !== tokensPerMinute) this.#tokens = resized(this.#tokens, tokensPerMinute)
  }
}

function resized(bucket: Bucket | undefined, perMinute: number | undefined): Bucket | undefined {
  if (perMinute === undefined) return undefined
  if (bucket === undefined) return new Bucket(perMinute, MINUTE_MS)
  bucket.resize(perMinute, MINUTE_MS)
  return bucket
}
