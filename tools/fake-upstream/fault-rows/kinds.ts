// The 36 faults: what each is called, and what an upstream that commits it does. Each has one or more rows elsewhere.

interface Kind {
  readonly title: string
  readonly does: string
}

export const kinds = {
  F1: { title: 'refused', does: 'Nobody listens on its port, and the machine says so.' },
  F2: { title: 'blackholed SYN', does: 'Its machine does not answer when we try to connect.' },
  F3: { title: 'NXDOMAIN', does: 'Its name does not exist.' },
  F4: { title: 'DNS timeout', does: 'The name server that is asked for its address does not answer.' },
  F5: { title: 'bad certificate', does: 'It cannot prove that it is who it should be, or does not speak TLS at all.' },
  F6: { title: 'TLS stall', does: 'It takes the connection and never shakes hands.' },
  F7: { title: 'RST after accept', does: 'It takes the connection and resets it.' },
  F8: { title: 'RST after request', does: 'It resets the connection at the request, or in the middle of its answer.' },
  F9: { title: 'body never read', does: 'It takes the connection and does not read the request.' },
  F10: { title: 'half-close', does: 'It closes the connection in good order and before its answer is whole.' },
  F11: { title: 'headers, then silence', does: 'It begins an answer and says nothing more.' },
  F12: { title: 'late first byte', does: 'Its first byte comes late: within the deadline, or after it.' },
  F13: { title: 'one byte a second', does: 'It answers well, one byte after the other, far too slowly.' },
  F14: { title: 'pause between chunks', does: 'It stops in the middle of a stream for longer than we wait.' },
  F15: { title: 'a million tiny chunks', does: 'It cuts a stream into a million pieces.' },
  F16: { title: 'wrong Content-Length', does: 'It says another length of its answer than is true.' },
  F17: { title: 'broken chunking', does: 'Its chunks are not what HTTP says that chunks are.' },
  F18: { title: '1 GiB of body', does: 'Its answer does not end.' },
  F19: { title: 'huge headers', does: 'The head of its answer is far too large.' },
  F20: { title: 'encoded unasked', does: 'It compresses its answer unasked: once, many times, or into a bomb.' },
  F21: { title: 'redirect inwards', does: 'It redirects us to an address inside our own network.' },
  F22: { title: 'surprising status', does: 'It sends informational heads first, or 101 or 204 and no answer.' },
  F23: { title: 'truncated JSON', does: 'Its HTTP is well, but its JSON ends in the middle.' },
  F24: { title: 'HTML with 200', does: 'It answers with a web page, as a proxy before it may do.' },
  F25: { title: 'empty 200', does: 'It says that all is well, and nothing else.' },
  F26: { title: 'error with 200', does: 'It says that all is well, and then tells an error.' },
  F27: { title: 'bad UTF-8', does: 'Its text is no UTF-8, or is cut between the bytes of a character.' },
  F28: { title: 'unusual event streams', does: 'It writes its events in a way that is rare and allowed.' },
  F29: { title: '50 MiB line', does: 'One line of its stream is far too long.' },
  F30: { title: 'no terminal event', does: 'Its stream ends without saying that it is over.' },
  F31: { title: 'error in a stream', does: 'It tells an error after the stream has begun.' },
  F32: { title: "another response's events", does: 'Events come twice, in the wrong order, or of another answer.' },
  F33: { title: 'impossible usage', does: 'It answers well, and its report of usage is missing or cannot be.' },
  F34: { title: 'limits and outages', does: 'It says that it is limited, overloaded or down.' },
  F35: { title: 'refusals', does: 'It refuses our key, or the request.' },
  F36: { title: 'leaked credentials', does: 'It repeats our key in what it says.' },
} as const satisfies Record<`F${number}`, Kind>

export type FaultId = keyof typeof kinds

export const faultIds = Object.keys(kinds) as readonly FaultId[]

export const isFaultId = (text: string): text is FaultId => Object.hasOwn(kinds, text)
