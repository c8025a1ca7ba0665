// A caller on a raw socket: it sees a streamed answer grow byte by byte, can stop reading, and can leave.

import net from 'node:net'
import type { ReceivedRequest } from '../../tools/fake-upstream/server.ts'
import type { Harness, HarnessOptions } from '../support/gateway.ts'
import { hello, startHarness, until } from '../support/gateway.ts'
import { post } from '../support/raw.ts'

export const model = 'openai/gpt-4o-mini'

/** Starts a harness whose stop does not wait for calls that a failed test left open. */
export function startHasty(options: HarnessOptions = {}): Promise<Harness> {
  return startHarness({ ...options, env: { WEIR_DRAIN_SECONDS: '0', ...options.env } })
}

export interface Caller {
  readonly status: number
  /** The head as it arrived, one character for each byte; empty until it is complete. */
  readonly head: string
  header(name: string): string | undefined
  /** The body so far, without its chunked framing. */
  readonly body: Buffer
  readonly text: string
  /** Whether the answer is complete: its last chunk or all announced bytes have arrived. */
  readonly isWhole: boolean
  /** Waits for the condition; fails when the socket closes before, or after a timeout. */
  until(holds: (caller: Caller) => boolean, claim: string, withinMs?: number): Promise<void>
  /** Waits for the whole answer. */
  whole(withinMs?: number): Promise<Caller>
  stopReading(): void
  readOn(): void
  /** Closes the socket. */
  leave(): void
  readonly closed: Promise<void>
}

/** Sends a chat call and returns as soon as it is on its way. A string is sent unchanged. */
export function openCall(harness: Harness, key: string, body: object | string): Caller {
  const json = typeof body === 'string' ? body : JSON.stringify({ model, messages: hello, ...body })
  const headers = { 'authorization': `Bearer ${key}`, 'content-type': 'application/json' }
  return openRaw(harness.url, post('/v1/chat/completions', headers, json))
}

export function openRaw(url: string, bytes: Uint8Array): Caller {
  return new SocketCaller(url, bytes)
}

class SocketCaller implements Caller {
  readonly #socket: net.Socket
  readonly #gone = Promise.withResolvers<void>()
  readonly #body = new BodyParser()
  #isGone = false
  #early: Buffer = Buffer.alloc(0)
  #wakes: (() => void)[] = []
  head = ''

  constructor(url: string, bytes: Uint8Array) {
    const { hostname, port } = new URL(url)
    this.#socket = net.connect(Number(port), hostname, () => this.#socket.write(bytes))
    this.#socket.on('data', (chunk: Buffer) => this.#receive(chunk))
    this.#socket.on('error', () => {})
    this.#socket.on('close', () => {
      this.#isGone = true
      this.#gone.resolve()
      this.#wake()
    })
  }

  get status(): number {
    return Number(this.head.split(' ')[1] ?? 0)
  }

  header(name: string): string | undefined {
    const line = this.head.split('\r\n').find(one => one.toLowerCase().startsWith(`${name.toLowerCase()}:`))
    return line?.slice(name.length + 1).trim()
  }

  get body(): Buffer {
    return this.#body.bytes
  }

  get text(): string {
    return this.body.toString('utf8')
  }

  get isWhole(): boolean {
    return this.head !== '' && this.#body.isWhole
  }

  get closed(): Promise<void> {
    return this.#gone.promise
  }

  async until(holds: (caller: Caller) => boolean, claim: string, withinMs = 100_000): Promise<void> {
    const timer = setTimeout(() => this.#wake(), withinMs)
    const endMs = performance.now() + withinMs
    try {
      while (!holds(this)) {
        if (this.#isGone) throw new Error(`the socket closed before: ${this.#told(claim)}`)
        if (performance.now() >= endMs) throw new Error(`still not so after ${withinMs} ms: ${this.#told(claim)}`)
        await new Promise<void>(resolve => this.#wakes.push(resolve))
      }
    } finally {
      clearTimeout(timer)
    }
  }

  async whole(withinMs?: number): Promise<Caller> {
    await this.until(() => this.isWhole, 'the answer is complete', withinMs)
    this.leave()
    return this
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

  #told(claim: string): string {
    return `${claim}; received ${JSON.stringify((this.head + this.text).slice(-600))}`
  }

  #receive(chunk: Buffer): void {
    if (this.head !== '') this.#body.push(chunk)
    else {
      this.#early = Buffer.concat([this.#early, chunk])
      const end = this.#early.indexOf('\r\n\r\n')
      if (end >= 0) {
        this.head = this.#early.toString('latin1', 0, end)
        this.#body.begin(this.header('content-length'))
        this.#body.push(this.#early.subarray(end + 4))
      }
    }
    this.#wake()
  }

  #wake(): void {
    const wakes = this.#wakes
    this.#wakes = []
    for (const wake of wakes) wake()
  }
}

