// The ledger on PostgreSQL answers and holds the same as the ledger on SQLite, in random batches.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { createSchema } from '../../src/store/postgres/schema.ts'
import type { TestPostgres } from '../support/postgres.ts'
import { hasPostgres, startPostgres, tellMissingPostgres } from '../support/postgres.ts'
import { LedgerRun } from './ledger-run.ts'

tellMissingPostgres()

const BATCHES = Number(process.env.WEIR_BATCHES ?? 100)
const SEEDS = process.env.WEIR_SEED === undefined ? [1, 2] : [Number(process.env.WEIR_SEED)]

describe.skipIf(!hasPostgres)('random batches', () => {
  let server: TestPostgres

  beforeAll(async () => {
    server = await startPostgres()
  })
  afterAll(() => server.stop())

  test.each(SEEDS)('have the same results on both databases, and leave the same rows (seed %d)', async seed => {
    const pool = await server.open({ deadlineMs: 60_000 })
    await createSchema(pool)
    const run = new LedgerRun(pool, seed)
    await run.run(BATCHES)
    // Each of these must have happened, or the run shows nothing.
    const wanted = [
      ...['hold held', 'hold balance_too_low', 'hold budget_too_low', 'hold account_frozen', 'hold account_unknown'],
      ...['hold hold_less', 'hold running', 'hold finished', 'hold other_body', 'settle settled', 'settle exists'],
      ...['extend extended', 'extend settled', 'extend balance_too_low', 'checkpoint noted', 'checkpoint unknown'],
      ...[
        'record recorded',
        'record exists',
        'post posted',
        'setBudget set',
        'setAccount set',
        'crash',
        'zombie refused',
      ],
    ]
    expect(wanted.filter(name => !run.counts[name])).toEqual([])
    expect(run.counts['zombie wrote']).toBeUndefined()
  })
})
