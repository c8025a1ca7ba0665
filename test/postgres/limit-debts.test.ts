// Several processes save the use of day limits in the same rows, by the clock of the database.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { postgresQuery } from '../../src/store/engine/steps.ts'
import type { LimitDebt } from '../../src/store/ledger/limit-debts.ts'
import { PostgresOperations } from '../../src/store/postgres/cold-operations.ts'
import type { PostgresPool } from '../../src/store/postgres/pools.ts'
import { createSchema } from '../../src/store/postgres/schema.ts'
import type { TestPostgres } from '../support/postgres.ts'
import { hasPostgres, startPostgres, tellMissingPostgres } from '../support/postgres.ts'

tellMissingPostgres()

describe.skipIf(!hasPostgres)('the use of day limits', () => {
  let server: TestPostgres
  let pool: PostgresPool
  beforeAll(async () => {
    server = await startPostgres()
    pool = await server.open()
    await createSchema(pool)
  })
  afterAll(() => server.stop())

  test('of several processes is added up, whatever their clocks say', async () => {
    const HOUR_MS = 3_600_000
    const processes = [0, 1, 2].map(slot => new PostgresOperations(pool, { slot: slot + 1 }))
    const saves = Array.from({ length: 30 }, (_, at) => {
      const notedMs = at * HOUR_MS
      const debt = (name: string): LimitDebt => ({ name, paidMs: notedMs + HOUR_MS, notedMs, isIncrease: true })
      return processes[at % 3]!.run('noteDebts', { debts: [debt('1 7'), debt(`2 ${at % 2}`)] })
    })
    await Promise.all(saves)
    const rows = await pool.transact(
      postgresQuery<{ name: string; left: bigint; age: bigint }>(
        `SELECT name, paid_ms - noted_ms AS left, database_ms() - noted_ms AS age FROM limit_debt ORDER BY name`,
      ).all(),
    )
    expect(rows.map(({ name }) => name)).toEqual(['1 7', '2 0', '2 1'])
    const hours = rows.map(({ left, age }) => (Number(left) + Number(age)) / HOUR_MS)
    expect(rows.every(({ age }) => age >= 0n && age < 60_000n)).toBe(true)
    expect(hours.map(Math.round)).toEqual([30, 15, 15])
  })
})
