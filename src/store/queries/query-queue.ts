// The queue of the queries of people. People take turns, and the staff of the site counts as one more person with room of
// its own: a member who sends many queries delays each other person by one query.

import { bounds } from '../../base/bounds.ts'
import { FairQueue } from '../../base/collections/fair-queue.ts'
import { Refusal } from '../../base/errors.ts'
import type { Scope } from './paging.ts'

export interface QueryQueueOptions {
  readonly atOnce: number
  /** The longest time that one query may take. */
  readonly queryMsMax: number
}

/** A waiting query is refused after this many times the longest time that one query may take. */
const WAIT_FACTOR = 2
const STAFF = 'staff'

export class QueryQueue {
  readonly #turns: FairQueue
  readonly #waitMsMax: number
  /** How many queries of each person wait. */
  readonly #waiting = new Map<string, number>()
  /** Each of them ends a wait. */
  readonly #ends = new Set<(fault: Refusal) => void>()

  constructor({ atOnce, queryMsMax }: QueryQueueOptions) {
    this.#turns = new FairQueue(atOnce, Number.POSITIVE_INFINITY)
    this.#waitMsMax = WAIT_FACTOR * queryMsMax
  }

  run<T>(owner: string, query: () => Promise<T>): Promise<T> {
    if (!this.#hasRoom(owner)) return Promise.reject(overloaded())
    const waiting = new AbortController()
    const leave = (): void => {
      clearTimeout(timer)
      if (this.#ends.delete(end)) this.#count(owner, -1)
    }
    const end = (fault: Refusal): void => {
      leave()
      waiting.abort(fault)
    }
    const timer = setTimeout(() => end(overloaded()), this.#waitMsMax)
    this.#count(owner, 1)
    this.#ends.add(end)
    const run = (): Promise<T> => {
      leave()
      return query()
    }
    return this.#turns.run(owner, { run, signal: waiting.signal })
  }

  /** Refuses the queries that wait. Those that run go on, and so do later ones. */
  refuseWaiting(fault: Refusal): void {
    for (const end of this.#ends) end(fault)
  }

  #hasRoom(owner: string): boolean {
    const ofStaff = this.#waiting.get(STAFF) ?? 0
    if (owner === STAFF) return ofStaff < bounds.queriesOfStaffMax
    let ofMembers = -ofStaff
    for (const count of this.#waiting.values()) ofMembers += count
    return ofMembers < bounds.queriesMax && (this.#waiting.get(owner) ?? 0) < bounds.queriesOfPersonMax
  }

  #count(owner: string, change: 1 | -1): void {
    const count = (this.#waiting.get(owner) ?? 0) + change
    if (count === 0) this.#waiting.delete(owner)
    else this.#waiting.set(owner, count)
  }
}

/**
 * Whose turn a query takes: that of whoever its scope is for, or of `askerId` where it has no scope. Queries of the staff
 * and of the gateway itself have neither.
 */
export function ownerOf(input: unknown, askerId: number | undefined): string {
  const actorId = (input as { readonly scope?: Scope | null } | null)?.scope?.actorId ?? askerId
  return actorId === undefined ? STAFF : String(actorId)
}

const overloaded = (): Refusal => new Refusal('overloaded', 'too many queries are waiting', { retryAfterMs: 1_000 })
