// Hashes passwords and compares them, a few at a time: each takes long and much memory on purpose, and whoever floods
// the sign-in must not take them from calls. Beyond a short line, people are told to come again.

import { bounds } from '../base/bounds.ts'
import { Refusal } from '../base/errors.ts'
import type { Secret } from '../base/secrets/secret.ts'

/** Slow on purpose, and done beside the thread that serves calls. */
export interface Hashing {
  hash(password: string): Promise<string>
  /** Whether the hash is of this password. */
  matches(password: string, hash: string): Promise<boolean>
}

export class PasswordDesk {
  readonly #hashing: Hashing
  /** Compared with for whoever has no password, so that it takes as long. */
  #nobodys: Promise<string> | undefined
  readonly #waiting: (() => void)[] = []
  #busy = 0
  #done = 0

  constructor(hashing: Hashing) {
    this.#hashing = hashing
  }

  /** How many were hashed or compared so far. */
  get done(): number {
    return this.#done
  }

  hash(password: Secret): Promise<string> {
    return this.#inTurn(() => this.#hashing.hash(password.reveal()))
  }

  /** Undefined: there is no such person, or they have none. It is never theirs, and takes as long to say. */
  async matches(password: Secret, hash: string | undefined): Promise<boolean> {
    const nobodys = await (this.#nobodys ??= this.#hashing.hash('nobody has this password'))
    const isSame = await this.#inTurn(() => this.#hashing.matches(password.reveal(), hash ?? nobodys))
    return isSame && hash !== undefined
  }

  async #inTurn<T>(run: () => Promise<T>): Promise<T> {
    if (this.#busy >= bounds.passwordHashesMax) {
      if (this.#waiting.length >= bounds.passwordsWaitingMax) {
        throw new Refusal('overloaded', 'too many passwords at once', { retryAfterMs: 1_000 })
      }
      await new Promise<void>(resolve => this.#waiting.push(resolve))
    } else this.#busy++
    try {
      this.#done++
      return await run()
    } finally {
      const next = this.#waiting.shift()
      if (next === undefined) this.#busy--
      else next() // it has the place from here on
    }
  }
}
