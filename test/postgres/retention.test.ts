// The retention of records on PostgreSQL: no step of it deletes so much that it reaches its deadline.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { postgresQuery } from '../../src/store/engine/steps.ts'
import { PostgresOperations } from '../../src/store/postgres/cold-operations.ts'
import { createSchema } from '../../src/store/postgres/schema.ts'
import type { TestPostgres } from '../support/postgres.ts'
import { hasPostgres, startPostgres, tellMissingPostgres } from '../support/postgres.ts'

tellMissingPostgres()

const counted = postgresQuery<{ n: bigint }>('SELECT count(*) AS n FROM deleted_record')

describe.skipIf(!hasPostgres)('the retention of records on PostgreSQL', () => {
  let server: TestPostgres

  beforeAll(async () => {
    server = await startPostgres()
  })
  afterAll(() => server.stop())

  test('removes what is known of deleted records in steps, until nothing is too old', async () => {
    const pool = await server.open({ deadlineMs: 60_000 })
    await createSchema(pool)
    const operations = new PostgresOperations(pool, { slot: 1 })
    await pool.runScript('INSERT INTO deleted_record SELECT n, 11, 0, 0 FROM generate_series(1, 2500) n')
    const count = async (): Promise<bigint> => (await pool.transact(counted.get()))!.n
    await operations.run('keepRecordsFrom', { id: 2_401 })
    expect(await count()).toBe(1_500n)
    await operations.run('keepRecordsFrom', { id: 2_401 })
    expect(await count()).toBe(500n)
    for (let step = 0; step < 2; step++) {
      expect(await operations.run('deleteRecords', { ids: [], rolledSeq: 0 })).toEqual({ done: 'deleted', count: 0 })
      expect(await count()).toBe(100n)
    }
  })
})
