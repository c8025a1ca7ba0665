// The same random operations on SQLite and on PostgreSQL have the same results and leave the same rows.

import type { Database } from 'bun:sqlite'
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { isAudited } from '../../src/store/audit-log/audited-operations.ts'
import type { OperationRunner } from '../../src/store/engine/operation-runner.ts'
import { buildOperations } from '../../src/store/engine/operation-runner.ts'
import type { OperationName } from '../../src/store/engine/operations.ts'
import { postgresQuery } from '../../src/store/engine/steps.ts'
import type { AuditedBy } from '../../src/store/postgres/cold-operations.ts'
import { PostgresOperations } from '../../src/store/postgres/cold-operations.ts'
import type { PostgresPool } from '../../src/store/postgres/pools.ts'
import { createSchema } from '../../src/store/postgres/schema.ts'
import type { TestBooks } from '../support/books.ts'
import { openTestBooks } from '../support/books.ts'
import { randomFrom } from '../support/chance.ts'
import type { TestPostgres } from '../support/postgres.ts'
import { hasPostgres, startPostgres, tellMissingPostgres } from '../support/postgres.ts'
import type { RandomOperation } from './random-inputs.ts'
import { randomOperations } from './random-inputs.ts'

const OPERATIONS = 400
const SEED = Number(process.env.WEIR_SEED ?? 1)

tellMissingPostgres()

/** What both databases answer, or that both refuse. The texts of errors differ. */
const REFUSED = 'refused by the database'

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

describe.skipIf(!hasPostgres)('random operations', () => {
  let books: TestBooks
  let server: TestPostgres
  let pool: PostgresPool

  beforeAll(async () => {
    books = openTestBooks({ sync: false })
    server = await startPostgres()
    pool = await server.open()
    await createSchema(pool)
  })
  afterAll(async () => {
    books.close()
    await server.stop()
  })

  /** All rows of a table as texts, sorted. Identity columns may have gaps on PostgreSQL, so they are left out. */
  async function rowsOf(table: string): Promise<readonly [sqlite: string[], postgres: string[]]> {
    const onSqlite = books.db.query(`SELECT * FROM ${table}`).all() as Record<string, unknown>[]
    const onPostgres = await pool.transact(postgresQuery<Record<string, unknown>>(`SELECT * FROM ${table}`).all())
    const textOf = (row: Record<string, unknown>): string => {
      const shown = Object.entries(row).filter(([column]) => !hidden(table).includes(column))
      const values = shown.map(([column, value]) => [
        column,
        value instanceof Uint8Array ? value.toHex() : String(value),
      ])
      return values.map(pair => pair.join('=')).join(' ')
    }
    const isShown = (row: Record<string, unknown>): boolean => table !== 'account' || Number(row.id) > 4
    return [onSqlite.filter(isShown).map(textOf).toSorted(), onPostgres.filter(isShown).map(textOf).toSorted()]
  }

  /** The triggers of deliveries use the wall clock. */
  const hidden = (table: string): readonly string[] =>
    table === 'webhook_delivery' ? ['made_ms', 'id'] : ['transfer', 'price'].includes(table) ? ['seq', 'version'] : []

  test('have the same results and leave the same rows', async () => {
    const runner = buildOperations(books.books)
    const operations = new PostgresOperations(pool, { slot: 1, nowMs: () => books.nowMs })
    const next = randomOperations(SEED, () => books.nowMs)
    const below = randomFrom(SEED)
    const answers = new Map<string, number>()
    for (let count = 0; count < OPERATIONS; count++) {
      const operation = next()
      const isLogged = isAudited(operation.name as OperationName)
      // A change that is rolled back leaves a gap in the numbers of prices on PostgreSQL.
      const isNumbered = operation.name === 'addPrices'
      const version = below(4) === 0 && !isNumbered ? { expectedVersion: below(3) + 1 } : {}
      const by: AuditedBy | undefined = isLogged ? { actor: 'cli', address: '1.2.3.4', ...version } : undefined
      const expected = runOnSqlite(books.db, runner, operation, by)
      const found: unknown = await operations.run(operation.name, operation.input, by).catch(() => REFUSED)
      if (!Bun.deepEquals(found, expected))
        expect({ count, operation, result: found }).toEqual({ count, operation, result: expected })
      const done = expected === REFUSED ? REFUSED : (expected as { done: string }).done
      answers.set(`${operation.name} ${done}`, (answers.get(`${operation.name} ${done}`) ?? 0) + 1)
      books.nowMs += below(50)
    }
    const tables = books.db
      .query(
        // The first row of the log is random, and PostgreSQL has usual indexes instead of tables for them.
        `SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%' AND name NOT IN
           ('record_log', 'record_index', 'transfer_index', 'index_progress')`,
      )
      .values()
      .flat()
      .map(String)
    for (const table of tables) {
      const [onSqlite, onPostgres] = await rowsOf(table)
      expect([table, ...onPostgres]).toEqual([table, ...onSqlite])
    }
    const operatorSums = await pool.transact(
      postgresQuery<{ id: bigint; sum: bigint }>(
        `SELECT a.id, CAST(coalesce((SELECT sum(balance) FROM operator_part p WHERE p.account_id = a.id), 0) AS BIGINT)
             AS sum FROM account a WHERE a.id <= 4 ORDER BY a.id`,
      ).all(),
    )
    expect(operatorSums.map(({ sum }) => sum)).toEqual(
      (books.db.query('SELECT balance FROM account WHERE id <= 4 ORDER BY id').values() as bigint[][]).flat(),
    )
    // The random inputs reach most answers, and the operations change something.
    expect(answers.size).toBeGreaterThan(60)
  }, 600_000)
})
