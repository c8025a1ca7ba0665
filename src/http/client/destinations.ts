// The URLs that requests go to. Each is parsed and checked once: whether its network path allows it, how to connect,
// and which connection pool it uses.

import { assert } from '../../base/assert.ts'
import { bounds } from '../../base/bounds.ts'
import { AddressGuard } from '../address/guard.ts'
import { hostOf, portOf } from '../address/operator-address.ts'
import { ConnectionPool } from './connection-pool.ts'
import type { DialAddress } from './dialer.ts'
import type { NetworkPath } from './network-path.ts'
import { Proxy } from './proxy.ts'
import type { ClientOptions, OutgoingRequest } from './request.ts'
import type { ConnectionSource } from './response.ts'

/** A URL, and what is the same for all requests to it. */
export interface HttpDestination extends ConnectionSource {
  /** The request line and the Host header. */
  readonly start: string
  /** A proxy reads the request and forwards it, instead of opening a tunnel. */
  readonly isForwarded: boolean
}

/** For requests that belong to no channel and contain no key: public hosts only. */
const publicPath: NetworkPath = { origin: '', permitted: false }

export class Destinations {
  readonly #options: ClientOptions
  readonly #guard: AddressGuard
  readonly #cached = new WeakMap<NetworkPath, Map<string, HttpDestination>>()
  readonly #pools = new Map<string, ConnectionPool>()

  constructor(options: ClientOptions) {
    this.#options = options
    this.#guard = new AddressGuard(options)
  }

  /** Caches only the URLs of calls, which are few. Other requests have a method, and an id in their URL. */
  of({ url, method, networkPath = publicPath }: OutgoingRequest): HttpDestination {
    if (method !== undefined) return this.#parse(url, method, networkPath)
    let cached = this.#cached.get(networkPath)
    if (cached === undefined) this.#cached.set(networkPath, (cached = new Map()))
    let destination = cached.get(url)
    if (destination === undefined) {
      destination = this.#parse(url, 'POST', networkPath)
      if (cached.size >= bounds.destinationsCachedMax) cached.clear()
      cached.set(url, destination)
    }
    return destination
  }

  close(): void {
    for (const pool of this.#pools.values()) pool.close()
  }

  #parse(text: string, method: string, path: NetworkPath): HttpDestination {
    const url = new URL(text)
    const tls = url.protocol === 'https:'
    assert(tls || url.protocol === 'http:', 'the URL of an upstream is http or https')
    assert(url.username === '' && url.password === '', 'the URL of an upstream has no credentials')
    // The request contains the key of a channel, which only the channel's own origin may receive.
    if (path !== publicPath && url.origin !== path.origin)
      throw new Error('the URL is not on the origin of its channel')
    if (!tls && !path.permitted && !this.#guard.isListed(hostOf(url)))
      throw new Error('only private hosts may be called without TLS')
    const proxy = path.proxy && Proxy.read(path.proxy)
    const isForwarded = proxy !== undefined && !tls
    return {
      pool: this.#poolOf(url, path, proxy),
      times: { connectMs: path.connectMs ?? bounds.connectMsMax, tlsMs: path.tlsMs ?? bounds.tlsMsMax },
      start: isForwarded ? proxy.forwardedStart(method, url) : startOf(method, url),
      isForwarded,
    }
  }

  /** Network paths with different permissions or proxies do not share connections. */
  #poolOf(url: URL, path: NetworkPath, proxy: Proxy | undefined): ConnectionPool {
    const name = `${url.origin} ${path.permitted} ${proxy?.digest}`
    let pool = this.#pools.get(name)
    if (pool === undefined) {
      pool = new ConnectionPool(this.#dialAddressOf(url, path, proxy), this.#idleSeconds)
      this.#pools.set(name, pool)
    }
    return pool
  }

  get #idleSeconds(): number {
    return this.#options.idleSeconds ?? bounds.idleConnectionSecondsMax
  }

  /** The operator's proxy may be private. It resolves the names of hosts itself. */
  #dialAddressOf(url: URL, { permitted }: NetworkPath, proxy: Proxy | undefined): DialAddress {
    const [host, port, tls] = [hostOf(url), portOf(url), url.protocol === 'https:']
    const common = { host, port, tls, ca: this.#options.ca, abandoned: { count: 0 } }
    if (proxy === undefined) return { ...common, resolve: () => this.#guard.addressesOf(host, permitted) }
    const authority = `${url.hostname}:${port}`
    return {
      ...common,
      resolve: () => this.#guard.addressesOf(proxy.host, true),
      proxy: { port: proxy.port, ...(tls && { connectRequest: () => proxy.connectRequest(authority) }) },
    }
  }
}

const startOf = (method: string, { pathname, search, host }: URL): string =>
  `${method} ${pathname}${search} HTTP/1.1\r\nHost: ${host}\r\n`
