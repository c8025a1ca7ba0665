// Reads server-sent events from the body of an answer.

interface StreamEvent {
  readonly name: string
  readonly data: unknown
  readonly id: string | undefined
}

/** Splits text into events; `rest` is the beginning of an event that has not ended yet. */
export function readEvents(text: string): { readonly events: readonly StreamEvent[]; readonly rest: string } {
  const blocks = text.split('\n\n')
  const rest = blocks.pop() ?? ''
  const events = blocks.flatMap((block): StreamEvent[] => {
    const fields = new Map(
      block
        .split('\n')
        .filter(line => line !== '' && !line.startsWith(':'))
        .map(line => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 1).trimStart()]),
    )
    const data = fields.get('data')
    if (data === undefined) return []
    return [{ name: fields.get('event') ?? 'message', data: JSON.parse(data), id: fields.get('id') }]
  })
  return { events, rest }
}

export async function* eventsOf(body: ReadableStream<Uint8Array>): AsyncGenerator<StreamEvent> {
  const reader = body.pipeThrough(new TextDecoderStream() as ReadableWritablePair<string, Uint8Array>).getReader()
  let text = ''
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) return
      const { events, rest } = readEvents(text + value)
      text = rest
      yield* events
    }
  } finally {
    await reader.cancel().catch(() => undefined)
  }
}
