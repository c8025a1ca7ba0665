// One keep-alive connection of a caller. It sends one request at a time and reads the whole answer; the caller can
// disconnect at any time.

import { HttpAnswer } from '../../../bench/load/http-answer.ts'

export interface CallAnswer {
  /** 0 if the connection was closed before the answer was complete. */
  readonly status: number
  readonly body: Buffer
  /** From the request to the last byte of the answer. */
  readonly ms: number
}

interface Waiting {
  readonly sentMs: number
  /** Called with the first bytes of the body. */
  readonly onBody: (() => void) | undefined
  resolve(answer: CallAnswer): void
}

const nothing = Buffer.alloc(0)
const CONNECTION_CLOSE = Buffer.from('\r\nConnection: close\r\n')

export class CallerConnection {
  readonly #answer = new HttpAnswer()
  #socket: Bun.Socket<undefined> | undefined
  #waiting: Waiting | undefined
  #unsent: Buffer | undefined
  #hasBody = false
  /** The gateway has announced that it closes the connection after this answer. */
  #closesAfterAnswer = false
  isOpen = true

  /** Undefined if the connection is refused. */
  static async open(port: number): Promise<CallerConnection | undefined> {
    const connection = new CallerConnection()
    try {
      connection.#socket = await Bun.connect({
        hostname: '127.0.0.1',
        port,
        socket: {
          data: (_, bytes) => connection.#receive(bytes),
          drain: () => connection.#write(),
          close: () => connection.#end(),
          error: () => connection.#end(),
        },
      })
      return connection
    } catch {
      return undefined
    }
  }

  get isBusy(): boolean {
    return this.#waiting !== undefined
  }

  /** The part of the current answer that has arrived, or the last answer. */
  get body(): Buffer {
    return this.#answer.hasBody ? this.#answer.body() : nothing
  }

  send(request: Buffer, onBody?: () => void): Promise<CallAnswer> {
    this.#answer.reset()
    this.#hasBody = false
    return new Promise(resolve => {
      this.#waiting = { sentMs: performance.now(), onBody, resolve }
      this.#unsent = request
      if (this.isOpen) this.#write()
      else this.#end()
    })
  }

  close(): void {
    this.#socket?.terminate()
    this.#end()
  }

  #write(): void {
    if (this.#unsent === undefined) return
    const sent = this.#socket!.write(this.#unsent)
    if (sent < 0) return this.#end()
    this.#unsent = sent < this.#unsent.length ? this.#unsent.subarray(sent) : undefined
  }

  #receive(bytes: Buffer): void {
    const waiting = this.#waiting
    if (waiting === undefined) return
    if (bytes.includes(CONNECTION_CLOSE)) this.#closesAfterAnswer = true
    const isWhole = this.#answer.add(bytes)
    if (!this.#hasBody && this.#answer.hasBody) {
      this.#hasBody = true
      waiting.onBody?.()
    }
    if (!isWhole) return
    this.#waiting = undefined
    if (this.#closesAfterAnswer) this.isOpen = false
    const { status } = this.#answer
    waiting.resolve({ status, body: this.#answer.body(), ms: performance.now() - waiting.sentMs })
  }

  #end(): void {
    this.isOpen = false
    const waiting = this.#waiting
    this.#waiting = undefined
    waiting?.resolve({ status: 0, body: nothing, ms: performance.now() - waiting.sentMs })
  }
}
