// A task whose call meets a change of the configuration between its admission and its hold: it is admitted again as every
// call is, and billed by the terms with which it is held. A trigger makes the change in the transaction that writes the row
// of the task: after the admission, and before the hold.

import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { dirname } from 'node:path'
import { postgresQuery } from '../../src/store/engine/steps.ts'
import type { PostgresPool } from '../../src/store/postgres/pools.ts'
import type { TaskHarness } from '../dialects/tasks-harness.ts'
import { ask, createTask, film, startTasks } from '../dialects/tasks-harness.ts'
import type { TestPostgres } from '../support/postgres.ts'
import { hasPostgres, startPostgres, tellMissingPostgres } from '../support/postgres.ts'

tellMissingPostgres()

/** Of a film of 5 seconds in 720p, at the price of the tier `pro`. */
const HELD = 1.18165
const COST = 0.05

describe.if(hasPostgres)('a task that was admitted before a change', () => {
  let postgres: TestPostgres
  let pool: PostgresPool
  let harness: TaskHarness
  let key: string

  beforeAll(async () => {
    postgres = await startPostgres()
    pool = await postgres.open()
    const url = `postgres://weir@localhost/${postgres.lastDatabase}?host=${dirname(postgres.socket)}`
    harness = await startTasks({ env: { WEIR_DATABASE_URL: url } })
  })
  afterAll(async () => {
    await harness?.stop()
    await postgres?.stop()
  })
  beforeEach(async () => {
    await changeAtEach('INSERT', 'NULL')
    await pool.runScript("UPDATE tier SET price_per_mille = 1000 WHERE name = 'pro'")
    key = await harness.key()
  })

  /** Each writing of the row of a task makes a change as well. */
  const changeAtEach = (events: string, change: string): Promise<void> =>
    pool.runScript(
      `CREATE OR REPLACE FUNCTION change_rules() RETURNS trigger LANGUAGE plpgsql AS
         $$ BEGIN ${change}; RETURN NEW; END $$;
       CREATE OR REPLACE TRIGGER change_rules AFTER ${events} ON task FOR EACH ROW EXECUTE FUNCTION change_rules();`,
    )
  const count = async (table: string): Promise<number> =>
    Number((await pool.transact(postgresQuery<{ n: bigint }>(`SELECT count(*) AS n FROM ${table}`).get()))!.n)
  async function runToEnd(id: string): Promise<unknown> {
    for (;;) {
      harness.advance(1_500)
      const { status } = (await ask(harness, key, 'GET', { suffix: `/${id}` })).json
      if (status !== 'queued' && status !== 'running') return status
    }
  }

  test('is held and billed by the new price', async () => {
    await changeAtEach('INSERT', "UPDATE tier SET price_per_mille = 2000 WHERE name = 'pro'")
    const sent = harness.upstream.requests.length
    const id = await createTask(harness, key)
    expect(harness.upstream.requests.length).toBe(sent + 1)
    expect(Number((await harness.balance(key)).held)).toBeCloseTo(2 * HELD, 4)
    expect(await runToEnd(id)).toBe('succeeded')
    const { balance, held } = await harness.balance(key)
    expect([(100 - Number(balance)).toFixed(6), held]).toEqual([(2 * COST).toFixed(6), '0.00'])
  })

  test('is held although each writing of its terms changes the rules', async () => {
    const raise = "UPDATE tier SET price_per_mille = price_per_mille + 1000 WHERE name = 'pro'"
    await changeAtEach('INSERT OR UPDATE OF admitted', raise)
    const id = await createTask(harness, key)
    // It was admitted five times. The terms of the last time count.
    expect(Number((await harness.balance(key)).held)).toBeCloseTo(5 * HELD, 4)
    expect(await runToEnd(id)).toBe('succeeded')
    expect((100 - Number((await harness.balance(key)).balance)).toFixed(6)).toBe((5 * COST).toFixed(6))
  })

  test('is refused without a trace if its key was revoked', async () => {
    const [tasks, sent] = [await count('task'), harness.upstream.requests.length]
    await changeAtEach('INSERT', 'UPDATE api_key SET revoked_ms = database_ms() WHERE id = NEW.key_id')
    const { status, json } = await ask(harness, key, 'POST', film())
    expect([status, json]).toMatchObject([401, { error: { code: expect.any(String) } }])
    // The row of a refused call is removed after its answer.
    while ((await count('task')) !== tasks) await Bun.sleep(10)
    expect(await count('hold')).toBe(0)
    expect(harness.upstream.requests.length).toBe(sent)
  })
})
