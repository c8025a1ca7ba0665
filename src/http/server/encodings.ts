// Decompresses bytes up to a size.

import zlib from 'node:zlib'
import { bounds } from '../../base/bounds.ts'

interface DecodeOptions {
  readonly maxOutputLength: number
  readonly chunkSize: number
}
type Done = (fault: Error | null, bytes: Uint8Array) => void
type Decode = (bytes: Uint8Array, options: DecodeOptions, done: Done) => void
type DecodeSync = (bytes: Uint8Array, options: DecodeOptions) => Uint8Array

/** The first of each runs on threads of the runtime, the second on the calling thread. */
const decoders = {
  gzip: [zlib.gunzip as Decode, zlib.gunzipSync as DecodeSync],
  deflate: [zlib.inflate as Decode, zlib.inflateSync as DecodeSync],
  br: [zlib.brotliDecompress as Decode, zlib.brotliDecompressSync as DecodeSync],
  zstd: [zlib.zstdDecompress as Decode, zlib.zstdDecompressSync as DecodeSync],
} as const

export type Encoding = keyof typeof decoders

export const isEncoding = (name: string): name is Encoding => Object.hasOwn(decoders, name)

export type DecodeFailure = 'too_large' | 'invalid'

/** On threads of the runtime. */
export function decode(encoding: Encoding, bytes: Uint8Array, decodedMax: number): Promise<Uint8Array | DecodeFailure> {
  return new Promise(resolve => {
    decoders[encoding][0](bytes, optionsFor(bytes, decodedMax), (fault, decoded) =>
      resolve(fault === null || fault === undefined ? withoutSlack(decoded) : failureOf(fault)),
    )
  })
}

/** On the calling thread. */
export function decodeAtOnce(encoding: Encoding, bytes: Uint8Array, decodedMax: number): Uint8Array | DecodeFailure {
  try {
    return withoutSlack(decoders[encoding][1](bytes, optionsFor(bytes, decodedMax)))
  } catch (fault) {
    return failureOf(fault as Error)
  }
}

const failureOf = (fault: Error): DecodeFailure =>
  (fault as { code?: string }).code === 'ERR_BUFFER_TOO_LARGE' ? 'too_large' : 'invalid'

/** If a buffer is filled to its last byte, zlib allocates another one. */
const SPARE_BYTES = 1_024

/**
 * The buffers are mostly as large as the result can become. Each buffer is passed to the thread that serves calls, and
 * joining two thousand of them there takes forty milliseconds.
 */
function optionsFor(bytes: Uint8Array, decodedMax: number): DecodeOptions {
  const likely = Math.max(bounds.smallBodyBytesMax, bytes.length * bounds.decodedRatioMax)
  return { maxOutputLength: decodedMax, chunkSize: Math.min(decodedMax, likely) + SPARE_BYTES }
}

/** Copies a small result out of a large buffer, so that the buffer does not stay in memory. */
const withoutSlack = (bytes: Uint8Array): Uint8Array =>
  bytes.length * 2 < bytes.buffer.byteLength ? new Uint8Array(bytes) : bytes
