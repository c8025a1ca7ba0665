// Answers the queries of people on PostgreSQL, over connections of their own, so that no call waits for a query.

import { bounds } from '../../base/bounds.ts'
import { Refusal } from '../../base/errors.ts'
import { hintOf } from '../../base/hints.ts'
import type { Steps } from '../engine/steps.ts'
import type { QueryRunner } from '../engine/store-engine.ts'
import type { QueryInput, QueryName, QueryResult } from '../queries/queries.ts'
import { stepQueries } from '../queries/queries.ts'
import { ownerOf, QueryQueue } from '../queries/query-queue.ts'
import { refusalOf, sqlStateOf, storageAway } from './faults.ts'
import type { PostgresPool } from './pools.ts'

/** The pool should have this many connections. */
export const QUERIES_AT_ONCE = 2

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
  readonly #queue: QueryQueue
  #isClosed = false

  /** The deadline of the pool is that of one statement of a query. */
  constructor(pool: Pick<PostgresPool, 'readAgain'>, { msMax = bounds.queryMsMax }: { readonly msMax?: number } = {}) {
    this.#pool = pool
    this.#queue = new QueryQueue({ atOnce: QUERIES_AT_ONCE, queryMsMax: msMax })
  }

  async query<Name extends QueryName>(
    name: Name,
    input: QueryInput<Name>,
    askerId?: number,
  ): Promise<QueryResult<Name>> {
    if (this.#isClosed) throw storageAway('closed')
    if (!Object.hasOwn(stepQueries, name)) throw storageAway(`the query ${name} has no steps for PostgreSQL`)
    const steps = stepQueries[name as keyof typeof stepQueries] as AnyQuery
    try {
      const read = (): Promise<unknown> => this.#pool.readAgain(() => steps(input))
      return (await this.#queue.run(ownerOf(input, askerId), read)) as QueryResult<Name>
    } catch (fault) {
      throw hasCursor(input) && isWrongValue(fault) ? wrongCursor(fault) : refusalOf(fault)
    }
  }

  /** The pool stays open. */
  close(): void {
    this.#isClosed = true
    this.#queue.refuseWaiting(storageAway('closed'))
  }
}
