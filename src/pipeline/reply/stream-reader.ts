// Reads a streamed answer frame by frame and meters it. The bytes of a frame are the upstream's own, or their
// translation into the caller's dialect.

import { answerTooLarge } from '../../base/answer-too-large.ts'
import { bounds } from '../../base/bounds.ts'
import type { ErrorCode, UpstreamError } from '../../base/errors.ts'
import type { Usage } from '../../base/money/usage.ts'
import type { IncomingResponse, ResponsePiece } from '../../http/client/request.ts'
import type { SseFrame } from '../../http/sse.ts'
import { frameData, hasBlankData, SseSplitter } from '../../http/sse.ts'
import type { FrameReading } from '../../protocols/neutral/call.ts'
import { asideFrame } from '../../protocols/neutral/call.ts'
import type { Protocol } from '../../protocols/protocol.ts'
import { explainAnswerBound } from '../../protocols/request/json-body.ts'
import type { EventSplitter } from '../../upstreams/quirks.ts'
import { streamFormat } from '../../upstreams/quirks.ts'
import type { EarlyEnd, FrameConverter } from '../attempt/translation-types.ts'
import type { Watchdog } from '../attempt/watchdog.ts'
import type { AnswerStorage, Exchange } from '../exchange.ts'
import type { UsageMeter } from '../settle/usage-meter.ts'
import { noteFrame, resumeReading, stopReading } from '../settle/usage-meter.ts'
import type { AnswerLease } from './memory-budget.ts'
import { RepeatedFrames } from './repeated-frames.ts'

export interface ReadFrame {
  /** Of a call that is paid in slices, bytes are converted when they are read here: only then they are paid. */
  readonly bytes: Buffer
  readonly reading: FrameReading
}

export interface StreamReaderParts {
  /** The upstream's dialect. */
  readonly upstreamProtocol: Protocol
  /** Undefined where bytes pass unchanged. */
  readonly converter?: FrameConverter | undefined
  /** Follows the answer of a call that may run out of funds, so that it can be ended in the middle. */
  readonly earlyEnd?: (FrameConverter & EarlyEnd) | undefined
  readonly watch: Watchdog
}

/** The largest size of one event, and of everything that is held back of one stream. */
export const eventBytesMax = ({ lifetime: { memory } }: Exchange): number =>
  memory?.eventBytesMax ?? bounds.frameBytesMax

export const midAnswerError = (failed: string): UpstreamError => ({
  status: 502,
  message: `The upstream failed in the middle of its answer. ${failed}`,
})

/** A failure that the upstream's own dialect says in its last event becomes an error for callers of other dialects. */
const withError = (reading: FrameReading): FrameReading =>
  reading.failed === undefined
    ? reading
    : {
        ...reading,
        kind: 'error',
        error: { ...reading.failure, ...midAnswerError(reading.failed), ...statusOf(reading) },
      }

const statusOf = ({ failure }: FrameReading): object => (failure === undefined ? {} : { status: failure.status })

/** Where a bound of the gateway makes an event unreadable, the upstream is not at fault. */
function checkBounds(data = ''): void {
  const bound = explainAnswerBound(data)
  if (bound !== undefined) throw answerTooLarge(bound)
}

/** The text of a frame that is JSON instead of the lines of an event. */
function bareJson(frame: SseFrame): string | undefined {
  const text = frame.toString('utf8').trim()
  return text.startsWith('{') || text.startsWith('[') ? text : undefined
}

/** No more bytes arrive from the upstream, whoever closed the connection. */
export class ConnectionBroke extends Error {}

/** Reads pieces until `take` returns false. A fault of `take` stays what it is; any other is the connection's. */
export async function readPieces(incoming: IncomingResponse, take: (piece: Buffer) => boolean): Promise<boolean> {
  let isTaking = false
  try {
    return await incoming.readEach(piece => {
      isTaking = true
      const goesOn = take(piece)
      isTaking = false
      return goesOn
    })
  } catch (fault) {
    throw isTaking ? fault : new ConnectionBroke('the connection broke', { cause: fault })
  }
}

/** Stands for bytes that were read before. */
const noBytes: ResponsePiece = { value: Buffer.alloc(0) }

export class AnswerReader {
  readonly #incoming: IncomingResponse
  readonly #protocol: Protocol
  readonly #meter: UsageMeter
  readonly #storedCall: AnswerStorage['storedCall']
  readonly #createdReferences: AnswerStorage['createdReferences']
  readonly #choices: number
  /** How many finish events a whole answer has. */
  readonly #finishesMax: number
  /** The last content was the end of the answer. */
  #isWhole = false
  readonly #nowMs: () => number
  /** Converts frames where the caller speaks another dialect. */
  readonly #converter: FrameConverter | undefined
  /** Undefined also when it could not follow the answer. */
  #earlyEnd: StreamReaderParts['earlyEnd']
  /** Frames that have arrived and are not metered yet, for a call that is metered frame by frame. */
  readonly #unmetered: SseFrame[] = []
  readonly #isSliced: boolean
  readonly #translated: boolean
  readonly #splitter: EventSplitter
  /** Set where nothing but the size of a text is read from most frames. */
  readonly #repeated: RepeatedFrames | undefined
  readonly #watch: Watchdog
  readonly #memory: AnswerLease | undefined

