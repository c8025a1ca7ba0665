// The response of an upstream while it arrives. The reader pulls. When nobody reads, the socket is paused, so that a
// slow caller slows down its upstream.

import { bounds } from '../../base/bounds.ts'
import type { Connection, ConnectionUser } from './connection.ts'
import type { ConnectionPool } from './connection-pool.ts'
import type { DialTimes } from './dialer.ts'
import type { IncomingResponse, ResponsePiece, WaitForMemory } from './request.ts'
import { ResponseParser } from './response-parser.ts'

type Awaited = 'head' | 'piece' | 'each' | 'whole'

const END: ResponsePiece = {}

/** Limits the number of unread pieces as well: each small piece takes more memory than its bytes. */
const PIECES_MAX = 256

/** The connection pool for a request, and the time limits for a new connection. */
export interface ConnectionSource {
  readonly pool: ConnectionPool
  readonly times: DialTimes
}

export class UpstreamResponse implements IncomingResponse, ConnectionUser {
  readonly #pool: ConnectionPool
  readonly #times: DialTimes
  readonly onSend: () => void
  readonly #parser = new ResponseParser()
  /** Set until the response is complete or has failed. */
  #connection: Connection | undefined
  #fault: Error | undefined
  readonly #pieces: Buffer[] = []
  #bytes = 0
  /** The limit of readWhole(). */
  #bytesMax = 0
  #room: WaitForMemory | undefined
  /** The reader's function of readEach(). */
  #take: ((piece: Buffer) => boolean) | undefined
  /** What the reader waits for; at most one thing at a time. */
  #awaited: Awaited | undefined
  #resolve: ((value: never) => void) | undefined
  #reject: ((fault: Error) => void) | undefined

  /** `sends` is called when the first bytes of the request are about to be sent. */
  constructor({ pool, times }: ConnectionSource, sends: () => void = () => {}) {
    this.#pool = pool
    this.#times = times
    this.onSend = sends
  }

  /** Sends the request on a connection of the pool, and waits for the head of the response. */
  send(head: string, body: Uint8Array): Promise<IncomingResponse> {
    this.#connection = this.#pool.take(this, this.#times)
    this.#connection.send(head, body)
    return this.#wait('head')
  }

  get status(): number {
    return this.#parser.head!.status
  }

  header(name: string): string | null {
    return this.#parser.head!.header(name)
  }

  headIncludes(text: string): boolean {
    return this.#parser.head!.mentions(text)
  }

  read(): Promise<ResponsePiece> {
    const value = this.#pieces.shift()
    if (value !== undefined) {
      this.#bytes -= value.length
      this.#connection?.resume()
      return Promise.resolve({ value })
    }
    if (this.#fault !== undefined) return Promise.reject(this.#fault)
    return this.#connection === undefined ? Promise.resolve(END) : this.#wait('piece')
  }

  get unreadPiece(): Buffer | undefined {
    return this.#pieces[0]
  }

  unread(bytes: Buffer): void {
    if (bytes.length === 0) return
    this.#pieces.unshift(bytes)
    this.#bytes += bytes.length
  }

  async readEach(take: (piece: Buffer) => boolean): Promise<boolean> {
    for (let piece = this.#pieces.shift(); piece !== undefined; piece = this.#pieces.shift()) {
      this.#bytes -= piece.length
      if (!take(piece)) return true
    }
    if (this.#fault !== undefined) throw this.#fault
    if (this.#connection === undefined) return false
    this.#connection.resume()
    this.#take = take
    return await this.#wait<boolean>('each')
  }

  readWhole(bytesMax: number, room?: WaitForMemory): Promise<Buffer | undefined> {
    if (Math.max(this.#parser.announcedBytes ?? 0, this.#bytes) > bytesMax) {
      this.discard()
      return Promise.resolve(undefined)
    }
    if (this.#connection !== undefined) {
      this.#bytesMax = bytesMax
      this.#room = room
      this.#connection.resume()
      return this.#wait('whole')
    }
    return this.#fault === undefined ? Promise.resolve(this.#joinPieces()) : Promise.reject(this.#fault)
  }

  discard(): void {
    this.#pieces.length = this.#bytes = 0
    this.#connection?.destroy()
    this.#connection = undefined
    this.#fail('the request was cancelled')
  }

  #fail(fault: string): void {
    this.#fault ??= new Error(fault)
    this.#awaited = undefined
    this.#reject?.(this.#fault)
    this.#resolve = this.#reject = undefined
  }

  #wait<T>(awaited: Awaited): Promise<T> {
    const { promise, resolve, reject } = Promise.withResolvers<T>()
    this.#awaited = awaited
    this.#resolve = resolve
    this.#reject = reject
    return promise
  }

  #resolveWith(value: IncomingResponse | ResponsePiece | Buffer | boolean | undefined): void {
    const resolve = this.#resolve as (result: typeof value) => void
    this.#awaited = this.#resolve = this.#reject = undefined
    resolve(value)
  }

  #joinPieces(): Buffer {
    const whole = this.#pieces.length === 1 ? this.#pieces[0]! : Buffer.concat(this.#pieces, this.#bytes)
    this.#pieces.length = this.#bytes = 0
    return whole
  }

