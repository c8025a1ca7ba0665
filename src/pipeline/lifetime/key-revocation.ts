// Ends the calls under way of a key that may not be used any more: revoked, disabled, out of date, or renewed.

import { Refusal } from '../../base/errors.ts'
import type { Exchange, StopReason } from '../exchange.ts'
import type { UnderWay } from './active-calls.ts'

const ended: StopReason = { outcome: 'revoked', refusal: new Refusal('key_invalid', 'it ended meanwhile') }

export interface KeyEndsParts {
  readonly underWay: Pick<UnderWay, 'ofKey'>
  /** How long they may still last. */
  readonly graceMs: number
  dateMs(): number
}

export class KeyEnds {
  readonly #parts: KeyEndsParts

  constructor(parts: KeyEndsParts) {
    this.#parts = parts
  }

  /** It was revoked or disabled. */
  end(keyId: number): void {
    const { underWay, graceMs } = this.#parts
    setTimeout(() => {
      for (const { stop } of underWay.ofKey(keyId)) stop.stop(ended)
    }, graceMs)
  }

  expires(keyId: number, expiresMs: number | null): void {
    for (const exchange of this.#parts.underWay.ofKey(keyId)) {
      exchange.keyDates = { untilMs: exchange.caller!.untilMs, ...exchange.keyDates, expiresMs }
    }
  }

  /** All that are under way have come with an older text: the new one is known to nobody yet. */
  renewed(keyId: number, untilMs: number): void {
    for (const exchange of this.#parts.underWay.ofKey(keyId)) {
      const dates = exchange.keyDates ?? exchange.caller!
      // Of three texts only the last two work.
      const isOldest = dates.untilMs !== null
      exchange.keyDates = { expiresMs: dates.expiresMs, untilMs: isOldest ? this.#parts.dateMs() : untilMs }
      this.look(exchange)
    }
  }

  /** Shown every call from time to time. */
  look({ caller, keyDates = caller, stop }: Exchange): void {
    if (keyDates === undefined || (keyDates.expiresMs === null && keyDates.untilMs === null)) return
    const endMs = Math.min(keyDates.expiresMs ?? Infinity, keyDates.untilMs ?? Infinity)
    if (this.#parts.dateMs() >= endMs + this.#parts.graceMs) stop.stop(ended)
  }
}
