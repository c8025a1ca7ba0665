// How often somebody may try to sign in. What fails is counted for the address it comes from, for the name that was
// tried, and for both together; what goes well is not counted.
//
// Whoever tries one name from a thousand addresses uses up what strangers may try of it, and nothing else: from where
// somebody has signed in before, that does not count. So nobody can lock another out of where they usually are.

import { rateOf } from '../base/collections/gcra.ts'
import type { GiveBack } from './attempt-limits.ts'
import { refuseFor, Tries } from './attempt-limits.ts'

const TEN_MINUTES_MS = 600_000

/** Of one address, of one name from one address, and of one name from wherever nobody signed in with it before. */
const PLACE = rateOf(50, TEN_MINUTES_MS)
const BOTH = rateOf(10, TEN_MINUTES_MS)
const NAME = rateOf(30, TEN_MINUTES_MS)

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
  enter({ name, place, isKnown }: Try): GiveBack {
    const both = `${name}\n${place}`
    const namesMs = isKnown ? 0 : this.#names.waitMs(name)
    refuseFor(Math.max(this.#places.waitMs(place), this.#both.waitMs(both), namesMs))
    const taken = [this.#places.take(place), this.#both.take(both)]
    if (!isKnown) taken.push(this.#names.take(name))
    return () => taken.forEach(giveBack => giveBack())
  }
}