  // The methods below are called by the connection.

  received(connection: Connection, bytes: Buffer): void {
    const piece = this.#parser.push(bytes)
    if (piece !== undefined) this.#addPiece(piece, connection)
    if (this.#connection === undefined) return // the reader of this piece has discarded the response
    if (this.#parser.stage === 'whole') this.#release(connection)
    else if (this.#parser.stage === 'broken') {
      connection.destroy()
      this.#connection = undefined
      this.#fault = new Error(`${this.#hostAndPort()}: ${this.#parser.fault}`)
    }
    this.#notifyReader()
  }

  closed(_connection: Connection, fault: string): void {
    this.#connection = undefined
    if (fault === '') this.#parser.end()
    if (this.#parser.stage !== 'whole') {
      this.#fault = new Error(`${this.#hostAndPort()}: ${fault || this.#parser.fault}`)
    }
    this.#notifyReader()
  }

  #hostAndPort(): string {
    const { host, port } = this.#pool.dialAddress
    return `${host}:${port}`
  }

  #addPiece(piece: Buffer, connection: Connection): void {
    if (this.#awaited === 'piece') return this.#resolveWith({ value: piece })
    if (this.#awaited === 'each') return this.#handOver(piece)
    this.#pieces.push(piece)
    this.#bytes += piece.length
    const isMuch = this.#bytes >= bounds.unreadBytesMax || this.#pieces.length >= PIECES_MAX
    if (!isMuch) return
    if (this.#awaited !== 'whole') return connection.pause()
    const room = this.#parser.stage === 'whole' ? undefined : this.#room?.(this.#bytes)
    if (room === undefined) return
    connection.pause()
    void room.then(() => this.#connection?.resume())
  }

  /** While the reader takes one piece after the other, a piece costs no promise. */
  #handOver(piece: Buffer): void {
    try {
      if (!this.#take!(piece) && this.#awaited === 'each') this.#resolveWith(true)
    } catch (fault) {
      this.#reject?.(fault as Error)
      this.#awaited = this.#resolve = this.#reject = undefined
    }
  }

  /** If the request is not completely sent when its response ends, the connection cannot be reused. */
  #release(connection: Connection): void {
    this.#connection = undefined
    if (this.#parser.isReusable && connection.isFlushed) this.#pool.release(connection)
    else connection.destroy()
  }

  /** Resolves or rejects the promise of the reader, if there is a result for it. */
  #notifyReader(): void {
    const isOver = this.#connection === undefined
    if (this.#awaited === 'head' && this.#parser.head !== undefined) return this.#resolveWith(this)
    if (this.#awaited === 'whole' && this.#bytes > this.#bytesMax) {
      this.#resolveWith(undefined)
      return this.discard()
    }
    if (!isOver || this.#awaited === undefined) return
    if (this.#fault !== undefined) return this.#fail(this.#fault.message)
    if (this.#awaited === 'whole') this.#resolveWith(this.#joinPieces())
    else this.#resolveWith(this.#awaited === 'each' ? false : END)
  }
}
