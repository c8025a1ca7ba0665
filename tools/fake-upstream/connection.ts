// One socket of the fake upstream: reads its requests one by one and runs a script for each.

import type { Socket } from 'node:net'
import { ByteQueue } from './byte-queue.ts'
import type { RequestHead } from './http-request.ts'
import {
  bodyBytesMaxDefault,
  headBytesMax,
  readRequestBody,
  readRequestHead,
  UnreadableRequest,
} from './http-request.ts'
import { chunkBytes, headBytes, lastChunk, promisesChunks } from './http-response.ts'
import { chatWire } from './openai-chat/wire.ts'
import type { ReceivedRequest } from './request.ts'
import { emptyBody } from './request.ts'
import type { Script, ScriptStart, Step } from './script.ts'

/** The bound on bytes that are not read yet. It is above the bound on bodies, so that a refusal can be sent first. */
const UNREAD_BYTES_MAX = headBytesMax + bodyBytesMaxDefault
const WRITE_BYTES_MAX = 64 * 1024
/** How many steps run before other work of the process may run: tests have their client in the same process. */
const STEPS_AT_ONCE_MAX = 64

/** What a connection needs from its server. */
export interface ConnectionHost {
  readonly bodyBytesMax: number
  takePlanned(at: ScriptStart, request: ReceivedRequest | undefined): Script | undefined
  scriptFor(request: ReceivedRequest): Script
  nextOrdinal(): number
  noteRequest(request: ReceivedRequest): void
}

/** The end of a connection. Requests refer to it, and not to the connection, so that an open socket keeps no bodies. */
interface ConnectionEnd {
  readonly promise: Promise<void>
  atMs: number | undefined
}

class SocketRequest implements ReceivedRequest {
  readonly ordinal: number
  readonly connection: number
  readonly method: string
  readonly path: string
  readonly headers: ReadonlyMap<string, string>
  readonly rawHead: string
  readonly #ending: ConnectionEnd
  body: Uint8Array = emptyBody
  bytesWritten = 0

  constructor(origin: { ordinal: number; connection: number; closing: ConnectionEnd }, head: RequestHead | undefined) {
    this.ordinal = origin.ordinal
    this.connection = origin.connection
    this.#ending = origin.closing
    this.method = head?.method ?? ''
    this.path = head?.path ?? ''
    this.headers = head?.headers ?? new Map()
    this.rawHead = head?.rawHead ?? ''
  }

  get closed(): Promise<void> {
    return this.#ending.promise
  }

  get closedAtMs(): number | undefined {
    return this.#ending.atMs
  }

  json(): unknown {
    return JSON.parse(new TextDecoder().decode(this.body)) as unknown
  }
}

export class Connection {
  readonly #socket: Socket
  readonly #host: ConnectionHost
  readonly #number: number
  readonly #input = new ByteQueue()
  readonly #gone = Promise.withResolvers<void>()
  readonly #ending: ConnectionEnd = { promise: this.#gone.promise, atMs: undefined }
  #isGone = false
  #isRefused = false
  /** Whether an answer has begun and not ended; the client would read a second head as its body. */
  #hasBegunAnswer = false
  #wake: (() => void) | undefined

