// A stream that is one JSON array, whose elements come as the model writes: what Google answers unless `alt=sse` asks
// for server-sent events. And events for a reader that knows no comments.

import type { Call } from '../neutral/call.ts'
import type { Framing } from '../protocol.ts'

export function openFraming(call: Call): Framing | undefined {
  if (call.framing === 'bare') return bare
  return call.framing === 'array' ? openArray() : undefined
}

/** An empty object would make one of the other SDKs forget the turn. */
export const nothing = { candidates: [{ content: { role: 'model', parts: [{ text: '' }] }, index: 0 }] }

/** As `writeError` begins. Read as an event it would be an answer of nothing, and what came before it a whole one. */
const ERROR = '{"error":'

/** Events, each on one line. What one of Google's SDKs does not take for an event it waits on for ever. */
const bare: Framing = {
  contentType: 'text/event-stream; charset=utf-8',
  element: data => (data.startsWith(ERROR) ? data : `data: ${data.replaceAll('\n', ' ')}\n\n`),
  comment: '',
  heartbeat: `data: ${JSON.stringify(nothing)}\n\n`,
  end: () => '',
  error: body => body,
}

export function openArray(): Framing {
  let isOpen = false
  return {
    contentType: 'application/json; charset=UTF-8',
    element(data) {
      const before = isOpen ? ',\r\n' : '['
      isOpen = true
      return `${before}${data}\n`
    },
    comment: '\n', // white space between values
    end: () => (isOpen ? ']' : '[]'),
    error: body => `[${body}\n]`,
  }
}
