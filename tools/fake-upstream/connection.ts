// One socket of the fake upstream: reads its requests one after the other and runs a script for each.

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
import type { Script, Start, Step } from './script.ts'

/** Of what came and was not read yet; more than any bound of a body, so that a refusal can be said first. */
const unreadBytesMax = headBytesMax + bodyBytesMaxDefault
const writeBytesMax = 64 * 1024
/** Steps that run before others get their turn, because tests have the client in the same process. */
const stepsAtOnceMax = 64

/** What a connection asks of the server it belongs to. */
export interface ConnectionHost {
  readonly bodyBytesMax: number
  takePlanned(at: Start, request: ReceivedRequest | undefined): Script | undefined
  scriptFor(request: ReceivedRequest): Script
  nextOrdinal(): number
  noteRequest(request: ReceivedRequest): void
}

/** The end of a connection, as its requests see it. They hold it and not the reverse: a kept socket keeps no bodies. */
interface Closing {
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
  readonly #closing: Closing
  body: Uint8Array = emptyBody
  bytesWritten = 0

  constructor(origin: { ordinal: number; connection: number; closing: Closing }, head: RequestHead | undefined) {
    this.ordinal = origin.ordinal
    this.connection = origin.connection
    this.#closing = origin.closing
    this.method = head?.method ?? ''
    this.path = head?.path ?? ''
    this.headers = head?.headers ?? new Map()
    this.rawHead = head?.rawHead ?? ''
  }

  get closed(): Promise<void> {
    return this.#closing.promise
  }

  get closedAtMs(): number | undefined {
    return this.#closing.atMs
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
  readonly #closing: Closing = { promise: this.#gone.promise, atMs: undefined }
  #isGone = false
  #isRefused = false
  /** Whether an answer has begun and not ended; a second head would be read as its body. */
  #hasSpoken = false
  #wake: (() => void) | undefined

  constructor(socket: Socket, host: ConnectionHost, number: number) {
    this.#socket = socket
    this.#host = host
    this.#number = number
    socket.on('data', (data: Buffer) => this.#keep(data))
    // A FIN of the client counts as its going away: none of the clients we serve closes one half only.
    socket.on('end', () => this.drop())
    socket.on('error', () => this.#leave())
    socket.on('close', () => this.#leave())
  }

  get gone(): Promise<void> {
    return this.#gone.promise
  }

  drop(): void {
    this.#socket.destroy()
    this.#leave()
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
    // The rest of the request is read and forgotten: a socket closed with bytes unread would lose the answer.
    this.#isRefused = true
    if (this.#hasSpoken) return void this.#socket.resetAndDestroy()
    const words = fault instanceof Error ? fault.message : 'a script threw'
    const unreadable = fault instanceof UnreadableRequest
    const type = unreadable ? 'invalid_request_error' : 'fake_upstream_error'
    const body = Buffer.from(chatWire.error({ message: `fake upstream: ${words}`, type }))
    const head = headBytes(unreadable ? fault.status : 500, [
      ['content-type', 'application/json'],
      ['content-length', String(body.length)],
      ['connection', 'close'],
    ])
    this.#socket.end(Buffer.concat([head, body]))
  }

  async #serveAll(): Promise<void> {
    const atAccept = this.#host.takePlanned('accept', undefined)
    if (atAccept) return void (await this.#run(atAccept, this.#request(undefined)))
    for (;;) {
      const head = await readRequestHead(this.#input)
      if (!head) return
      const request = this.#request(head)
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
      // Where a body was not read, nobody knows where the next request begins.
      if (!head.keepAlive || atHead) return void this.#socket.end()
    }
  }

  #request(head: RequestHead | undefined): SocketRequest {
    const ordinal = head ? this.#host.nextOrdinal() : 0
    return new SocketRequest({ ordinal, connection: this.#number, closing: this.#closing }, head)
  }

  /** 'ended' when the answer is whole and the socket can take another request. */
  async #run(script: Script, request: SocketRequest): Promise<'ended' | 'left'> {
    let chunked = false
    let steps = 0
    for (const step of script.steps(request)) {
      if (this.#isGone) return 'left'
      if (step.kind === 'head') chunked = promisesChunks(step)
      if (step.kind === 'end') {
        if (chunked) await this.#write(lastChunk, request)
        this.#hasSpoken = false
        return 'ended'
      }
      await this.#take(step, request)
      if (step.kind === 'close' || step.kind === 'reset') return 'left'
      if (++steps % stepsAtOnceMax === 0) await this.#until(go => setImmediate(go))
    }
    return 'left'
  }

  #take(step: Exclude<Step, { kind: 'end' }>, request: SocketRequest): Promise<void> | void {
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
        return this.#until(go => void step.opens.then(go, go))
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

  /** Waits for the client to take what we write, so that a gateway that holds back is seen to do so. */
  #write(data: Uint8Array, request: SocketRequest): Promise<void> | void {
    if (data.length <= writeBytesMax) return this.#writePiece(data, request)
    return this.#writeLong(data, request)
  }

  async #writeLong(data: Uint8Array, request: SocketRequest): Promise<void> {
    for (let at = 0; at < data.length; at += writeBytesMax) {
      await this.#writePiece(data.subarray(at, at + writeBytesMax), request)
    }
  }

  #writePiece(piece: Uint8Array, request: SocketRequest): Promise<void> | void {
    if (this.#isGone) return
    this.#hasSpoken = true
    const room = this.#socket.write(piece, error => {
      if (!error) request.bytesWritten += piece.length
    })
    if (!room) return this.#until(go => this.#socket.once('drain', go))
  }

  async #wait(ms: number): Promise<void> {
    let timer: ReturnType<typeof setTimeout> | undefined
    await this.#until(go => (timer = setTimeout(go, ms)))
    clearTimeout(timer)
  }

  /** Every wait ends when the client goes away. */
  async #until(arm: (go: () => void) => unknown): Promise<void> {
    if (this.#isGone) return
    await new Promise<void>(resolve => {
      this.#wake = resolve
      arm(resolve)
    })
    this.#wake = undefined
  }

  #keep(data: Buffer): void {
    if (this.#isRefused) return
    if (this.#input.length + data.length > unreadBytesMax) return this.drop()
    this.#input.push(data)
  }

  #leave(): void {
    if (this.#isGone) return
    this.#isGone = true
    this.#closing.atMs = performance.now()
    this.#input.end()
    this.#gone.resolve()
    this.#wake?.()
  }
}
