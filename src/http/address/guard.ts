// Decides whether the gateway may connect to a host; every outgoing connection passes here. The guard resolves the
// name, checks all of its addresses, and returns the addresses. Connections are made to these addresses without another
// lookup, so that a changed DNS answer (DNS rebinding) has no effect.

import { isIP } from 'node:net'
import { systemClock } from '../../base/clock.ts'
import { HintedError, hintOf } from '../../base/hints.ts'
import { DnsCache } from './dns-cache.ts'
import type { Addresses, ResolveName } from './name-lookup.ts'
import { lookUpBySystem, lookUpOnEventLoop } from './name-lookup.ts'
import type { PrivateHosts } from './private-hosts.ts'
import { noPrivateHosts } from './private-hosts.ts'
import { classifyAddress, classifyHost } from './public-address.ts'

export interface AddressGuardOptions {
  /**
   * Who chooses the names. The operator's are looked up by the operating system. Those of callers are looked up without
   * its threads, unless the operator has listed them as private hosts.
   */
  readonly namesOf?: 'operator' | 'callers'
  /** Replaces both ways to look up names. */
  readonly resolve?: ResolveName
  /** Private hosts that are allowed. */
  readonly privateHosts?: PrivateHosts
  readonly nowMs?: () => number
}

/** The gateway may not connect to this host. */
export class ForbiddenHost extends HintedError {}

export class AddressGuard {
  readonly #names: DnsCache
  readonly #privateHosts: PrivateHosts

  constructor(options: AddressGuardOptions) {
    const { privateHosts = noPrivateHosts, namesOf = 'operator', nowMs = systemClock.nowMs } = options
    const lookUp: ResolveName = name =>
      namesOf === 'operator' || privateHosts.hasName(name) ? lookUpBySystem(name) : lookUpOnEventLoop(name)
    this.#names = new DnsCache({ resolve: options.resolve ?? lookUp, nowMs })
    this.#privateHosts = privateHosts
  }

  /** Whether the operator has listed the host as an allowed private host. */
  isListed(host: string): boolean {
    return this.#privateHosts.hasName(host) || (isIP(host) !== 0 && this.#privateHosts.hasAddress(host))
  }

  /**
   * The addresses to connect to; a cached answer is returned directly. IPv4 comes first, because not every machine has
   * IPv6. `permitted` allows private addresses; `accountId` is the account whose caller chose the host. Throws or
   * rejects with a ForbiddenHost, or if the name does not resolve.
   */
  addressesOf(host: string, permitted: boolean, accountId?: number): Addresses | Promise<Addresses> {
    if (classifyHost(host) === 'never') throw new ForbiddenHost(hintOf('host_never'))
    const mayBePrivate = permitted || this.isListed(host)
    if (isIP(host) !== 0) return this.#checked([host], mayBePrivate)
    const found = this.#names.addressesOf(host, accountId)
    if (!(found instanceof Promise)) return this.#checked(found, mayBePrivate)
    return found.then(addresses => this.#checked(addresses, mayBePrivate))
  }

  /** Throws a ForbiddenHost for a host that is forbidden whatever its addresses are. Makes no DNS lookup. */
  checkHost(host: string): void {
    const kind = classifyHost(host)
    if (kind === 'never') throw new ForbiddenHost(hintOf('host_never'))
    if (kind === 'private' && !this.isListed(host)) throw new ForbiddenHost(hintOf('host_private'))
  }

  /** One forbidden address is enough to refuse the host: a mixed answer is a sign of DNS rebinding. */
  #checked(addresses: Addresses, mayBePrivate: boolean): Addresses {
    for (const address of addresses) {
      const kind = classifyAddress(address)
      if (kind === 'never') throw new ForbiddenHost(hintOf('host_never'))
      if (kind === 'private' && !mayBePrivate && !this.#privateHosts.hasAddress(address)) {
        throw new ForbiddenHost(hintOf('host_private'))
      }
    }
    return addresses.toSorted((one, other) => isIP(one) - isIP(other))
  }
}
