// Answers the queries of people on PostgreSQL, over connections of their own, so that no call waits for a query.

import { bounds } from '../../base/bounds.ts'
import { Refusal } from '../../base/errors.ts'
import { hintOf } from '../../base/hints.ts'
import type { Steps } from '../engine/steps.ts'
import type { QueryRunner } from '../engine/store-engine.ts'
import type { QueryInput, QueryName, QueryResult } from '../queries/queries.ts'
import { stepQueries } from '../queries/queries.ts'
import { refusalOf, sqlStateOf, storageAway } from './faults.ts'
import type { PostgresPool } from './pools.ts'
import { WorkQueue } from './work-queue.ts'

/** The pool should have this many connections. */
export const QUERIES_AT_ONCE = 2
/** A waiting query is refused after this many times the longest time that one query may take. */
const QUEUE_WAIT_FACTOR = 2

const overloaded = (): Refusal => new Refusal('overloaded', 'too many queries are waiting', { retryAfterMs: 1_000 })

/** Whether a query continues after a cursor. Its text comes from the caller; all other values were checked before. */
const hasCursor = (input: unknown): boolean => (input as { readonly after?: unknown } | undefined)?.after !== undefined

/** A value does not have the type of its column. SQLite compares it all the same. */
const isWrongValue = (fault: unknown): boolean => /^(22|42883$|42804$)/.test(sqlStateOf(fault) ?? '')

const wrongCursor = (fault: unknown): Refusal =>
  new Refusal('field_invalid', (fault as Error).message, {
    param: 'after',
    hint: hintOf('after_wrong'),
  })

type AnyQuery = (input: unknown) => Steps<unknown>

export class PostgresQueries implements QueryRunner {
  readonly #pool: Pick<PostgresPool, 'readAgain'>
  readonly #queue: WorkQueue

  /** The deadline of the pool is that of one statement of a query. */
  constructor(pool: Pick<PostgresPool, 'readAgain'>, { msMax = bounds.queryMsMax }: { readonly msMax?: number } = {}) {
    this.#pool = pool
    this.#queue = new WorkQueue({ atOnce: QUERIES_AT_ONCE, waitMsMax: QUEUE_WAIT_FACTOR * msMax, late: overloaded })
  }

  async query<Name extends QueryName>(name: Name, input: QueryInput<Name>): Promise<QueryResult<Name>> {
    if (this.#queue.waitingCount >= bounds.queriesMax) throw overloaded()
    if (!Object.hasOwn(stepQueries, name)) throw storageAway(`the query ${name} has no steps for PostgreSQL`)
    const steps = stepQueries[name as keyof typeof stepQueries] as AnyQuery
    try {
      return (await this.#queue.run(() => this.#pool.readAgain(() => steps(input)))) as QueryResult<Name>
    } catch (fault) {
      throw hasCursor(input) && isWrongValue(fault) ? wrongCursor(fault) : refusalOf(fault)
    }
  }

  /** The pool stays open. */
  close(): void {
    void this.#queue.close(storageAway('closed'))
  }
}
