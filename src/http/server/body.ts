// Reads a request body within bounds of size and time, decoded. The size is checked by the announced length first
// and then while reading, so that neither a lie nor a missing length helps.

import zlib from 'node:zlib'
import { bounds } from '../../base/bounds.ts'
import { FairTurns } from '../../base/collections/fair-queue.ts'
import type { Deadlines } from '../../base/deadlines.ts'
import { Refusal } from '../../base/errors.ts'
import { viewOf } from '../client/send-request.ts'
import type { BodyLease } from './body-budget.ts'
import type { Arrival } from './server.ts'

type Decode = (bytes: Uint8Array, options: DecodeOptions, done: Done) => void
type DecodeOptions = { readonly maxOutputLength: number; readonly chunkSize: number }
type Done = (fault: Error | null, bytes: Uint8Array) => void

/** These run on the runtime's own threads, beside the one that serves calls. */
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

/** Whose turn it is to have a body decoded. */
export const openDecodings = (): FairTurns => new FairTurns(bounds.decodingsMax, bounds.decodingsOfAccountMax)

export interface BodyReading {
  readonly limits: BodyBounds
  /** How often it may be read, however little each read brings; see `readsMax`. */
  readonly readsMin: number
  readonly deadlines: Deadlines
  readonly type: BodyType
  /** Holds what has arrived. Whoever opened it leaves it. */
  readonly lease: BodyLease
  /** Undefined where a body must come as it is. */
  readonly decodings: FairTurns | undefined
}

export async function readBody(arrival: Arrival, reading: BodyReading): Promise<Buffer> {
  const { headers } = arrival
  const { limits, deadlines, type, lease, decodings } = reading
  const said = headers['content-type']
  if (said === undefined || !types[type].test(said)) {
    const hint = `It must be sent as ${type === 'json' ? 'application/json' : 'multipart/form-data'}.`
    throw new Refusal('content_type_unsupported', said === undefined ? 'none' : 'another', { hint })
  }
  const decode = decoderOf(headers['content-encoding'], decodings !== undefined)
  const announced = headers['content-length']
  if (announced !== undefined && Number(announced) > limits.bytesMax) throw tooLarge(announced, limits.bytesMax)
  const late = (): Refusal => new Refusal('body_too_slow', `${limits.msMax} ms`)
  const { promise, resolve, reject } = Promise.withResolvers<Uint8Array>()
  lease.onGivenUp(reject)
  const deadline = deadlines.after(limits.msMax, () => reject(late()))
  readAll(arrival, reading, promise).then(resolve, reject)
  const bytes = await promise.finally(() => deadline.lift())
  if (decode === undefined) return viewOf(bytes)
  const turn = decodings!.take(lease.owner.name, {
    throwIfUnwanted: () => arrival.request.signal.throwIfAborted(),
    run: () => decodeBounded(decode, bytes, limits.bytesMax),
  })
  const decoded = await deadlines.within(bounds.bodyTurnMsMax, turn, () => new Refusal('overloaded', 'decoding'))
  lease.hold(decoded.length)
  return viewOf(decoded)
}

function decoderOf(encoding: string | undefined, isAllowed: boolean): Decode | undefined {
  const name = (encoding ?? 'identity').trim().toLowerCase()
  if (name === 'identity') return undefined
  const decode = Object.hasOwn(decoders, name) ? decoders[name] : undefined
  if (decode !== undefined && isAllowed) return decode
  if (isAllowed) throw new Refusal('encoding_unsupported', 'content-encoding')
  throw new Refusal('encoding_refused', 'content-encoding')
}

const tooLarge = (detail: string, bytesMax: number): Refusal =>
  new Refusal('body_too_large', detail, { hint: `It may have ${bytesMax} bytes here, decoded.` })

/** How many reads a body may have taken when so many bytes have come. */
export const readsMax = (readsMin: number, bytes: number): number =>
  readsMin + Math.floor(bytes / bounds.bodyReadBytesMin)

/** The connection is closed with it: the runtime would go on to take apart whatever else is sent. */
const inPieces = (reads: number, bytes: number): Refusal =>
  new Refusal('body_in_pieces', `${bytes} bytes in ${reads} reads`, {
    headers: { connection: 'close' },
    hint: `After the first pieces, each must have ${bounds.bodyReadBytesMin} bytes on average.`,
  })

/** `given` rejects when it is no longer wanted. */
async function readAll({ request, headers }: Arrival, reading: BodyReading, given: Promise<unknown>) {
  const { limits, lease, readsMin } = reading
  const announced = headers['content-length']
  const length = announced === undefined ? Number.NaN : Number(announced)
  if (length <= bounds.smallBodyBytesMax) {
    // The server hands over no more than was announced.
    lease.hold(length)
    return await request.bytes()
  }
  if (request.body === null) return new Uint8Array()
  const isAnnounced = !Number.isNaN(length)
  const filling = isAnnounced ? new Filling(length) : new Pieces()
  const bytesMax = isAnnounced ? length : limits.bytesMax
  return await readCounting(request.body.getReader(), { bytesMax, readsMin, lease, given, filling })
}

interface Counting {
  readonly bytesMax: number
  readonly readsMin: number
  readonly lease: BodyLease
  readonly given: Promise<unknown>
  readonly filling: Pieces
}

