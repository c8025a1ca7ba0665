// A WebSocket client on a bare TCP socket: it can send frames that no client library sends, stop reading, and vanish.

import net from 'node:net'
import type { Harness } from '../support/gateway.ts'
import { HUNG_MS } from '../support/gateway.ts'
import type { Wire } from '../support/responses-wire.ts'

export const model = 'openai/gpt-4o-mini'

export interface FrameOptions {
  readonly opcode?: number
  readonly fin?: boolean
  readonly masked?: boolean
  /** Reserved bits, as they stand in the first byte. */
  readonly reserved?: number
}

const MASK = Buffer.from([0x37, 0xfa, 0x21, 0x3d])

export function buildFrame(payload: Uint8Array | string, options: FrameOptions = {}): Buffer {
  const { opcode = 1, fin = true, masked = true, reserved = 0 } = options
  const bytes = Buffer.from(payload as Uint8Array)
  const first = (fin ? 0x80 : 0) | reserved | opcode
  const bit = masked ? 0x80 : 0
  const length = Buffer.alloc(8)
  length.writeBigUInt64BE(BigInt(bytes.length))
  const size =
    bytes.length < 126
      ? [bit | bytes.length]
      : bytes.length < 65_536
        ? [bit | 126, ...length.subarray(6)]
        : [bit | 127, ...length]
  const body = masked ? Buffer.from(bytes.map((byte, at) => byte ^ MASK[at % 4]!)) : bytes
  return Buffer.concat([Buffer.from([first, ...size]), ...(masked ? [MASK] : []), body])
}

export const handshake = {
  'connection': 'Upgrade',
  'upgrade': 'websocket',
  'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==',
  'sec-websocket-version': '13',
} as const

export interface ClosedWith {
  readonly code: number
  readonly reason: string
}

const terminal = new Set(['response.completed', 'response.incomplete', 'response.failed', 'error'])
export const isTerminal = ({ type }: Wire): boolean => terminal.has(type as string)

export class SocketClient {
  /** All messages so far. */
  readonly events: Wire[] = []
  /** The head of the answer to the handshake. */
  head = ''
  /** Bytes after the head of a refused handshake. */
  body = ''
  pings = 0
  closedWith: ClosedWith | undefined
  isGone = false
  readonly #socket: net.Socket
  #received: Buffer = Buffer.alloc(0)
  #wakes: (() => void)[] = []
  #read = 0

