// A provider on a real socket that does what it is told: the tests' upstream and the built-in `demo` provider.
//
//   const upstream = await startFakeUpstream()
//   upstream.plan(fail(503), answer('hi'))           the next two requests
//   upstream.planModel('broken', truncatedStream())  every request of this model
//
// Requests that nothing was planned for are answered as default-answers.ts says.

import type { AddressInfo, Server } from 'node:net'
import { createServer } from 'node:net'
import { assert } from '../../src/base/assert.ts'
import { Connection } from './connection.ts'
import { DefaultAnswers } from './default-answers.ts'
import { dialectOf } from './dialects.ts'
import { bodyBytesMaxDefault } from './http-request.ts'
import { ordinalsOfAccount } from './issued.ts'
import type { ReceivedRequest } from './request.ts'
import type { Script, Start } from './script.ts'

export type { ReceivedRequest } from './request.ts'
export type { Script } from './script.ts'

/** What to do at this moment of a connection; undefined lets it go on. There is a request from its head on. */
export type Decide = (at: Start, request: ReceivedRequest | undefined) => Script | undefined

export interface FakeUpstream {
  /** http://127.0.0.1:<port> */
  readonly url: string
  /** The last ones only, in the order in which they were received. */
  readonly requests: readonly ReceivedRequest[]
  readonly openSockets: number
  /** The next requests are answered by these scripts, one each, in order; afterwards the default answers again. */
  plan(...scripts: readonly Script[]): void
  /** Answers every request of this model with the script until told otherwise. */
  planModel(model: string, script: Script | undefined): void
  /** Asked at every moment at which nothing was planned, before models and defaults are looked at. */
  decideBy(decide: Decide | undefined): void
  /** The next request from now on, once it was received whole (or its head, if that is where its script begins). */
  nextRequest(): Promise<ReceivedRequest>
  /** Closes everything at once. */
  stop(): Promise<void>
}

export interface FakeUpstreamOptions {
  readonly host?: string
  readonly port?: number
  readonly keepRequests?: number
  /** Which account of the provider it is, from 0: ids and opaque state of one are foreign to all others. */
  readonly account?: number
  /** A larger body is refused with 413. */
  readonly bodyBytesMax?: number
}

const requestsKeptMax = 1_000
const startOrder: Record<Start, number> = { accept: 0, head: 1, request: 2 }

interface Waiter {
  readonly resolve: (request: ReceivedRequest) => void
  readonly reject: (fault: Error) => void
}

class RunningUpstream implements FakeUpstream {
  readonly requests: ReceivedRequest[] = []
  readonly bodyBytesMax: number
  url = ''
  readonly #server: Server
  readonly #keepRequests: number
  readonly #connections = new Set<Connection>()
  readonly #byModel = new Map<string, Script>()
  readonly #defaults = new DefaultAnswers()
  #planned: Script[] = []
  #decide: Decide | undefined
  #waiters: Waiter[] = []
  #requestCount: number
  #connectionCount = 0

  constructor(options: FakeUpstreamOptions) {
    this.#requestCount = (options.account ?? 0) * ordinalsOfAccount
    this.bodyBytesMax = Math.min(options.bodyBytesMax ?? bodyBytesMaxDefault, bodyBytesMaxDefault)
    this.#keepRequests = Math.min(options.keepRequests ?? requestsKeptMax, requestsKeptMax)
    this.#server = createServer({ allowHalfOpen: true, noDelay: true }, socket => {
      const connection = new Connection(socket, this, ++this.#connectionCount)
      this.#connections.add(connection)
      void connection.gone.then(() => this.#connections.delete(connection))
      void connection.serve()
    })
  }

  async listen(host: string, port: number): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      this.#server.once('error', reject)
      this.#server.listen(port, host, () => resolve())
    })
    const address = this.#server.address() as AddressInfo
    this.url = `http://${host.includes(':') ? `[${host}]` : host}:${address.port}`
  }

  get openSockets(): number {
    return this.#connections.size
  }

  plan(...scripts: readonly Script[]): void {
    this.#planned.push(...scripts)
  }

  planModel(model: string, script: Script | undefined): void {
    // The model is known only when the body is.
    assert(script === undefined || script.starts === 'request', 'the script of a model starts at the whole request')
    if (script) this.#byModel.set(model, script)
    else this.#byModel.delete(model)
  }

  decideBy(decide: Decide | undefined): void {
    this.#decide = decide
  }

  nextRequest(): Promise<ReceivedRequest> {
    const { promise, resolve, reject } = Promise.withResolvers<ReceivedRequest>()
    this.#waiters.push({ resolve, reject })
    promise.catch(() => {}) // a test that failed before it looked has its own fault to report
    return promise
  }

  async stop(): Promise<void> {
    const closed = new Promise<void>(resolve => this.#server.close(() => resolve()))
    for (const connection of this.#connections) connection.drop()
    for (const waiter of this.#waiters) waiter.reject(new Error('the fake upstream was stopped'))
    this.#waiters = []
    await closed
  }

  /** A script for an earlier moment is taken late rather than overtaken by the one planned after it. */
  takePlanned(at: Start, request: ReceivedRequest | undefined): Script | undefined {
    const next = this.#planned[0]
    return next && startOrder[next.starts] <= startOrder[at] ? this.#planned.shift() : this.#decide?.(at, request)
  }

  scriptFor(request: ReceivedRequest): Script {
    if (this.#byModel.size > 0 && request.method === 'POST') {
      const planned = this.#byModel.get(dialectOf(request).read(request).model)
      if (planned) return planned
    }
    return this.#defaults.answer(request)
  }

  nextOrdinal(): number {
    return ++this.#requestCount
  }

  noteRequest(request: ReceivedRequest): void {
    if (this.#keepRequests > 0) this.requests.push(request)
    if (this.requests.length > this.#keepRequests) this.requests.shift()
    const waiters = this.#waiters
    this.#waiters = []
    for (const waiter of waiters) waiter.resolve(request)
  }
}

export async function startFakeUpstream(options: FakeUpstreamOptions = {}): Promise<FakeUpstream> {
  const upstream = new RunningUpstream(options)
  await upstream.listen(options.host ?? '127.0.0.1', options.port ?? 0)
  return upstream
}
