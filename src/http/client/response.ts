// An upstream's answer as it arrives. Whoever reads it pulls; when nobody does, the socket is not read either, so
// that a slow caller holds back its upstream.

import { bounds } from '../../base/bounds.ts'
import type { Connection, ConnectionUser } from './connection.ts'
import type { ConnectionPool } from './connection-pool.ts'
import type { DialTimes } from './dial.ts'
import type { Incoming, Piece, Room } from './request.ts'
import { ResponseParser } from './response-parser.ts'

type Awaited = 'head' | 'piece' | 'whole'

const END: Piece = {}

/** Crumbs weigh more than their bytes. */
const PIECES_MAX = 256

/** On what a request is said, and how long it may take until it can be. */
export interface Line {
  readonly pool: ConnectionPool
  readonly times: DialTimes
}

export class Answer implements Incoming, ConnectionUser {
  readonly #pool: ConnectionPool
  readonly #times: DialTimes
  readonly sends: () => void
  readonly #parser = new ResponseParser()
  /** Until the answer is whole or has failed. */
  #connection: Connection | undefined
  #fault: Error | undefined
  readonly #pieces: Buffer[] = []
  #bytes = 0
  /** Of everything, when everything is awaited. */
  #bytesMax = 0
  #room: Room | undefined
  /** At most one thing is awaited at a time. */
  #awaited: Awaited | undefined
  #resolve: ((value: never) => void) | undefined
  #reject: ((fault: Error) => void) | undefined

  /** `sends` is called when the first bytes of the request are about to leave. */
  constructor({ pool, times }: Line, sends: () => void = () => {}) {
    this.#pool = pool
    this.#times = times
    this.sends = sends
  }

  /** Says it on a connection of the pool, and waits for the head of the answer. */
  ask(words: string, body: Uint8Array): Promise<Incoming> {
    this.#connection = this.#pool.take(this, this.#times)
    this.#connection.send(words, body)
    return this.#wait('head')
  }

  get status(): number {
    return this.#parser.head!.status
  }

  header(name: string): string | null {
    return this.#parser.head!.header(name)
  }

  mentions(words: string): boolean {
    return this.#parser.head!.mentions(words)
  }

  read(): Promise<Piece> {
    const value = this.#pieces.shift()
    if (value !== undefined) {
      this.#bytes -= value.length
      this.#connection?.resume()
      return Promise.resolve({ value })
    }
    if (this.#fault !== undefined) return Promise.reject(this.#fault)
    return this.#connection === undefined ? Promise.resolve(END) : this.#wait('piece')
  }

  readWhole(bytesMax: number, room?: Room): Promise<Buffer | undefined> {
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
    return this.#fault === undefined ? Promise.resolve(this.#joined()) : Promise.reject(this.#fault)
  }

  discard(): void {
    this.#pieces.length = this.#bytes = 0
    this.#connection?.destroy()
    this.#connection = undefined
    this.#fail('given up')
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

  #give(value: Incoming | Piece | Buffer | undefined): void {
    const resolve = this.#resolve as (given: typeof value) => void
    this.#awaited = this.#resolve = this.#reject = undefined
    resolve(value)
  }

  #joined(): Buffer {
    const whole = this.#pieces.length === 1 ? this.#pieces[0]! : Buffer.concat(this.#pieces, this.#bytes)
    this.#pieces.length = this.#bytes = 0
    return whole
  }

  // From here on: what the connection reports.

  received(connection: Connection, bytes: Buffer): void {
    const piece = this.#parser.push(bytes)
    if (piece !== undefined) this.#keep(piece, connection)
    if (this.#parser.stage === 'whole') this.#release(connection)
    else if (this.#parser.stage === 'broken') {
      connection.destroy()
      this.#connection = undefined
      this.#fault = new Error(`${this.#where()}: ${this.#parser.fault}`)
    }
    this.#tell()
  }

  closed(_connection: Connection, fault: string): void {
    this.#connection = undefined
    if (fault === '') this.#parser.end()
    if (this.#parser.stage !== 'whole') this.#fault = new Error(`${this.#where()}: ${fault || this.#parser.fault}`)
    this.#tell()
  }

  #where(): string {
    const { host, port } = this.#pool.place
    return `${host}:${port}`
  }

  #keep(piece: Buffer, connection: Connection): void {
    if (this.#awaited === 'piece') return this.#give({ value: piece })
    this.#pieces.push(piece)
    this.#bytes += piece.length
    const many = this.#bytes >= bounds.unreadBytesMax || this.#pieces.length >= PIECES_MAX
    if (!many) return
    if (this.#awaited !== 'whole') return connection.pause()
    const room = this.#room?.(this.#bytes)
    if (room === undefined) return
    connection.pause()
    void room.then(() => this.#connection?.resume())
  }

  /** A request that is still being sent when its answer ends would reach the next user of the connection. */
  #release(connection: Connection): void {
    this.#connection = undefined
    if (this.#parser.isReusable && connection.isFlushed) this.#pool.keep(connection)
    else connection.destroy()
  }

  /** Tells who waits, if there is something to tell. */
  #tell(): void {
    const over = this.#connection === undefined
    if (this.#awaited === 'head' && this.#parser.head !== undefined) return this.#give(this)
    if (this.#awaited === 'whole' && this.#bytes > this.#bytesMax) {
      this.#give(undefined)
      return this.discard()
    }
    if (!over || this.#awaited === undefined) return
    if (this.#fault !== undefined) return this.#fail(this.#fault.message)
    this.#give(this.#awaited === 'whole' ? this.#joined() : END)
  }
}
