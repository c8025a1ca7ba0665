// Writes to the caller and waits while its socket is full, so that a slow reader slows down the upstream. A caller that
// reads nothing for too long counts as disconnected. A call that runs on without its caller writes nothing.

import type { Deadlines } from '../../base/deadlines.ts'
import type { StreamSink } from '../../http/server/event-stream.ts'
import type { Exchange } from '../exchange.ts'
import { callerLeft } from '../exchange.ts'
import type { Disconnects } from '../lifetime/disconnects.ts'

export interface CallerWriterParts {
  readonly exchange: Exchange
  readonly deadlines: Deadlines
  readonly disconnects: Disconnects
  readonly stallMs: number
}

/** How long a call that is being ended still waits for its caller to read the last bytes. */
const LAST_BYTES_MS = 1_000

export class CallerWriter {
  readonly #sink: StreamSink
  readonly #parts: CallerWriterParts

  constructor(sink: StreamSink, parts: CallerWriterParts) {
    this.#sink = sink
    this.#parts = parts
  }

  /** Undefined when there is room for more at once; rejects with `callerLeft`. */
  write(bytes: Uint8Array | string): Promise<void> | undefined {
    const {
      lifetime: { stop, callerGone },
    } = this.#parts.exchange
    if (stop.reason === callerLeft) return Promise.reject(callerLeft)
    if (callerGone.reason !== undefined) return undefined
    const room = this.#sink.write(bytes)
    return room === undefined ? undefined : this.#waitFor(room)
  }

  async #waitFor(room: Promise<void>): Promise<void> {
    const { exchange, deadlines, disconnects, stallMs } = this.#parts
    const { stop, callerGone } = exchange.lifetime
    const gone = Promise.withResolvers<void>()
    const deadline = deadlines.after(stallMs, () => {
      disconnects.onDisconnect(exchange)
      exchange.lifetime.closeConnection()
    })
    const ignore = this.#sink.onRead?.(() => {
      if (stop.reason === undefined) deadline.extend(stallMs)
    })
    const onStop = (): void => {
      if (stop.reason === callerLeft) gone.reject(callerLeft)
      else deadline.extend(LAST_BYTES_MS)
    }
    stop.onStop(onStop)
    callerGone.onStop(gone.resolve)
    try {
      await Promise.race([room, gone.promise])
    } finally {
      deadline.cancel()
      ignore?.()
      stop.removeListener(onStop)
      callerGone.removeListener(gone.resolve)
    }
  }
}
