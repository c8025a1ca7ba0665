// How often somebody may try to sign in. What fails is counted for the address it comes from, for the name that was
// tried, and for both together; what goes well is not counted.
//
// Whoever tries one name from a thousand addresses uses up what strangers may try of it, and nothing else: from where
// somebody has signed in before, that does not count. So nobody can lock another out of where they usually are.

import { bounds } from '../base/bounds.ts'
import { Refusal } from '../base/errors.ts'
import type { Rate } from '../base/gcra.ts'
import { Debt, rateOf } from '../base/gcra.ts'

const TEN_MINUTES_MS = 600_000

/** Of one address, of one name from one address, and of one name from wherever nobody signed in with it before. */
const PLACE = rateOf(50, TEN_MINUTES_MS)
const BOTH = rateOf(10, TEN_MINUTES_MS)
const NAME = rateOf(30, TEN_MINUTES_MS)

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

  /** Counts one; what it gives back takes that back. */
  take(name: string): () => void {
    const debt = this.#debts.get(name) ?? new Debt(this.#rate)
    debt.pay(this.#nowMs())
    const taken = debt.take(1)
    this.#debts.delete(name)
    this.#debts.set(name, debt)
    if (this.#debts.size > bounds.signInTriesMax) this.#debts.delete(this.#debts.keys().next().value!)
    return () => {
      debt.pay(this.#nowMs())
      debt.correct(taken, 0)
    }
  }
}

export interface Try {
  /** Whom they say they are. */
  readonly name: string
  /** Where they are. */
  readonly place: string
  /** Somebody of this name has signed in from there before. */
  readonly isKnown: boolean
}

export class SignInLimits {
  readonly #places
  readonly #names
  readonly #both

  constructor(nowMs: () => number) {
    this.#places = new Tries(PLACE, nowMs)
    this.#names = new Tries(NAME, nowMs)
    this.#both = new Tries(BOTH, nowMs)
  }

  /** Counts a try, or refuses it. Where it went well, what it gives back is called. */
  enter({ name, place, isKnown }: Try): () => void {
    const both = `${name}\n${place}`
    const namesMs = isKnown ? 0 : this.#names.waitMs(name)
    refuseFor(Math.max(this.#places.waitMs(place), this.#both.waitMs(both), namesMs))
    const taken = [this.#places.take(place), this.#both.take(both)]
    if (!isKnown) taken.push(this.#names.take(name))
    return () => taken.forEach(giveBack => giveBack())
  }
}

/** Of anything else that can be guessed: set-up tokens, invitations. */
export function enterOnce(tries: Tries, name: string): () => void {
  refuseFor(tries.waitMs(name))
  return tries.take(name)
}

function refuseFor(waitMs: number): void {
  if (waitMs > 0) throw new Refusal('attempts_too_many', `${waitMs} ms`, { retryAfterMs: waitMs })
}