  constructor(url: string, path: string, headers: Readonly<Record<string, string>>) {
    const { hostname, port } = new URL(url)
    const lines = Object.entries({ host: 'weir', ...handshake, ...headers }).map(([name, value]) => `${name}: ${value}`)
    this.#socket = net.connect(Number(port), hostname, () => {
      this.#socket.write([`GET ${path} HTTP/1.1`, ...lines, '', ''].join('\r\n'))
    })
    this.#socket.on('data', (chunk: Buffer) => this.#receive(chunk))
    this.#socket.on('error', () => {})
    this.#socket.on('close', () => {
      this.isGone = true
      this.#wake()
    })
  }

  get status(): number {
    return Number(this.head.split(' ')[1] ?? 0)
  }

  header(name: string): string | undefined {
    const line = this.head.split('\r\n').find(one => one.toLowerCase().startsWith(`${name}:`))
    return line?.slice(name.length + 1).trim()
  }

  /** The handshake is accepted, or its refusal has arrived as a whole. */
  get isAnswered(): boolean {
    if (this.head === '' || this.status === 101) return this.head !== ''
    return Buffer.byteLength(this.body) >= Number(this.header('content-length') ?? 0)
  }

  send(message: unknown): void {
    this.sendBytes(buildFrame(typeof message === 'string' ? message : JSON.stringify(message)))
  }

  sendBytes(bytes: Uint8Array): void {
    this.#socket.write(bytes)
  }

  create(fields: object): void {
    this.send({ type: 'response.create', model, ...fields })
  }

  /** Sends a message and returns the events of its response. */
  async ask(fields: object): Promise<readonly Wire[]> {
    this.create(fields)
    return await this.response()
  }

  /** The events of the next response that were not returned before. */
  async response(): Promise<readonly Wire[]> {
    const from = this.#read
    const end = (): number => this.events.findIndex((event, at) => at >= from && isTerminal(event))
    await this.until(() => end() >= 0, 'the response has ended')
    this.#read = end() + 1
    return this.events.slice(from, this.#read)
  }

  async until(holds: () => boolean, claim: string): Promise<void> {
    const timer = setTimeout(() => this.#wake(), HUNG_MS)
    const endMs = performance.now() + HUNG_MS
    try {
      while (!holds()) {
        const seen = JSON.stringify(this.events.slice(-3)).slice(0, 600)
        if (this.isGone) throw new Error(`closed (${JSON.stringify(this.closedWith)}) before: ${claim}; ${seen}`)
        if (performance.now() >= endMs) throw new Error(`still not so: ${claim}; ${seen}`)
        await new Promise<void>(resolve => this.#wakes.push(resolve))
      }
    } finally {
      clearTimeout(timer)
    }
  }

  async closed(): Promise<ClosedWith | undefined> {
    await this.until(() => this.isGone || this.closedWith !== undefined, 'the connection is closed')
    return this.closedWith
  }

  /** Stops reading in the middle of the next message, which must be large. */
  async stopInMessage(): Promise<void> {
    await this.until(() => this.#received.length > 0, 'a part of a message has arrived')
    this.#socket.pause()
  }

  stopReading(): void {
    this.#socket.pause()
  }

  readOn(): void {
    this.#socket.resume()
  }

  leave(): void {
    this.#socket.destroy()
  }

  #receive(chunk: Buffer): void {
    this.#received = Buffer.concat([this.#received, chunk])
    if (this.head === '') {
      const end = this.#received.indexOf('\r\n\r\n')
      if (end < 0) return
      this.head = this.#received.toString('latin1', 0, end)
      this.#received = this.#received.subarray(end + 4)
    }
    if (this.status === 101) while (this.#takeFrame()) {}
    else this.body = this.#received.toString()
    this.#wake()
  }

  /** The server's frames are never masked or split. */
  #takeFrame(): boolean {
    const bytes = this.#received
    if (bytes.length < 2) return false
    const short = bytes[1]! & 0x7f
    const start = short === 126 ? 4 : short === 127 ? 10 : 2
    if (bytes.length < start) return false
    const length = short === 126 ? bytes.readUInt16BE(2) : short === 127 ? Number(bytes.readBigUInt64BE(2)) : short
    if (bytes.length < start + length) return false
    const payload = bytes.subarray(start, start + length)
    this.#received = bytes.subarray(start + length)
    const opcode = bytes[0]! & 0x0f
    if (opcode === 1) this.events.push(JSON.parse(payload.toString()) as Wire)
    else if (opcode === 9) this.pings++
    else if (opcode === 8) {
      this.closedWith = { code: length < 2 ? 1005 : payload.readUInt16BE(0), reason: payload.toString('utf8', 2) }
    }
    return true
  }

  #wake(): void {
    const wakes = this.#wakes
    this.#wakes = []
    for (const wake of wakes) wake()
  }
}

/** Opens a connection and waits for the answer to its handshake. */
export async function connect(
  { url }: Pick<Harness, 'url'>,
  key: string,
  { path = '/v1/responses', headers = {} }: { path?: string; headers?: Record<string, string> } = {},
): Promise<SocketClient> {
  const client = new SocketClient(url, path, { ...(key !== '' && { authorization: `Bearer ${key}` }), ...headers })
  await client.until(() => client.isAnswered, 'the handshake is answered')
  return client
}

export const textOf = (events: readonly Wire[]): string =>
  events
    .filter(({ type }) => type === 'response.output_text.delta')
    .map(({ delta }) => delta as string)
    .join('')

export const typesOf = (events: readonly Wire[]): readonly unknown[] => events.map(({ type }) => type)

export const responseOf = (events: readonly Wire[]): Wire => events.at(-1)!.response as Wire
