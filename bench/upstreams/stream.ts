// A fast upstream that streams: `stream.ts <port> <chunks> <gap in ms>`. Every chunk is written and flushed alone, the
// gap apart. Plain sockets, because it shares a core with the load generator. GET anything: connections accepted.

import { closingEvents, streamEvents } from './answers.ts'

const [port, chunks, gapMs] = process.argv.slice(2).map(Number) as [number, number, number]

const framed = (text: string): string => `${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`

const HEAD = Buffer.from(
  'HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\nTransfer-Encoding: chunked\r\n\r\n',
)
const EVENTS = streamEvents(chunks).map(event => Buffer.from(framed(event)))
const CLOSING = Buffer.from(`${framed(closingEvents(false))}0\r\n\r\n`)
const CLOSING_WITH_USAGE = Buffer.from(`${framed(closingEvents(true))}0\r\n\r\n`)

interface Peer {
  held: Buffer
  timer?: ReturnType<typeof setInterval>
}
type Socket = Bun.Socket<Peer>

let accepted = 0

Bun.listen<Peer>({
  hostname: '127.0.0.1',
  port,
  socket: {
    open(socket) {
      accepted++
      socket.data = { held: Buffer.alloc(0) }
    },
    data(socket, bytes) {
      socket.data.held = Buffer.concat([socket.data.held, bytes])
      const body = takeRequest(socket.data)
      if (body === 'get') write(socket, countAnswer())
      else if (body !== undefined) stream(socket, body)
    },
    close: socket => clearInterval(socket.data.timer),
  },
})

const countAnswer = (): string =>
  `HTTP/1.1 200 OK\r\nContent-Length: ${String(accepted).length}\r\n\r\n${accepted}`

/** The body of a request that is there whole. One at a time: nobody pipelines here. */
function takeRequest(peer: Peer): string | undefined {
  const end = peer.held.indexOf('\r\n\r\n')
  if (end < 0) return undefined
  const head = peer.held.toString('latin1', 0, end)
  const length = Number(/^content-length: *(\d+)/im.exec(head)?.[1] ?? 0)
  if (peer.held.length < end + 4 + length) return undefined
  const body = head.startsWith('GET ') ? 'get' : peer.held.toString('utf8', end + 4, end + 4 + length)
  peer.held = Buffer.alloc(0)
  return body
}

function stream(socket: Socket, body: string): void {
  const asked = JSON.parse(body) as { stream_options?: { include_usage?: boolean } }
  write(socket, HEAD)
  let next = 0
  socket.data.timer = setInterval(() => {
    if (next < EVENTS.length) return write(socket, EVENTS[next++]!)
    clearInterval(socket.data.timer)
    write(socket, asked.stream_options?.include_usage === true ? CLOSING_WITH_USAGE : CLOSING)
  }, gapMs)
}

/** A peer that does not take a few bytes at once is broken: it is cut off, and the load generator will say so. */
function write(socket: Socket, bytes: Buffer | string): void {
  if (socket.write(bytes) < bytes.length) socket.terminate()
}
