// The hosts that an operator lets channels reach although they are not public, by name, address or range.

import { BlockList, isIP } from 'node:net'
import { addRange, listedIn } from './caller-address.ts'
import { bareName, kindOfHost } from './public-address.ts'

const NAME = /^[a-z0-9_]([a-z0-9_.-]*[a-z0-9_])?$/

export class PrivateHosts {
  readonly #names = new Set<string>()
  readonly #ranges = new BlockList()

  /** Reads `ollama, 10.1.0.0/16, ::1`; a text says which of it cannot be meant. */
  static read(text: string): PrivateHosts | string {
    const hosts = new PrivateHosts()
    for (const entry of listedIn(text)) {
      if (kindOfHost(entry) === 'never') return `"${entry}" is never reached, because clouds keep credentials there`
      if (!hosts.#add(entry)) return `"${entry}" is neither a host's name nor an address or range`
    }
    return hosts
  }

  #add(entry: string): boolean {
    const name = bareName(entry)
    // What a URL would read as a number is no name.
    const isName = NAME.test(name) && URL.parse(`http://${name}`)?.hostname === name && isIP(name) === 0
    if (isName) this.#names.add(name)
    return isName || addRange(this.#ranges, entry)
  }

  hasName(host: string): boolean {
    return this.#names.has(bareName(host))
  }

  hasAddress(address: string): boolean {
    return this.#ranges.check(address, isIP(address) === 6 ? 'ipv6' : 'ipv4')
  }
}

export const noPrivateHosts = new PrivateHosts()
