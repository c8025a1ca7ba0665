// Backtests of prices read their records from PostgreSQL, page by page, and find the same as on SQLite.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { rmSync } from 'node:fs'
import type { BacktestResult } from '../../src/billing/backtest-run.ts'
import { runBacktest } from '../../src/billing/backtest-run.ts'
import { PriceTrials } from '../../src/management/prices/trials.ts'
import type { DataPlace } from '../../src/store/engine/thread-reads.ts'
import { createSchema } from '../../src/store/postgres/schema.ts'
import type { SampleBooks } from '../ledger/sample-books.ts'
import { alice, aliceKey, bob, bobKey, openSampleBooks } from '../ledger/sample-books.ts'
import type { TestPostgres } from '../support/postgres.ts'
import { hasPostgres, startPostgres, tellMissingPostgres } from '../support/postgres.ts'

tellMissingPostgres()

const FIRST_ID = 1_000_000
const RECORDS = 2_500
const DAY_IDS = 86_400_000 * 8_192
const PRICE = '{"input":"1.00","output":"2.00"}'
const LINES = '[["input",1000,"1.00"],["output",500,"2.00"]]'

/** Two models on three days; each seventh record does not fit its price. */
const records = `WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${RECORDS})
  INSERT INTO record (call_id, key_id, account_id, dialect, provider, model, status, outcome, rule, usage_source, streamed,
    input_tokens, cache_read_tokens, cache_write_tokens, output_tokens, reasoning_tokens, cost, shortfall, held,
    price_version, lines, duration_ms)
  SELECT ${FIRST_ID} + i + (i % 3) * ${DAY_IDS}, CASE i % 5 WHEN 0 THEN ${bobKey} ELSE ${aliceKey} END,
    CASE i % 5 WHEN 0 THEN ${bob} ELSE ${alice} END, 'openai-chat', 'p', CASE i % 2 WHEN 0 THEN 'm' ELSE 'n' END, 200,
    'completed', 'completed', 'reported', 0, 1000, 0, 0, 500, 0, CASE i % 7 WHEN 0 THEN 1 ELSE 2000000 END, 0, 0, 1,
    '${LINES}', 5 FROM n`
const price = `INSERT INTO price (version, model, origin, price, author, made_ms)
  VALUES (1, 'p/m', 'operator', '${PRICE}', 'a', 1)`

describe.skipIf(!hasPostgres)('backtests', () => {
  let server: TestPostgres
  let books: SampleBooks
  let places: readonly [sqlite: DataPlace, postgres: DataPlace]

  beforeAll(async () => {
    books = openSampleBooks()
    books.db.run(price)
    books.db.run(records)
    server = await startPostgres()
    const pool = await server.open()
    await createSchema(pool)
    const accounts = [alice, bob].map(id => `(${id}, 'x', 'prepaid', 1)`)
    const keys = [
      [aliceKey, alice, 'pro'],
      [bobKey, bob, 'free'],
    ].map(
      ([id, owner, tier]) =>
        `(${id}, decode(repeat('${((id! as number) % 90) + 10}', 32), 'hex'), 's', 'x', ${owner}, '${tier}', 1)`,
    )
    await pool.runScript(`INSERT INTO account (id, name, kind, created_ms) VALUES ${accounts.join()};
      INSERT INTO api_key (id, digest, suffix, name, account_id, tier, created_ms) VALUES ${keys.join()};
      ${price}; ${records}`)
    books.db.run(`UPDATE api_key SET tier = 'free' WHERE id = ${bobKey}`)
    places = [{ path: books.path }, server.addressOf(server.lastDatabase)]
  })
  afterAll(async () => {
    books.db.close()
    rmSync(books.folder, { recursive: true, force: true })
    await server.stop()
  })

  const filter = { from: FIRST_ID, before: Number.MAX_SAFE_INTEGER }
  const trials = (place: DataPlace): PriceTrials => new PriceTrials({ place, providerFolders: [], dateMs: Date.now })

  test('find the same on both databases', async () => {
    const proposal = { price: '{"input":"2.00","output":"2.00"}' }
    const results: BacktestResult[] = []
    for (const place of places) results.push(await runBacktest({ place, filter, proposal, msMax: 1 }, () => 0)) // no time passes
    expect(results[1]).toEqual(results[0]!)
    const calls = RECORDS - Math.floor(RECORDS / 7)
    expect(results[1]).toMatchObject({ calls, reached: null, leftOut: { billed_otherwise: RECORDS - calls } })
    expect(results[1]!.was).toBe(`${2_000_000 * calls}`)
    expect(results[1]!.wouldBe).toBe(`${3_000_000 * calls}`)
    expect(Object.keys(results[1]!.byModel).sort()).toEqual(['p/m', 'p/n'])
    expect(Object.keys(results[1]!.byDay)).toHaveLength(3)
  })

  test('of a tier count the calls of its keys', async () => {
    const ask = { filter, tier: 'free', proposal: { perMille: 2_000 } }
    const [onSqlite, onPostgres] = await Promise.all(places.map(place => trials(place).backtest(ask)))
    expect(onPostgres).toEqual(onSqlite!)
    expect(onPostgres!.calls).toBeGreaterThan(400)
  })

  test('end after their time, and say how far they got', async () => {
    const request = { place: places[1], filter, proposal: { perMille: 2_000 }, msMax: 10 }
    let nowMs = 0
    const result = await runBacktest(request, () => (nowMs += 6))
    expect(result.reached).not.toBeNull()
    expect(result.calls).toBeLessThan(RECORDS)
  })
})
