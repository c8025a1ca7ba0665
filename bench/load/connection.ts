// One keep-alive connection of the load generator: a request out, its whole answer in and compared, one at a time.

import { HttpAnswer } from './http-answer.ts'

export interface Call {
  readonly request: Buffer
  /** The body that must come back, to the byte but for comments between events. */
  readonly expected: Buffer
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

  static async open(port: number): Promise<Connection> {
    const connection = new Connection()
    connection.#socket = await Bun.connect({
      hostname: '127.0.0.1',
      port,
      socket: {
        data: (_, bytes) => connection.#receive(bytes),
        close: () => connection.#fail(new Error('The connection was closed before the answer was whole.')),
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
      if (this.#socket.write(call.request) < call.request.length) this.#fail(new Error('The request was not taken.'))
    })
  }

  close(): void {
    this.#waiting = undefined
    this.#socket.terminate()
  }

  #receive(bytes: Buffer): void {
    const waiting = this.#waiting
    if (waiting === undefined) return
    const whole = this.#answer.add(bytes)
    if (this.#firstMs === 0 && this.#answer.hasBody) this.#firstMs = performance.now()
    if (!whole) return
    this.#waiting = undefined
    const { status } = this.#answer
    const body = this.#answer.body()
    if (status !== 200 || !isAsExpected(body, waiting.call.expected)) {
      waiting.reject(new Error(`status ${status}, ${describeDifference(body, waiting.call.expected)}`))
    } else {
      const nowMs = performance.now()
      waiting.resolve({ firstMs: this.#firstMs - waiting.sentMs, totalMs: nowMs - waiting.sentMs })
    }
  }

  #fail(fault: Error): void {
    this.#waiting?.reject(fault)
    this.#waiting = undefined
  }
}

/** Weir tells in a comment how the time of a stream was spent; readers of events pass over it. */
function isAsExpected(body: Buffer, expected: Buffer): boolean {
  if (body.equals(expected)) return true
  const events = body.toString('latin1').replace(/^:[^\n]*\n\n/gm, '')
  return events === expected.toString('latin1')
}

/** Where a body stops being the one expected, with what stands there. */
function describeDifference(body: Buffer, expected: Buffer): string {
  let at = 0
  while (at < body.length && body[at] === expected[at]) at++
  const shown = JSON.stringify(body.toString('utf8', Math.max(0, at - 20), at + 200))
  return `${body.length} bytes instead of ${expected.length}, different from byte ${at}: ${shown}`
}
