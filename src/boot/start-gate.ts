// Requests that arrive while the gateway starts, because the configuration file is applied after the port is bound. They
// wait for a short time until the gateway is complete, and are refused after that. Too many of them are refused at once.

import { bounds } from '../base/bounds.ts'
import { Refusal } from '../base/errors.ts'
import { hintOf } from '../base/hints.ts'

export class StartGate {
  readonly #waitMs: number
  readonly #waiting = new Set<(isOpen: boolean) => void>()
  #state: 'starting' | 'open' | 'failed' = 'starting'

  constructor(waitMs: number) {
    this.#waitMs = waitMs
  }

  get isOpen(): boolean {
    return this.#state === 'open'
  }

  /** Resolves when the gateway is complete. Throws if that takes too long, or if the start has failed. */
  async wait(): Promise<void> {
    if (this.isOpen) return
    const mayWait = this.#state === 'starting' && this.#waiting.size < bounds.startWaitersMax
    if (!mayWait || !(await this.#waitForEnd()))
      throw new Refusal('overloaded', 'starting', { hint: hintOf('starting'), retryAfterMs: 5_000 })
  }

  async #waitForEnd(): Promise<boolean> {
    const { promise, resolve } = Promise.withResolvers<boolean>()
    this.#waiting.add(resolve)
    const timer = setTimeout(resolve, this.#waitMs, false)
    const isOpen = await promise
    clearTimeout(timer)
    this.#waiting.delete(resolve)
    return isOpen
  }

  open(): void {
    this.#end('open')
  }

  fail(): void {
    this.#end('failed')
  }

  #end(state: 'open' | 'failed'): void {
    this.#state = state
    for (const resolve of this.#waiting) resolve(state === 'open')
  }
}
