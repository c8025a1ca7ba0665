// Splits a byte stream into server-sent events without changing a byte. It knows line ends, comments and fields, but
// not the meaning of events.

import { answerTooLarge } from '../base/answer-too-large.ts'

const [LF, CR] = [0x0a, 0x0d]
const NOTHING: Buffer = Buffer.alloc(0)

const ONE_END = Buffer.from('\n')
/** After a CR, the first LF completes the CRLF. */
const TWO_ENDS = Buffer.from('\n\n')

/** One event including its final blank line, with unchanged bytes. */
export type SseFrame = Buffer

/** The rest at the end of the stream. */
export interface LastFrame {
  readonly frame: SseFrame
  /** The final blank line arrived. If not, it was added here, and the event may be incomplete. */
  readonly isEnded: boolean
}

/**
 * Takes chunks as they arrive and returns complete frames. The rest of a chunk is held for the next one. No byte is
 * scanned twice, so that an event in a million small chunks costs as much as in one. A frame larger than
 * `frameBytesMax` is an error.
 */
export class SseSplitter {
  readonly #frameBytesMax: number
  /** The first `#used` bytes are the unfinished frame. */
  #buffer: Buffer = NOTHING
  #used = 0
  /** The start of its last line, and the position up to which that line was scanned. */
  #line = 0
  #scanned = 0

  constructor(frameBytesMax: number) {
    this.#frameBytesMax = frameBytesMax
  }

  /** The memory of the unfinished frame. */
  get bufferedBytes(): number {
    return this.#buffer.length
  }

  /** Returned frames are views of the chunk, which must not be changed any more. */
  push(chunk: Uint8Array): SseFrame[] {
    const endsInCr = this.#scanned < this.#used // an LF may follow
    const hasCr = endsInCr || chunk.indexOf(CR) >= 0
    const bytes = this.#append(chunk)
    const frames: SseFrame[] = []
    let start = 0
    let [line, from] = [this.#line, this.#scanned]
    let cr = hasCr ? bytes.indexOf(CR, from) : -1
    for (;;) {
      if (cr >= 0 && cr < from) cr = bytes.indexOf(CR, from)
      const end = cr < 0 ? bytes.indexOf(LF, from) : lineEnd(bytes, from, cr)
      from = end < 0 ? bytes.length : end
      const after = end < 0 ? -1 : afterLineEnd(bytes, end, line)
      if (after < 0) break
      if (end === line) {
        this.#checkSize(after - start)
        // Most chunks are exactly one event. Then no view is created, which would cost more than the scan.
        frames.push(start === 0 && after === bytes.length ? bytes : bytes.subarray(start, after))
        start = after
      }
      line = from = after
    }
    this.#holdRest(bytes, start)
    this.#line = line - start
    this.#scanned = from - start
    return frames
  }

  /**
   * Returns the rest at the end of the stream, once. Some servers omit the blank line after their last event, so the
   * missing line ends are added. Only the reader of the data can tell whether such an event is complete. A frame that
   * only waited for an LF after its CR is returned unchanged.
   */
  end(): LastFrame | undefined {
    const [used, line, scanned] = [this.#used, this.#line, this.#scanned]
    const rest = this.#buffer.subarray(0, used)
    this.#buffer = NOTHING
    this.#used = this.#line = this.#scanned = 0
    if (used === 0) return undefined
    if (scanned < used && scanned === line) return { frame: rest, isEnded: true }
    return { frame: Buffer.concat([rest, rest[used - 1] === LF ? ONE_END : TWO_ENDS]), isEnded: false }
  }

  /** Appends the chunk to the unfinished frame. The buffer doubles, so that small chunks are not copied repeatedly. */
  #append(chunk: Uint8Array): Buffer {
    if (this.#used === 0) return Buffer.isBuffer(chunk) ? chunk : Buffer.from(chunk)
    const length = this.#used + chunk.byteLength
    if (length > this.#buffer.length) {
      const grown = Buffer.alloc(length * 2)
      this.#buffer.copy(grown, 0, 0, this.#used)
      this.#buffer = grown
    }
    this.#buffer.set(chunk, this.#used)
    return this.#buffer.subarray(0, length)
  }

  /** Returned frames are views of the buffer, so the rest is copied to a new buffer before it grows. */
  #holdRest(bytes: Buffer, start: number): void {
    const left = bytes.length - start
    this.#checkSize(left)
    if (left === 0) this.#buffer = NOTHING
    else if (start > 0) this.#buffer = Buffer.from(bytes.subarray(start))
    else if (this.#used === 0) this.#buffer = bytes
    this.#used = left
  }

  #checkSize(bytes: number): void {
    if (bytes <= this.#frameBytesMax) return
    throw answerTooLarge(`One event has more than ${this.#frameBytesMax} bytes.`)
  }
}

/** The position of the next LF or of the next CR, whichever comes first. `cr` is the position of the next CR. */
function lineEnd(bytes: Buffer, from: number, cr: number): number {
  const lf = bytes.subarray(from, cr).indexOf(LF)
  return lf < 0 ? cr : from + lf
}

/**
 * The position after the LF, CR or CRLF at `end`; -1 for a CR at the end of the bytes, which an LF may follow. A blank
 * line after a bare CR does not wait for an LF: its sender ends lines with CR, and the next byte may take long.
 */
function afterLineEnd(bytes: Buffer, end: number, line: number): number {
  if (bytes[end] === LF) return end + 1
  if (end + 1 < bytes.length) return bytes[end + 1] === LF ? end + 2 : end + 1
  return end === line && end > 0 && bytes[end - 1] === CR ? end + 1 : -1
}

const BOM = '\ufeff'

const DATA = Buffer.from('data: ')

/**
 * The data of an event with its lines joined; undefined for an event without data: a comment, a ping, a blank line, or
 * the empty `data:` that some servers send to keep a connection alive.
 */
export function frameData(frame: SseFrame): string | undefined {
  // The fast path for the usual frame: one line `data: …` and a blank line.
  const last = frame.length - 2
  if (frame.indexOf(LF) === last && frame.indexOf(DATA) === 0 && !frame.includes(CR)) {
    return nonBlank(frame.toString('utf8', DATA.length, last))
  }
  const text = frame.toString('utf8')
  const data: string[] = []
  // A byte order mark is allowed only before the first line of a stream.
  for (const line of (text.startsWith(BOM) ? text.slice(1) : text).split(/\r\n|\n|\r/)) {
    if (line === 'data') data.push('')
    else if (line.startsWith('data:')) data.push(line.startsWith('data: ') ? line.slice(6) : line.slice(5))
  }
  return nonBlank(data.join('\n'))
}

/** Whether an event without data has an empty `data` field. */
export const hasBlankData = (frame: SseFrame): boolean => /^data[:\r\n]/m.test(frame.toString('latin1'))

const nonBlank = (data: string): string | undefined => (/\S/.test(data) ? data : undefined)