/** Removes chunked framing as bytes arrive; a body with a length passes unchanged. */
class BodyParser {
  #length: number | undefined
  #parts: Buffer[] = []
  #size = 0
  #raw: Buffer = Buffer.alloc(0)
  #last = false

  begin(length: string | undefined): void {
    this.#length = length === undefined ? undefined : Number(length)
  }

  get bytes(): Buffer {
    if (this.#parts.length > 1) this.#parts = [Buffer.concat(this.#parts)]
    return this.#parts[0] ?? Buffer.alloc(0)
  }

  get isWhole(): boolean {
    return this.#length === undefined ? this.#last : this.#size >= this.#length
  }

  push(chunk: Buffer): void {
    if (this.#length !== undefined) return this.#keep(chunk)
    this.#raw = this.#raw.length === 0 ? chunk : Buffer.concat([this.#raw, chunk])
    for (let at = 0; ; ) {
      const lineEnd = this.#raw.indexOf('\r\n', at)
      const size = lineEnd < 0 ? 0 : Number.parseInt(this.#raw.toString('latin1', at, lineEnd), 16)
      const end = lineEnd + 2 + size + 2
      if (lineEnd < 0 || this.#raw.length < end) return void (this.#raw = this.#raw.subarray(at))
      if (size === 0) this.#last = true
      else this.#keep(this.#raw.subarray(lineEnd + 2, lineEnd + 2 + size))
      at = end
    }
  }

  #keep(bytes: Buffer): void {
    this.#parts.push(bytes)
    this.#size += bytes.length
  }
}

/** Waits until the upstream can write no more, and returns how many bytes it has written. */
export async function standstill(request: ReceivedRequest): Promise<number> {
  let [seen, same] = [-1, 0]
  await until(() => {
    same = request.bytesWritten === seen ? same + 1 : 0
    seen = request.bytesWritten
    return seen > 1024 * 1024 && same >= 40
  }, 'the upstream is held back')
  return seen
}

/**
 * Fails if this process needs more memory. Garbage does not count, but its memory returns to the system a moment after it
 * was collected.
 */
export async function memoryWithin(bytesMax: number): Promise<void> {
  await until(() => {
    Bun.gc(true)
    return process.memoryUsage().rss < bytesMax
  }, `this process needs less than ${bytesMax} bytes`)
}

/** A stream without the gateway's own comment blocks. */
export function withoutComments(body: Buffer | string): string {
  return body
    .toString()
    .replace(/: X-Pipeline-Breakdown [^\n]*\n\n/g, '')
    .replace(/: \n\n/g, '')
}

/** The data of each event in order, read as the SSE standard says. */
export function eventsOf(body: Buffer | string): readonly string[] {
  const events: string[] = []
  let data: string[] = []
  for (const line of body
    .toString()
    .replace(/^\ufeff/, '')
    .split(/\r\n|\n|\r/)) {
    if (line === '' && data.length > 0) {
      events.push(data.join('\n'))
      data = []
    } else if (line.startsWith('data:')) data.push(line.slice(line[5] === ' ' ? 6 : 5))
  }
  return events
}

export interface SpokenError {
  readonly message: string
  readonly type: string
  readonly code: string | null
  readonly param: string | null
}

/** The error in a body or in an event. */
export function errorOf(json: Buffer | string): SpokenError {
  return (JSON.parse(json.toString()) as { error: SpokenError }).error
}
