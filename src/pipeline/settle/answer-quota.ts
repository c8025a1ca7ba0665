// How much of the answers under idempotency keys is stored. Whoever asks for a large answer pays little for it, and each
// is stored for a day: without a limit, one account could fill the disk for cents.

import { bounds } from '../../base/bounds.ts'
import type { Rate } from '../../base/collections/gcra.ts'
import { rateOf, spansMs, usedAfter, usedWith, waitMsFor } from '../../base/collections/gcra.ts'

interface Meter {
  used: number
  tick: number
}

const ofAll = rateOf(bounds.idempotentAnswersBytesMax, spansMs.day)
const ofAccount = rateOf(bounds.idempotentAnswersOfAccountBytesMax, spansMs.day)

/** Counts in this process only. An account that was not seen for longest is forgotten first. */
export class AnswerQuota {
  readonly #nowMs: () => number
  readonly #all: Meter = { used: 0, tick: 0 }
  readonly #accounts = new Map<number, Meter>()

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs
  }

  /** Takes room for an answer; false if there is none. */
  take(accountId: number, bytes: number): boolean {
    const own = this.#accounts.get(accountId) ?? { used: 0, tick: 0 }
    const parts = [
      [this.#all, ofAll],
      [own, ofAccount],
    ] as const
    for (const [meter, rate] of parts) refill(meter, rate, this.#nowMs())
    if (parts.some(([meter, rate]) => waitMsFor(rate, meter.used, bytes) > 0)) return false
    for (const [meter, rate] of parts) meter.used = usedWith(rate, meter.used, bytes)
    this.#accounts.delete(accountId)
    this.#accounts.set(accountId, own)
    if (this.#accounts.size > bounds.attemptCountersMax) this.#accounts.delete(this.#accounts.keys().next().value!)
    return true
  }
}

function refill(meter: Meter, rate: Rate, nowMs: number): void {
  const tick = Math.floor(nowMs / rate.tickMs)
  meter.used = usedAfter(rate, meter.used, Math.max(0, tick - meter.tick))
  meter.tick = tick
}
