// Writes a stream in another framing than server-sent events. Inside the gateway every stream consists of such events;
// this sink is the last step before the caller's socket.

import { bounds } from '../../base/bounds.ts'
import type { StreamSink } from '../../http/server/event-stream.ts'
import type { SseFrame } from '../../http/sse.ts'
import { frameData, SseSplitter } from '../../http/sse.ts'
import type { StreamFraming } from '../../protocols/protocol.ts'

export class FramedSink implements StreamSink {
  readonly #sink: StreamSink
  readonly #framing: StreamFraming
  readonly #splitter = new SseSplitter(bounds.answerBytesMax)

  constructor(sink: StreamSink, framing: StreamFraming) {
    this.#sink = sink
    this.#framing = framing
  }

  write(bytes: Uint8Array | string): Promise<void> | undefined {
    const text = this.#framed(bytes)
    return text === '' ? undefined : this.#sink.write(text)
  }

  /** The last event may still wait for the LF after its CR. */
  end(): Promise<void> | undefined {
    const last = this.#splitter.end()
    const text = (last?.isEnded ? this.#element(last.frame) : '') + this.#framing.end()
    return text === '' ? undefined : this.#sink.write(text)
  }

  #framed(bytes: Uint8Array | string): string {
    let text = ''
    for (const frame of this.#splitter.push(Buffer.from(bytes as Uint8Array))) text += this.#element(frame)
    return text
  }

  #element(frame: SseFrame): string {
    const data = frameData(frame)
    return data === undefined ? this.#framing.comment : this.#framing.element(data)
  }
}

/** Frames a complete stream at once. */
export function frameStream(framing: StreamFraming, events: Uint8Array): string {
  let text = ''
  const sink = new FramedSink({ write: piece => void (text += String(piece)) }, framing)
  void sink.write(events)
  void sink.end()
  return text
}
