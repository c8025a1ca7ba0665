// A fast upstream: `stream.ts <port> <chunks> <gap in ms>`. A streamed call gets a stream in the dialect of its path; every
// chunk is flushed alone, and the gap is between two chunks. Any other call gets the plain answer at once. A GET returns
// the number of accepted connections. It uses plain sockets, because it shares a core with the load generator.

import { plainAnswer } from './answers.ts'
import type { UpstreamDialect } from './dialects.ts'
import { dialectOf, streamAnswer, upstreamDialects } from './dialects.ts'

const [port, chunks, gapMs] = process.argv.slice(2).map(Number) as [number, number, number]

const framed = (text: string): string => (text === '' ? '' : `${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`)

const HEAD = Buffer.from(
  'HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\nTransfer-Encoding: chunked\r\n\r\n',
)

interface Streamed {
  readonly events: readonly Buffer[]
  readonly closing: Buffer
  readonly closingWithUsage: Buffer
}

const streams = Object.fromEntries(
  upstreamDialects.map(dialect => {
    const { events, closing, closingWithUsage } = streamAnswer(dialect, chunks)
    const [end, endWithUsage] = [closing, closingWithUsage].map(text => Buffer.from(`${framed(text)}0\r\n\r\n`))
    const framedEvents = events.map(one => Buffer.from(framed(one)))
    return [dialect, { events: framedEvents, closing: end, closingWithUsage: endWithUsage }]
  }),
) as unknown as Readonly<Record<UpstreamDialect, Streamed>>

interface Peer {
  buffered: Buffer[]
  bytes: number
  timer?: ReturnType<typeof setInterval>
}
type Socket = Bun.Socket<Peer>

interface Request {
  readonly method: string
  readonly path: string
  readonly body: Buffer
}

let accepted = 0

Bun.listen<Peer>({
  hostname: '127.0.0.1',
  port,
  socket: {
    open(socket) {
      accepted++
      socket.data = { buffered: [], bytes: 0 }
    },
    data(socket, bytes) {
      socket.data.buffered.push(Buffer.from(bytes))
      socket.data.bytes += bytes.length
      const request = takeRequest(socket.data)
      if (request === undefined) return
      if (request.method === 'GET') write(socket, wholeAnswer(String(accepted)))
      else answer(socket, request)
    },
    close: socket => clearInterval(socket.data.timer),
  },
})

const wholeAnswer = (body: string): string =>
  `HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`

/** Takes a complete request. No caller sends a second request before the answer of the first. */
function takeRequest(peer: Peer): Request | undefined {
  const [first] = peer.buffered as [Buffer]
  const end = first.indexOf('\r\n\r\n')
  if (end < 0) {
    peer.buffered = [Buffer.concat(peer.buffered)] // the head came in pieces
    if (peer.buffered[0]!.length === first.length) return undefined
    return takeRequest(peer)
  }
  const head = first.toString('latin1', 0, end)
  const length = Number(/^content-length: *(\d+)/im.exec(head)?.[1] ?? 0)
  if (peer.bytes < end + 4 + length) return undefined
  const body = Buffer.concat(peer.buffered).subarray(end + 4, end + 4 + length)
  peer.buffered = []
  peer.bytes = 0
  const [method, path] = head.split(' ', 2) as [string, string]
  return { method, path, body }
}

function answer(socket: Socket, { path, body }: Request): void {
  const call = JSON.parse(body.toString('utf8')) as CallBody
  const dialect = dialectOf(path)
  if (call.stream !== true && dialect !== 'gemini') return write(socket, wholeAnswer(plainAnswer))
  const { events, closing, closingWithUsage } = streams[dialect]
  write(socket, HEAD)
  let next = 0
  socket.data.timer = setInterval(() => {
    if (next < events.length) return write(socket, events[next++]!)
    clearInterval(socket.data.timer)
    write(socket, call.stream_options?.include_usage === true ? closingWithUsage : closing)
  }, gapMs)
}

interface CallBody {
  readonly stream?: boolean
  readonly stream_options?: { readonly include_usage?: boolean }
}

/**
 * A gateway that does not read a few bytes at once is broken: its connection is closed, and the load generator reports
 * it.
 */
function write(socket: Socket, bytes: Buffer | string): void {
  if (socket.write(bytes) < bytes.length) socket.terminate()
}
