// A response whose body is written piece by piece. write() resolves when the caller's socket accepts more, so that a
// slow reader slows down the upstream instead of filling the memory.

/** The Content-Type of server-sent events. */
export const SSE_TYPE = 'text/event-stream; charset=utf-8'

export interface StreamSink {
  write(bytes: Uint8Array | string): Promise<void> | undefined
  /** Calls the listener when the client has read something, until the returned function is called. */
  onRead?(listener: () => void): () => void
}

interface DirectController {
  write(bytes: Uint8Array | string): number | Promise<number>
  end(): void
}

export interface StreamHead {
  readonly status: number
  readonly headers: Record<string, string>
}

/** The body cannot be completed, and the dialect has no way to write an error at this point: close the connection. */
export const STREAM_BROKEN = 'broken'

// biome-ignore lint/suspicious/noConfusingVoidType: most writers return nothing at all
export type StreamResult = void | typeof STREAM_BROKEN

type WriteBody = (sink: StreamSink) => Promise<StreamResult>

const bodyWriters = new WeakMap<Response, WriteBody>()

/**
 * The function that writes the body of a streamed response, for an answer that goes to another sink than the server's
 * socket. Undefined where the response is not streamed.
 */
export const bodyWriterOf = (response: Response): WriteBody | undefined => bodyWriters.get(response)

/** `run` writes the whole body and returns; `onCancel` is called when the client disconnects. */
export function streamResponse(head: StreamHead, run: WriteBody, onCancel: () => void): Response {
  const source = {
    type: 'direct',
    async pull(controller: DirectController) {
      const result = await run({
        write(bytes) {
          // The bytes are sent at the end of this turn of the event loop: a flush for each write would cost 10 %.
          const written = controller.write(bytes)
          return typeof written === 'number' ? undefined : written.then(() => {})
        },
      })
      if (result === STREAM_BROKEN) return Promise.reject() // without an error object, which the runtime would print
      controller.end()
      return undefined
    },
    cancel: onCancel,
  }
  const body = new ReadableStream(source as unknown as Bun.DirectUnderlyingSource<Uint8Array>)
  const response = new Response(body, head)
  bodyWriters.set(response, run)
  return response
}
