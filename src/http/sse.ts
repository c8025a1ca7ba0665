// Cuts a byte stream into server-sent events without changing a byte. Knows line ends, comments and fields; knows
// nothing of what the events mean.

import { Refusal } from '../base/errors.ts'
import { viewOf } from './outgoing.ts'

const [LF, CR] = [0x0a, 0x0d]
const LF_BYTE = Buffer.from([LF])

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
    const view = viewOf(chunk)
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

  /** At the end of the bytes: the last frame, if all it still waited for was the LF after its CR. */
  end(): SseFrame | undefined {
    const rest = this.#rest
    this.#rest = Buffer.alloc(0)
    return rest.at(-1) === CR && frameEnd(Buffer.concat([rest, LF_BYTE]), 0) === rest.length + 1 ? rest : undefined
  }
}

/** The index after the first blank line, or -1. Lines end with LF, CR or CRLF; a CR that ends the bytes must wait. */
function frameEnd(bytes: Buffer, start: number): number {
  for (let at = start; ; ) {
    const lineEnd = nextLineEnd(bytes, at)
    if (lineEnd < 0) return -1
    const after = skipLineEnd(bytes, lineEnd)
    if (after < 0 || lineEnd === at) return after
    at = after
  }
}

function nextLineEnd(bytes: Buffer, from: number): number {
  const lf = bytes.indexOf(LF, from)
  const cr = bytes.indexOf(CR, from)
  return cr < 0 || (lf >= 0 && lf < cr) ? lf : cr
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
