// Reads a request body within limits of size and time. The size is checked against Content-Length
// first, and again while reading, because the header may be wrong or absent.

import { bounds } from '../../base/bounds.ts'
import type { Deadlines } from '../../base/deadlines.ts'
import { Refusal } from '../../base/errors.ts'
import { hintOf } from '../../base/hints.ts'
import { viewOf } from '../client/http-client.ts'
import type { BodyLease } from './body-budget.ts'
import type { BodyDecoder } from './body-decoder.ts'
import { tooLarge } from './body-decoder.ts'
import type { Encoding } from './encodings.ts'
import { isEncoding } from './encodings.ts'
import type { Arrival } from './server.ts'

export interface BodyBounds {
  readonly bytesMax: number
  readonly msMax: number
}

export const defaultBodyBounds: BodyBounds = { bytesMax: bounds.bodyBytesMax, msMax: bounds.bodyMsMax }

/** The types of bodies, and the Content-Type that each must have. */
const types = {
  json: /^application\/json[ \t]*(;|$)/i,
  multipart: /^multipart\/form-data[ \t]*;/i,
} as const

export type BodyType = keyof typeof types

export interface BodyReadOptions {
  readonly limits: BodyBounds
  /** The number of reads that are always allowed, however small they are; see `readsMax`. */
  readonly readsMin: number
  readonly deadlines: Deadlines
  readonly type: BodyType
  /** Counts the received bytes. The code that opened the lease releases it. */
  readonly lease: BodyLease
  /** Undefined if the body must not be compressed. */
  readonly decoder: Pick<BodyDecoder, 'decode'> | undefined
}

export async function readBody(arrival: Arrival, reading: BodyReadOptions): Promise<Buffer> {
  const { headers } = arrival
  const { limits, deadlines, type, lease, decoder } = reading
  const contentType = headers['content-type']
  if (contentType === undefined || !types[type].test(contentType)) {
    const hint = hintOf('content_type', { type: type === 'json' ? 'application/json' : 'multipart/form-data' })
    throw new Refusal('content_type_unsupported', contentType === undefined ? 'none' : 'another', { hint })
  }
  const encoding = encodingOf(headers['content-encoding'], decoder !== undefined)
  const announced = headers['content-length']
  if (announced !== undefined && Number(announced) > limits.bytesMax) throw tooLarge(announced, limits.bytesMax)
  const { promise, resolve, reject } = Promise.withResolvers<Uint8Array>()
  lease.onDrop(reject)
  const deadline = deadlines.after(limits.msMax, () => reject(new Refusal('body_too_slow', `${limits.msMax} ms`)))
  try {
    readAll(arrival, reading, promise).then(resolve, reject)
  } catch (fault) {
    reject(fault) // the body was dropped
  }
  let bytes: Uint8Array
  try {
    bytes = await promise
  } finally {
    deadline.cancel()
  }
  if (encoding === undefined) return viewOf(bytes)
  const decoded = await decoder!.decode({
    encoding,
    bytes,
    owner: lease.owner.name,
    bytesMax: limits.bytesMax,
    throwIfGone: () => arrival.request.signal.throwIfAborted(),
  })
  lease.addBytes(decoded.length)
  return viewOf(decoded)
}

function encodingOf(header: string | undefined, isAllowed: boolean): Encoding | undefined {
  const name = (header ?? 'identity').trim().toLowerCase()
  if (name === 'identity') return undefined
  if (isAllowed && isEncoding(name)) return name
  if (isAllowed) throw new Refusal('encoding_unsupported', 'content-encoding')
  throw new Refusal('encoding_refused', 'content-encoding')
}

/** The number of reads that are allowed for a body of which `bytes` have arrived. */
export const readsMax = (readsMin: number, bytes: number): number =>
  readsMin + Math.floor(bytes / bounds.bodyReadBytesMin)

/** Also closes the connection: else the runtime would continue to parse the rest of the body. */
const inPieces = (reads: number, bytes: number): Refusal =>
  new Refusal('body_in_pieces', `${bytes} bytes in ${reads} reads`, {
    headers: { connection: 'close' },
    hint: hintOf('body_pieces', { min: bounds.bodyReadBytesMin }),
  })

/** `result` rejects when the body is not needed any more; then reading stops. */
function readAll(
  { request, headers }: Arrival,
  reading: BodyReadOptions,
  result: Promise<unknown>,
): Promise<Uint8Array> {
  const announced = headers['content-length']
  const length = announced === undefined ? Number.NaN : Number(announced)
  if (!(length <= bounds.smallBodyBytesMax)) return readLarge(request, length, reading, result)
  reading.lease.addBytes(length) // the runtime never returns more than Content-Length
  return request.bytes()
}

