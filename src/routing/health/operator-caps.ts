// Counts the use of a channel against the caps that its operator has configured.

import type { MeterTake } from '../../base/collections/gcra.ts'
import { RateMeter, rateOf, spansMs } from '../../base/collections/gcra.ts'

/** The caps of a channel as its operator configures them; an absent one does not limit. */
export interface ChannelCaps {
  readonly requestsPerMinute?: number | undefined
  readonly tokensPerMinute?: number | undefined
  readonly concurrency?: number | undefined
}

/**
 * The share of one process in the caps of a channel, if several processes use the channel: each counts for itself. The
 * number of processes may change at any time.
 */
export class CapShare implements ChannelCaps {
  readonly #caps: ChannelCaps
  readonly #processes: () => number

  constructor(caps: ChannelCaps, processes: () => number) {
    this.#caps = caps
    this.#processes = processes
  }

  get requestsPerMinute(): number | undefined {
    return this.#shareOf(this.#caps.requestsPerMinute)
  }

  get tokensPerMinute(): number | undefined {
    return this.#shareOf(this.#caps.tokensPerMinute)
  }

  get concurrency(): number | undefined {
    return this.#shareOf(this.#caps.concurrency)
  }

  #shareOf(cap: number | undefined): number | undefined {
    return cap === undefined ? undefined : Math.max(1, Math.floor(cap / Math.max(1, this.#processes())))
  }
}

export class CapUsage {
  #requests: RateMeter | undefined
  #tokens: RateMeter | undefined

  /** Counts a call. Returns what it took of the token cap, which is corrected when its real usage is known. */
  take(caps: ChannelCaps, tokens: number, nowMs: number): MeterTake | undefined {
    this.#pay(caps, nowMs)
    this.#requests?.add(1)
    return this.#tokens?.take(wholeOf(tokens))
  }

  /** Replaces the estimated tokens of a call by those that it used. */
  correct(
    { taken, tokens }: { readonly tokens: number; readonly taken: MeterTake | undefined },
    used: number,
    nowMs: number,
  ): void {
    if (used === tokens || taken === undefined || this.#tokens === undefined) return
    this.#tokens.refill(nowMs)
    this.#tokens.correct(taken, wholeOf(used))
  }

  cappedBy(caps: ChannelCaps, tokens: number, nowMs: number): 'requests_capped' | 'tokens_capped' | undefined {
    if (caps.requestsPerMinute === undefined && caps.tokensPerMinute === undefined) return undefined
    this.#pay(caps, nowMs)
    if (this.#requests !== undefined && !this.#requests.fits(1)) return 'requests_capped'
    return this.#tokens !== undefined && !this.#tokens.fits(atMost(this.#tokens, tokens)) ? 'tokens_capped' : undefined
  }

  cappedMs(caps: ChannelCaps, tokens: number, nowMs: number): number {
    this.#pay(caps, nowMs)
    const tokensMs = this.#tokens === undefined ? 0 : this.#tokens.waitMs(atMost(this.#tokens, tokens))
    return Math.max(this.#requests?.waitMs(1) ?? 0, tokensMs)
  }

  /** Applies the current caps, which an operator may change at any time, and refills them up to now. */
  #pay({ requestsPerMinute, tokensPerMinute }: ChannelCaps, nowMs: number): void {
    if (this.#requests?.rate.amount !== requestsPerMinute)
      this.#requests = updateRate(this.#requests, requestsPerMinute)
    if (this.#tokens?.rate.amount !== tokensPerMinute) this.#tokens = updateRate(this.#tokens, tokensPerMinute)
    this.#requests?.refill(nowMs)
    this.#tokens?.refill(nowMs)
  }
}

function updateRate(debt: RateMeter | undefined, perMinute: number | undefined): RateMeter | undefined {
  if (perMinute === undefined) return undefined
  const rate = rateOf(perMinute, spansMs.minute)
  if (debt === undefined) return new RateMeter(rate)
  debt.change(rate)
  return debt
}

const wholeOf = (tokens: number): number => Math.max(0, Math.ceil(tokens))

/** A call that is larger than the whole cap passes when the cap is full; otherwise it would never pass. */
const atMost = ({ rate }: RateMeter, tokens: number): number => Math.min(wholeOf(tokens), rate.amount)
