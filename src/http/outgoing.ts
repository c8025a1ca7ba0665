// Sends one request to an upstream and hands back its head and its bytes as they come.
//
// No redirects, no cookies, no decompression (we ask for identity, and an answer that is encoded all the same is
// the upstream's fault), no headers but the ones given and those that HTTP needs. Nothing is ever sent twice: that is
// for the next attempt to decide.

import { assert } from '../base/assert.ts'
import { bounds } from '../base/bounds.ts'
import type { Stop } from '../base/stop.ts'
import { Answer } from './answer.ts'
import { saidCharsMax } from './connection.ts'
import { ConnectionPool } from './connection-pool.ts'
import type { Road } from './road.ts'

export interface OutgoingRequest {
  /** POST if not given, as all our calls are. */
  readonly method?: 'POST' | 'GET' | 'DELETE'
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: Uint8Array
  /** That of the channel whose key is in it; without one only public hosts are reached, by https. */
  readonly road?: Road
  /** Called when its first bytes are about to leave: until then nobody has seen anything of it. */
  readonly onSend?: () => void
}

export interface Piece {
  readonly value?: Uint8Array
}

export interface Incoming {
  readonly status: number
  header(name: string): string | null
  /** The next bytes; none at the end. Rejects when the connection breaks or is given up. */
  read(): Promise<Piece>
  /** Everything, or undefined when there is more than that. */
  readWhole(bytesMax: number): Promise<Buffer | undefined>
  /** Gives up the rest and the connection with it. */
  discard(): void
}

/** A stop closes the connection at once, whatever has come of the answer. */
export type Send = (request: OutgoingRequest, stop: Stop<Error>) => Promise<Incoming>

/** What can be asked of upstreams, and the connections that wait for the next call. */
export interface Client {
  readonly send: Send
  /** Lets go of every connection that nobody uses. */
  close(): void
}

export interface ClientOptions {
  /** Trusted instead of the authorities that everybody trusts. */
  readonly ca?: string
  /** How long a connection waits for its next call, at least; it may wait some seconds longer. */
  readonly idleSeconds?: number
}

export function openClient(options: ClientOptions = {}): Client {
  const targets = new Map<string, Target>()
  const pools = new Map<string, ConnectionPool>()
  /** Where calls go there are few addresses; what else is asked for has the name of one thing in its own. */
  function targetOf({ url, method }: OutgoingRequest): Target {
    const isCall = method === undefined
    let target = isCall ? targets.get(url) : undefined
    if (target === undefined) {
      target = readTarget(url, method ?? 'POST', { pools, options })
      if (isCall) targets.set(url, target)
    }
    return target
  }
  return {
    send(request, stop) {
      const { headers, body, onSend } = request
      try {
        stop.throwIfStopped()
        const target = targetOf(request)
        const words = writeHead(target.start, headers, body.length)
        const answer = new Answer(target.pool, onSend)
        stop.onStop(() => answer.discard())
        return answer.ask(words, body)
      } catch (fault) {
        return Promise.reject(fault)
      }
    },
    close() {
      for (const pool of pools.values()) pool.close()
    },
  }
}

/** An address as far as it is the same for every request to it. */
interface Target {
  readonly pool: ConnectionPool
  /** The request's first two lines. */
  readonly start: string
}

interface TargetParts {
  readonly pools: Map<string, ConnectionPool>
  readonly options: ClientOptions
}

function readTarget(text: string, method: string, { pools, options }: TargetParts): Target {
  const url = new URL(text)
  const tls = url.protocol === 'https:'
  assert(tls || url.protocol === 'http:', 'an upstream is spoken to over HTTP')
  assert(url.username === '' && url.password === '', 'an address holds no credentials')
  let pool = pools.get(url.origin)
  if (pool === undefined) {
    const host = url.hostname.replace(/^\[(.*)\]$/, '$1')
    const place = { host, port: Number(url.port) || (tls ? 443 : 80), tls, ca: options.ca }
    pool = new ConnectionPool(place, options.idleSeconds ?? bounds.idleConnectionSecondsMax)
    pools.set(url.origin, pool)
  }
  return { pool, start: `${method} ${url.pathname}${url.search} HTTP/1.1\r\nHost: ${url.host}\r\n` }
}

const NAME = /^[\w!#$%&'*+\-.^`|~]+$/
const VALUE = /^[\t\x20-\x7e\x80-\xff]*$/
const OURS = /^(?:host|connection|content-length|transfer-encoding|expect|upgrade|te|trailer)$/i

/** Refuses what could end its line, or say twice where the body ends. Values may be secrets, so they are not told. */
function writeHead(start: string, headers: OutgoingRequest['headers'], bodyBytes: number): string {
  let head = start
  for (const name in headers) {
    const value = headers[name]!
    if (!NAME.test(name) || OURS.test(name) || !VALUE.test(value)) throw new Error('a header that cannot be sent')
    head += `${name}: ${value}\r\n`
  }
  if (head.length > saidCharsMax) throw new Error('headers that are too long to be sent')
  return `${head}Connection: keep-alive\r\nContent-Length: ${bodyBytes}\r\n\r\n`
}

/** The same bytes, not a copy of them. */
export function viewOf(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}
