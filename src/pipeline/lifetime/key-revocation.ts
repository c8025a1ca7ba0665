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

/** Reads keys that may have been changed. */
export interface ChangedKeys {
  /** The present versions of keys. */
  versionsOf(keyIds: readonly number[]): ReadonlyMap<number, number> | Promise<ReadonlyMap<number, number>>
  /** Finds a key by the digest of its text. */
  findKey(digest: Buffer): KeyState | undefined | Promise<KeyState | undefined>
  /** Whether the key has another text than that of the digest, and not only another digest of the same text. */
  hasNewText(keyId: number, digest: Buffer): boolean | Promise<boolean>
}

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

  /** Keys were changed by another process. Of thousands of active keys, only those that have changed are read. */
  async checkAgain({ versionsOf, findKey, hasNewText }: ChangedKeys): Promise<void> {
    const { callers } = this.#parts.activeCalls
    const versions = await versionsOf([...new Set(Array.from(callers, ({ keyId }) => keyId))])
    for (const caller of callers) {
      if (versions.get(caller.keyId) === caller.version) continue
      const state = await findKey(caller.digest)
      // The digest of a valid key changes when the pepper does.
      if (state === undefined && !(await hasNewText(caller.keyId, caller.digest))) continue
      if (state?.revoked || state?.disabled) this.end(caller.keyId)
      const nowMs = this.#parts.dateMs()
      for (const exchange of this.#parts.activeCalls.ofKey(caller.keyId)) {
        if (exchange.caller !== caller) continue
        const { expiresMs, untilMs } = exchange.keyDates ?? caller
        exchange.keyDates = state ?? { expiresMs, untilMs: Math.min(untilMs ?? Infinity, nowMs) }
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