  constructor(
    incoming: IncomingResponse,
    exchange: Exchange,
    { upstreamProtocol, converter, earlyEnd, watch }: StreamReaderParts,
  ) {
    this.#incoming = incoming
    this.#protocol = upstreamProtocol
    this.#converter = converter
    this.#earlyEnd = earlyEnd
    this.#isSliced = exchange.settlement.reservation !== undefined
    this.#translated = exchange.attempt.translation !== undefined
    this.#splitter = streamFormat(exchange.attempt.candidate!.provider).open(eventBytesMax(exchange))
    this.#watch = watch
    this.#memory = exchange.lifetime.memory
    this.#meter = exchange.attempt.meter
    this.#storedCall = exchange.storage.storedCall
    this.#createdReferences = upstreamProtocol === exchange.protocol ? exchange.storage.createdReferences : undefined
    this.#choices = exchange.call?.choices ?? 1
    this.#finishesMax = exchange.call?.finishEvents ?? this.#choices
    this.#nowMs = exchange.timings.nowMs
    const isPassedOn = converter === undefined && !this.#isSliced && this.#createdReferences === undefined
    if (isPassedOn && this.#splitter instanceof SseSplitter) {
      this.#repeated = new RepeatedFrames(frame => this.#protocol.readFrame(frameData(frame)))
    }
  }

  /** The next bytes of the answer; none at its end. The bytes before were written. */
  next(): Promise<ResponsePiece> {
    if (this.#unmetered.length > 0) return Promise.resolve(noBytes)
    const room = this.#roomToRead()
    return room === undefined ? this.#read() : this.#waitFor(room).then(() => this.#read())
  }

  /** Undefined if more may be read now. All that was read before is written, but for the beginning of an event. */
  #roomToRead(): Promise<void> | undefined {
    this.#memory?.read(this.#splitter.bufferedBytes)
    return this.#memory?.room(this.#watch.stop)
  }

