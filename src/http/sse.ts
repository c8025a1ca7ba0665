// Cuts a byte stream into server-sent events without changing a byte. Knows line ends, comments and fields; knows
// nothing of what the events mean.

import { Refusal } from '../base/errors.ts'

const [LF, CR] = [0x0a, 0x0d]

/** One event with the blank line that ends it, exactly as it came. */
export type SseFrame = Buffer

/**
 * Takes chunks as they come and gives whole frames; what is left of a chunk waits for the next.
 * A frame beyond `frameBytesMax` is a fault of the sender.
 */
export class SseSplitter {
  readonly #frameBytesMax: number
  #rest: Buffer = Buffer.alloc(0)

  constructor(frameBytesMax: number) {
    this.#frameBytesMax = frameBytesMax
  }

  push(chunk: Uint8Array): SseFrame[] {
    const view = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength)
    const bytes = this.#rest.length === 0 ? view : Buffer.concat([this.#rest, view])
    const frames: SseFrame[] = []
    let start = 0
    for (let end = frameEnd(bytes, 0); end > 0; end = frameEnd(bytes, start)) {
      frames.push(bytes.subarray(start, end))
      start = end
    }
    this.#rest = bytes.subarray(start)
    if (this.#rest.length > this.#frameBytesMax) {
      throw new Refusal('upstream_failed', `an event of more than ${this.#frameBytesMax} bytes`)
    }
    return frames
  }

  /** What came after the last blank line: an event that was never finished. */
  rest(): Buffer {
    return this.#rest
  }
}

/** The index after the first blank line, or -1. A line ends with LF, CR or CRLF; a CR that ends the bytes must wait. */
function frameEnd(bytes: Buffer, start: number): number {
  let at = start
  for (;;) {
    const lineEnd = nextLineEnd(bytes, at)
    if (lineEnd < 0) return -1
    const after = skipLineEnd(bytes, lineEnd)
    if (after < 0) return -1
    if (lineEnd === at && at > start) return after
    if (lineEnd === at && at === start) {
      // A blank line with nothing before it: keep it, as a frame of its own.
      return after
    }
    at = after
  }
}

function nextLineEnd(bytes: Buffer, from: number): number {
  const lf = bytes.indexOf(LF, from)
  // Only look for CR up to the LF: in the usual stream there is none, and LF is near.
  const end = lf < 0 ? bytes.length : lf
  for (let at = from; at < end; at++) if (bytes[at] === CR) return at
  return lf
}

function skipLineEnd(bytes: Buffer, at: number): number {
  if (bytes[at] === LF) return at + 1
  if (at + 1 >= bytes.length) return -1 // a CR may still be followed by its LF
  return bytes[at + 1] === LF ? at + 2 : at + 1
}

const BOM = '\ufeff'

/** The data of an event, its lines joined, or undefined for one without data (a comment, a ping, a blank line). */
export function frameData(frame: SseFrame): string | undefined {
  // The usual frame: one line `data: …` and a blank line.
  if (frame[0] === 0x64 && frame[frame.length - 2] === LF && frame.indexOf(LF) === frame.length - 2) {
    const line = frame.toString('utf8', 0, frame.length - 2)
    if (line.startsWith('data: ') && !line.includes('\r')) return line.slice(6)
  }
  const data: string[] = []
  for (const line of frame.toString('utf8').split(/\r\n|\n|\r/)) {
    const text = line.startsWith(BOM) ? line.slice(1) : line
    if (text === 'data') data.push('')
    else if (text.startsWith('data:')) data.push(text.startsWith('data: ') ? text.slice(6) : text.slice(5))
  }
  return data.length === 0 ? undefined : data.join('\n')
}
