// Meters frames without parsing them. Most events of a stream equal the one before but for one text. Such a frame is
// recognised by its bytes around that text; anything else is left to the parser of the dialect.

import type { SseFrame } from '../../http/sse.ts'
import type { FrameReading } from '../../protocols/neutral/call.ts'
import { estimateTextBytes } from '../../protocols/usage/text-bytes.ts'

const [LF, CR, BLANK, QUOTE, COLON, BACKSLASH] = [0x0a, 0x0d, 0x20, 0x22, 0x3a, 0x5c]

/** Larger frames are rare, and parsed. */
const FRAME_BYTES_MAX = 4_096

/** After so many frames in a row without a pattern, the stream is taken to have none. */
const ATTEMPTS_MAX = 16

/** Two texts with different estimates. */
const probes = ['probe', 'another probe: 江'].map(text => ({ text, bytes: estimateTextBytes(text) }))

interface Pattern {
  /** The bytes of a frame up to the opening quote of its text, and from the closing quote on. */
  readonly before: Buffer
  readonly after: Buffer
  /** The text is reasoning that the model shows. */
  readonly isThought: boolean
  readonly serviceClass: string | undefined
}

export class RepeatedFrames {
  readonly #read: (frame: SseFrame) => FrameReading
  #pattern: Pattern | undefined
  #previous: Buffer | undefined
  #attemptsLeft = ATTEMPTS_MAX
  /** The estimate of all texts that the last call of `match` has found. */
  #bytes = 0

  /** `read` is the parser of the dialect. Its result must depend on the frame alone. */
  constructor(read: (frame: SseFrame) => FrameReading) {
    this.#read = read
  }

  /** How many bytes at the start of a piece are whole frames of the pattern. A frame must begin there. */
  match(piece: Buffer): number {
    this.#bytes = 0
    if (this.#pattern === undefined) return 0
    let from = 0
    for (let end = this.#endOf(this.#pattern, piece, 0); end > 0; end = this.#endOf(this.#pattern, piece, end))
      from = end
    if (from > 0) this.#attemptsLeft = ATTEMPTS_MAX
    return from
  }

  /** What the parser would have read from the frames of the last `match`, taken together. */
  get reading(): FrameReading {
    const { isThought, serviceClass } = this.#pattern!
    const outputBytes = this.#bytes
    const thoughtBytes = isThought ? outputBytes : 0
    return { kind: 'content', outputBytes, thoughtBytes, finishes: 0, serviceClass }
  }

  /** Looks for a pattern in a frame that was parsed, and the one that was parsed before. */
  learn(frame: SseFrame, reading: FrameReading): void {
    if (this.#attemptsLeft === 0) return
    const previous = this.#previous
    const isUsable = isText(reading) && frame.length <= FRAME_BYTES_MAX && frame.at(-1) === LF && !frame.includes(CR)
    this.#previous = isUsable ? Buffer.from(frame) : undefined // a copy, because a frame is a view of a larger buffer
    if (previous === undefined || this.#previous === undefined) return
    this.#attemptsLeft--
    this.#pattern = this.#findPattern(previous, this.#previous, reading) ?? this.#pattern
  }

  /** The end of the frame that begins here; -1 if it does not follow the pattern, or is not whole. */
  #endOf({ before, after }: Pattern, piece: Buffer, from: number): number {
    const start = from + before.length
    const endMax = Math.min(piece.length, from + FRAME_BYTES_MAX) - after.length
    if (start >= endMax || piece.compare(before, 0, before.length, from, start) !== 0) return -1
    let quote = start
    for (let byte = piece[quote]!; byte !== QUOTE; byte = piece[++quote]!) {
      if (byte < BLANK || byte === BACKSLASH || quote >= endMax) return -1
    }
    const end = quote + after.length
    if (quote === start || piece.compare(after, 0, after.length, quote, end) !== 0) return -1
    this.#bytes += estimateTextBytes(piece.toString('utf8', start, quote))
    return end
  }

  /** Other texts at the same place must change nothing that the parser reads but the size of the output. */
  #findPattern(previous: Buffer, frame: Buffer, { serviceClass }: FrameReading): Pattern | undefined {
    const span = findText(previous, frame)
    if (span === undefined) return undefined
    const [before, after] = [frame.subarray(0, span.start), frame.subarray(span.end)]
    const readings = probes.map(({ text }) => this.#read(Buffer.concat([before, Buffer.from(text), after])))
    const isThought = (readings[0]!.thoughtBytes ?? 0) > 0
    const isMetered = readings.every((reading, index) => {
      const { bytes } = probes[index]!
      if (!isText(reading) || reading.outputBytes !== bytes || reading.serviceClass !== serviceClass) return false
      return (reading.thoughtBytes ?? 0) === (isThought ? bytes : 0)
    })
    return isMetered ? { before, after, isThought, serviceClass } : undefined
  }
}

/** Whether the frame has text, and nothing else that is metered. */
const isText = (reading: FrameReading): boolean =>
  reading.kind === 'content' &&
  reading.finishes === 0 &&
  !reading.badEnd &&
  reading.usage === undefined &&
  reading.failed === undefined &&
  reading.uses === undefined &&
  reading.queries === undefined &&
  reading.machines === undefined &&
  reading.items === undefined &&
  !reading.pictureBytes &&
  !reading.soundBytes

interface TextSpan {
  readonly start: number
  readonly end: number
}

/** Where the only text of a frame lies that differs from the frame before. Undefined if that is not a single text. */
function findText(previous: Buffer, frame: Buffer): TextSpan | undefined {
  const lengthMax = Math.min(previous.length, frame.length)
  let same = 0
  while (same < lengthMax && previous[same] === frame[same]) same++
  let sameAtEnd = 0
  while (sameAtEnd < lengthMax - same && previous.at(-1 - sameAtEnd) === frame.at(-1 - sameAtEnd)) sameAtEnd++
  const start = frame.lastIndexOf(QUOTE, same - 1) + 1
  const end = frame.indexOf(QUOTE, frame.length - sameAtEnd)
  if (same === 0 || start === 0 || end <= start || frame.subarray(start, end).includes(QUOTE)) return undefined
  return isValue(frame, start - 1) ? { start, end } : undefined
}

/** Whether the quote opens the value of a field. */
const isValue = (frame: Buffer, quote: number): boolean =>
  frame[quote - 1] === COLON || (frame[quote - 1] === BLANK && frame[quote - 2] === COLON)
