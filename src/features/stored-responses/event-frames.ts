// The events of a response that is being made. Callers stream them as they arrive.

import type { StreamResult, StreamSink } from '../../http/server/event-stream.ts'
import { STREAM_BROKEN, streamResponse } from '../../http/server/event-stream.ts'
import { frameData } from '../../http/sse.ts'
import { SSE_HEADERS } from '../../pipeline/reply/stream-reply.ts'
import type { Follower } from './followers.ts'

/** After skipping this many events in one go, other work runs. */
const FRAMES_PER_STEP = 256

export class EventFrames {
  readonly #heartbeatMs: number
  readonly #frames: Buffer[] = []
  /** The numbers of the first frames. Each frame is parsed once, however many callers ask for the events after one. */
  readonly #numbers: number[] = []
  #bytes = 0
  #readers = 0
  #wake = Promise.withResolvers<void>()
  #isOver = false

  constructor(heartbeatMs: number) {
    this.#heartbeatMs = heartbeatMs
  }

  get all(): readonly Buffer[] {
    return this.#frames
  }

  get count(): number {
    return this.#frames.length
  }

  get bytes(): number {
    return this.#bytes
  }

  get text(): string {
    return this.#frames.join('')
  }

  /** Whether somebody streams them now. */
  get isRead(): boolean {
    return this.#readers > 0
  }

  add(frame: Uint8Array): void {
    this.#frames.push(Buffer.from(frame))
    this.#bytes += frame.length
    this.#wake.resolve()
    this.#wake = Promise.withResolvers()
  }

  /** No event follows. */
  close(): void {
    this.#isOver = true
    this.#wake.resolve()
  }

  /** Streams the events with a number above `after`, as they arrive, as long as the follower may read them. */
  stream(after: number, headers: Record<string, string>, follower?: Follower): Response {
    const gone = Promise.withResolvers<void>()
    let isGone = false
    const leave = (): void => {
      if (!isGone) this.#readers--
      isGone = true
      gone.resolve()
      follower?.leave()
    }
    this.#readers++
    follower?.stop.onStop(leave)
    const writeEvents = async (sink: StreamSink): Promise<StreamResult> => {
      for (let at = 0; !isGone; ) {
        const isOver = this.#isOver
        for (; at < this.#frames.length && !isGone; at++) {
          if (after < 0 || this.#numberOf(at) > after) await sink.write(this.#frames[at]!)
          else if (at % FRAMES_PER_STEP === 0) await new Promise(resolve => setImmediate(resolve))
        }
        if (isOver) return leave()
        if (at === this.#frames.length) await this.#waitForEvent(sink, gone.promise)
      }
      return follower?.stop.reason && STREAM_BROKEN
    }
    return streamResponse({ status: 200, headers: { ...headers, ...SSE_HEADERS } }, writeEvents, leave)
  }

  #numberOf(at: number): number {
    while (this.#numbers.length <= at) this.#numbers.push(sequenceNumber(this.#frames[this.#numbers.length]!))
    return this.#numbers[at]!
  }

  async #waitForEvent(sink: StreamSink, gone: Promise<void>): Promise<void> {
    let timer: ReturnType<typeof setTimeout> | undefined
    const timeout = new Promise<'silence'>(resolve => (timer = setTimeout(() => resolve('silence'), this.#heartbeatMs)))
    const result = await Promise.race([this.#wake.promise, timeout, gone]).finally(() => clearTimeout(timer))
    if (result === 'silence') await sink.write(': \n\n')
  }
}

/** Events without a number are sent to every listener. */
export function sequenceNumber(frame: Buffer): number {
  try {
    const { sequence_number: number } = JSON.parse(frameData(frame)!) as { sequence_number?: unknown }
    return typeof number === 'number' ? number : Number.POSITIVE_INFINITY
  } catch {
    return Number.POSITIVE_INFINITY
  }
}