  constructor(socket: Socket, host: ConnectionHost, number: number) {
    this.#socket = socket
    this.#host = host
    this.#number = number
    socket.on('data', (data: Buffer) => this.#receive(data))
    // A FIN of the client counts as a disconnect: no client of this server closes one direction only.
    socket.on('end', () => this.drop())
    socket.on('error', () => this.#end())
    socket.on('close', () => this.#end())
  }

  get gone(): Promise<void> {
    return this.#gone.promise
  }

  drop(): void {
    this.#socket.destroy()
    this.#end()
  }

  async serve(): Promise<void> {
    try {
      await this.#serveAll()
    } catch (fault) {
      this.#refuse(fault)
    }
  }

  #refuse(fault: unknown): void {
    if (this.#isGone) return
    // The rest of the request is read and dropped: a socket that is closed with unread bytes would lose the answer.
    this.#isRefused = true
    if (this.#hasBegunAnswer) return void this.#socket.resetAndDestroy()
    const message = fault instanceof Error ? fault.message : 'a script threw'
    const isUnreadable = fault instanceof UnreadableRequest
    const type = isUnreadable ? 'invalid_request_error' : 'fake_upstream_error'
    const body = Buffer.from(chatWire.error({ message: `fake upstream: ${message}`, type }))
    const head = headBytes(isUnreadable ? fault.status : 500, [
      ['content-type', 'application/json'],
      ['content-length', String(body.length)],
      ['connection', 'close'],
    ])
    this.#socket.end(Buffer.concat([head, body]))
  }

  async #serveAll(): Promise<void> {
    const atAccept = this.#host.takePlanned('accept', undefined)
    if (atAccept) return void (await this.#run(atAccept, this.#createRequest(undefined)))
    for (;;) {
      const head = await readRequestHead(this.#input)
      if (!head) return
      const request = this.#createRequest(head)
      const atHead = this.#host.takePlanned('head', request)
      if (!atHead) {
        if (head.expectsContinue) this.#socket.write(headBytes(100, []))
        const body = await readRequestBody(head, this.#input, this.#host.bodyBytesMax)
        if (!body) return
        request.body = body
      }
      this.#host.noteRequest(request)
      const script = atHead ?? this.#host.takePlanned('request', request) ?? this.#host.scriptFor(request)
      if ((await this.#run(script, request)) === 'left') return
      // If the body was not read, the start of the next request is not known.
      if (!head.keepAlive || atHead) return void this.#socket.end()
    }
  }

  #createRequest(head: RequestHead | undefined): SocketRequest {
    const ordinal = head ? this.#host.nextOrdinal() : 0
    return new SocketRequest({ ordinal, connection: this.#number, closing: this.#ending }, head)
  }

  /** Returns 'ended' if the answer is complete and the socket can take another request. */
  async #run(script: Script, request: SocketRequest): Promise<'ended' | 'left'> {
    let chunked = false
    let steps = 0
    for (const step of script.steps(request)) {
      if (this.#isGone) return 'left'
      if (step.kind === 'head') chunked = promisesChunks(step)
      if (step.kind === 'end') {
        if (chunked) await this.#write(lastChunk, request)
        this.#hasBegunAnswer = false
        return 'ended'
      }
      await this.#runStep(step, request)
      if (step.kind === 'close' || step.kind === 'reset') return 'left'
      if (++steps % STEPS_AT_ONCE_MAX === 0) await this.#until(proceed => setImmediate(proceed))
    }
    return 'left'
  }

  #runStep(step: Exclude<Step, { kind: 'end' }>, request: SocketRequest): Promise<void> | void {
    switch (step.kind) {
      case 'head':
        return this.#write(headBytes(step.status, step.headers), request)
      case 'bytes':
        return this.#write(step.bytes, request)
      case 'chunk':
        return this.#write(chunkBytes(step.bytes), request)
      case 'wait':
        return this.#wait(step.ms)
      case 'gate':
        return this.#until(proceed => void step.opens.then(proceed, proceed))
      case 'reading':
        return void (step.on ? this.#socket.resume() : this.#socket.pause())
      case 'close':
        return void this.#socket.end()
      case 'reset':
        return void this.#socket.resetAndDestroy()
      default:
        step satisfies never
    }
  }

  /** Waits until the client reads, so that a test can see whether the gateway applies backpressure. */
  #write(data: Uint8Array, request: SocketRequest): Promise<void> | void {
    if (data.length <= WRITE_BYTES_MAX) return this.#writePiece(data, request)
    return this.#writeLong(data, request)
  }

  async #writeLong(data: Uint8Array, request: SocketRequest): Promise<void> {
    for (let at = 0; at < data.length; at += WRITE_BYTES_MAX) {
      await this.#writePiece(data.subarray(at, at + WRITE_BYTES_MAX), request)
    }
  }

  #writePiece(piece: Uint8Array, request: SocketRequest): Promise<void> | void {
    if (this.#isGone) return
    this.#hasBegunAnswer = true
    const room = this.#socket.write(piece, error => {
      if (!error) request.bytesWritten += piece.length
    })
    if (!room) return this.#until(proceed => this.#socket.once('drain', proceed))
  }

  async #wait(ms: number): Promise<void> {
    let timer: ReturnType<typeof setTimeout> | undefined
    await this.#until(proceed => (timer = setTimeout(proceed, ms)))
    clearTimeout(timer)
  }

  /** Every wait ends when the client disconnects. */
  async #until(arm: (proceed: () => void) => unknown): Promise<void> {
    if (this.#isGone) return
    await new Promise<void>(resolve => {
      this.#wake = resolve
      arm(resolve)
    })
    this.#wake = undefined
  }

  #receive(data: Buffer): void {
    if (this.#isRefused) return
    if (this.#input.length + data.length > UNREAD_BYTES_MAX) return this.drop()
    this.#input.push(data)
  }

  #end(): void {
    if (this.#isGone) return
    this.#isGone = true
    this.#ending.atMs = performance.now()
    this.#input.end()
    this.#gone.resolve()
    this.#wake?.()
  }
}
