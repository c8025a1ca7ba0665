// How often something may be tried that could be guessed, or that costs: by one person, from one place, of one name.

import { bounds } from '../base/bounds.ts'
import type { Rate } from '../base/collections/gcra.ts'
import { Debt } from '../base/collections/gcra.ts'
import { Refusal } from '../base/errors.ts'

/** It was no guess, or was not looked at. */
export type GiveBack = () => void

/** What each of many has tried, the latest of them. */
export class Tries {
  readonly #rate: Rate
  readonly #nowMs: () => number
  readonly #debts = new Map<string, Debt>()

  constructor(rate: Rate, nowMs: () => number) {
    this.#rate = rate
    this.#nowMs = nowMs
  }

  waitMs(name: string): number {
    const debt = this.#debts.get(name)
    debt?.pay(this.#nowMs())
    return debt?.waitMs(1) ?? 0
  }

  /** Counts one. Who has not tried for the longest is forgotten first; they owe the least. */
  take(name: string): GiveBack {
    const debt = this.#debts.get(name) ?? new Debt(this.#rate)
    debt.pay(this.#nowMs())
    const taken = debt.take(1)
    this.#debts.delete(name)
    this.#debts.set(name, debt)
    if (this.#debts.size > bounds.triersMax) this.#debts.delete(this.#debts.keys().next().value!)
    return () => {
      debt.pay(this.#nowMs())
      debt.correct(taken, 0)
    }
  }

  /** Counts one of each of these, or refuses, and then counts none. */
  enter(...names: readonly string[]): GiveBack {
    refuseFor(Math.max(...names.map(name => this.waitMs(name))))
    const taken = names.map(name => this.take(name))
    return () => taken.forEach(giveBack => giveBack())
  }
}

export function refuseFor(waitMs: number): void {
  if (waitMs > 0) throw new Refusal('tried_too_often', `${waitMs} ms`, { retryAfterMs: waitMs })
}
