// Sends one request to an upstream and hands back its head and its bytes as they come.
//
// No redirects, no cookies, no decompression (we ask for identity, and an answer that is encoded all the same is
// the upstream's fault), no headers but the ones given and those that HTTP needs. Nothing is ever sent twice: that is
// for the next attempt to decide.

import { saidCharsMax } from './connection.ts'
import { Targets } from './destinations.ts'
import type { ClientOptions, Incoming, OutgoingRequest, Send } from './request.ts'
import { Answer } from './response.ts'

/** What can be asked of upstreams, and the connections that wait for the next call. */
export interface Client {
  readonly send: Send
  /** Lets go of every connection that nobody uses. */
  close(): void
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
