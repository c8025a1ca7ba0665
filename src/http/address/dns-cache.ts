// A cache of DNS lookups. Concurrent requests for one name share a lookup. An answer is used for a while, and longer if
// new lookups fail. The cache does not decide whether an address may be connected to; guard.ts does.
//
// A lookup counts as under way until it has really ended, which can be long after its caller has stopped waiting. Their
// number is limited in all and per account, so that names which never resolve cannot pile up.

import { bounds } from '../../base/bounds.ts'
import { AccountShares } from '../../base/collections/account-shares.ts'
import type { Addresses, ResolveName } from './name-lookup.ts'

export interface DnsCacheParts {
  readonly resolve: ResolveName
  nowMs(): number
  /** How long a lookup is awaited. */
  readonly msMax?: number
}

interface CacheEntry {
  /** The last successful answer; empty before the first one. */
  addresses: Addresses
  resolvedMs: number
  /** After a failed lookup there is no other one before this time, while the last answer is still usable. */
  retryMs: number
  /** The lookup under way. It stays here until it has really ended, even if it has failed for being late. */
  lookup: Promise<Addresses> | undefined
}

export class DnsCache {
  readonly #resolve: ResolveName
  readonly #nowMs: () => number
  readonly #msMax: number
  readonly #entries = new Map<string, CacheEntry>()
  readonly #ofAccounts = new AccountShares({ total: bounds.dnsLookupsMax, perAccount: bounds.dnsLookupsOfAccountMax })
  #underWay = 0

  constructor({ resolve, nowMs, msMax = bounds.dnsLookupMsMax }: DnsCacheParts) {
    this.#resolve = resolve
    this.#nowMs = nowMs
    this.#msMax = msMax
  }

  /**
   * Returns a cached answer directly. Rejects if the name cannot be resolved, or if too many lookups are under way: in
   * all, or of the account that chose the name. The caller sets its own time limit.
   */
  addressesOf(name: string, accountId?: number): Addresses | Promise<Addresses> {
    const entry = this.#entries.get(name) ?? this.#add(name)
    const nowMs = this.#nowMs()
    const ageMs = nowMs - entry.resolvedMs
    if (ageMs < bounds.dnsFreshMsMax) return entry.addresses
    const isUsable = ageMs < bounds.dnsStaleMsMax
    if (isUsable && nowMs < entry.retryMs) return entry.addresses
    entry.lookup ??= this.#start(name, entry, accountId)
    if (isUsable) return entry.lookup === undefined ? entry.addresses : lookupOrCached(entry.lookup, entry)
    return entry.lookup ?? Promise.reject(new Error('its host name does not resolve: too many names are looked up'))
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

  #start(name: string, entry: CacheEntry, accountId: number | undefined): Promise<Addresses> | undefined {
    if (!this.#take(accountId)) return undefined
    const work = this.#resolve(name)
    const end = (addresses: Addresses): void => {
      // A late answer is stored as well, for whoever needs the name next.
      if (addresses.length > 0) Object.assign(entry, { addresses, resolvedMs: this.#nowMs() })
      entry.lookup = undefined
      this.#release(accountId)
    }
    work.then(end, () => end([]))
    return this.#finish(work, entry)
  }

  #take(accountId: number | undefined): boolean {
    if (this.#underWay >= bounds.dnsLookupsMax) return false
    if (accountId !== undefined && !this.#ofAccounts.take(accountId)) return false
    this.#underWay++
    return true
  }

  #release(accountId: number | undefined): void {
    this.#underWay--
    if (accountId !== undefined) this.#ofAccounts.release(accountId)
  }

  async #finish(work: Promise<Addresses>, entry: CacheEntry): Promise<Addresses> {
    try {
      const addresses = await within(this.#msMax, work)
      if (addresses === undefined) throw new Error('its host name was not resolved in time')
      if (addresses.length === 0) throw new Error('its host name does not resolve')
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
