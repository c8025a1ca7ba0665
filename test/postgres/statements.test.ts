// Every registered statement is prepared on SQLite and on PostgreSQL, with the real schemas.

import { Database } from 'bun:sqlite'
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { migrate } from '../../src/store/engine/database.ts'
// Register the statements of all operations and queries.
import '../../src/store/engine/operation-runner.ts'
import '../../src/store/engine/reader.ts'
import '../../src/store/ledger/billed-calls.ts'
import '../../src/store/ledger/ledger-inspection.ts'
import '../../src/store/ledger-audit/audit.ts'
import '../../src/store/queries/queries.ts'
import '../../src/store/statistics/record-money.ts'
import { registeredTexts } from '../../src/store/engine/steps.ts'
import type { PostgresPool } from '../../src/store/postgres/pools.ts'
import { createSchema } from '../../src/store/postgres/schema.ts'
import { StatisticsFile } from '../../src/store/statistics/statistics-file.ts'
import type { TestPostgres } from '../support/postgres.ts'
import { hasPostgres, startPostgres, tellMissingPostgres } from '../support/postgres.ts'

const folder = mkdtempSync(join(tmpdir(), 'weir-statements-'))
const sqlite = new Database(':memory:', { strict: true, safeIntegers: true })
migrate(sqlite)
new StatisticsFile(join(folder, 'stats.db')).close()
sqlite.run('ATTACH ?1 AS stats', [join(folder, 'stats.db')])
afterAll(() => {
  sqlite.close()
  rmSync(folder, { recursive: true, force: true })
})

/** Statements that control transactions cannot be prepared. */
const texts = registeredTexts().filter(({ sqlite: sql }) => !/^(SAVEPOINT|ROLLBACK|RELEASE)\b/.test(sql))

test('all statements of operations are registered', () => {
  expect(texts.length).toBeGreaterThan(200)
})

test('each statement can be prepared on SQLite', () => {
  const faults = texts.flatMap(({ sqlite: sql }) => {
    try {
      sqlite.prepare(sql).finalize()
      return []
    } catch (fault) {
      return [`${fault}: ${sql}`]
    }
  })
  expect(faults).toEqual([])
})

tellMissingPostgres()

describe.skipIf(!hasPostgres)('on PostgreSQL', () => {
  let server: TestPostgres
  let pool: PostgresPool

  beforeAll(async () => {
    server = await startPostgres()
    pool = await server.open()
    await createSchema(pool)
  })
  afterAll(() => server.stop())

  test('each statement can be prepared, without any knowledge of the types of its parameters', async () => {
    const faults: string[] = []
    for (const { postgres: sql } of texts) {
      await pool
        .runScript(`PREPARE statement AS ${sql}; DEALLOCATE statement`)
        .catch(fault => faults.push(`${fault}: ${sql}`))
    }
    expect(faults).toEqual([])
  })
})
