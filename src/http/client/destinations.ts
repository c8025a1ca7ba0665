// The addresses that requests go to, each taken apart and judged once: whether its road allows it, how it is reached,
// and the connections to it.

import { assert } from '../../base/assert.ts'
import { bounds } from '../../base/bounds.ts'
import { Door } from '../address/guard.ts'
import { hostOf, portOf } from '../address/operator-address.ts'
import { ConnectionPool } from './connection-pool.ts'
import type { Place } from './dial.ts'
import type { Road } from './network-path.ts'
import { Proxy } from './proxy.ts'
import type { ClientOptions, OutgoingRequest } from './request.ts'
import type { Line } from './response.ts'

/** An address as far as it is the same for every request to it. */
export interface Target extends Line {
  /** The request's first lines. */
  readonly start: string
  /** By a proxy that reads the request itself. */
  readonly isForwarded: boolean
}

/** For what belongs to no channel: it holds no key. */
const strangersRoad: Road = { origin: '', permitted: false }

export class Targets {
  readonly #options: ClientOptions
  readonly #door: Door
  readonly #kept = new WeakMap<Road, Map<string, Target>>()
  readonly #pools = new Map<string, ConnectionPool>()

  constructor(options: ClientOptions) {
    this.#options = options
    this.#door = new Door(options)
  }

  /** Where calls go there are few addresses; what else is asked for has the name of one thing in its own. */
  of({ url, method, road = strangersRoad }: OutgoingRequest): Target {
    if (method !== undefined) return this.#read(url, method, road)
    let kept = this.#kept.get(road)
    if (kept === undefined) this.#kept.set(road, (kept = new Map()))
    let target = kept.get(url)
    if (target === undefined) {
      target = this.#read(url, 'POST', road)
      if (kept.size >= bounds.targetsKeptMax) kept.clear()
      kept.set(url, target)
    }
    return target
  }

  close(): void {
    for (const pool of this.#pools.values()) pool.close()
  }

  #read(text: string, method: string, road: Road): Target {
    const url = new URL(text)
    const tls = url.protocol === 'https:'
    assert(tls || url.protocol === 'http:', 'an upstream is spoken to over HTTP')
    assert(url.username === '' && url.password === '', 'an address holds no credentials')
    // What signed the request may only be seen by whom it was given for.
    if (road !== strangersRoad && url.origin !== road.origin) throw new Error('a key goes to no host but its own')
    if (!tls && !road.permitted && !this.#door.lists(hostOf(url))) throw new Error('only private hosts go without TLS')
    const proxy = road.proxy && Proxy.read(road.proxy)
    const isForwarded = proxy !== undefined && !tls
    return {
      pool: this.#poolOf(url, road, proxy),
      times: { connectMs: road.connectMs ?? bounds.connectMsMax, tlsMs: road.tlsMs ?? bounds.tlsMsMax },
      start: isForwarded ? proxy.forwardedStart(method, url) : startOf(method, url),
      isForwarded,
    }
  }

  /** Who may reach what another may not, or goes by another proxy, uses none of the other's connections. */
  #poolOf(url: URL, road: Road, proxy: Proxy | undefined): ConnectionPool {
    const name = `${url.origin} ${road.permitted} ${proxy?.digest}`
    let pool = this.#pools.get(name)
    if (pool === undefined) {
      pool = new ConnectionPool(this.#placeOf(url, road, proxy), this.#idleSeconds)
      this.#pools.set(name, pool)
    }
    return pool
  }

  get #idleSeconds(): number {
    return this.#options.idleSeconds ?? bounds.idleConnectionSecondsMax
  }

  /** A proxy is the operator's own, and knows where hosts are that we cannot look up. */
  #placeOf(url: URL, { permitted }: Road, proxy: Proxy | undefined): Place {
    const [host, port, tls] = [hostOf(url), portOf(url), url.protocol === 'https:']
    const common = { host, port, tls, ca: this.#options.ca, givenUp: { count: 0 } }
    if (proxy === undefined) return { ...common, find: () => this.#door.addressesOf(host, permitted) }
    const authority = `${url.hostname}:${port}`
    return {
      ...common,
      find: () => this.#door.addressesOf(proxy.host, true),
      proxy: { port: proxy.port, ...(tls && { tunnelWords: () => proxy.tunnelWords(authority) }) },
    }
  }
}

const startOf = (method: string, { pathname, search, host }: URL): string =>
  `${method} ${pathname}${search} HTTP/1.1\r\nHost: ${host}\r\n`
