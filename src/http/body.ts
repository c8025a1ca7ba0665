// Reads a request body within bounds of size and time, decoded. The size is checked by the announced length first
// and then while reading, so that neither a lie nor a missing length helps.

import zlib from 'node:zlib'
import { bounds } from '../base/bounds.ts'
import type { Deadlines } from '../base/deadlines.ts'
import { Refusal } from '../base/errors.ts'
import { viewOf } from './outgoing.ts'
import type { Arrival } from './server.ts'

type Decode = (bytes: Uint8Array, options: { maxOutputLength: number }, done: Done) => void
type Done = (fault: Error | null, bytes: Uint8Array) => void

const decoders: Readonly<Record<string, Decode>> = {
  gzip: zlib.gunzip as Decode,
  deflate: zlib.inflate as Decode,
  br: zlib.brotliDecompress as Decode,
  zstd: zlib.zstdDecompress as Decode,
}

export interface BodyBounds {
  readonly bytesMax: number
  readonly msMax: number
}

export const defaultBodyBounds: BodyBounds = { bytesMax: bounds.bodyBytesMax, msMax: bounds.bodyMsMax }

/** What a request may hold, and the type that it must say. */
const types = {
  json: /^application\/json[ \t]*(;|$)/i,
  multipart: /^multipart\/form-data[ \t]*;/i,
} as const

export type BodyType = keyof typeof types

export interface BodyReading {
  readonly limits: BodyBounds
  readonly deadlines: Deadlines
  readonly type: BodyType
}

export async function readBody(arrival: Arrival, { limits, deadlines, type }: BodyReading): Promise<Buffer> {
  const { request, headers } = arrival
  const said = headers['content-type']
  if (said === undefined || !types[type].test(said)) {
    const hint = `It must be sent as ${type === 'json' ? 'application/json' : 'multipart/form-data'}.`
    throw new Refusal('content_type_unsupported', said === undefined ? 'none' : 'another', { hint })
  }
  const encoding = (headers['content-encoding'] ?? 'identity').trim().toLowerCase()
  const decode = Object.hasOwn(decoders, encoding) ? decoders[encoding] : undefined
  if (encoding !== 'identity' && decode === undefined) throw new Refusal('encoding_unsupported', 'content-encoding')
  const announced = headers['content-length']
  if (announced !== undefined && Number(announced) > limits.bytesMax) throw new Refusal('body_too_large', announced)
  const late = (): Refusal => new Refusal('body_too_slow', `${limits.msMax} ms`)
  const bytes = await deadlines.within(limits.msMax, readAll(request, announced, limits.bytesMax), late)
  return viewOf(decode === undefined ? bytes : await decodeBounded(decode, bytes, limits.bytesMax))
}

async function readAll(request: Request, announced: string | undefined, bytesMax: number): Promise<Uint8Array> {
  // With a length announced and allowed, the server has already bounded what it will hand over.
  if (announced !== undefined) return await request.bytes()
  return request.body === null ? new Uint8Array() : await readCounting(request.body, bytesMax)
}

async function readCounting(body: ReadableStream<Uint8Array>, bytesMax: number): Promise<Uint8Array> {
  const chunks: Uint8Array[] = []
  let length = 0
  const reader = body.getReader()
  for (;;) {
    const { done, value } = await reader.read()
    if (done) return Buffer.concat(chunks, length)
    length += value.byteLength
    if (length > bytesMax) {
      void reader.cancel().catch(() => {})
      throw new Refusal('body_too_large', `more than ${bytesMax} bytes`)
    }
    chunks.push(value)
  }
}

function decodeBounded(decode: Decode, bytes: Uint8Array, bytesMax: number): Promise<Uint8Array> {
  return new Promise((resolve, reject) => {
    decode(bytes, { maxOutputLength: bytesMax }, (fault, decoded) => {
      if (fault === null || fault === undefined) return resolve(decoded)
      const tooLarge = (fault as { code?: string }).code === 'ERR_BUFFER_TOO_LARGE'
      reject(new Refusal(tooLarge ? 'body_too_large' : 'encoding_invalid', 'while decoding'))
    })
  })
}
