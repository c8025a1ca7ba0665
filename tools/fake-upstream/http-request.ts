// Reads HTTP/1.1 requests from bytes: a bounded head, then a body by Content-Length or in chunks.
//
// The fake upstream has its own HTTP because its answers must be able to break HTTP, which no server library allows.

import { assert } from '../../src/base/assert.ts'
import type { ByteQueue } from './byte-queue.ts'
import { emptyBody } from './request.ts'

export const headBytesMax = 64 * 1024
/** The default bound of a server. */
export const bodyBytesMaxDefault = 64 * 1024 * 1024
const chunkLineBytesMax = 1024

assert(chunkLineBytesMax < headBytesMax, 'a line is smaller than a head')

export interface RequestHead {
  readonly method: string
  readonly path: string
  readonly headers: ReadonlyMap<string, string>
  readonly rawHead: string
  readonly keepAlive: boolean
  readonly expectsContinue: boolean
}

/** A request that no script can answer, because its end is not known. */
export class UnreadableRequest extends Error {
  readonly status: number

  constructor(status: number, message: string) {
    super(message)
    this.status = status
  }
}

/** Undefined if the client disconnected between two requests. */
export async function readRequestHead(input: ByteQueue): Promise<RequestHead | undefined> {
  const bytes = await input.takeThrough('\r\n\r\n', headBytesMax)
  if (bytes === 'too_long') throw new UnreadableRequest(431, 'the request head is too large')
  return bytes && parseHead(bytes.toString('latin1').slice(0, -4))
}

function parseHead(rawHead: string): RequestHead {
  const [requestLine = '', ...lines] = rawHead.split('\r\n')
  const match = /^([A-Z]+) (\S+) HTTP\/1\.([01])$/.exec(requestLine)
  if (!match) throw new UnreadableRequest(400, 'the request line is malformed')
  const headers = new Map<string, string>()
  for (const line of lines) {
    const colon = line.indexOf(':')
    if (colon < 1) throw new UnreadableRequest(400, 'a header line is malformed')
    const name = line.slice(0, colon).toLowerCase()
    const value = line.slice(colon + 1).trim()
    const before = headers.get(name)
    headers.set(name, before === undefined ? value : `${before}, ${value}`)
  }
  const connection = headers.get('connection')?.toLowerCase() ?? ''
  return {
    method: match[1]!,
    path: match[2]!,
    headers,
    rawHead,
    keepAlive: match[3] === '1' ? !connection.includes('close') : connection.includes('keep-alive'),
    expectsContinue: headers.get('expect')?.toLowerCase() === '100-continue',
  }
}

/** Undefined if the client disconnected before the end of the body. */
export async function readRequestBody(
  head: RequestHead,
  input: ByteQueue,
  bodyBytesMax: number,
): Promise<Uint8Array | undefined> {
  if (head.headers.get('transfer-encoding')?.toLowerCase() === 'chunked') return readChunkedBody(input, bodyBytesMax)
  const declared = head.headers.get('content-length')
  if (declared === undefined) return emptyBody
  if (!/^\d{1,15}$/.test(declared)) throw new UnreadableRequest(400, 'Content-Length is malformed')
  if (Number(declared) > bodyBytesMax) throw tooLarge()
  return input.take(Number(declared))
}

const tooLarge = () => new UnreadableRequest(413, 'the request body is too large')

async function readChunkedBody(input: ByteQueue, bodyBytesMax: number): Promise<Uint8Array | undefined> {
  const pieces: Uint8Array[] = []
  let length = 0
  for (;;) {
    const line = await readLine(input)
    if (line === undefined) return undefined
    const size = /^([0-9a-f]{1,8})\s*(?:;.*)?$/i.exec(line)
    if (!size) throw new UnreadableRequest(400, 'a chunk size is malformed')
    const count = Number.parseInt(size[1]!, 16)
    if (count === 0) return (await skipTrailers(input)) ? Buffer.concat(pieces) : undefined
    length += count
    if (length > bodyBytesMax) throw tooLarge()
    const piece = await input.take(count + 2)
    if (!piece) return undefined
    if (piece.toString('latin1', count) !== '\r\n') throw new UnreadableRequest(400, 'a chunk does not end in CRLF')
    pieces.push(piece.subarray(0, count))
  }
}

async function readLine(input: ByteQueue): Promise<string | undefined> {
  const bytes = await input.takeThrough('\r\n', chunkLineBytesMax)
  if (bytes === 'too_long') throw new UnreadableRequest(400, 'a chunk line is too long')
  return bytes?.toString('latin1').slice(0, -2)
}

async function skipTrailers(input: ByteQueue): Promise<boolean> {
  for (;;) {
    const line = await readLine(input)
    if (line === undefined) return false
    if (line === '') return true
  }
}
