// Sends one request to an upstream and hands back its head and its bytes as they come.
//
// No redirects, no cookies, no decompression (we ask for identity, and an answer that is encoded all the same is
// the upstream's fault), no headers but the ones given and those that HTTP needs. Nothing is ever sent twice: that is
// for the next attempt to decide.

import type { Stop } from '../base/stop.ts'
import { Answer } from './answer.ts'
import { saidCharsMax } from './connection.ts'
import type { DoorOptions } from './door.ts'
import type { Road } from './road.ts'
import { Targets } from './targets.ts'

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

export type Room = (bytes: number) => Promise<void> | undefined

export interface Incoming {
  readonly status: number
  header(name: string): string | null
  /** Whether these words, in lower case, stand anywhere in its head. */
  mentions(words: string): boolean
  /** The next bytes; none at the end. Rejects when the connection breaks or is given up. */
  read(): Promise<Piece>
  /**
   * Everything, or undefined when there is more than that. `room` is told how much has come, and may ask to wait
   * before more does.
   */
  readWhole(bytesMax: number, room?: Room): Promise<Buffer | undefined>
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

export interface ClientOptions extends DoorOptions {
  /** Trusted instead of the authorities that everybody trusts. */
  readonly ca?: string
  /** How long a connection waits for its next call, at least; it may wait some seconds longer. */
  readonly idleSeconds?: number
}

export function openClient(options: ClientOptions = {}): Client {
  const targets = new Targets(options)
  return {
    send(request, stop) {
      const { headers, body, onSend } = request
      try {
        stop.throwIfStopped()
        const target = targets.of(request)
        const words = writeHead(target.start, headers, body.length)
        const answer = new Answer(target, onSend)
        stop.onStop(() => answer.discard())
        const asked = answer.ask(words, body)
        return target.isForwarded ? asked.then(ofUpstream) : asked
      } catch (fault) {
        return Promise.reject(fault)
      }
    },
    close: () => targets.close(),
  }
}

/** Where no tunnel is, a proxy answers in the upstream's place; this status is always its own. */
function ofUpstream(incoming: Incoming): Incoming {
  if (incoming.status !== 407) return incoming
  incoming.discard()
  throw new Error('the proxy wants another name and password (407)')
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