/** A piece below this size is copied: an array of its own costs more than what a small one holds. */
const KEPT_PIECE_BYTES = 4 * 1024
/** What an array costs beside its bytes, about. */
const ARRAY_BYTES = 128
/** Blocks that small pieces are copied into: as large as what has come so far, within these. */
const BLOCK_BYTES_MIN = 1_024
const BLOCK_BYTES_MAX = 64 * 1024

/** What has arrived, piece by piece. */
class Pieces {
  #list: Uint8Array[] = []
  #block = new Uint8Array(0)
  /** Where the part of the block begins that is not in the list yet, and where it ends. */
  #from = 0
  #to = 0
  length = 0

  /** Returns how many bytes of memory it takes, beside what earlier pieces have taken. */
  add(piece: Uint8Array): number {
    const taken = piece.length < KEPT_PIECE_BYTES ? this.#copy(piece) : this.#keep(piece)
    this.length += piece.length
    return taken
  }

  whole(): Uint8Array {
    return Buffer.concat(this.#all(), this.length)
  }

  /** Writes all of it to the start of an array, and forgets it. */
  protected moveTo(room: Uint8Array): void {
    let at = 0
    for (const piece of this.#all()) {
      room.set(piece, at)
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

  /** The list, with what was copied last. */
  #all(): Uint8Array[] {
    if (this.#to > this.#from) this.#list.push(this.#block.subarray(this.#from, this.#to))
    this.#from = this.#to
    return this.#list
  }
}

/** A length that is only announced reserves nothing. */
const ARRIVED_SHARE = 1 / 4

/** The same of a length that was announced: once enough has come, each piece is put where it belongs as it comes. */
class Filling extends Pieces {
  readonly #announced: number
  #room: Uint8Array | undefined

  constructor(announced: number) {
    super()
    this.#announced = announced
  }

  override add(piece: Uint8Array): number {
    if (this.#room !== undefined) {
      this.#room.set(piece, this.length)
      this.length += piece.length
      return piece.length
    }
    const taken = super.add(piece)
    if (this.length >= this.#announced * ARRIVED_SHARE) {
      const room = new Uint8Array(this.#announced)
      this.moveTo(room)
      this.#room = room
    }
    return taken
  }

  override whole(): Uint8Array {
    return this.#room?.subarray(0, this.length) ?? super.whole()
  }
}

type Reader = Pick<ReadableStreamDefaultReader<Uint8Array>, 'read' | 'cancel'>

async function readCounting(reader: Reader, counting: Counting): Promise<Uint8Array> {
  const { bytesMax, readsMin, lease, given, filling } = counting
  const cancel = (): void => void reader.cancel().catch(() => {})
  given.catch(cancel)
  for (let reads = 1; ; reads++) {
    const { done, value } = await reader.read()
    if (done) return filling.whole()
    const bytes = filling.length + value.byteLength
    if (bytes > bytesMax) throw tooLarge(`more than ${bytesMax} bytes`, bytesMax)
    if (reads > readsMax(readsMin, bytes)) throw inPieces(reads, bytes)
    lease.hold(filling.add(value))
    // What comes meanwhile is put together by the runtime, and is one read.
    if (reads > readsMin && reads % bounds.bodyReadsAtOnceMax === 0) await new Promise(setImmediate)
  }
}

/**
 * A text that compresses to less than a hundredth is no request that anybody wrote: prompts come to a tenth, and
 * whoever sends a hundred bytes to have us unpack and read 32 MiB pays nothing for it.
 */
export const decodedBytesMax = (encodedBytes: number, bytesMax: number): number =>
  Math.min(bytesMax, Math.max(bounds.decodedBytesMin, encodedBytes * bounds.decodedRatioMax))

/**
 * As large as the whole can become, mostly: each piece that is decoded comes back to the thread that serves calls, and
 * two thousand of them, put together there, take it forty milliseconds.
 */
const pieceBytes = (encodedBytes: number, most: number): number =>
  Math.min(most, Math.max(bounds.smallBodyBytesMax, encodedBytes * bounds.decodedRatioMax)) + SPARE_BYTES

/** A piece that is filled to its last byte would ask for another. */
const SPARE_BYTES = 1_024

function decodeBounded(decode: Decode, bytes: Uint8Array, bytesMax: number): Promise<Uint8Array> {
  const most = decodedBytesMax(bytes.length, bytesMax)
  const options = { maxOutputLength: most, chunkSize: pieceBytes(bytes.length, most) }
  return new Promise((resolve, reject) => {
    decode(bytes, options, (fault, decoded) => {
      if (fault === null || fault === undefined) return resolve(ofItsOwn(decoded))
      const isTooLarge = (fault as { code?: string }).code === 'ERR_BUFFER_TOO_LARGE'
      reject(isTooLarge ? tooLarge('while decoding', most) : new Refusal('encoding_invalid', 'while decoding'))
    })
  })
}

/** A small part of a large piece must not keep the whole of it in memory. */
const ofItsOwn = (bytes: Uint8Array): Uint8Array =>
  bytes.length * 2 < bytes.buffer.byteLength ? new Uint8Array(bytes) : bytes
