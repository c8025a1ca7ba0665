// Hashes and verifies passwords, a few at a time. Each hash takes time and memory on purpose, and a flood of sign-ins
// must not take these from calls. When too many passwords wait, further ones are refused.

import { bounds } from '../base/bounds.ts'
import { Refusal } from '../base/errors.ts'
import type { Secret } from '../base/secrets/secret.ts'

/** A slow hash function that runs outside of the thread that serves calls. */
export interface PasswordHashFunction {
  hash(password: string): Promise<string>
  /** Whether the hash is of this password. */
  matches(password: string, hash: string): Promise<boolean>
}

export class PasswordHasher {
  readonly #hashing: PasswordHashFunction
  /** A hash to compare with if there is no such person, so that the answer takes as long. */
  #dummyHash: Promise<string> | undefined
  readonly #waiting: (() => void)[] = []
  #running = 0

  constructor(hashing: PasswordHashFunction) {
    this.#hashing = hashing
  }

  hash(password: Secret): Promise<string> {
    return this.#enqueue(() => this.#hashing.hash(password.reveal()))
  }

  /** With an undefined hash (no such person, or no password) the result is false, and takes as long. */
  async matches(password: Secret, hash: string | undefined): Promise<boolean> {
    const dummyHash = await (this.#dummyHash ??= this.#hashing.hash('nobody has this password'))
    const isSame = await this.#enqueue(() => this.#hashing.matches(password.reveal(), hash ?? dummyHash))
    return isSame && hash !== undefined
  }

  async #enqueue<T>(run: () => Promise<T>): Promise<T> {
    if (this.#running >= bounds.passwordHashesMax) {
      if (this.#waiting.length >= bounds.passwordsWaitingMax) {
        throw new Refusal('overloaded', 'too many passwords at once', { retryAfterMs: 1_000 })
      }
      await new Promise<void>(resolve => this.#waiting.push(resolve))
    } else this.#running++
    try {
      return await run()
    } finally {
      const next = this.#waiting.shift()
      if (next === undefined) this.#running--
      else next() // the next one takes over this slot
    }
  }
}
