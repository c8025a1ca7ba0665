// A stream that is one JSON array, whose elements come as the model writes: what Google answers unless `alt=sse` asks
// for server-sent events.

import type { Call } from '../call.ts'
import type { Framing } from '../protocol.ts'

export function openFraming(call: Call): Framing | undefined {
  return call.framing === 'array' ? openArray() : undefined
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
    end: () => (isOpen ? ']' : '[]'),
    error: body => `[${body}\n]`,
  }
}
