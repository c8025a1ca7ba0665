// One keep-alive connection of a caller: a request out, its whole answer in, one at a time; and it can leave.

import { HttpAnswer } from '../../../bench/load/http-answer.ts'

export interface Answered {
  /** 0 where the connection closed before the answer was whole. */
  readonly status: number
  readonly body: Buffer
  /** From sending to the last byte. */
  readonly ms: number
}

interface Waiting {
  readonly sentMs: number
  /** Called with the first bytes of the body. */
  readonly onBody: (() => void) | undefined
  resolve(answered: Answered): void
}

const nothing = Buffer.alloc(0)
const LAST = Buffer.from('\r\nConnection: close\r\n')

export class Line {
  readonly #answer = new HttpAnswer()
  #socket: Bun.Socket<undefined> | undefined
  #waiting: Waiting | undefined
  #unsent: Buffer | undefined
  #hasBody = false
  /** The other end has said that it will close. */
  #isLast = false
  isOpen = true

  /** Undefined where nobody takes the connection. */
  static async open(port: number): Promise<Line | undefined> {
    const line = new Line()
    try {
      line.#socket = await Bun.connect({
        hostname: '127.0.0.1',
        port,
        socket: {
          data: (_, bytes) => line.#receive(bytes),
          drain: () => line.#write(),
          close: () => line.#end(),
          error: () => line.#end(),
        },
      })
      return line
    } catch {
      return undefined
    }
  }

  get isBusy(): boolean {
    return this.#waiting !== undefined
  }

  /** What has come of the answer so far, or of the last one. */
  get body(): Buffer {
    return this.#answer.hasBody ? this.#answer.body() : nothing
  }

  send(request: Buffer, onBody?: () => void): Promise<Answered> {
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
    if (bytes.includes(LAST)) this.#isLast = true
    const isWhole = this.#answer.add(bytes)
    if (!this.#hasBody && this.#answer.hasBody) {
      this.#hasBody = true
      waiting.onBody?.()
    }
    if (!isWhole) return
    this.#waiting = undefined
    if (this.#isLast) this.isOpen = false
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
