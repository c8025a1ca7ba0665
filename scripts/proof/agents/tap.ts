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

export interface Tap {
  readonly url: string
  heard(): readonly Heard[]
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
