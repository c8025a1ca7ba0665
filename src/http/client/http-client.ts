// Sends one request to an upstream, and returns the head and the bytes of the response as they arrive.
//
// The client follows no redirects, keeps no cookies and does not decompress: it asks for identity, and a compressed
// response is an error of the upstream. It adds only the headers that HTTP needs. It never sends a request twice; a
// retry is the next attempt's decision.

import { headCharsMax } from './connection.ts'
import { Destinations } from './destinations.ts'
import type { ClientOptions, IncomingResponse, OutgoingRequest, SendRequest } from './request.ts'
import { UpstreamResponse } from './response.ts'

/** Sends requests to upstreams, and keeps idle connections. */
export interface HttpClient {
  readonly send: SendRequest
  /** Closes all idle connections. */
  close(): void
}

export function openHttpClient(options: ClientOptions = {}): HttpClient {
  const destinations = new Destinations(options)
  return {
    send(request, stop) {
      const { headers, body, onSend } = request
      try {
        stop.throwIfStopped()
        const destination = destinations.of(request)
        const head = writeHead(destination.start, headers, body.length)
        const response = new UpstreamResponse(destination, onSend)
        stop.onStop(() => response.discard())
        const incoming = response.send(head, body)
        return destination.isForwarded ? incoming.then(refuseProxyError) : incoming
      } catch (fault) {
        return Promise.reject(fault)
      }
    },
    close: () => destinations.close(),
  }
}

/** Without a tunnel, a proxy may answer instead of the upstream; 407 always comes from the proxy. */
function refuseProxyError(incoming: IncomingResponse): IncomingResponse {
  if (incoming.status !== 407) return incoming
  incoming.discard()
  throw new Error('the proxy refuses the user name and password (407)')
}

const NAME = /^[\w!#$%&'*+\-.^`|~]+$/
const VALUE = /^[\t\x20-\x7e\x80-\xff]*$/
const RESERVED = /^(?:host|connection|content-length|transfer-encoding|expect|upgrade|te|trailer)$/i

/**
 * Refuses headers that could break out of their line, or change where the body ends. The error does not show the value,
 * which may be a secret.
 */
function writeHead(start: string, headers: OutgoingRequest['headers'], bodyBytes: number): string {
  let head = start
  for (const name in headers) {
    const value = headers[name]!
    if (!mayBeSent(name) || !VALUE.test(value)) throw new Error('a header that cannot be sent')
    head += `${name}: ${value}\r\n`
  }
  if (head.length > headCharsMax) throw new Error('headers that are too long to be sent')
  return `${head}Connection: keep-alive\r\nContent-Length: ${bodyBytes}\r\n\r\n`
}

/** Names that were checked before: all requests have the same few. */
const sentNames = new Set<string>()
const SENT_NAMES_MAX = 1_000

function mayBeSent(name: string): boolean {
  if (sentNames.has(name)) return true
  if (!NAME.test(name) || RESERVED.test(name)) return false
  if (sentNames.size < SENT_NAMES_MAX) sentNames.add(name)
  return true
}

/** A Buffer of the same memory; copies nothing. */
export function viewOf(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}
