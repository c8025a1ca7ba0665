// Private hosts that the operator allows channels to connect to: names, addresses and ranges.

import { BlockList, isIP } from 'node:net'
import { addRange, splitList } from './caller-address.ts'
import { classifyHost, normalizeHost } from './public-address.ts'

const NAME = /^[a-z0-9_]([a-z0-9_.-]*[a-z0-9_])?$/

export class PrivateHosts {
  readonly #names = new Set<string>()
  readonly #ranges = new BlockList()

  /** Reads `ollama, 10.1.0.0/16, ::1`. Returns a text if an entry is not valid. */
  static read(text: string): PrivateHosts | string {
    const hosts = new PrivateHosts()
    for (const entry of splitList(text)) {
      if (classifyHost(entry) === 'never')
        return `"${entry}" is never allowed: it is a cloud metadata, link-local or multicast address`
      if (!hosts.#add(entry)) return `"${entry}" is neither a host name nor an address or range`
    }
    return hosts
  }

  #add(entry: string): boolean {
    const name = normalizeHost(entry)
    // A text that a URL parser reads as an IPv4 number is not a name.
    const isName = NAME.test(name) && URL.parse(`http://${name}`)?.hostname === name && isIP(name) === 0
    if (isName) this.#names.add(name)
    return isName || addRange(this.#ranges, entry)
  }

  hasName(host: string): boolean {
    return this.#names.has(normalizeHost(host))
  }

  hasAddress(address: string): boolean {
    return this.#ranges.check(address, isIP(address) === 6 ? 'ipv6' : 'ipv4')
  }
}

export const noPrivateHosts = new PrivateHosts()
