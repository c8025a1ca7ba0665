// An upstream on plain sockets that does what the last message of a call tells it, so that one process serves every
// kind of load:
//
//   plain 300            the whole answer after 300 ms
//   stream 20 50         20 pieces, 50 ms apart, then the end
//   silent               nothing, ever
//   fault 500 | reset | cut | broken   a status, a reset, a stream that is cut, a stream with an error in it
//
// Run alone: `upstream.ts <port>`.

import { closingEvents, plainAnswer, streamEvents } from '../../../bench/upstreams/answers.ts'

export interface Upstream {
  readonly port: number
  /** Calls that are not answered to their end. */
  readonly open: number
  stop(): void
}

export interface Heard {
  /** The name that its caller gave the call, as `#name` behind what is to be done. */
  onAsked?(name: string): void
  /** A socket with an unfinished answer was closed by the other end. */
  onLeft?(name: string): void
}

interface Peer {
  held: Buffer
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

const DOES = /"do ([^"#]*?)(?: ?#([^"]*))?"/

export function startUpstream(port = 0, { onAsked, onLeft }: Heard = {}): Upstream {
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

  function answer(socket: Socket, does: string): void {
    const [kind, first = '0', second = '0'] = does.split(' ')
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
    peer.held = peer.held.length === 0 ? Buffer.from(bytes) : Buffer.concat([peer.held, bytes])
    const end = peer.held.indexOf('\r\n\r\n')
    if (end < 0) return
    const length = Number(/content-length: *(\d+)/i.exec(peer.held.toString('latin1', 0, end))?.[1] ?? 0)
    if (peer.held.length < end + 4 + length) return
    const [, does = 'plain 0', name = ''] = DOES.exec(peer.held.toString('latin1', end + 4)) ?? []
    peer.held = Buffer.alloc(0)
    peer.name = name
    open++
    onAsked?.(name)
    answer(socket, does)
  }

  const listener = Bun.listen<Peer>({
    hostname: '127.0.0.1',
    port,
    socket: {
      open: socket => void (socket.data = { held: Buffer.alloc(0), name: undefined, timer: undefined }),
      data: receive,
      close({ data }) {
        clearTimeout(data.timer)
        if (data.name === undefined) return
        open--
        onLeft?.(data.name)
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
