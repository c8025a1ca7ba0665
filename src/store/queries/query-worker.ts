// Sends queries to the query thread, one after the other. The thread is started by the first query and ends when it has had
// none for a while, because it holds about ten megabytes. A query that takes too long is ended together with its thread.
//
// People take turns, and the staff of the site counts as one more person with room of its own: a member who sends many
// queries delays each other person by one query.

import { bounds } from '../../base/bounds.ts'
import { Refusal } from '../../base/errors.ts'
import { Thread } from '../../base/threads/thread.ts'
import type { Scope } from './paging.ts'
import type { QueryInput, QueryName, QueryResult } from './queries.ts'
import type { QueryThreadMethods } from './query-thread.ts'

interface PendingQuery {
  readonly name: QueryName
  readonly owner: string
  /** JSON. */
  readonly input: string
  resolve(result: unknown): void
  reject(fault: Error): void
  /** Ends the wait in the queue. */
  readonly timer: ReturnType<typeof setTimeout>
}

/** A queued query is refused after this many times the longest time that one query may take. */
const QUEUE_WAIT_FACTOR = 2
/** Longer than the pauses of somebody who works with the console. */
const IDLE_MS = 300_000

export class QueryWorker {
  readonly #thread: Thread<QueryThreadMethods, string>
  readonly #msMax: number
  /** The queries that wait, by who asks. Who has waited longest for a turn comes first. */
  readonly #waiting = new Map<string, PendingQuery[]>()
  #isBusy = false

  constructor(path: string, { msMax }: { readonly msMax: number } = { msMax: bounds.queryMsMax }) {
    this.#msMax = msMax
    this.#thread = new Thread({
      url: new URL('./query-thread.ts', import.meta.url),
      setup: () => path,
      isUnreferenced: true,
      idleMs: IDLE_MS,
      onDeath: unavailable,
    })
  }

  query<Name extends QueryName>(name: Name, input: QueryInput<Name>): Promise<QueryResult<Name>> {
    const owner = ownerOf(input)
    if (!this.#hasRoom(owner)) return Promise.reject(overloaded())
    return new Promise((resolve, reject) => {
      const query: PendingQuery = {
        name,
        owner,
        input: JSON.stringify(input),
        reject,
        resolve: resolve as PendingQuery['resolve'],
        timer: setTimeout(() => this.#refuseWaiting(query), QUEUE_WAIT_FACTOR * this.#msMax),
      }
      const own = this.#waiting.get(owner)
      if (own === undefined) this.#waiting.set(owner, [query])
      else own.push(query)
      this.#sendNext()
    })
  }

  #hasRoom(owner: string): boolean {
    const ofStaff = this.#waiting.get(STAFF)?.length ?? 0
    if (owner === STAFF) return ofStaff < bounds.queriesOfStaffMax
    let ofMembers = -ofStaff
    for (const { length } of this.#waiting.values()) ofMembers += length
    return ofMembers < bounds.queriesMax && (this.#waiting.get(owner)?.length ?? 0) < bounds.queriesOfPersonMax
  }

  close(): void {
    const closed = unavailable('closed')
    for (const { timer, reject } of [...this.#waiting.values()].flat()) {
      clearTimeout(timer)
      reject(closed)
    }
    this.#waiting.clear()
    this.#thread.stop(closed)
  }

  #sendNext(): void {
    if (this.#isBusy) return
    const [next] = this.#waiting
    if (next === undefined) return
    const [owner, [query, ...others]] = next
    this.#waiting.delete(owner)
    if (others.length > 0) this.#waiting.set(owner, others)
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
    const others = this.#waiting.get(query.owner)?.filter(other => other !== query) ?? []
    if (others.length > 0) this.#waiting.set(query.owner, others)
    else this.#waiting.delete(query.owner)
    query.reject(overloaded())
  }
}

const STAFF = 'staff'

/** Queries of members have a scope; those of the staff, and of the gateway itself, have none. */
function ownerOf(input: unknown): string {
  const scope = (input as { readonly scope?: Scope | null } | null)?.scope
  return scope ? String(scope.actorId) : STAFF
}

const overloaded = (): Refusal => new Refusal('overloaded', 'too many queries are waiting', { retryAfterMs: 1_000 })
const unavailable = (detail: string): Refusal => new Refusal('storage_away', detail, { retryAfterMs: 1_000 })
