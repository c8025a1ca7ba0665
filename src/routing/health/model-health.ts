// The health of one model on one channel. Providers limit each model separately: a rate limit of one model must not block
// the others, or calls for the scarcest model would block the channel for everybody.

import { bounds } from '../../base/bounds.ts'
import { UpstreamLimits } from '../upstream-limits/upstream-limits.ts'
import { AdaptiveLimit } from './adaptive-limit.ts'
import { RateLimitBlock } from './rate-limit-block.ts'

const RATE = { firstMs: 1_000, maxMs: 60_000 }

export class ModelHealth {
  limit = new AdaptiveLimit()
  upstreamLimits = new UpstreamLimits()
  rateLimit = new RateLimitBlock(RATE)
  activeCalls = 0

  /** Forgets everything except the active calls. */
  reset(): void {
    this.limit = new AdaptiveLimit()
    this.upstreamLimits = new UpstreamLimits()
    this.rateLimit = new RateLimitBlock(RATE)
  }

  blockedBy(tokens: number, nowMs: number): 'rate_limited' | 'upstream_limit' | undefined {
    if (this.rateLimit.remainingMs(nowMs) > 0) return 'rate_limited'
    return this.upstreamLimits.waitMs(tokens, nowMs) > 0 ? 'upstream_limit' : undefined
  }

  availableInMs(tokens: number, nowMs: number): number {
    return Math.max(this.rateLimit.remainingMs(nowMs), this.upstreamLimits.waitMs(tokens, nowMs))
  }

  /** Whether it can be deleted without losing anything. */
  isIdle(nowMs: number): boolean {
    return this.activeCalls === 0 && this.blockedBy(0, nowMs) === undefined && this.limit.limitAt(nowMs) === Infinity
  }
}

/** The health of each model on a channel. At some providers callers may name any model; those beyond the bound share one. */
export class ModelHealths {
  readonly #known = new Map<string, ModelHealth>()
  readonly #rest = new ModelHealth()

  peek(model: string): ModelHealth {
    return this.#known.get(model) ?? this.#rest
  }

  /** For a call that begins: creates the entry if there is room. */
  getOrCreate(model: string, nowMs: number): ModelHealth {
    const known = this.#known.get(model)
    if (known !== undefined) return known
    if (this.#known.size >= bounds.channelModelsMax && !this.#forgetOne(nowMs)) return this.#rest
    const fresh = new ModelHealth()
    this.#known.set(model, fresh)
    return fresh
  }

  *all(): Generator<ModelHealth> {
    yield* this.#known.values()
    yield this.#rest
  }

  #forgetOne(nowMs: number): boolean {
    const [oldest] = this.#known
    if (oldest === undefined) return false
    const [model, health] = oldest
    this.#known.delete(model)
    if (health.isIdle(nowMs)) return true
    this.#known.set(model, health) // at the end of the order, so that the next time another model is checked
    return false
  }
}
