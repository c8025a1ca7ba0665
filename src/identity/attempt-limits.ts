// Limits how often a guess (a password, a code) or an expensive action may be attempted: by one person, from one
// address, or for one name.

import { bounds } from '../base/bounds.ts'
import type { Rate } from '../base/collections/gcra.ts'
import { RateMeter } from '../base/collections/gcra.ts'
import { Refusal } from '../base/errors.ts'

/** Refunds an attempt: it was right, or was not checked. */
export type RefundAttempt = () => void

/** Counts the attempts of each name. Only the most recent names are kept. */
export class AttemptCounter {
  readonly #rate: Rate
  readonly #nowMs: () => number
  readonly #meters = new Map<string, RateMeter>()

  constructor(rate: Rate, nowMs: () => number) {
    this.#rate = rate
    this.#nowMs = nowMs
  }

  waitMs(name: string): number {
    const meter = this.#meters.get(name)
    meter?.refill(this.#nowMs())
    return meter?.waitMs(1) ?? 0
  }

  /** Counts an attempt. The name with the oldest attempt is forgotten first: its limit has refilled the most. */
  count(name: string): RefundAttempt {
    const meter = this.#meters.get(name) ?? new RateMeter(this.#rate)
    meter.refill(this.#nowMs())
    const taken = meter.take(1)
    this.#meters.delete(name)
    this.#meters.set(name, meter)
    if (this.#meters.size > bounds.attemptCountersMax) this.#meters.delete(this.#meters.keys().next().value!)
    return () => {
      meter.refill(this.#nowMs())
      meter.correct(taken, 0)
    }
  }

  /** Counts one attempt for each name; or throws and counts nothing. */
  countOrRefuse(...names: readonly string[]): RefundAttempt {
    refuseDuringWait(Math.max(...names.map(name => this.waitMs(name))))
    const refunds = names.map(name => this.count(name))
    return () => refunds.forEach(refund => refund())
  }
}

export function refuseDuringWait(waitMs: number): void {
  if (waitMs > 0) throw new Refusal('tried_too_often', `${waitMs} ms`, { retryAfterMs: waitMs })
}
