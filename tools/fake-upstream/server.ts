// A scriptable provider on a real socket: the tests' upstream and, behind demo.ts, the built-in `demo` provider.
//
//   const upstream = await startFakeUpstream()
//   upstream.plan(fail(503), answer('hi'))           the next two requests
//   upstream.planModel('broken', truncatedStream())  every request of this model
//
// default-answers.ts answers all other requests.

import type { Server, Socket } from 'node:net'
import { createServer } from 'node:net'
import { assert } from '../../src/base/assert.ts'
import { Connection } from './connection.ts'
import { DefaultAnswers } from './default-answers.ts'
import { findDialect } from './dialects.ts'
import { bodyBytesMaxDefault } from './http-request.ts'
import { listenOn, socketOptions } from './listen.ts'
import { ordinalsPerAccount } from './reasoning-state.ts'
import type { ReceivedRequest } from './request.ts'
import type { Script, ScriptStart } from './script.ts'

export type { ReceivedRequest } from './request.ts'
export type { Script } from './script.ts'

/** Chooses a script at this point of a connection; undefined continues. The request is known from its head on. */
export type Decide = (at: ScriptStart, request: ReceivedRequest | undefined) => Script | undefined

export interface FakeUpstream {
  /** http://127.0.0.1:<port> */
  readonly url: string
  /** The last requests, in the order in which they arrived. */
  readonly requests: readonly ReceivedRequest[]
  readonly openSockets: number
  /** The next requests are answered by these scripts, one each, in order; afterwards the default answers again. */
  plan(...scripts: readonly Script[]): void
  /** Answers every request for this model with the script, until it is set to undefined. */
  planModel(model: string, script: Script | undefined): void
  /** Sets a function that chooses scripts when none is planned, before those of models and the default answers. */
  decideBy(decide: Decide | undefined): void
  /** Resolves with the next request, once it has arrived completely (or its head, if its script starts there). */
  nextRequest(): Promise<ReceivedRequest>
  /** Closes everything at once. */
  stop(): Promise<void>
}

export interface FakeUpstreamOptions {
  readonly host?: string
  readonly port?: number
  readonly keepRequests?: number
  /** The account of the provider, from 0. Ids and reasoning state of one account are not valid in another. */
  readonly account?: number
  /** A larger body is refused with 413. */
  readonly bodyBytesMax?: number
}

const REQUESTS_KEPT_MAX = 1_000
const START_ORDER: Record<ScriptStart, number> = { accept: 0, head: 1, request: 2 }

interface Waiter {
  readonly resolve: (request: ReceivedRequest) => void
  readonly reject: (fault: Error) => void
}

export class RunningUpstream implements FakeUpstream {
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
    this.#requestCount = (options.account ?? 0) * ordinalsPerAccount
    this.bodyBytesMax = Math.min(options.bodyBytesMax ?? bodyBytesMaxDefault, bodyBytesMaxDefault)
    this.#keepRequests = Math.min(options.keepRequests ?? REQUESTS_KEPT_MAX, REQUESTS_KEPT_MAX)
    this.#server = createServer(socketOptions, socket => this.accept(socket))
  }

  accept(socket: Socket): void {
    const connection = new Connection(socket, this, ++this.#connectionCount)
    this.#connections.add(connection)
    void connection.gone.then(() => this.#connections.delete(connection))
    void connection.serve()
  }

  async listen(host: string, port: number): Promise<void> {
    this.url = await listenOn(this.#server, host, port)
  }

  get openSockets(): number {
    return this.#connections.size
  }

  plan(...scripts: readonly Script[]): void {
    this.#planned.push(...scripts)
  }

  planModel(model: string, script: Script | undefined): void {
    // The model is known only from the body.
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
    promise.catch(() => {}) // a test that fails before it awaits this reports its own error
    return promise
  }

  async stop(): Promise<void> {
    const closed = new Promise<void>(resolve => this.#server.close(() => resolve()))
    for (const connection of this.#connections) connection.drop()
    for (const waiter of this.#waiters) waiter.reject(new Error('the fake upstream was stopped'))
    this.#waiters = []
    await closed
  }

  /** Takes scripts in their order: one that should have started earlier starts late. */
  takePlanned(at: ScriptStart, request: ReceivedRequest | undefined): Script | undefined {
    const next = this.#planned[0]
    return next && START_ORDER[next.starts] <= START_ORDER[at] ? this.#planned.shift() : this.#decide?.(at, request)
  }

  scriptFor(request: ReceivedRequest): Script {
    if (this.#byModel.size > 0 && request.method === 'POST') {
      const planned = this.#byModel.get(findDialect(request).read(request).model)
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
