// The one place that decides where a host may be reached. Its name is looked up, all that it leads to must be allowed,
// and what is handed out is addresses: whoever connects asks nobody again, so that a name that means something else a
// moment later changes nothing.

import { isIP } from 'node:net'
import { systemClock } from '../../base/clock.ts'
import type { Addresses, Resolve } from './dns-cache.ts'
import { Names } from './dns-cache.ts'
import type { PrivateHosts } from './private-hosts.ts'
import { noPrivateHosts } from './private-hosts.ts'
import { kindOfAddress, kindOfHost } from './public-address.ts'

export interface DoorOptions {
  /** By default, as this machine does. */
  readonly resolve?: Resolve
  /** Those that may be reached although they are private. */
  readonly privateHosts?: PrivateHosts
  readonly nowMs?: () => number
}

/** A host that may not be reached. */
export class ClosedDoor extends Error {}

export class Door {
  readonly #names: Names
  readonly #privateHosts: PrivateHosts

  constructor({ resolve, privateHosts = noPrivateHosts, nowMs = systemClock.nowMs }: DoorOptions) {
    this.#names = new Names({ resolve, nowMs })
    this.#privateHosts = privateHosts
  }

  /** Whether its operator has named it as a private one. */
  lists(host: string): boolean {
    return this.#privateHosts.hasName(host) || (isIP(host) !== 0 && this.#privateHosts.hasAddress(host))
  }

  /**
   * Where to connect, IPv4 first, because not every machine has IPv6; at once where that is known. `permitted` lets it
   * be private. Throws or rejects with a ClosedDoor, or because the name leads nowhere.
   */
  addressesOf(host: string, permitted: boolean): Addresses | Promise<Addresses> {
    if (kindOfHost(host) === 'never') throw new ClosedDoor('its host is one that is never reached')
    const mayBePrivate = permitted || this.lists(host)
    if (isIP(host) !== 0) return this.#checked([host], mayBePrivate)
    const found = this.#names.addressesOf(host)
    if (!(found instanceof Promise)) return this.#checked(found, mayBePrivate)
    return found.then(addresses => this.#checked(addresses, mayBePrivate))
  }

  /** Throws a ClosedDoor for a host that is closed whatever its name may lead to; nobody is asked. */
  judge(host: string): void {
    const kind = kindOfHost(host)
    if (kind === 'never') throw new ClosedDoor('its host is one that is never reached')
    if (kind === 'private' && !this.lists(host)) throw new ClosedDoor('its host is not a public one')
  }

  /** One that may not be reached is enough to refuse: who gives such an answer means no good. */
  #checked(addresses: Addresses, mayBePrivate: boolean): Addresses {
    for (const address of addresses) {
      const kind = kindOfAddress(address)
      if (kind === 'never') throw new ClosedDoor('its host is one that is never reached')
      if (kind === 'private' && !mayBePrivate && !this.#privateHosts.hasAddress(address)) {
        throw new ClosedDoor('its host is not a public one')
      }
    }
    return addresses.toSorted((one, other) => isIP(one) - isIP(other))
  }
}
