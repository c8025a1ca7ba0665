// The same random operations on SQLite and on PostgreSQL.

import type { Database } from 'bun:sqlite'
import { isAudited } from '../../src/store/audit-log/audited-operations.ts'
import type { OperationRunner } from '../../src/store/engine/operation-runner.ts'
import { buildOperations } from '../../src/store/engine/operation-runner.ts'
import type { OperationName } from '../../src/store/engine/operations.ts'
import type { AuditedBy } from '../../src/store/postgres/cold-operations.ts'
import { PostgresOperations } from '../../src/store/postgres/cold-operations.ts'
import type { PostgresPool } from '../../src/store/postgres/pools.ts'
import type { TestBooks } from '../support/books.ts'
import { randomFrom } from '../support/chance.ts'
import type { RandomOperation } from './random-inputs.ts'
import { randomOperations } from './random-inputs.ts'

/** What both databases answer, or that both refuse. The texts of errors differ. */
export const REFUSED = 'refused by the database'

function runOnSqlite(db: Database, runner: OperationRunner, operation: RandomOperation, by?: AuditedBy): unknown {
  const { name, input } = operation
  const run = runner.run[name] as (input: unknown) => unknown
  try {
    return db
      .transaction(() => {
        const result = by !== undefined ? runner.runAudited({ name, input, by }) : run(input)
        runner.writeOperatorBalances()
        return result
      })
      .immediate()
  } catch {
    runner.reset()
    return REFUSED
  }
}

/** The numbers of deliveries have gaps on PostgreSQL, where a change with deliveries was rolled back. */
const withoutDelivery = (result: unknown): unknown =>
  typeof result === 'object' && result !== null && 'delivery' in result ? { ...result, delivery: 'any' } : result

export interface RandomRun {
  readonly seed: number
  readonly operations: number
  /** Operations with these names are left out. */
  readonly without?: RegExp
  /** Called after each operation with its results. */
  compare?(results: { operation: RandomOperation; expected: unknown; found: unknown }, count: number): void
}

export async function runRandomOperations(books: TestBooks, pool: PostgresPool, run: RandomRun): Promise<void> {
  const runner = buildOperations(books.books)
  const operations = new PostgresOperations(pool, { slot: 1, nowMs: () => books.nowMs })
  const next = randomOperations(run.seed, () => books.nowMs)
  const below = randomFrom(run.seed)
  for (let count = 0; count < run.operations; count++) {
    const operation = next()
    if (run.without?.test(operation.name)) continue
    const isLogged = isAudited(operation.name as OperationName)
    // A change that is rolled back leaves a gap in the numbers of prices and limits on PostgreSQL.
    const hasGaps = operation.name === 'addPrices' || operation.name === 'setLimit'
    const isVersioned = below(4) === 0 && !hasGaps && operation.isNeeded !== true
    const version = isVersioned ? { expectedVersion: below(4) } : {}
    const by: AuditedBy | undefined = isLogged ? { actor: 'cli', address: '1.2.3.4', ...version } : undefined
    const expected = runOnSqlite(books.db, runner, operation, by)
    const found: unknown = await operations.run(operation.name, operation.input, by).catch(() => REFUSED)
    run.compare?.({ operation, expected: withoutDelivery(expected), found: withoutDelivery(found) }, count)
    books.nowMs += below(50)
  }
}
