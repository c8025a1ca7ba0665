// Cuts a byte stream into server-sent events without changing a byte. Knows line ends, comments and fields; knows
// nothing of what the events mean.

import { beyondBound } from '../base/errors.ts'

const [LF, CR] = [0x0a, 0x0d]
const NOTHING: Buffer = Buffer.alloc(0)

const ONE_END = Buffer.from('\n')
/** Behind a CR the first of them is the LF that belongs to it. */
const TWO_ENDS = Buffer.from('\n\n')

/** One event with the blank line that ends it, exactly as it came. */
export type SseFrame = Buffer

/** What was left at the end of the bytes. */
export interface LastFrame {
  readonly frame: SseFrame
  /** Its blank line came. Else it was added here, and the event may have been cut. */
  readonly isEnded: boolean
}

/**
 * Takes chunks as they come and gives whole frames; what is left of a chunk waits for the next, and no byte of it is
 * looked at twice, so that an event in a million crumbs costs what it costs in one piece. A frame beyond
 * `frameBytesMax` is a fault of the sender.
 */
export class SseSplitter {
  readonly #frameBytesMax: number
  /** Holds the unfinished frame in its first `#used` bytes. */
  #buffer: Buffer = NOTHING
  #used = 0
  /** Where its last line begins, and up to where that line is known to go on. */
  #line = 0
  #seen = 0

  constructor(frameBytesMax: number) {
    this.#frameBytesMax = frameBytesMax
  }

  /** What the unfinished frame takes of memory. */
  get heldBytes(): number {
    return this.#buffer.length
  }

  push(chunk: Uint8Array): SseFrame[] {
    const waits = this.#seen < this.#used // for the LF after a CR
    const hasCr = waits || chunk.indexOf(CR) >= 0
    const bytes = this.#append(chunk)
    const frames: SseFrame[] = []
    let start = 0
    let [line, from] = [this.#line, this.#seen]
    let cr = hasCr ? bytes.indexOf(CR, from) : -1
    for (;;) {
      if (cr >= 0 && cr < from) cr = bytes.indexOf(CR, from)
      const end = cr < 0 ? bytes.indexOf(LF, from) : lineEnd(bytes, from, cr)
      from = end < 0 ? bytes.length : end
      const after = end < 0 ? -1 : afterLineEnd(bytes, end, line)
      if (after < 0) break
      if (end === line) {
        this.#checkSize(after - start)
        // Mostly one event is one chunk, and a view costs more than finding its end did.
        frames.push(start === 0 && after === bytes.length ? bytes : bytes.subarray(start, after))
        start = after
      }
      line = from = after
    }
    this.#keep(bytes, start)
    this.#line = line - start
    this.#seen = from - start
    return frames
  }

  /**
   * At the end of the bytes: what is left, once. Servers forget the blank line behind their last event, so what has
   * data is given with the line ends that it lacks; whether that is a whole event, or one that was cut, only a reader
   * of its data can tell. A frame that only waited for the LF after its CR is given as it came.
   */
  end(): LastFrame | undefined {
    const [used, line, seen] = [this.#used, this.#line, this.#seen]
    const rest = this.#buffer.subarray(0, used)
    this.#buffer = NOTHING
    this.#used = this.#line = this.#seen = 0
    if (used === 0) return undefined
    if (seen < used && seen === line) return { frame: rest, isEnded: true }
    return { frame: Buffer.concat([rest, rest[used - 1] === LF ? ONE_END : TWO_ENDS]), isEnded: false }
  }

  /** The unfinished frame with the chunk behind it. The memory grows by doubling: crumbs are not copied again. */
  #append(chunk: Uint8Array): Buffer {
    if (this.#used === 0) return Buffer.from(chunk)
    const length = this.#used + chunk.byteLength
    if (length > this.#buffer.length) {
      const grown = Buffer.alloc(length * 2)
      this.#buffer.copy(grown, 0, 0, this.#used)
      this.#buffer = grown
    }
    this.#buffer.set(chunk, this.#used)
    return this.#buffer.subarray(0, length)
  }

  /** Frames that were given out are views: what is left moves away from them before more is written behind it. */
  #keep(bytes: Buffer, start: number): void {
    const left = bytes.length - start
    this.#checkSize(left)
    if (left === 0) this.#buffer = NOTHING
    else if (start > 0) this.#buffer = Buffer.from(bytes.subarray(start))
    else if (this.#used === 0) this.#buffer = bytes
    this.#used = left
  }

  #checkSize(bytes: number): void {
    if (bytes <= this.#frameBytesMax) return
    throw beyondBound(`One event of it has more than ${this.#frameBytesMax} bytes.`)
  }
}

/** The next LF, or the CR that is known to be the next one, whichever comes first. */
function lineEnd(bytes: Buffer, from: number, cr: number): number {
  const lf = bytes.subarray(from, cr).indexOf(LF)
  return lf < 0 ? cr : from + lf
}

/**
 * Past the LF, CR or CRLF at `end`; -1 for a CR that ends the bytes and may still be followed by its LF. A blank line
 * behind a bare CR does not wait for that: its sender ends lines with CR, and the next byte may be long in coming.
 */
function afterLineEnd(bytes: Buffer, end: number, line: number): number {
  if (bytes[end] === LF) return end + 1
  if (end + 1 < bytes.length) return bytes[end + 1] === LF ? end + 2 : end + 1
  return end === line && end > 0 && bytes[end - 1] === CR ? end + 1 : -1
}

const BOM = '\ufeff'

const DATA = Buffer.from('data: ')

/**
 * The data of an event, its lines joined, or undefined for one without data: a comment, a ping, a blank line, or the
 * empty `data:` that some servers send to keep a connection alive.
 */
export function frameData(frame: SseFrame): string | undefined {
  // The usual frame: one line `data: …` and a blank line.
  const last = frame.length - 2
  if (frame.indexOf(LF) === last && frame.indexOf(DATA) === 0 && !frame.includes(CR)) {
    return nonBlank(frame.toString('utf8', DATA.length, last))
  }
  const text = frame.toString('utf8')
  const data: string[] = []
  // A byte order mark may stand before the first line of a stream, and nowhere else.
  for (const line of (text.startsWith(BOM) ? text.slice(1) : text).split(/\r\n|\n|\r/)) {
    if (line === 'data') data.push('')
    else if (line.startsWith('data:')) data.push(line.startsWith('data: ') ? line.slice(6) : line.slice(5))
  }
  return nonBlank(data.join('\n'))
}

/** Whether an event without data has fields for it all the same. */
export const hasBlankData = (frame: SseFrame): boolean => /^data[:\r\n]/m.test(frame.toString('latin1'))

const nonBlank = (data: string): string | undefined => (/\S/.test(data) ? data : undefined)
