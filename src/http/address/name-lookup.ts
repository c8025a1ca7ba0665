// Two ways to look up the addresses of a host name.
//
// The system's own way also knows mDNS names and search domains, but each lookup occupies a thread until the name server
// answers or the system gives up. The runtime has only a few threads, and they also decompress bodies and hash
// passwords. So a name that a caller chose is looked up on the event loop instead: whoever names a host whose name
// server never answers would otherwise stop that work for everybody.

import { lookup, Resolver } from 'node:dns/promises'
import { readFileSync, statSync } from 'node:fs'
import { isIP } from 'node:net'
import { bounds } from '../../base/bounds.ts'
import { isLoopbackName, normalizeHost } from './public-address.ts'

export type Addresses = readonly string[]

/** Looks up all addresses of a name. */
export type ResolveName = (name: string) => Promise<Addresses>

export async function lookUpBySystem(name: string): Promise<Addresses> {
  return (await lookup(name, { all: true })).map(({ address }) => address)
}

export interface EventLoopLookupOptions {
  /** Name servers as `address:port`. Default: those of the system. */
  readonly servers?: readonly string[]
  readonly hostsFile?: string
  readonly msMax?: number
}

const LOOPBACK: Addresses = ['127.0.0.1', '::1']

/** The name must be complete: search domains are not tried. A lookup that is late is cancelled, and has really ended. */
export function buildEventLoopLookup(options: EventLoopLookupOptions = {}): ResolveName {
  const { servers, hostsFile = '/etc/hosts', msMax = bounds.dnsLookupMsMax } = options
  const hosts = new HostsFile(hostsFile)
  return async function lookUpOnEventLoop(name) {
    if (isLoopbackName(name)) return LOOPBACK
    const listed = hosts.addressesOf(name)
    if (listed.length > 0) return listed
    // A resolver of its own for each lookup, because only all lookups of a resolver together can be cancelled.
    const resolver = new Resolver({ timeout: bounds.dnsTryMsMax, tries: bounds.dnsTriesMax })
    if (servers !== undefined) resolver.setServers(servers)
    const timer = setTimeout(() => resolver.cancel(), msMax)
    try {
      const [ipv4, ipv6] = await Promise.allSettled([resolver.resolve4(name), resolver.resolve6(name)])
      const found = [ipv4, ipv6].flatMap(result => (result.status === 'fulfilled' ? result.value : []))
      if (found.length === 0 && ipv4.status === 'rejected') throw ipv4.reason
      return found
    } finally {
      clearTimeout(timer)
    }
  }
}

export const lookUpOnEventLoop = buildEventLoopLookup()

/** The names that the operator of this machine has given addresses, as in /etc/hosts. */
class HostsFile {
  readonly #path: string
  #version = ''
  #addresses: ReadonlyMap<string, Addresses> = new Map()

  constructor(path: string) {
    this.#path = path
  }

  addressesOf(name: string): Addresses {
    this.#readIfChanged()
    return this.#addresses.get(normalizeHost(name)) ?? []
  }

  #readIfChanged(): void {
    try {
      const { mtimeMs, size } = statSync(this.#path)
      const version = `${mtimeMs} ${size}`
      if (version === this.#version) return
      this.#version = version
      this.#addresses = readHosts(readFileSync(this.#path, 'utf8'))
    } catch {
      this.#addresses = new Map() // some systems have no such file
    }
  }
}

function readHosts(text: string): ReadonlyMap<string, Addresses> {
  const hosts = new Map<string, string[]>()
  for (const line of text.split('\n')) {
    const [address = '', ...names] = line.replace(/#.*/, '').trim().split(/\s+/)
    if (isIP(address) === 0) continue
    for (const name of names.map(normalizeHost)) {
      const addresses = hosts.get(name)
      if (addresses === undefined) hosts.set(name, [address])
      else addresses.push(address)
    }
  }
  return hosts
}
