// Sends queries to the query thread, one after the other. The thread is started by the first query. A query that takes
// too long is ended together with its thread, and the next query starts a new thread.

import { bounds } from '../../base/bounds.ts'
import { Refusal } from '../../base/errors.ts'
import { Thread } from '../../base/threads/thread.ts'
import type { QueryInput, QueryName, QueryResult } from './queries.ts'
import type { QueryThreadMethods } from './query-thread.ts'

interface PendingQuery {
  readonly name: QueryName
  /** JSON. */
  readonly input: string
  resolve(result: unknown): void
  reject(fault: Error): void
  /** Ends the wait in the queue. */
  readonly timer: ReturnType<typeof setTimeout>
}

/** A queued query is refused after this many times the longest time that one query may take. */
const QUEUE_WAIT_FACTOR = 2

export class QueryWorker {
  readonly #thread: Thread<QueryThreadMethods, string>
  readonly #msMax: number
  readonly #queue: PendingQuery[] = []
  #isBusy = false

  constructor(path: string, { msMax }: { readonly msMax: number } = { msMax: bounds.queryMsMax }) {
    this.#msMax = msMax
    this.#thread = new Thread({
      url: new URL('./query-thread.ts', import.meta.url),
      setup: () => path,
      isUnreferenced: true,
      onDeath: unavailable,
    })
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
    const closed = unavailable('closed')
    for (const { timer, reject } of this.#queue.splice(0)) {
      clearTimeout(timer)
      reject(closed)
    }
    this.#thread.stop(closed)
  }

  #sendNext(): void {
    if (this.#isBusy) return
    const query = this.#queue.shift()
    if (query === undefined) return
    this.#isBusy = true
    const { name, input, timer, resolve, reject } = query
    clearTimeout(timer)
    // The thread itself ends only with its query, because SQLite cannot be interrupted from here.
    const error = (): Refusal => {
      this.#thread.stop()
      return unavailable(`${name} took too long`)
    }
    this.#thread
      .run(name, input, { timeout: { ms: this.#msMax, error } })
      .then(result => resolve(JSON.parse(result)), reject)
      .finally(() => {
        this.#isBusy = false
        this.#sendNext()
      })
  }

  /** Refuses a query that has waited in the queue for too long. */
  #refuseWaiting(query: PendingQuery): void {
    const index = this.#queue.indexOf(query)
    if (index >= 0) this.#queue.splice(index, 1)
    query.reject(overloaded())
  }
}

const overloaded = (): Refusal => new Refusal('overloaded', 'too many queries are waiting', { retryAfterMs: 1_000 })
const unavailable = (detail: string): Refusal => new Refusal('storage_away', detail, { retryAfterMs: 1_000 })
