// The same random operations on SQLite and on PostgreSQL have the same results and leave the same rows.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { postgresQuery } from '../../src/store/engine/steps.ts'
import type { PostgresPool } from '../../src/store/postgres/pools.ts'
import { createSchema } from '../../src/store/postgres/schema.ts'
import type { TestBooks } from '../support/books.ts'
import { openTestBooks } from '../support/books.ts'
import type { TestPostgres } from '../support/postgres.ts'
import { hasPostgres, startPostgres, tellMissingPostgres } from '../support/postgres.ts'
import { REFUSED, runRandomOperations } from './random-rows.ts'

const OPERATIONS = 400
const SEED = Number(process.env.WEIR_SEED ?? 1)

tellMissingPostgres()

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
    table === 'webhook_delivery'
      ? ['made_ms', 'id']
      : ['transfer', 'price'].includes(table)
        ? ['seq', 'version', 'xid']
        : []

  test('have the same results and leave the same rows', async () => {
    const answers = new Set<string>()
    await runRandomOperations(books, pool, {
      seed: SEED,
      operations: OPERATIONS,
      compare({ operation, expected, found }, count) {
        if (!Bun.deepEquals(found, expected))
          expect({ count, operation, result: found }).toEqual({ count, operation, result: expected })
        answers.add(`${operation.name} ${expected === REFUSED ? REFUSED : (expected as { done: string }).done}`)
      },
    })
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
