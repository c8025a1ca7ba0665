// Ends the active calls of a key that may no longer be used: revoked, disabled, expired or renewed.

import { Refusal } from '../../base/errors.ts'
import type { KeyRow } from '../../store/engine/reader.ts'
import type { Exchange, StopReason } from '../exchange.ts'
import type { ActiveCalls } from './active-calls.ts'
import type { Disconnects } from './disconnects.ts'

const keyEnded: StopReason = {
  outcome: 'revoked',
  refusal: new Refusal('key_invalid', 'the key ended during the call'),
}

type KeyState = Pick<KeyRow, 'revoked' | 'disabled' | 'expiresMs' | 'untilMs'>

export interface KeyRevocationsParts {
  readonly activeCalls: Pick<ActiveCalls, 'ofKey' | 'callers'>
  readonly disconnects: Pick<Disconnects, 'onKeyEnd'>
  /** How long active calls of the key may still run. */
  readonly graceMs: number
  dateMs(): number
}

export class KeyRevocations {
  readonly #parts: KeyRevocationsParts

  constructor(parts: KeyRevocationsParts) {
    this.#parts = parts
  }

  /** The key was revoked or disabled. */
  end(keyId: number): void {
    const { activeCalls, disconnects, graceMs } = this.#parts
    setTimeout(() => {
      for (const exchange of activeCalls.ofKey(keyId)) disconnects.onKeyEnd(exchange, keyEnded)
    }, graceMs)
  }

  expires(keyId: number, expiresMs: number | null): void {
    for (const exchange of this.#parts.activeCalls.ofKey(keyId)) {
      exchange.keyDates = { untilMs: exchange.caller!.untilMs, ...exchange.keyDates, expiresMs }
    }
  }

  /** All active calls used an older text of the key: nobody knows the new one yet. */
  textReplaced(keyId: number, untilMs: number): void {
    for (const exchange of this.#parts.activeCalls.ofKey(keyId)) {
      const dates = exchange.keyDates ?? exchange.caller!
      // Of three texts of a key only the last two work.
      const isOldest = dates.untilMs !== null
      exchange.keyDates = { expiresMs: dates.expiresMs, untilMs: isOldest ? this.#parts.dateMs() : untilMs }
      this.check(exchange)
    }
  }

  /** Keys were changed by another process. `read` finds a key by the digest of its text. */
  async checkAgain(read: (digest: Buffer) => KeyState | undefined | Promise<KeyState | undefined>): Promise<void> {
    for (const caller of this.#parts.activeCalls.callers) {
      const state = await read(caller.digest)
      // The digest of a valid key changes when the pepper does.
      if (state === undefined) continue
      if (state.revoked || state.disabled) this.end(caller.keyId)
      const { expiresMs, untilMs } = state
      for (const exchange of this.#parts.activeCalls.ofKey(caller.keyId)) {
        if (exchange.caller !== caller) continue
        exchange.keyDates = { expiresMs, untilMs }
        this.check(exchange)
      }
    }
  }

  /** Called with every call from time to time. */
  check(exchange: Exchange): void {
    const { caller, keyDates = caller } = exchange
    if (keyDates === undefined || (keyDates.expiresMs === null && keyDates.untilMs === null)) return
    const endMs = Math.min(keyDates.expiresMs ?? Infinity, keyDates.untilMs ?? Infinity)
    if (this.#parts.dateMs() >= endMs + this.#parts.graceMs) this.#parts.disconnects.onKeyEnd(exchange, keyEnded)
  }
}
