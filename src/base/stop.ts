// A signal that a call must end, with a reason. It does what an AbortController does, at a fifth of the cost: every
// call has one, and hardly any is used.

export class Stop<Reason extends object> {
  #reason: Reason | undefined
  #listeners: (() => void)[] | undefined

  /** Why the call must end; undefined while it may continue. */
  get reason(): Reason | undefined {
    return this.#reason
  }

  /** Only the first call has an effect. */
  stop(reason: Reason): void {
    if (this.#reason !== undefined) return
    this.#reason = reason
    const listeners = this.#listeners
    this.#listeners = undefined
    for (const listener of listeners ?? []) listener()
  }

  /** Calls the listener immediately if the call is already stopped. */
  onStop(listener: () => void): void {
    if (this.#reason !== undefined) return listener()
    this.#listeners ??= []
    this.#listeners.push(listener)
  }

  removeListener(listener: () => void): void {
    const at = this.#listeners?.indexOf(listener) ?? -1
    if (at >= 0) this.#listeners?.splice(at, 1)
  }

  throwIfStopped(): void {
    if (this.#reason !== undefined) throw this.#reason
  }

  /** Waits for `work`, or rejects with the reason if the call is stopped first. The work itself continues. */
  race<T>(work: Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      const listener = (): void => reject(this.#reason)
      this.onStop(listener)
      work.then(
        value => {
          this.removeListener(listener)
          resolve(value)
        },
        fault => {
          this.removeListener(listener)
          reject(fault)
        },
      )
    })
  }
}
