// Limits attempts to sign in. A failed attempt counts for its address, for the name that was tried, and for both
// together. A successful attempt is not counted.
//
// An attacker who tries one name from a thousand addresses uses up only the limit for unknown addresses. That limit
// does not apply to an address from which this person has signed in before, so nobody can lock out another person.

import { rateOf } from '../base/collections/gcra.ts'
import type { GiveBack } from './attempt-limits.ts'
import { refuseFor, Tries } from './attempt-limits.ts'

const TEN_MINUTES_MS = 600_000

/** For one address; for one name from one address; for one name from all addresses that it was not used from before. */
const ADDRESS_RATE = rateOf(50, TEN_MINUTES_MS)
const PAIR_RATE = rateOf(10, TEN_MINUTES_MS)
const NAME_RATE = rateOf(30, TEN_MINUTES_MS)

export interface Try {
  /** The name that was entered. */
  readonly name: string
  /** The address or network of the client. */
  readonly place: string
  /** The person of this name has signed in from this address before. */
  readonly isKnown: boolean
}

export class SignInLimits {
  readonly #byAddress
  readonly #byName
  readonly #byPair

  constructor(nowMs: () => number) {
    this.#byAddress = new Tries(ADDRESS_RATE, nowMs)
    this.#byName = new Tries(NAME_RATE, nowMs)
    this.#byPair = new Tries(PAIR_RATE, nowMs)
  }

  /** Counts an attempt, or throws. Call the returned function if the attempt succeeded. */
  enter({ name, place, isKnown }: Try): GiveBack {
    const pair = `${name}\n${place}`
    const nameWaitMs = isKnown ? 0 : this.#byName.waitMs(name)
    refuseFor(Math.max(this.#byAddress.waitMs(place), this.#byPair.waitMs(pair), nameWaitMs))
    const refunds = [this.#byAddress.take(place), this.#byPair.take(pair)]
    if (!isKnown) refunds.push(this.#byName.take(name))
    return () => refunds.forEach(refund => refund())
  }
}
