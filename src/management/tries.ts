// How often something may be tried that could be guessed: by one person, and from one address.

import { bounds } from '../base/bounds.ts'
import { Refusal } from '../base/errors.ts'
import type { Taken } from '../base/gcra.ts'
import { Debt, rateOf, spansMs } from '../base/gcra.ts'

/** Gives it back: it was no guess. */
export type GiveBack = () => void

export class Tries {
  readonly #perMinute: number
  readonly #nowMs: () => number
  readonly #debts = new Map<string, Debt>()

  constructor(perMinute: number, nowMs: () => number) {
    this.#perMinute = perMinute
    this.#nowMs = nowMs
  }

  /** Takes one try of each of these, or refuses, and then takes none. */
  take(...names: readonly string[]): GiveBack {
    const nowMs = this.#nowMs()
    const debts = names.map(name => this.#debtOf(name))
    for (const debt of debts) debt.pay(nowMs)
    const waitMs = Math.max(...debts.map(debt => debt.waitMs(1)))
    if (waitMs > 0) throw new Refusal('tried_too_often', names.join(), { retryAfterMs: waitMs })
    const taken = debts.map((debt): readonly [Debt, Taken] => [debt, debt.take(1)])
    return () => {
      for (const [debt, one] of taken) debt.correct(one, 0)
    }
  }

  /** Who has not tried for the longest is forgotten first; they owe the least. */
  #debtOf(name: string): Debt {
    const debt = this.#debts.get(name) ?? new Debt(rateOf(this.#perMinute, spansMs.minute))
    this.#debts.delete(name)
    this.#debts.set(name, debt)
    if (this.#debts.size > bounds.triersMax) this.#debts.delete(this.#debts.keys().next().value!)
    return debt
  }
}
