// Sends queries to the query thread, one after the other. The thread is started by the first query. A query that takes
// too long is ended together with its thread, and the next query starts a new thread.

import { bounds } from '../../base/bounds.ts'
import { Refusal } from '../../base/errors.ts'
import type { QueryInput, QueryName, QueryResult } from './queries.ts'
import type { QueryMessage, QueryReply } from './query-thread.ts'

interface PendingQuery {
  readonly name: QueryName
  /** JSON. */
  readonly input: string
  resolve(result: unknown): void
  reject(fault: Error): void
  timer: ReturnType<typeof setTimeout> | undefined
}

interface RunningQuery {
  readonly id: number
  readonly query: PendingQuery
}

/** A queued query is refused after this many times the longest time that one query may take. */
const QUEUE_WAIT_FACTOR = 2

export class QueryWorker {
  readonly #path: string
  readonly #msMax: number
  #thread: Worker | undefined
  readonly #queue: PendingQuery[] = []
  #running: RunningQuery | undefined
  #lastId = 0

  constructor(path: string, { msMax }: { readonly msMax: number } = { msMax: bounds.queryMsMax }) {
    this.#path = path
    this.#msMax = msMax
  }

  query<Name extends QueryName>(name: Name, input: QueryInput<Name>): Promise<QueryResult<Name>> {
    if (this.#queue.length >= bounds.queriesMax) return Promise.reject(overloaded())
    return new Promise((resolve, reject) => {
      const query: PendingQuery = {
        name,
        input: JSON.stringify(input),
        reject,
        resolve: resolve as PendingQuery['resolve'],
        timer: setTimeout(() => this.#refuseWaiting(query), QUEUE_WAIT_FACTOR * this.#msMax),
      }
      this.#queue.push(query)
      this.#sendNext()
    })
  }

  close(): void {
    const waiting = this.#queue.splice(0)
    this.#stopThread('closed')
    for (const query of waiting) refuse(query, unavailable('closed'))
  }

  #sendNext(): void {
    if (this.#running !== undefined) return
    const query = this.#queue.shift()
    if (query === undefined) return
    clearTimeout(query.timer)
    query.timer = setTimeout(() => this.#stopThread(`${query.name} took too long`), this.#msMax)
    const { name, input } = query
    const running = { id: ++this.#lastId, query }
    this.#running = running
    const thread = (this.#thread ??= this.#open())
    thread.postMessage({ id: running.id, name, input } satisfies QueryMessage)
  }

  /** Refuses a query that has waited in the queue for too long. */
  #refuseWaiting(query: PendingQuery): void {
    const index = this.#queue.indexOf(query)
    if (index >= 0) this.#queue.splice(index, 1)
    query.reject(overloaded())
  }

  #open(): Worker {
    const thread = new Worker(new URL('./query-thread.ts', import.meta.url).href)
    thread.onmessage = (event: MessageEvent<QueryReply>) => this.#receive(event.data)
    thread.onerror = event => {
      if (thread === this.#thread) this.#stopThread(event.message)
    }
    thread.unref()
    thread.postMessage({ open: this.#path } satisfies QueryMessage)
    return thread
  }

  #receive({ id, result, fault }: QueryReply): void {
    if (this.#running?.id !== id) return
    const { query } = this.#running
    this.#running = undefined
    clearTimeout(query.timer)
    if (result !== undefined) query.resolve(JSON.parse(result))
    else query.reject(new Error(fault))
    this.#sendNext()
  }

  /**
   * Refuses the running query and terminates the thread. The thread ends only with its query, because SQLite cannot be
   * interrupted from here.
   */
  #stopThread(detail: string): void {
    this.#thread?.terminate()
    this.#thread = undefined
    const running = this.#running
    this.#running = undefined
    if (running !== undefined) refuse(running.query, unavailable(detail))
    this.#sendNext()
  }
}

const overloaded = (): Refusal => new Refusal('overloaded', 'too many queries are waiting', { retryAfterMs: 1_000 })
const unavailable = (detail: string): Refusal => new Refusal('storage_away', detail, { retryAfterMs: 1_000 })

function refuse({ reject, timer }: PendingQuery, refusal: Refusal): void {
  clearTimeout(timer)
  reject(refusal)
}
