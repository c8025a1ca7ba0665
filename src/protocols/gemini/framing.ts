// The two ways in which a stream of this dialect differs from ordinary server-sent events: one JSON array whose
// elements arrive one by one (what Google sends unless `alt=sse` is requested), and events without comments, for
// clients that cannot read comments.

import type { Call } from '../neutral/call.ts'
import type { StreamFraming } from '../protocol.ts'

export function openFraming(call: Call): StreamFraming | undefined {
  if (call.framing === 'bare') return dataOnlyFraming
  return call.framing === 'array' ? openArrayFraming() : undefined
}

/** A chunk without content. One SDK loses the turn if it gets an empty object instead. */
export const emptyChunk = { candidates: [{ content: { role: 'model', parts: [{ text: '' }] }, index: 0 }] }

/**
 * How a body of `writeError` starts. Clients would take an error inside an event for an empty chunk, and the text
 * before it for a complete answer, so the error is sent without `data:`.
 */
const ERROR_START = '{"error":'

/** Events of one line each: one of Google's SDKs waits forever after anything that it cannot read as an event. */
const dataOnlyFraming: StreamFraming = {
  contentType: 'text/event-stream; charset=utf-8',
  element: data => (data.startsWith(ERROR_START) ? data : `data: ${data.replaceAll('\n', ' ')}\n\n`),
  comment: '',
  heartbeat: `data: ${JSON.stringify(emptyChunk)}\n\n`,
  end: () => '',
  error: body => body,
}

export function openArrayFraming(): StreamFraming {
  let isOpen = false
  return {
    contentType: 'application/json; charset=UTF-8',
    element(data) {
      const before = isOpen ? ',\r\n' : '['
      isOpen = true
      return `${before}${data}\n`
    },
    comment: '\n', // white space between the elements of the array
    end: () => (isOpen ? ']' : '[]'),
    error: body => `[${body}\n]`,
  }
}
