// The health of one model on one channel. Providers limit each model separately: a rate limit of one model must not block
// the others, or calls for the scarcest model would block the channel for everybody.

import { bounds } from '../../base/bounds.ts'
import { Told } from '../upstream-limits/upstream-limits.ts'
import { AdaptiveLimit } from './adaptive-limit.ts'
import { Limited } from './rate-limited.ts'

const RATE = { firstMs: 1_000, mostMs: 60_000 }

export class ModelHealth {
  limit = new AdaptiveLimit()
  told = new Told()
  rate = new Limited(RATE)
  underWay = 0

  /** Forgets everything except the active calls. */
  reset(): void {
    this.limit = new AdaptiveLimit()
    this.told = new Told()
    this.rate = new Limited(RATE)
  }

  closedBy(tokens: number, nowMs: number): 'rate_limited' | 'told_limit' | undefined {
    if (this.rate.leftMs(nowMs) > 0) return 'rate_limited'
    return this.told.waitMs(tokens, nowMs) > 0 ? 'told_limit' : undefined
  }

  opensInMs(tokens: number, nowMs: number): number {
    return Math.max(this.rate.leftMs(nowMs), this.told.waitMs(tokens, nowMs))
  }

  /** Whether it can be deleted without losing anything. */
  isIdle(nowMs: number): boolean {
    return this.underWay === 0 && this.closedBy(0, nowMs) === undefined && this.limit.at(nowMs) === Infinity
  }
}

/** The health of each model on a channel. At some providers callers may name any model; those beyond the bound share one. */
export class ModelHealths {
  readonly #known = new Map<string, ModelHealth>()
  readonly #rest = new ModelHealth()

  look(model: string): ModelHealth {
    return this.#known.get(model) ?? this.#rest
  }

  /** For a call that begins: creates the entry if there is room. */
  of(model: string, nowMs: number): ModelHealth {
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
