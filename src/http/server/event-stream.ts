// A response whose bytes we write one piece at a time. write() resolves when the caller's socket can take more, so
// that a slow reader holds back the upstream instead of filling our memory.

/** Of a stream of server-sent events that we write. */
export const SSE_TYPE = 'text/event-stream; charset=utf-8'

export interface Sink {
  write(bytes: Uint8Array | string): Promise<void> | undefined
}

interface DirectController {
  write(bytes: Uint8Array | string): number | Promise<number>
  end(): void
}

export interface StreamHead {
  readonly status: number
  readonly headers: Record<string, string>
}

/** The body cannot be brought to its end, and no words would be understood: its connection is closed instead. */
export const BROKEN = 'broken'

// biome-ignore lint/suspicious/noConfusingVoidType: most writers return nothing at all
export type Written = void | typeof BROKEN

/** `run` writes the whole body and returns; `onCancel` is told when the reader went away. */
export function streamResponse(
  head: StreamHead,
  run: (sink: Sink) => Promise<Written>,
  onCancel: () => void,
): Response {
  const source = {
    type: 'direct',
    async pull(controller: DirectController) {
      const written = await run({
        write(bytes) {
          // Sent when this turn of the loop ends: a flush for each write costs a tenth of a stream.
          const written = controller.write(bytes)
          return typeof written === 'number' ? undefined : written.then(() => {})
        },
      })
      if (written === BROKEN) return Promise.reject() // an error would be printed
      controller.end()
      return undefined
    },
    cancel: onCancel,
  }
  return new Response(new ReadableStream(source as unknown as Bun.DirectUnderlyingSource<Uint8Array>), head)
}
