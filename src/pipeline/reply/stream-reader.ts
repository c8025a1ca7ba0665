// Reads a streamed answer frame by frame and meters it as it passes. The frames' bytes are the upstream's own, or what
// they become in the caller's dialect.

import { bounds } from '../../base/bounds.ts'
import type { UpstreamWords } from '../../base/errors.ts'
import { beyondBound } from '../../base/errors.ts'
import type { Incoming, Piece } from '../../http/client/request.ts'
import type { SseFrame } from '../../http/sse.ts'
import { frameData, hasBlankData } from '../../http/sse.ts'
import type { FrameReading } from '../../protocols/neutral/call.ts'
import type { Protocol } from '../../protocols/protocol.ts'
import { boundOfAnswer } from '../../protocols/request/json-object.ts'
import type { EventSplitter } from '../../upstreams/quirks.ts'
import { streamFormat } from '../../upstreams/quirks.ts'
import type { FrameTurner } from '../attempt/translation-types.ts'
import type { Watch } from '../attempt/watchdog.ts'
import type { Exchange } from '../exchange.ts'
import type { Meter } from '../settle/usage-meter.ts'
import { noteFrame } from '../settle/usage-meter.ts'
import type { AnswerLease } from './memory-budget.ts'

export interface ReadFrame {
  readonly bytes: Buffer
  readonly reading: FrameReading
}

export interface Reading {
  /** The upstream's dialect. */
  readonly spoken: Protocol
  /** Absent where bytes pass as they come. */
  readonly turner?: FrameTurner | undefined
  readonly watch: Watch
}

/** Of one event, and of everything that is held back of one stream. */
export const eventBytesMax = ({ memory }: Exchange): number => memory?.eventBytesMax ?? bounds.frameBytesMax

export const failedWords = (failed: string): UpstreamWords => ({
  status: 502,
  message: `The upstream failed in the middle of its answer. ${failed}`,
})

/** What callers of the upstream's own dialect read in its last words, all others are told as an error. */
const failureTold = (reading: FrameReading): FrameReading =>
  reading.failed === undefined
    ? reading
    : { ...reading, kind: 'error', error: { ...reading.failure, ...failedWords(reading.failed), ...statusOf(reading) } }

const statusOf = ({ failure }: FrameReading): object => (failure === undefined ? {} : { status: failure.status })

/** What cannot be read because of a bound of ours is no fault of the upstream's. */
function checkBounds(data = ''): void {
  const bound = boundOfAnswer(data)
  if (bound !== undefined) throw beyondBound(bound)
}

export class AnswerReader {
  readonly #incoming: Incoming
  readonly #protocol: Protocol
  readonly #meter: Meter
  readonly #kept: Exchange['kept']
  readonly #names: Exchange['names']
  readonly #choices: number
  readonly #nowMs: () => number
  /** Where the caller speaks another dialect. */
  readonly #turner: FrameTurner | undefined
  readonly #translated: boolean
  readonly #splitter: EventSplitter
  readonly #watch: Watch
  readonly #memory: AnswerLease | undefined

  constructor(incoming: Incoming, exchange: Exchange, { spoken, turner, watch }: Reading) {
    this.#incoming = incoming
    this.#protocol = spoken
    this.#turner = turner
    this.#translated = exchange.translation !== undefined
    this.#splitter = streamFormat(exchange.route!.provider).open(eventBytesMax(exchange))
    this.#watch = watch
    this.#memory = exchange.memory
    this.#meter = exchange.meter
    this.#kept = exchange.kept
    this.#names = spoken === exchange.protocol ? exchange.names : undefined
    this.#choices = exchange.call?.choices ?? 1
    this.#nowMs = exchange.timings.nowMs
  }

  /** The next bytes of the answer; none at its end. What came before them was passed on. */
  next(): Promise<Piece> {
    this.#memory?.read(this.#splitter.heldBytes)
    const room = this.#memory?.room(this.#watch.stop)
    return room === undefined ? this.#incoming.read() : this.#readAfter(room)
  }

  /** The upstream is not at fault while we have no room for what it says. */
  async #readAfter(room: Promise<void>): Promise<Piece> {
    this.#watch.pause()
    await room
    this.#watch.alive()
    return await this.#incoming.read()
  }

  /**
   * The frames that these bytes complete, maybe none. At the end, an event whose blank line is missing counts if it is
   * a whole event of its dialect. Else it was cut, and the answer is as whole as it was without it.
   */
  take({ value }: Piece): readonly ReadFrame[] {
    if (value !== undefined) {
      const frames = this.#splitter.push(value)
      let bytes = this.#splitter.heldBytes
      for (const frame of frames) bytes += frame.length
      this.#memory?.read(bytes)
      return this.#meterFrames(frames)
    }
    const rest = this.#splitter.end()
    if (rest === undefined) return []
    return rest.isEnded || this.#isEvent(rest.frame) ? this.#meterFrames([rest.frame]) : []
  }

  #isEvent(frame: SseFrame): boolean {
    const { kind } = this.#protocol.readFrame(frameData(frame), this.#meter.believed)
    return kind !== 'garbage' && kind !== 'aside'
  }

  discard(): void {
    this.#incoming.discard()
  }

  /** Lets the connection go back to its pool: the end of the body is a few bytes behind the terminal event. */
  async finish(): Promise<void> {
    let bytes = 0
    try {
      for (;;) {
        const { value } = await this.#incoming.read()
        if (value === undefined) return
        bytes += value.byteLength
        if (bytes > bounds.answerTailBytesMax) return this.#incoming.discard()
      }
    } catch {
      this.#incoming.discard()
    }
  }

  /** What follows the terminal frame reaches nobody, so it is neither read nor counted. */
  #meterFrames(frames: readonly SseFrame[]): readonly ReadFrame[] {
    const read: ReadFrame[] = []
    for (const bytes of frames) {
      const data = frameData(bytes)
      if (data === undefined && hasBlankData(bytes)) continue // an SDK would parse it, and fail
      const seen = this.#protocol.readFrame(data, this.#meter.believed)
      if (seen.kind === 'garbage') checkBounds(data)
      noteFrame(this.#meter, seen, this.#choices, this.#nowMs())
      const reading = this.#translated ? failureTold(seen) : seen
      this.#names?.take(reading.json)
      read.push({ bytes: this.#forCaller(bytes, reading), reading })
      if (reading.kind === 'terminal') break
    }
    return read
  }

  /** The upstream's own bytes, or what they mean in the caller's dialect. */
  #forCaller(bytes: SseFrame, reading: FrameReading): Buffer {
    const turner = this.#turner
    const isLast = reading.kind === 'terminal'
    if (turner === undefined || reading.kind === 'error' || reading.kind === 'garbage') {
      if (isLast) this.#kept?.take(bytes, reading.json)
      return bytes
    }
    const said = turner.take(reading)
    return isLast ? this.#ended(Buffer.concat([said, turner.end()])) : said
  }

  #ended(last: Buffer): Buffer {
    this.#kept?.take(last)
    return last
  }

  /** The last words of an answer whose stream ended without any, though the model was done. */
  unsaidEnd(): Buffer {
    return this.#ended(this.#turner?.end() ?? Buffer.from(this.#protocol.lastEvent))
  }
}
