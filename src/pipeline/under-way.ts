// The calls that are under way, so that a shutdown can wait for them, and end those it cannot wait for.

import type { Refusal } from '../base/errors.ts'
import type { Exchange } from './exchange.ts'

export class UnderWay {
  readonly #exchanges = new Set<Exchange>()
  #onIdle: (() => void)[] = []

  get size(): number {
    return this.#exchanges.size
  }

  add(exchange: Exchange): void {
    this.#exchanges.add(exchange)
  }

  delete(exchange: Exchange): void {
    this.#exchanges.delete(exchange)
    if (this.#exchanges.size > 0) return
    for (const wake of this.#onIdle) wake()
    this.#onIdle = []
  }

  whenIdle(): Promise<void> {
    return this.#exchanges.size === 0 ? Promise.resolve() : new Promise(resolve => this.#onIdle.push(resolve))
  }

  /** Each ends as its dialect ends a broken answer, and is settled. */
  endAll(reason: Refusal): void {
    for (const exchange of this.#exchanges) exchange.stop.stop(reason)
  }
}
