// Reads a request body within bounds of size and time, decoded. The size is checked by the announced length first
// and then while reading, so that neither a lie nor a missing length helps.

import zlib from 'node:zlib'
import { bounds } from '../base/bounds.ts'
import { Refusal } from '../base/errors.ts'

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

const JSON_TYPE = /^application\/json[ \t]*(;|$)/i

export async function readJsonBody(request: Request, limits: BodyBounds): Promise<Uint8Array> {
  const type = request.headers.get('content-type')
  if (type === null || !JSON_TYPE.test(type)) {
    throw new Refusal('content_type_unsupported', type === null ? 'none' : 'another')
  }
  const encoding = (request.headers.get('content-encoding') ?? 'identity').trim().toLowerCase()
  const decode = encoding === 'identity' ? undefined : decoders[encoding]
  if (encoding !== 'identity' && decode === undefined) throw new Refusal('encoding_unsupported', 'content-encoding')
  const bytes = await readBounded(request, limits)
  return decode === undefined ? bytes : await decodeBounded(decode, bytes, limits.bytesMax)
}

async function readBounded(request: Request, limits: BodyBounds): Promise<Uint8Array> {
  const announced = request.headers.get('content-length')
  if (announced !== null && Number(announced) > limits.bytesMax) throw new Refusal('body_too_large', announced)
  if (request.body === null) return new Uint8Array()
  let timer: ReturnType<typeof setTimeout> | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Refusal('body_too_slow', `${limits.msMax} ms`)), limits.msMax)
  })
  try {
    // With a length announced and allowed, the server has already bounded what it will hand over.
    const whole = announced !== null ? request.bytes() : readCounting(request.body, limits.bytesMax)
    return await Promise.race([whole, late])
  } finally {
    clearTimeout(timer)
  }
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
