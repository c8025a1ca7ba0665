// Sends queries to the query thread, one after the other. The thread is started by the first query and ends when it has had
// none for a while, because it holds about ten megabytes. A query that takes too long is ended together with its thread.

import { bounds } from '../../base/bounds.ts'
import { Refusal } from '../../base/errors.ts'
import { Thread } from '../../base/threads/thread.ts'
import type { QueryInput, QueryName, QueryResult } from './queries.ts'
import { ownerOf, QueryQueue } from './query-queue.ts'
import type { QueryThreadMethods } from './query-thread.ts'

/** Longer than the pauses of somebody who works with the console. */
const IDLE_MS = 300_000

export class QueryWorker {
  readonly #thread: Thread<QueryThreadMethods, string>
  readonly #queue: QueryQueue
  readonly #msMax: number

  constructor(path: string, { msMax }: { readonly msMax: number } = { msMax: bounds.queryMsMax }) {
    this.#msMax = msMax
    this.#queue = new QueryQueue({ atOnce: 1, queryMsMax: msMax })
    this.#thread = new Thread({
      url: new URL('./query-thread.ts', import.meta.url),
      setup: () => path,
      isUnreferenced: true,
      idleMs: IDLE_MS,
      onDeath: unavailable,
    })
  }

  /** `askerId`: the member whose turn the query takes, where it has no scope. */
  query<Name extends QueryName>(name: Name, input: QueryInput<Name>, askerId?: number): Promise<QueryResult<Name>> {
    const text = JSON.stringify(input)
    return this.#queue.run(ownerOf(input, askerId), async () => JSON.parse(await this.#send(name, text)))
  }

  close(): void {
    const closed = unavailable('closed')
    this.#queue.refuseWaiting(closed)
    this.#thread.stop(closed)
  }

  #send(name: QueryName, text: string): Promise<string> {
    // The thread itself ends only with its query, because SQLite cannot be interrupted from here.
    const error = (): Refusal => {
      this.#thread.stop()
      return unavailable(`${name} took too long`)
    }
    return this.#thread.run(name, text, { timeout: { ms: this.#msMax, error } })
  }
}

const unavailable = (detail: string): Refusal => new Refusal('storage_away', detail, { retryAfterMs: 1_000 })
