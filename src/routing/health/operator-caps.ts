// What a credential may still be asked for by its operator's caps.

import type { Taken } from '../../base/collections/gcra.ts'
import { Debt, rateOf, spansMs } from '../../base/collections/gcra.ts'

/** What an operator says that a credential may be asked for; what is absent is not capped. */
export interface Caps {
  readonly requestsPerMinute?: number
  readonly tokensPerMinute?: number
  readonly concurrency?: number
}

export class Allowance {
  #requests: Debt | undefined
  #tokens: Debt | undefined

  /** What it took of a cap of tokens, to be corrected. */
  take(caps: Caps, tokens: number, nowMs: number): Taken | undefined {
    this.#pay(caps, nowMs)
    this.#requests?.add(1)
    return this.#tokens?.take(wholeOf(tokens))
  }

  /** So many were used. */
  correct({ taken, tokens }: TakenTokens, used: number, nowMs: number): void {
    if (used === tokens || taken === undefined || this.#tokens === undefined) return
    this.#tokens.pay(nowMs)
    this.#tokens.correct(taken, wholeOf(used))
  }

  cappedBy(caps: Caps, tokens: number, nowMs: number): 'requests_capped' | 'tokens_capped' | undefined {
    if (caps.requestsPerMinute === undefined && caps.tokensPerMinute === undefined) return undefined
    this.#pay(caps, nowMs)
    if (this.#requests !== undefined && !this.#requests.fits(1)) return 'requests_capped'
    return this.#tokens !== undefined && !this.#tokens.fits(atMost(this.#tokens, tokens)) ? 'tokens_capped' : undefined
  }

  cappedMs(caps: Caps, tokens: number, nowMs: number): number {
    this.#pay(caps, nowMs)
    const tokensMs = this.#tokens === undefined ? 0 : this.#tokens.waitMs(atMost(this.#tokens, tokens))
    return Math.max(this.#requests?.waitMs(1) ?? 0, tokensMs)
  }

  /** As the caps are now: an operator may change them at any time. */
  #pay({ requestsPerMinute, tokensPerMinute }: Caps, nowMs: number): void {
    if (this.#requests?.rate.amount !== requestsPerMinute) this.#requests = changed(this.#requests, requestsPerMinute)
    if (this.#tokens?.rate.amount !== tokensPerMinute) this.#tokens = changed(this.#tokens, tokensPerMinute)
    this.#requests?.pay(nowMs)
    this.#tokens?.pay(nowMs)
  }
}

export interface TakenTokens {
  readonly tokens: number
  readonly taken: Taken | undefined
}

function changed(debt: Debt | undefined, perMinute: number | undefined): Debt | undefined {
  if (perMinute === undefined) return undefined
  const rate = rateOf(perMinute, spansMs.minute)
  if (debt === undefined) return new Debt(rate)
  debt.change(rate)
  return debt
}

const wholeOf = (tokens: number): number => Math.max(0, Math.ceil(tokens))

/** A call that is larger than its cap goes when all of it is there, or it never would. */
const atMost = ({ rate }: Debt, tokens: number): number => Math.min(wholeOf(tokens), rate.amount)
