// Limits attempts to sign in. A failed attempt counts for its address, for the name that was tried, and for both
// together. A successful attempt is not counted.
//
// An attacker who tries one name from a thousand addresses uses up only the limit for unknown addresses. That limit
// does not apply to an address from which this person has signed in before, and neither does the limit of the address:
// others at the same address may try other names. So a person at a known address can be kept waiting only by somebody who
// tries this person's own name from this very address, or the names of many people who have signed in from there: their
// attempts together have a wider limit, because hundreds of people may share one address. Above it, all names are refused.

import { rateOf } from '../base/collections/gcra.ts'
import type { RefundAttempt } from './attempt-limits.ts'
import { AttemptCounter, refuseDuringWait } from './attempt-limits.ts'

const TEN_MINUTES_MS = 600_000

/** For one address; for all known names from one address; for one name from one address; for one name from all addresses that it was not used from before. */
export const ADDRESS_RATE = rateOf(50, TEN_MINUTES_MS)
const KNOWN_RATE = rateOf(200, TEN_MINUTES_MS)
const PAIR_RATE = rateOf(10, TEN_MINUTES_MS)
const NAME_RATE = rateOf(30, TEN_MINUTES_MS)

export interface SignInAttempt {
  /** The name that was entered. */
  readonly name: string
  /** The address or network of the client. */
  readonly network: string
  /** The person of this name has signed in from this address before. */
  readonly isKnown: boolean
}

export class SignInLimits {
  readonly #byAddress
  readonly #byKnownAddress
  readonly #byName
  readonly #byPair

  constructor(nowMs: () => number) {
    this.#byAddress = new AttemptCounter(ADDRESS_RATE, nowMs)
    this.#byKnownAddress = new AttemptCounter(KNOWN_RATE, nowMs)
    this.#byName = new AttemptCounter(NAME_RATE, nowMs)
    this.#byPair = new AttemptCounter(PAIR_RATE, nowMs)
  }

  /** Counts an attempt, or throws. Call the returned function if the attempt succeeded. */
  countOrRefuse({ name, network, isKnown }: SignInAttempt): RefundAttempt {
    const pair = `${name}\n${network}`
    const othersWaitMs = isKnown ? 0 : Math.max(this.#byAddress.waitMs(network), this.#byName.waitMs(name))
    refuseDuringWait(Math.max(this.#byPair.waitMs(pair), this.#byKnownAddress.waitMs(network), othersWaitMs))
    const refunds = [this.#byPair.count(pair)]
    if (isKnown) refunds.push(this.#byKnownAddress.count(network))
    else refunds.push(this.#byAddress.count(network), this.#byName.count(name))
    return () => refunds.forEach(refund => refund())
  }
}
