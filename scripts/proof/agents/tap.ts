// A TCP relay between an agent and the gateway. It changes nothing and records requests and answers.

import type { AddressInfo, Socket } from 'node:net'
import { connect, createServer } from 'node:net'

export interface AnsweredRequest {
  /** Method and path. */
  readonly request: string
  readonly status: number
  /** The codes of `X-Weir-Loss`; empty if the header is absent. */
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
  answered(): readonly AnsweredRequest[]
  sent(): readonly Sent[]
  stop(): void
}

/** The bytes of one connection in both directions, as latin1, which keeps every byte. */
interface RelayedBytes {
  up: string
  down: string
}

export async function startTap(target: string): Promise<Tap> {
  const { hostname, port } = new URL(target)
  const connections: RelayedBytes[] = []
  const sockets = new Set<Socket>()
  const server = createServer(agent => {
    const gateway = connect(Number(port), hostname)
    const relayed = { up: '', down: '' }
    connections.push(relayed)
    agent.on('data', bytes => void (relayed.up += bytes.toString('latin1')))
    gateway.on('data', bytes => void (relayed.down += bytes.toString('latin1')))
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
    answered: () => connections.flatMap(answeredOn),
    sent: () => connections.flatMap(({ up }) => sentOn(up)),
    stop() {
      server.close()
      for (const socket of sockets) socket.destroy()
    },
  }
}

/** A request may begin in the middle of a line, because the body before it need not end with a line break. */
const REQUEST = /\b(GET|HEAD|POST|PUT|DELETE|OPTIONS) (\/\S*) HTTP\/1\.1\r\n/g
const RESPONSE = /HTTP\/1\.1 (\d{3}) [^]*?\r\n\r\n/g

/** The answers on a connection come in the order of its requests. */
function answeredOn({ up, down }: RelayedBytes): readonly AnsweredRequest[] {
  const answers = [...down.matchAll(RESPONSE)]
  return Array.from(up.matchAll(REQUEST), ([, method, path], at) => {
    const [head = '', status = '0'] = answers[at] ?? []
    const lost = /^x-weir-loss: (.*)\r$/im.exec(head)?.[1]
    return { request: `${method} ${path}`, status: Number(status), lost: lost?.split(', ') ?? [] }
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
