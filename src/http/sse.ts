// Cuts a byte stream into server-sent events without changing a byte. Knows line ends, comments and fields; knows
// nothing of what the events mean.

import { Refusal } from '../base/errors.ts'

const [LF, CR] = [0x0a, 0x0d]
const LF_BYTE = Buffer.from([LF])
const NOTHING: Buffer = Buffer.alloc(0)

/** One event with the blank line that ends it, exactly as it came. */
export type SseFrame = Buffer

/**
 * Takes chunks as they come and gives whole frames; what is left of a chunk waits for the next.
 * A frame beyond `frameBytesMax` is a fault of the sender.
 */
export class SseSplitter {
  readonly #frameBytesMax: number
  #rest: Buffer = NOTHING

  constructor(frameBytesMax: number) {
    this.#frameBytesMax = frameBytesMax
  }

  push(chunk: Uint8Array): SseFrame[] {
    // A copy of a few hundred bytes costs less than asking the runtime for the memory behind a chunk.
    const bytes = this.#rest.length === 0 ? Buffer.from(chunk) : Buffer.concat([this.#rest, chunk])
    // Hardly any stream has a CR; then a blank line is two LFs and nothing need be compared.
    const endOf = bytes.includes(CR) ? frameEnd : frameEndByLf
    const frames: SseFrame[] = []
    let start = 0
    for (let end = endOf(bytes, 0); end > 0; end = endOf(bytes, start)) {
      this.#checkSize(end - start)
      frames.push(bytes.subarray(start, end))
      start = end
    }
    this.#rest = start === bytes.length ? NOTHING : bytes.subarray(start)
    this.#checkSize(this.#rest.length)
    return frames
  }

  /** At the end of the bytes: the last frame, if all it still waited for was the LF after its CR. */
  end(): SseFrame | undefined {
    const rest = this.#rest
    this.#rest = NOTHING
    return rest.at(-1) === CR && frameEnd(Buffer.concat([rest, LF_BYTE]), 0) === rest.length + 1 ? rest : undefined
  }

  #checkSize(bytes: number): void {
    if (bytes <= this.#frameBytesMax) return
    throw new Refusal('upstream_failed', `an event of more than ${this.#frameBytesMax} bytes`)
  }
}

function frameEndByLf(bytes: Buffer, start: number): number {
  for (let at = start; ; ) {
    const lf = bytes.indexOf(LF, at)
    if (lf < 0 || lf === at) return lf + 1
    at = lf + 1
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
