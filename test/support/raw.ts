// Sends and reads HTTP over a bare socket, so that a test sees the bytes that a caller's socket receives.

import net from 'node:net'

export interface RawAnswer {
  readonly status: number
  /** The head as bytes in latin1: one character a byte. */
  readonly head: string
  /** All values of a header, as sent, its name compared without case. */
  header(name: string): string | undefined
  /** Names of all headers, as they were written. */
  readonly headerNames: readonly string[]
  /** The body, with chunked framing taken off. */
  readonly body: Buffer
}

/** Sends the bytes and reads one whole answer (by Content-Length or chunks). */
export function rawRequest(url: string, bytes: string | Uint8Array, withinMs = 100_000): Promise<RawAnswer> {
  const { hostname, port } = new URL(url)
  return new Promise((resolve, reject) => {
    let received: Buffer = Buffer.alloc(0)
    const socket = net.connect(Number(port), hostname, () => socket.write(Buffer.from(bytes)))
    const timer = setTimeout(() => finish(new Error(`no whole answer within ${withinMs} ms: ${received}`)), withinMs)
    function finish(fault?: Error): void {
      clearTimeout(timer)
      socket.destroy()
      const answer = parseAnswer(received)
      if (answer !== undefined && fault === undefined) resolve(answer)
      else reject(fault ?? new Error(`the connection closed early: ${received.toString('latin1')}`))
    }
    socket.on('data', (chunk: Buffer) => {
      received = Buffer.concat([received, chunk])
      if (parseAnswer(received) !== undefined) finish()
    })
    socket.on('close', () => finish())
    socket.on('error', fault => finish(fault))
  })
}

export function post(path: string, headers: Record<string, string>, body: string | Uint8Array): Buffer {
  const bytes = Buffer.from(body)
  const lines = Object.entries({ host: 'weir', 'content-length': String(bytes.length), ...headers })
  const head = [`POST ${path} HTTP/1.1`, ...lines.map(([name, value]) => `${name}: ${value}`), '', ''].join('\r\n')
  return Buffer.concat([Buffer.from(head, 'latin1'), bytes])
}

function parseAnswer(received: Buffer): RawAnswer | undefined {
  const end = received.indexOf('\r\n\r\n')
  if (end < 0) return undefined
  const head = received.toString('latin1', 0, end)
  const lines = head
    .split('\r\n')
    .slice(1)
    .map(line => {
      const colon = line.indexOf(':')
      return [line.slice(0, colon), line.slice(colon + 1).trim()]
    })
  const header = (name: string): string | undefined => {
    const values = lines.filter(([own]) => own!.toLowerCase() === name.toLowerCase()).map(([, value]) => value!)
    return values.length === 0 ? undefined : values.join(', ')
  }
  const rest = received.subarray(end + 4)
  const length = header('content-length')
  const body =
    header('transfer-encoding') === 'chunked'
      ? unchunk(rest)
      : length !== undefined && rest.length < Number(length)
        ? undefined
        : rest
  if (body === undefined) return undefined
  return { status: Number(head.split(' ')[1]), head, header, headerNames: lines.map(([name]) => name!), body }
}

function unchunk(bytes: Buffer): Buffer | undefined {
  const parts: Buffer[] = []
  for (let at = 0; ; ) {
    const lineEnd = bytes.indexOf('\r\n', at)
    if (lineEnd < 0) return undefined
    const size = Number.parseInt(bytes.toString('latin1', at, lineEnd), 16)
    if (size === 0) return Buffer.concat(parts)
    if (bytes.length < lineEnd + 2 + size + 2) return undefined
    parts.push(bytes.subarray(lineEnd + 2, lineEnd + 2 + size))
    at = lineEnd + 2 + size + 2
  }
}
