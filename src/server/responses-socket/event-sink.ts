// Writes the events of one response as messages of a WebSocket: each message is the data of one server-sent event.

import { bounds } from '../../base/bounds.ts'
import type { StreamSink } from '../../http/server/event-stream.ts'
import type { ServerSocket } from '../../http/server/web-socket.ts'
import type { SseFrame } from '../../http/sse.ts'
import { frameData, SseSplitter } from '../../http/sse.ts'

export interface EventSinkParts {
  readonly socket: ServerSocket
  readonly streamId: string | undefined
  /** The response that this one continues, where the upstream does not know it. */
  readonly previousId: string | undefined
  /** Whether the client gets headers as events. */
  readonly hasComments: boolean
  /** Listeners to be called when the client has read something. */
  readonly onRead: Set<() => void>
  /** Resolves when the socket has taken what was sent; undefined if it has already. */
  room(): Promise<void> | undefined
}

/** The event with X-Pipeline-* and other headers, which a message cannot have. Sent only to clients that ask for it. */
const HEADERS_EVENT = 'weir.headers'

/** The field of a response object. In a text the quotes would have a backslash before them. */
const NO_PREVIOUS = /(?<!\\)"previous_response_id":\s*null/
const nameOf = (previousId: string) => (): string => `"previous_response_id":${JSON.stringify(previousId)}`

/** The comments that the gateway itself writes. Those of upstreams are no headers. */
const COMMENT = /^: (X-Pipeline-Breakdown|X-Weir-Loss) (.*)$/

export class EventSink implements StreamSink {
  readonly #parts: EventSinkParts
  readonly #splitter = new SseSplitter(bounds.answerBytesMax)
  /** The data of the last event. */
  last: string | undefined

  constructor(parts: EventSinkParts) {
    this.#parts = parts
  }

  write(bytes: Uint8Array | string): Promise<void> | undefined {
    const frames = this.#splitter.push(Buffer.from(bytes as Uint8Array))
    this.#parts.socket.cork(() => {
      for (const frame of frames) this.#writeFrame(frame)
    })
    return this.#parts.room()
  }

  onRead(listener: () => void): () => void {
    this.#parts.onRead.add(listener)
    return () => this.#parts.onRead.delete(listener)
  }

  send(event: Readonly<Record<string, unknown>>): void {
    this.#sendText(JSON.stringify(event))
  }

  sendHeaders(headers: Readonly<Record<string, string>>): void {
    this.send({ type: HEADERS_EVENT, headers })
  }

  #writeFrame(frame: SseFrame): void {
    const data = frameData(frame)
    if (data === undefined) return this.#writeComment(frame)
    if (data === '[DONE]') return
    this.last = data
    const { previousId } = this.#parts
    this.#sendText(previousId === undefined ? data : data.replace(NO_PREVIOUS, nameOf(previousId)))
  }

  /** Other comments keep the connection open, which a ping does here. */
  #writeComment(frame: SseFrame): void {
    const { hasComments } = this.#parts
    const [, name, value] = (hasComments && COMMENT.exec(frame.toString().trimEnd())) || []
    if (name === undefined) this.#parts.socket.ping()
    else this.sendHeaders({ [name.toLowerCase()]: value! })
  }

  #sendText(json: string): void {
    const { socket, streamId } = this.#parts
    const start = json.indexOf('{') + 1
    const hasFields = streamId !== undefined && start > 0
    socket.send(hasFields ? `{"stream_id":${JSON.stringify(streamId)},${json.slice(start)}` : json)
  }
}
