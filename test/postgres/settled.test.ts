// On PostgreSQL, too, each call is found once in the order of settling, also one that is committed after calls whose rows
// in the log have higher numbers.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { postgresQuery } from '../../src/store/engine/steps.ts'
import type { PostgresPool } from '../../src/store/postgres/pools.ts'
import { rollUpSome } from '../../src/store/postgres/roll-up.ts'
import { createSchema } from '../../src/store/postgres/schema.ts'
import type { SettledPage } from '../../src/store/records/settled-search.ts'
import { findSettled } from '../../src/store/records/settled-search.ts'
import { RecordMoneyCalculator } from '../../src/store/statistics/record-money.ts'
import type { TestPostgres } from '../support/postgres.ts'
import { hasPostgres, startPostgres, tellMissingPostgres } from '../support/postgres.ts'

tellMissingPostgres()

describe.skipIf(!hasPostgres)('the order of settling', () => {
  let server: TestPostgres
  /** The connections of two gateways. */
  let [one, other]: PostgresPool[] = []
  beforeAll(async () => {
    server = await startPostgres()
    one = await server.open()
    other = server.openAgain(server.lastDatabase)
    await createSchema(one)
  }, 120_000)
  afterAll(() => server.stop())

  const insert = postgresQuery(
    `INSERT INTO record (call_id, key_id, account_id, dialect, status, outcome, rule, usage_source, streamed, input_tokens,
       cache_read_tokens, cache_write_tokens, output_tokens, reasoning_tokens, cost, shortfall, held, duration_ms)
     VALUES ($1, 1, 11, 'ark', 200, 'completed', 'x', 'none', 0, 0, 0, 0, 0, 0, 0, 0, 0, 5)`,
  )
  const raiseLogNumber = postgresQuery('UPDATE record_log SET seq = seq + 1000')
  const rollUp = (pool: PostgresPool): Promise<number> =>
    pool.transact(rollUpSome(100, new RecordMoneyCalculator(), Date.now()))
  const page = (after: number | undefined, limit = 10): Promise<SettledPage> =>
    other!.read(findSettled({ scope: null, filter: {}, after, limit }))
  const idsOf = ({ rows }: SettledPage): number[] => rows.map(({ callId }) => callId)

  test('has each call once, in the order in which they became visible', async () => {
    const start = await page(undefined)
    await one!.transact(insert.run(7))
    await one!.transact(raiseLogNumber.run()) // as if others had taken the numbers before, and not committed yet
    await rollUp(one!)
    const first = await page(start.next)
    expect(idsOf(first)).toEqual([7])
    await other!.transact(insert.run(3))
    await other!.transact(insert.run(9))
    await rollUp(other!)
    const second = await page(first.next)
    expect([idsOf(second), second.missed]).toEqual([[3, 9], false])
    expect(idsOf(await page(start.next))).toEqual([7, 3, 9])
    expect(idsOf(await page(start.next, 2))).toEqual([7, 3])
    expect(idsOf(await page((await page(start.next, 2)).next))).toEqual([9])
    expect(idsOf(await page(second.next))).toEqual([])
  })

  test('says if calls are no longer in the log', async () => {
    await one!.transact(postgresQuery('DELETE FROM settled_log WHERE seq < 3').run())
    expect(await page(0)).toMatchObject({ missed: true })
    expect(await page(2)).toMatchObject({ missed: false })
    const { next } = await page(undefined)
    expect(await page(next)).toEqual({ rows: [], next, missed: false })
    expect(await page(next + 1)).toEqual({ rows: [], next, missed: true })
  })
})
