// An upstream on plain sockets. The last message of each call has the behavior of the answer, so that one process serves
// every kind of load:
//
//   plain 300            the whole answer after 300 ms
//   stream 20 50         20 events, 50 ms apart, then the end
//   silent               no answer
//   fault 500 | reset | cut | broken   a status, a reset, a stream that is cut off, a stream with an error event
//
// As a program: `upstream.ts <port>`.

import { closingEvents, plainAnswer, streamEvents } from '../../../bench/upstreams/answers.ts'

export interface Upstream {
  readonly port: number
  /** Calls whose answers are not complete. */
  readonly open: number
  stop(): void
}

export interface UpstreamEvents {
  /** A request has arrived. Its name is `#name` behind the behavior. */
  onRequest?(name: string): void
  /** The gateway has closed a connection before its answer was complete. */
  onDisconnect?(name: string): void
}

interface Peer {
  buffered: Buffer
  name: string | undefined
  timer: ReturnType<typeof setTimeout> | undefined
}

type Socket = Bun.Socket<Peer>

const framed = (text: string): string => `${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`
const whole = (body: string, status = '200 OK'): Buffer =>
  Buffer.from(
    `HTTP/1.1 ${status}\r\nContent-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
  )

const STREAM_HEAD = 'HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n'
const PLAIN = whole(plainAnswer)
const FAILED = whole('{"error":{"message":"The engine broke.","type":"server_error"}}', '500 Internal Server Error')
const ERROR_EVENT = framed('data: {"error":{"message":"The engine broke.","type":"server_error"}}\n\n')
const CLOSING = `${framed(closingEvents(true))}0\r\n\r\n`

const BEHAVIOR = /"do ([^"#]*?)(?: ?#([^"]*))?"/

export function startUpstream(port = 0, { onRequest, onDisconnect }: UpstreamEvents = {}): Upstream {
  let open = 0
  const events = new Map<number, readonly string[]>()
  const eventsOf = (count: number): readonly string[] => {
    const made = events.get(count) ?? streamEvents(count).map(framed)
    events.set(count, made)
    return made
  }

  function finish(socket: Socket, bytes: string | Buffer): void {
    open--
    socket.data.name = undefined
    socket.write(bytes)
  }

  function stream(socket: Socket, { count, gapMs, last }: { count: number; gapMs: number; last: () => void }): void {
    const pieces = eventsOf(count)
    socket.write(STREAM_HEAD)
    let next = 0
    const step = (): void => {
      socket.write(pieces[next++]!)
      socket.data.timer = next < pieces.length ? setTimeout(step, gapMs) : setTimeout(last, gapMs)
    }
    step()
  }

  function answer(socket: Socket, behavior: string): void {
    const [kind, first = '0', second = '0'] = behavior.split(' ')
    if (kind === 'plain') {
      if (first === '0') return finish(socket, PLAIN)
      socket.data.timer = setTimeout(() => finish(socket, PLAIN), Number(first))
    } else if (kind === 'stream') {
      stream(socket, { count: Number(first), gapMs: Number(second), last: () => finish(socket, CLOSING) })
    } else if (kind === 'fault') fault(socket, first)
  }

  function fault(socket: Socket, name: string): void {
    if (name === 'reset') return void socket.terminate()
    if (name === '500') return finish(socket, FAILED)
    const last = name === 'cut' ? () => void socket.terminate() : () => finish(socket, `${ERROR_EVENT}0\r\n\r\n`)
    stream(socket, { count: 5, gapMs: 10, last })
  }

  function receive(socket: Socket, bytes: Buffer): void {
    const peer = socket.data
    peer.buffered = peer.buffered.length === 0 ? Buffer.from(bytes) : Buffer.concat([peer.buffered, bytes])
    const end = peer.buffered.indexOf('\r\n\r\n')
    if (end < 0) return
    const length = Number(/content-length: *(\d+)/i.exec(peer.buffered.toString('latin1', 0, end))?.[1] ?? 0)
    if (peer.buffered.length < end + 4 + length) return
    const [, behavior = 'plain 0', name = ''] = BEHAVIOR.exec(peer.buffered.toString('latin1', end + 4)) ?? []
    peer.buffered = Buffer.alloc(0)
    peer.name = name
    open++
    onRequest?.(name)
    answer(socket, behavior)
  }

  const listener = Bun.listen<Peer>({
    hostname: '127.0.0.1',
    port,
    socket: {
      open: socket => void (socket.data = { buffered: Buffer.alloc(0), name: undefined, timer: undefined }),
      data: receive,
      close({ data }) {
        clearTimeout(data.timer)
        if (data.name === undefined) return
        open--
        onDisconnect?.(data.name)
      },
      error() {},
    },
  })
  return {
    port: listener.port,
    get open() {
      return open
    },
    stop: () => listener.stop(true),
  }
}

if (import.meta.main) startUpstream(Number(process.argv[2]))