  /**
   * Gives `pass` the frames of each piece in the turn of the event loop in which it arrives, so that a piece costs no
   * promise. `pass` returns whether all is written and more can be taken at once. When it returns false, this resolves
   * with true; at the end of the answer, with false.
   */
  async forward(pass: (frames: readonly ReadFrame[]) => boolean): Promise<boolean> {
    let room: Promise<void> | undefined
    let isWritten = true
    const takeAndPass = (value: Buffer): boolean => {
      isWritten = pass(this.take({ value }))
      if (!isWritten || this.#unmetered.length > 0) return false
      room = this.#roomToRead()
      if (room !== undefined) return false
      resumeReading(this.#meter, this.#nowMs())
      return true
    }
    for (;;) {
      while (this.#unmetered.length > 0) if (!pass(this.take(noBytes))) return true
      room ??= this.#roomToRead()
      if (room !== undefined) await this.#waitFor(room)
      room = undefined
      resumeReading(this.#meter, this.#nowMs())
      if (!(await readPieces(this.#incoming, takeAndPass))) break
      if (!isWritten) return true
    }
    pass(this.take({}))
    return false
  }

  /** Only the time from here to `take` is the upstream's. */
  #read(): Promise<ResponsePiece> {
    resumeReading(this.#meter, this.#nowMs())
    return this.#incoming.read()
  }

  /** The upstream is not at fault while the gateway has no room for its bytes. */
  async #waitFor(room: Promise<void>): Promise<void> {
    this.#watch.pause()
    await room
    this.#watch.alive()
  }

  /**
   * The frames that these bytes complete, maybe none. At the end, an event without its blank line counts if it is a
   * valid event of its dialect. Otherwise it was cut off and is ignored.
   */
  take({ value }: ResponsePiece): readonly ReadFrame[] {
    if (this.#unmetered.length > 0) return this.#meterFrames([this.#unmetered.shift()!])
    stopReading(this.#meter, this.#nowMs())
    if (value !== undefined) {
      const repeated = this.#takeRepeated(value)
      const length = repeated?.bytes.length ?? 0
      const rest = length === 0 ? value : value.subarray(length)
      const frames = rest.length === 0 ? [] : this.#splitter.push(rest)
      let bytes = length + this.#splitter.bufferedBytes
      for (const frame of frames) bytes += frame.length
      this.#memory?.read(bytes)
      if (repeated !== undefined) return frames.length === 0 ? [repeated] : [repeated, ...this.#meterFrames(frames)]
      if (!this.#isSliced) return this.#meterFrames(frames)
      // The funds may cover only some of these frames, so that each is metered when the one before is written.
      this.#unmetered.push(...frames.slice(1))
      return this.#meterFrames(frames.slice(0, 1))
    }
    const rest = this.#splitter.end()
    if (rest === undefined) return []
    return rest.isEnded || this.#isEvent(rest.frame) ? this.#meterFrames([rest.frame]) : []
  }

  /** Frames at the start of a piece that need not be parsed, as one. */
  #takeRepeated(piece: Buffer): ReadFrame | undefined {
    if (this.#repeated === undefined || this.#splitter.bufferedBytes > 0) return undefined
    const length = this.#repeated.match(piece)
    if (length === 0) return undefined
    const { reading } = this.#repeated
    noteFrame(this.#meter, reading, this.#choices, this.#meter.notReadingSinceMs)
    this.#noteEnd(reading)
    return { bytes: length === piece.length ? piece : piece.subarray(0, length), reading }
  }

  #isEvent(frame: SseFrame): boolean {
    const { kind } = this.#readFrame(frame, frameData(frame))
    return kind !== 'garbage' && kind !== 'aside'
  }

  /** Some upstreams write an error without `data:`, as an answer of its own. */
  #readFrame(frame: SseFrame, data: string | undefined): FrameReading {
    const bare = data === undefined ? bareJson(frame) : undefined
    const reading = this.#protocol.readFrame(bare ?? data, this.#meter.plausible)
    return bare === undefined || reading.kind === 'error' ? reading : asideFrame
  }

  discard(): void {
    this.#incoming.discard()
  }

  /** Lets the connection return to its pool: the body ends a few bytes after the terminal event. */
  async finish(): Promise<void> {
    let bytes = 0
    try {
      for (;;) {
        const { value } = await this.#incoming.read()
        if (value === undefined) return
        bytes += value.byteLength
        if (bytes > bounds.responseTailBytesMax) return this.#incoming.discard()
      }
    } catch {
      this.#incoming.discard()
    }
  }

  /** Frames after the terminal one reach nobody, so they are neither read nor counted. */
  #meterFrames(frames: readonly SseFrame[]): readonly ReadFrame[] {
    const read: ReadFrame[] = []
    for (const bytes of frames) {
      const data = frameData(bytes)
      if (data === undefined && hasBlankData(bytes)) continue // an SDK would fail to parse it
      const frameReading = this.#readFrame(bytes, data)
      if (frameReading.kind === 'garbage') {
        if (this.#isWhole) continue // an unknown event must not spoil a complete answer
        checkBounds(data)
      }
      noteFrame(this.#meter, frameReading, this.#choices, this.#meter.notReadingSinceMs)
      this.#noteEnd(frameReading)
      this.#repeated?.learn(bytes, frameReading)
      const reading = this.#untilLastFinish(this.#translated ? withError(frameReading) : frameReading)
      this.#createdReferences?.collect(reading.json)
      read.push(this.#isSliced ? this.#readLater(bytes, reading) : { bytes: this.#convert(bytes, reading), reading })
      if (reading.kind === 'terminal') break
    }
    return read
  }

  /** Some upstreams go on after they have said that the model is done. */
  #noteEnd({ kind, finishes }: FrameReading): void {
    if (kind === 'content' || kind === 'closing') {
      this.#isWhole = finishes > 0 && this.#meter.finished && this.#meter.finishes >= this.#finishesMax
    }
  }

  /** One choice or image is finished and others go on: their content must not wait for the end. */
  #untilLastFinish(reading: FrameReading): FrameReading {
    const goesOn = reading.kind === 'closing' && this.#meter.finishes < this.#finishesMax
    return goesOn ? { ...reading, kind: 'content' } : reading
  }

  /** The upstream's own bytes, or their translation into the caller's dialect. */
  #convert(bytes: SseFrame, reading: FrameReading): Buffer {
    const converter = this.#converter
    const isLast = reading.kind === 'terminal'
    if (converter === undefined || reading.kind === 'error' || reading.kind === 'garbage') {
      if (isLast) this.#storedCall?.takeLast(bytes, reading.json)
      return bytes
    }
    const converted = converter.convert(reading)
    return isLast ? this.#storeLast(Buffer.concat([converted, converter.end()])) : converted
  }

  #storeLast(last: Buffer): Buffer {
    this.#storedCall?.takeLast(last)
    return last
  }

  #readLater(frame: SseFrame, reading: FrameReading): ReadFrame {
    let converted: Buffer | undefined
    const convert = (): Buffer => {
      if (this.#earlyEnd !== this.#converter) this.#follow(reading)
      return this.#convert(frame, reading)
    }
    return {
      reading,
      get bytes() {
        converted ??= convert()
        return converted
      },
    }
  }

  /** What an upstream sends in its own dialect may be more than the codec can read. */
  #follow(reading: FrameReading): void {
    try {
      if (reading.kind !== 'error' && reading.kind !== 'garbage') this.#earlyEnd?.convert(reading)
    } catch {
      this.#earlyEnd = undefined
    }
  }

  /** The end of an answer that the gateway stops. Undefined where only an error can end it. */
  endEarly(usage: Usage, code: ErrorCode): Buffer | undefined {
    const end = this.#earlyEnd?.endEarly(usage, code)
    return end && this.#storeLast(end)
  }

  /** The terminal event of an answer whose upstream sent none, although the model had finished. */
  missingEnd(): Buffer {
    return this.#storeLast(this.#converter?.end() ?? Buffer.from(this.#protocol.lastEvent))
  }
}
