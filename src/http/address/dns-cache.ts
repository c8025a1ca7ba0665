// A cache of DNS lookups. Concurrent requests for one name share a lookup. An answer is used for a while, and longer if
// new lookups fail. The cache does not decide whether an address may be connected to; guard.ts does.

import { lookup } from 'node:dns/promises'
import { bounds } from '../../base/bounds.ts'

export type Addresses = readonly string[]

/** Looks up all addresses of a name. */
export type ResolveName = (name: string) => Promise<Addresses>

export interface DnsCacheParts {
  readonly resolve?: ResolveName | undefined
  nowMs(): number
}

interface CacheEntry {
  /** The last successful answer; empty before the first one. */
  addresses: Addresses
  resolvedMs: number
  /** After a failed lookup there is no other one before this time, while the last answer is still usable. */
  retryMs: number
  lookup: Promise<Addresses> | undefined
}

export class DnsCache {
  readonly #resolve: ResolveName
  readonly #nowMs: () => number
  readonly #entries = new Map<string, CacheEntry>()

  constructor({ resolve = lookUp, nowMs }: DnsCacheParts) {
    this.#resolve = resolve
    this.#nowMs = nowMs
  }

  /** Returns a cached answer directly. Rejects if the name cannot be resolved. The caller sets its own time limit. */
  addressesOf(name: string): Addresses | Promise<Addresses> {
    const entry = this.#entries.get(name) ?? this.#add(name)
    const nowMs = this.#nowMs()
    const ageMs = nowMs - entry.resolvedMs
    if (ageMs < bounds.dnsFreshMsMax) return entry.addresses
    const isUsable = ageMs < bounds.dnsStaleMsMax
    if (isUsable && nowMs < entry.retryMs) return entry.addresses
    const lookup = this.#lookUpOnce(name, entry)
    return isUsable ? lookupOrCached(lookup, entry) : lookup
  }

  #add(name: string): CacheEntry {
    const entry: CacheEntry = { addresses: [], resolvedMs: -Infinity, retryMs: -Infinity, lookup: undefined }
    this.#entries.set(name, entry)
    // The oldest go first, so that many names of one caller mostly displace each other.
    for (const oldest of this.#entries.keys()) {
      if (this.#entries.size <= bounds.dnsEntriesMax) break
      this.#entries.delete(oldest)
    }
    return entry
  }

  #lookUpOnce(name: string, entry: CacheEntry): Promise<Addresses> {
    entry.lookup ??= this.#lookUp(name, entry).finally(() => (entry.lookup = undefined))
    return entry.lookup
  }

  async #lookUp(name: string, entry: CacheEntry): Promise<Addresses> {
    try {
      const addresses = await within(bounds.dnsLookupMsMax, this.#resolve(name))
      if (addresses === undefined) throw new Error('its host name was not resolved in time')
      if (addresses.length === 0) throw new Error('its host name does not resolve')
      entry.addresses = addresses
      entry.resolvedMs = this.#nowMs()
      return addresses
    } catch (fault) {
      entry.retryMs = this.#nowMs() + bounds.dnsRetryMsMin
      const { code } = fault as { code?: unknown }
      throw typeof code === 'string' ? new Error(`its host name does not resolve: ${code}`) : fault
    }
  }
}

/** The result of the lookup, or the cached addresses if the lookup fails or takes too long. */
async function lookupOrCached(lookup: Promise<Addresses>, { addresses }: CacheEntry): Promise<Addresses> {
  try {
    return (await within(bounds.dnsRefreshMsMax, lookup)) ?? addresses
  } catch {
    return addresses
  }
}

/** Undefined if the work takes longer than `ms`. The work itself continues. */
async function within<T>(ms: number, work: Promise<T>): Promise<T | undefined> {
  const late = Promise.withResolvers<undefined>()
  const timer = setTimeout(() => late.resolve(undefined), ms)
  try {
    return await Promise.race([work, late.promise])
  } finally {
    clearTimeout(timer)
  }
}

async function lookUp(name: string): Promise<Addresses> {
  return (await lookup(name, { all: true })).map(({ address }) => address)
}
