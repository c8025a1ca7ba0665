// Tells whoever listens that a call must end, once, and why. Does what an AbortController does, for a fifth of its
// cost: every call has one, and hardly any is ever used.

export class Stop {
  #reason: unknown
  #listeners: (() => void)[] = []

  /** Why, or undefined while the call may go on. */
  get reason(): unknown {
    return this.#reason
  }

  /** The first reason counts. */
  stop(reason: unknown): void {
    if (this.#reason !== undefined) return
    this.#reason = reason
    for (const listener of this.#listeners.splice(0)) listener()
  }

  /** Calls at once when it has happened already. */
  onStop(listener: () => void): void {
    if (this.#reason === undefined) this.#listeners.push(listener)
    else listener()
  }

  forget(listener: () => void): void {
    this.#listeners = this.#listeners.filter(known => known !== listener)
  }

  throwIfStopped(): void {
    if (this.#reason !== undefined) throw this.#reason
  }
}
