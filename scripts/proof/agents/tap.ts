// A TCP relay between an agent and the gateway that changes nothing and notes what was asked and how it was answered.

import type { AddressInfo, Socket } from 'node:net'
import { connect, createServer } from 'node:net'

export interface Heard {
  /** Method and path. */
  readonly asked: string
  readonly status: number
  /** Of `X-Weir-Loss`, empty where nothing was lost. */
  readonly lost: readonly string[]
}

/** A request as the program sent it. */
export interface Sent {
  readonly method: string
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

export interface Tap {
  readonly url: string
  heard(): readonly Heard[]
  sent(): readonly Sent[]
  stop(): void
}

/** Both directions of one connection, as latin1 so that nothing is lost. */
interface Line {
  up: string
  down: string
}

export async function startTap(target: string): Promise<Tap> {
  const { hostname, port } = new URL(target)
  const lines: Line[] = []
  const sockets = new Set<Socket>()
  const server = createServer(agent => {
    const gateway = connect(Number(port), hostname)
    const line = { up: '', down: '' }
    lines.push(line)
    agent.on('data', bytes => void (line.up += bytes.toString('latin1')))
    gateway.on('data', bytes => void (line.down += bytes.toString('latin1')))
    for (const [from, to] of [
      [agent, gateway],
      [gateway, agent],
    ] as const) {
      sockets.add(from)
      from.pipe(to)
      from.on('error', () => to.destroy())
      from.on('close', () => sockets.delete(from) && to.destroy())
    }
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', () => resolve()))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    heard: () => lines.flatMap(heardOn),
    sent: () => lines.flatMap(({ up }) => sentOn(up)),
    stop() {
      server.close()
      for (const socket of sockets) socket.destroy()
    },
  }
}

/** Where one begins is not told by a line: a body need not end with one. */
const REQUEST = /\b(GET|HEAD|POST|PUT|DELETE|OPTIONS) (\/\S*) HTTP\/1\.1\r\n/g
const RESPONSE = /HTTP\/1\.1 (\d{3}) [^]*?\r\n\r\n/g

/** A connection is answered in order. */
function heardOn({ up, down }: Line): readonly Heard[] {
  const answers = [...down.matchAll(RESPONSE)]
  return Array.from(up.matchAll(REQUEST), ([, method, path], at) => {
    const [head = '', status = '0'] = answers[at] ?? []
    const lost = /^x-weir-loss: (.*)\r$/im.exec(head)?.[1]
    return { asked: `${method} ${path}`, status: Number(status), lost: lost?.split(', ') ?? [] }
  })
}

/** The requests of a connection. The last one may be cut off; then it is left out. */
function sentOn(up: string): readonly Sent[] {
  const sent: Sent[] = []
  for (let rest = up; ; ) {
    const [head, method, path] = /^(\S+) (\S+) HTTP\/1\.1\r\n[^]*?\r\n\r\n/.exec(rest) ?? []
    if (head === undefined) return sent
    const lines = head.trim().split('\r\n').slice(1)
    const headers = Object.fromEntries(
      lines.map(line => [line.slice(0, line.indexOf(':')).toLowerCase(), line.slice(line.indexOf(':') + 1).trim()]),
    )
    const after = rest.slice(head.length)
    const { body, length } =
      headers['transfer-encoding'] === 'chunked'
        ? dechunk(after)
        : plainBody(after, Number(headers['content-length'] ?? 0))
    sent.push({ method: method!, path: path!, headers, body: Buffer.from(body, 'latin1').toString('utf8') })
    rest = after.slice(length)
  }
}

const plainBody = (text: string, length: number) => ({ body: text.slice(0, length), length })

function dechunk(text: string): { readonly body: string; readonly length: number } {
  let [body, at] = ['', 0]
  for (;;) {
    const [line, size] = /^([0-9a-f]+)[^\r\n]*\r\n/i.exec(text.slice(at, at + 40)) ?? []
    if (line === undefined) return { body, length: text.length }
    const length = Number.parseInt(size!, 16)
    body += text.slice(at + line.length, at + line.length + length)
    at += line.length + length + 2
    if (length === 0) return { body, length: at }
  }
}
