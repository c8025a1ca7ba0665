// Decodes a chunked body (RFC 9112). Strict: every deviation from the standard is an error.

import { bounds } from '../../base/bounds.ts'

const [TAB, LF, CR, BLANK, SEMICOLON, DELETE] = [0x09, 0x0a, 0x0d, 0x20, 0x3b, 0x7f]

/** Hex digits of a chunk size, so that sizes stay below 2^52. */
const DIGITS_MAX = 13

type State =
  | 'size'
  | 'after size'
  | 'extension'
  | 'LF after size'
  | 'data'
  | 'CR after data'
  | 'LF after data'
  | 'trailer'
  | 'within trailer'
  | 'LF after trailer'
  | 'last LF'
  | 'end'
  | 'fault'

export class ChunkedBody {
  #state: State = 'size'
  /** The bytes that are left of the current chunk; while its size is read, the size so far. */
  #left = 0
  #digits = 0
  /** Bytes that are not data: the size line of one chunk, or all trailers. */
  #overhead = 0
  /** The end of this body in the bytes of the last take(). */
  consumed = 0

  get isComplete(): boolean {
    return this.#state === 'end'
  }

  get isBroken(): boolean {
    return this.#state === 'fault'
  }

  /**
   * Returns the data in these bytes, in one piece and without a new buffer: several chunks are moved together inside
   * the given buffer, which the caller must not use any more.
   */
  take(bytes: Buffer, from: number): Buffer | undefined {
    let at = from
    let start = -1
    let end = -1
    while (at < bytes.length && this.#state !== 'end' && this.#state !== 'fault') {
      if (this.#state !== 'data') {
        this.#state = this.#next(bytes[at++]!)
        continue
      }
      const until = Math.min(at + this.#left, bytes.length)
      if (start < 0) start = end = at
      if (end !== at) bytes.copyWithin(end, at, until)
      end += until - at
      this.#left -= until - at
      at = until
      if (this.#left === 0) this.#state = 'CR after data'
    }
    this.consumed = at
    return start < 0 ? undefined : bytes.subarray(start, end)
  }

  #next(byte: number): State {
    switch (this.#state) {
      case 'size':
        return this.#digits === 0 ? this.#digit(byte) : this.#digitOrEnd(byte)
      case 'after size':
        return byte === BLANK || byte === TAB ? this.#count('after size') : endOfSize(byte)
      case 'extension':
        return byte === CR ? 'LF after size' : isText(byte) ? this.#count('extension') : 'fault'
      case 'LF after size':
        return byte === LF ? this.#begin() : 'fault'
      case 'CR after data':
        return byte === CR ? 'LF after data' : 'fault'
      case 'LF after data':
        return byte === LF ? 'size' : 'fault'
      case 'trailer':
        return byte === CR ? 'last LF' : isText(byte) ? this.#count('within trailer') : 'fault'
      case 'within trailer':
        return byte === CR ? 'LF after trailer' : isText(byte) ? this.#count('within trailer') : 'fault'
      case 'LF after trailer':
        return byte === LF ? 'trailer' : 'fault'
      case 'last LF':
        return byte === LF ? 'end' : 'fault'
      default:
        return 'fault'
    }
  }

  #digit(byte: number): State {
    const value = hexValue(byte)
    if (value < 0 || this.#digits === DIGITS_MAX) return 'fault'
    this.#digits++
    this.#left = this.#left * 16 + value
    return 'size'
  }

  #digitOrEnd(byte: number): State {
    if (hexValue(byte) >= 0) return this.#digit(byte)
    return byte === BLANK || byte === TAB ? this.#count('after size') : endOfSize(byte)
  }

  #begin(): State {
    this.#digits = 0
    this.#overhead = 0
    return this.#left === 0 ? 'trailer' : 'data'
  }

  #count(state: State): State {
    return ++this.#overhead > bounds.chunkOverheadBytesMax ? 'fault' : state
  }
}

const endOfSize = (byte: number): State => (byte === CR ? 'LF after size' : byte === SEMICOLON ? 'extension' : 'fault')

const isText = (byte: number): boolean => (byte >= BLANK && byte !== DELETE) || byte === TAB

function hexValue(byte: number): number {
  if (byte >= 0x30 && byte <= 0x39) return byte - 0x30
  const lower = byte | 0x20
  return lower >= 0x61 && lower <= 0x66 ? lower - 0x57 : -1
}
