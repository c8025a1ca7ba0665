// What is known of one model on one credential. Providers limit and run each model by itself: that one of them has
// enough for now must not close the others, or whoever asks for the scarcest model would close a credential for all.

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

  /** As if nothing had ever been seen of it, but for what is under way. */
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

  /** Nothing would be lost with it. */
  isIdle(nowMs: number): boolean {
    return this.underWay === 0 && this.closedBy(0, nowMs) === undefined && this.limit.at(nowMs) === Infinity
  }
}

/** Callers may name any number of models at some providers: those beyond the bound are one to us. */
export class ModelHealths {
  readonly #known = new Map<string, ModelHealth>()
  readonly #rest = new ModelHealth()

  look(model: string): ModelHealth {
    return this.#known.get(model) ?? this.#rest
  }

  /** For a call that begins. */
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
    this.#known.set(model, health) // the next time another is looked at
    return false
  }
}
