// Limits how often a guess (a password, a code) or an expensive action may be attempted: by one person, from one
// address, or for one name.

import { bounds } from '../base/bounds.ts'
import type { Rate } from '../base/collections/gcra.ts'
import { Debt } from '../base/collections/gcra.ts'
import { Refusal } from '../base/errors.ts'

/** Refunds an attempt: it was right, or was not checked. */
export type GiveBack = () => void

/** Counts the attempts of each name. Only the most recent names are kept. */
export class Tries {
  readonly #rate: Rate
  readonly #nowMs: () => number
  readonly #meters = new Map<string, Debt>()

  constructor(rate: Rate, nowMs: () => number) {
    this.#rate = rate
    this.#nowMs = nowMs
  }

  waitMs(name: string): number {
    const meter = this.#meters.get(name)
    meter?.pay(this.#nowMs())
    return meter?.waitMs(1) ?? 0
  }

  /** Counts an attempt. The name with the oldest attempt is forgotten first: its limit has refilled the most. */
  take(name: string): GiveBack {
    const meter = this.#meters.get(name) ?? new Debt(this.#rate)
    meter.pay(this.#nowMs())
    const taken = meter.take(1)
    this.#meters.delete(name)
    this.#meters.set(name, meter)
    if (this.#meters.size > bounds.triersMax) this.#meters.delete(this.#meters.keys().next().value!)
    return () => {
      meter.pay(this.#nowMs())
      meter.correct(taken, 0)
    }
  }

  /** Counts one attempt for each name; or throws and counts nothing. */
  enter(...names: readonly string[]): GiveBack {
    refuseFor(Math.max(...names.map(name => this.waitMs(name))))
    const refunds = names.map(name => this.take(name))
    return () => refunds.forEach(refund => refund())
  }
}

export function refuseFor(waitMs: number): void {
  if (waitMs > 0) throw new Refusal('tried_too_often', `${waitMs} ms`, { retryAfterMs: waitMs })
}