async function readLarge(
  request: Request,
  length: number,
  { limits, lease, readsMin }: BodyReadOptions,
  result: Promise<unknown>,
): Promise<Uint8Array> {
  if (request.body === null) return new Uint8Array()
  const isAnnounced = !Number.isNaN(length)
  const pieces = isAnnounced ? new AnnouncedPieces(length) : new Pieces()
  const bytesMax = isAnnounced ? length : limits.bytesMax
  return await readPieces(request.body.getReader(), { bytesMax, readsMin, lease, result, pieces })
}

interface PieceReading {
  readonly bytesMax: number
  readonly readsMin: number
  readonly lease: BodyLease
  readonly result: Promise<unknown>
  readonly pieces: Pieces
}

/** A smaller piece is copied into a block, because an array of its own would take more memory than its bytes. */
const KEPT_PIECE_BYTES = 4 * 1024
/** The approximate memory of an array besides its bytes. */
const ARRAY_BYTES = 128
/** The size of blocks for small pieces: as large as all bytes so far, within these limits. */
const BLOCK_BYTES_MIN = 1_024
const BLOCK_BYTES_MAX = 64 * 1024

/** The pieces of a body that have arrived. */
class Pieces {
  #list: Uint8Array[] = []
  #block = new Uint8Array(0)
  /** The start and end of the part of the block that is not in the list yet. */
  #from = 0
  #to = 0
  length = 0

  /** Returns the additional memory that the piece takes, in bytes. */
  add(piece: Uint8Array): number {
    const memory = piece.length < KEPT_PIECE_BYTES ? this.#copy(piece) : this.#keep(piece)
    this.length += piece.length
    return memory
  }

  whole(): Uint8Array {
    return Buffer.concat(this.#all(), this.length)
  }

  /** Copies all pieces to the start of an array, and drops them. */
  protected moveTo(target: Uint8Array): void {
    let at = 0
    for (const piece of this.#all()) {
      target.set(piece, at)
      at += piece.length
    }
    this.#list = []
    this.#block = new Uint8Array(0)
    this.#from = this.#to = 0
  }

  #keep(piece: Uint8Array): number {
    const parts = this.#all()
    parts.push(piece)
    return piece.length + 2 * ARRAY_BYTES
  }

  #copy(piece: Uint8Array): number {
    const fits = Math.min(piece.length, this.#block.length - this.#to)
    this.#block.set(piece.subarray(0, fits), this.#to)
    this.#to += fits
    if (fits === piece.length) return 0
    const rest = piece.subarray(fits)
    this.#all()
    const size = Math.min(Math.max(BLOCK_BYTES_MIN, this.length), BLOCK_BYTES_MAX)
    this.#block = new Uint8Array(Math.max(size, rest.length))
    this.#block.set(rest)
    this.#from = 0
    this.#to = rest.length
    return this.#block.length + 2 * ARRAY_BYTES
  }

  /** The list, including the end of the current block. */
  #all(): Uint8Array[] {
    if (this.#to > this.#from) this.#list.push(this.#block.subarray(this.#from, this.#to))
    this.#from = this.#to
    return this.#list
  }
}

/** The memory for Content-Length is allocated only after this share has arrived: the header alone reserves nothing. */
const ARRIVED_SHARE = 1 / 4

/**
 * The pieces of a body with Content-Length. Once enough has arrived, pieces are copied directly to their final place.
 */
class AnnouncedPieces extends Pieces {
  readonly #announced: number
  #whole: Uint8Array | undefined

  constructor(announced: number) {
    super()
    this.#announced = announced
  }

  override add(piece: Uint8Array): number {
    if (this.#whole !== undefined) {
      this.#whole.set(piece, this.length)
      this.length += piece.length
      return piece.length
    }
    const memory = super.add(piece)
    if (this.length >= this.#announced * ARRIVED_SHARE) {
      const whole = new Uint8Array(this.#announced)
      this.moveTo(whole)
      this.#whole = whole
    }
    return memory
  }

  override whole(): Uint8Array {
    return this.#whole?.subarray(0, this.length) ?? super.whole()
  }
}

type Reader = Pick<ReadableStreamDefaultReader<Uint8Array>, 'read' | 'cancel'>

async function readPieces(reader: Reader, reading: PieceReading): Promise<Uint8Array> {
  const { bytesMax, readsMin, lease, result, pieces } = reading
  const cancel = (): void => void reader.cancel().catch(() => {})
  result.catch(cancel)
  for (let reads = 1; ; reads++) {
    const { done, value } = await reader.read()
    if (done) return pieces.whole()
    const bytes = pieces.length + value.byteLength
    if (bytes > bytesMax) throw tooLarge(`more than ${bytesMax} bytes`, bytesMax)
    if (reads > readsMax(readsMin, bytes)) throw inPieces(reads, bytes)
    lease.addBytes(pieces.add(value))
    // The runtime joins bytes that arrive meanwhile, so that they need only one read.
    if (reads > readsMin && reads % bounds.bodyReadsAtOnceMax === 0) await new Promise(setImmediate)
  }
}
