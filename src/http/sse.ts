// Cuts a byte stream into server-sent events without changing a byte. Knows line ends, comments and fields; knows
// nothing of what the events mean.

import { Refusal } from '../base/errors.ts'

const [LF, CR] = [0x0a, 0x0d]
const NOTHING: Buffer = Buffer.alloc(0)

/** One event with the blank line that ends it, exactly as it came. */
export type SseFrame = Buffer

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

  push(chunk: Uint8Array): SseFrame[] {
    const waits = this.#seen < this.#used // for the LF after a CR
    const hasCr = waits || chunk.indexOf(CR) >= 0
    const bytes = this.#append(chunk)
    const frames: SseFrame[] = []
    let start = 0
    let [line, from] = [this.#line, this.#seen]
    for (;;) {
      const end = hasCr ? lineEnd(bytes, from) : bytes.indexOf(LF, from)
      from = end < 0 ? bytes.length : end
      const after = end < 0 ? -1 : afterLineEnd(bytes, end)
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

  /** At the end of the bytes: the last frame, if all it still waited for was the LF after its CR. */
  end(): SseFrame | undefined {
    const whole = this.#seen < this.#used && this.#seen === this.#line
    return whole ? this.#buffer.subarray(0, this.#used) : undefined
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
    throw new Refusal('upstream_failed', `an event of more than ${this.#frameBytesMax} bytes`)
  }
}

/** The next LF or CR. In a stream that has CRs, one is near. */
function lineEnd(bytes: Buffer, from: number): number {
  for (let at = from; at < bytes.length; at++) if (bytes[at] === LF || bytes[at] === CR) return at
  return -1
}

/** Past the LF, CR or CRLF at `end`; -1 for a CR that ends the bytes and may still be followed by its LF. */
function afterLineEnd(bytes: Buffer, end: number): number {
  if (bytes[end] === LF) return end + 1
  if (end + 1 >= bytes.length) return -1
  return bytes[end + 1] === LF ? end + 2 : end + 1
}

const BOM = '\ufeff'

const DATA = Buffer.from('data: ')

/** The data of an event, its lines joined, or undefined for one without data (a comment, a ping, a blank line). */
export function frameData(frame: SseFrame): string | undefined {
  // The usual frame: one line `data: …` and a blank line.
  const last = frame.length - 2
  if (frame.indexOf(LF) === last && frame.indexOf(DATA) === 0 && !frame.includes(CR)) {
    return frame.toString('utf8', DATA.length, last)
  }
  const data: string[] = []
  for (const line of frame.toString('utf8').split(/\r\n|\n|\r/)) {
    const text = line.startsWith(BOM) ? line.slice(1) : line
    if (text === 'data') data.push('')
    else if (text.startsWith('data:')) data.push(text.startsWith('data: ') ? text.slice(6) : text.slice(5))
  }
  return data.length === 0 ? undefined : data.join('\n')
}
