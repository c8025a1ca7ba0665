// Limits attempts to sign in. A failed attempt counts for its address, for the name that was tried, and for both
// together. A successful attempt is not counted here. The network of many IPv6 addresses, a /48, has a limit of its own.
//
// An attacker who tries one name from a thousand addresses uses up only the limit for unknown addresses. That limit
// does not apply to an address from which this person has signed in before, and neither does the limit of the address:
// others at the same address may try other names. So a person at a known address can be kept waiting only by somebody who
// tries this person's own name from this very address, or the names of many people who have signed in from there: their
// attempts together have a wider limit, because hundreds of people may share one address. Above it, all names are refused.

import { rateOf } from '../base/collections/gcra.ts'
import type { AttemptCounterParts, RefundAttempt } from './attempt-limits.ts'
import { AttemptCounter, countAttempt } from './attempt-limits.ts'

const TEN_MINUTES_MS = 600_000

/**
 * For one address; for all known names from one address; for one name from one address; for one name from all addresses
 * that it was not used from before.
 */
export const ADDRESS_RATE = rateOf(50, TEN_MINUTES_MS)
const KNOWN_RATE = rateOf(200, TEN_MINUTES_MS)
const PAIR_RATE = rateOf(10, TEN_MINUTES_MS)
const NAME_RATE = rateOf(30, TEN_MINUTES_MS)
/** For one /48, which may belong to one customer, or to many who share it. */
const SITE_RATE = rateOf(500, TEN_MINUTES_MS)

export interface SignInAttempt {
  /** The name that was entered. */
  readonly name: string
  /** The address or network of the client. */
  readonly network: string
  /** Its wider network, if it has one. */
  readonly site?: string | undefined
  /** The person of this name has signed in from this address before. */
  readonly isKnown: boolean
}

export class SignInLimits {
  readonly #byAddress
  readonly #bySite
  readonly #byKnownAddress
  readonly #byName
  readonly #byPair

  constructor(parts: AttemptCounterParts) {
    this.#byAddress = new AttemptCounter('sign-in-address', ADDRESS_RATE, parts)
    this.#bySite = new AttemptCounter('sign-in-site', SITE_RATE, parts)
    this.#byKnownAddress = new AttemptCounter('sign-in-known-address', KNOWN_RATE, parts)
    this.#byName = new AttemptCounter('sign-in-name', NAME_RATE, parts)
    this.#byPair = new AttemptCounter('sign-in-name-and-address', PAIR_RATE, parts)
  }

  /** Counts an attempt, or throws. Call the returned function if the attempt succeeded. */
  countOrRefuse({ name, network, site, isKnown }: SignInAttempt): Promise<RefundAttempt> {
    const others = [
      { counter: this.#byAddress, name: network },
      ...(site === undefined ? [] : [{ counter: this.#bySite, name: site }]),
      { counter: this.#byName, name },
    ]
    return countAttempt([
      { counter: this.#byPair, name: `${name}\n${network}` },
      { counter: this.#byKnownAddress, name: network, isOnlyChecked: !isKnown },
      ...(isKnown ? [] : others),
    ])
  }
}
