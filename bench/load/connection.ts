// One keep-alive connection of the load generator. It sends one request at a time, reads the whole answer and compares it.

import type { Check } from './expected.ts'
import { HttpAnswer } from './http-answer.ts'

export interface Call {
  readonly request: Buffer
  /** Checks the body of the answer. */
  readonly check: Check
}

export interface Timing {
  /** From the request to the first byte of the body. */
  readonly firstMs: number
  readonly totalMs: number
}

interface Waiting {
  readonly call: Call
  readonly sentMs: number
  resolve(timing: Timing): void
  reject(fault: Error): void
}

export class Connection {
  readonly #answer = new HttpAnswer()
  #socket!: Bun.Socket<undefined>
  #waiting: Waiting | undefined
  #firstMs = 0
  /** The part of a request that the socket did not accept at once. */
  #unsent: Buffer | undefined

  static async open(port: number): Promise<Connection> {
    const connection = new Connection()
    connection.#socket = await Bun.connect({
      hostname: '127.0.0.1',
      port,
      socket: {
        data: (_, bytes) => connection.#receive(bytes),
        drain: () => connection.#write(),
        close: () => connection.#fail(new Error('The connection was closed before the answer was complete.')),
        error: (_, fault) => connection.#fail(fault),
      },
    })
    return connection
  }

  send(call: Call): Promise<Timing> {
    this.#answer.reset()
    this.#firstMs = 0
    return new Promise((resolve, reject) => {
      this.#waiting = { call, sentMs: performance.now(), resolve, reject }
      this.#unsent = call.request
      this.#write()
    })
  }

  close(): void {
    this.#waiting = undefined
    this.#socket.terminate()
  }

  #write(): void {
    if (this.#unsent === undefined) return
    const sent = this.#socket.write(this.#unsent)
    if (sent < 0) return this.#fail(new Error('The socket did not accept the request.'))
    this.#unsent = sent < this.#unsent.length ? this.#unsent.subarray(sent) : undefined
  }

  #receive(bytes: Buffer): void {
    const waiting = this.#waiting
    if (waiting === undefined) return
    const isComplete = this.#answer.add(bytes)
    if (this.#firstMs === 0 && this.#answer.hasBody) this.#firstMs = performance.now()
    if (!isComplete) return
    this.#waiting = undefined
    const totalMs = performance.now() - waiting.sentMs
    const { status } = this.#answer
    const body = this.#answer.body()
    const problem = status === 200 ? waiting.call.check(body) : body.toString('utf8', 0, 500)
    if (problem !== undefined) waiting.reject(new Error(`status ${status}, ${problem}`))
    else waiting.resolve({ firstMs: this.#firstMs - waiting.sentMs, totalMs })
  }

  #fail(fault: Error): void {
    this.#waiting?.reject(fault)
    this.#waiting = undefined
  }
}
