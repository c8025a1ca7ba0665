// The 36 faults: the title of each, and what an upstream that commits it does. The other files in this folder have one or
// more variants of each.

interface Kind {
  readonly title: string
  readonly does: string
}

export const faultKinds = {
  F1: { title: 'refused', does: 'No process listens on its port, so the connection is refused.' },
  F2: { title: 'blackholed SYN', does: 'Its machine does not answer when the gateway connects.' },
  F3: { title: 'NXDOMAIN', does: 'Its host name does not exist.' },
  F4: { title: 'DNS timeout', does: 'The name server does not answer the query for its address.' },
  F5: {
    title: 'bad certificate',
    does: 'Its certificate is expired, of another host or self-signed, or it does not speak TLS.',
  },
  F6: { title: 'TLS stall', does: 'It accepts the connection and never completes the TLS handshake.' },
  F7: { title: 'RST after accept', does: 'It accepts the connection and resets it.' },
  F8: {
    title: 'RST after request',
    does: 'It resets the connection during the request or in the middle of its answer.',
  },
  F9: { title: 'body never read', does: 'It accepts the connection and does not read the request.' },
  F10: { title: 'half-close', does: 'It closes the connection normally, but before its answer is complete.' },
  F11: { title: 'headers, then silence', does: 'It begins an answer and then sends nothing more.' },
  F12: { title: 'late first byte', does: 'Its first byte arrives late: within the deadline, or after it.' },
  F13: { title: 'one byte a second', does: 'Its answer is good but far too slow: one byte at a time.' },
  F14: { title: 'pause between chunks', does: 'It stops in the middle of a stream for longer than the gateway waits.' },
  F15: { title: 'a million tiny chunks', does: 'It cuts a stream into a million pieces.' },
  F16: { title: 'wrong Content-Length', does: 'The Content-Length of its answer is wrong.' },
  F17: { title: 'broken chunking', does: 'Its chunked encoding is invalid.' },
  F18: { title: '1 GiB of body', does: 'Its answer does not end.' },
  F19: { title: 'huge headers', does: 'The head of its answer is far too large.' },
  F20: {
    title: 'encoded unasked',
    does: 'It compresses its answer without being asked: once, many times, or as a decompression bomb.',
  },
  F21: { title: 'redirect inwards', does: "It redirects to an address inside the gateway's own network." },
  F22: { title: 'surprising status', does: 'It sends informational responses first, or 101 or 204 without an answer.' },
  F23: { title: 'truncated JSON', does: 'Its HTTP is valid, but its JSON ends in the middle.' },
  F24: { title: 'HTML with 200', does: 'It answers with a web page, as a proxy in front of it may do.' },
  F25: { title: 'empty 200', does: 'It answers 200 with an empty body or without text.' },
  F26: { title: 'error with 200', does: 'It answers 200 with an error as the body.' },
  F27: { title: 'bad UTF-8', does: 'Its text is not valid UTF-8, or is cut between the bytes of a character.' },
  F28: { title: 'unusual event streams', does: 'It writes its events in a way that is unusual but valid.' },
  F29: { title: '50 MiB line', does: 'One line of its stream is far too long.' },
  F30: { title: 'no terminal event', does: 'Its stream ends without its last event.' },
  F31: { title: 'error in a stream', does: 'It sends an error after the stream has begun.' },
  F32: {
    title: "another response's events",
    does: 'Its events arrive twice, in the wrong order, or belong to another answer.',
  },
  F33: { title: 'impossible usage', does: 'Its answer is good, but its usage report is missing or impossible.' },
  F34: {
    title: 'limits and outages',
    does: 'It answers that a rate limit is reached, or that it is overloaded or down.',
  },
  F35: { title: 'refusals', does: "It refuses the gateway's key, or the request." },
  F36: { title: 'leaked credentials', does: "It repeats the gateway's key in its answer." },
} as const satisfies Record<`F${number}`, Kind>

export type FaultId = keyof typeof faultKinds

export const faultIds = Object.keys(faultKinds) as readonly FaultId[]

export const isFaultId = (text: string): text is FaultId => Object.hasOwn(faultKinds, text)
