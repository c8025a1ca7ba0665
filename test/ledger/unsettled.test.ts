// A ledger that refuses every write: delivered calls stay unsettled, up to a bound, and new calls are refused so that
// no charge is lost; when the ledger works again, everything is written.

import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { openCall, startHasty } from '../forwarding/caller.ts'
import { openDatabase } from '../support/database.ts'
import { until } from '../support/gateway.ts'
import { onPostgres } from '../support/harness-databases.ts'

const OWED_MAX = 3

const refuseOnSqlite = [`CREATE TRIGGER record_away BEFORE INSERT ON record BEGIN SELECT RAISE(ABORT, 'away'); END`]
const refuseOnPostgres = [
  `CREATE FUNCTION away() RETURNS TRIGGER LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'away'; END $$`,
  'CREATE TRIGGER record_away BEFORE INSERT ON record FOR EACH ROW EXECUTE FUNCTION away()',
]

test('calls that cannot be written stay unsettled up to a bound, and none is lost', async () => {
  const harness = await startHasty({ world: { unsettledMax: OWED_MAX } })
  const db = openDatabase(join(harness.folder, 'weir.db'))
  try {
    const key = await harness.key({ credit: '1' })
    for (const sql of onPostgres ? refuseOnPostgres : refuseOnSqlite) db.run(sql)
    for (let call = 0; call < OWED_MAX; call++) {
      const caller = await openCall(harness, key, { stream: true }).whole()
      expect(caller.text).toContain('settle_failed')
    }
    await harness.idle()
    const before = harness.upstream.requests.length
    for (let call = 0; call < 5; call++) {
      const refused = await openCall(harness, key, { stream: true }).whole()
      expect([refused.status, refused.text.includes('storage_away')]).toEqual([503, true])
      expect(Number(refused.header('retry-after'))).toBeGreaterThan(0)
    }
    expect(harness.upstream.requests.length).toBe(before)
    db.run(onPostgres ? 'DROP FUNCTION away CASCADE' : 'DROP TRIGGER record_away')
    await until(() => harness.openHolds() === 0, 'all calls are written')
    const records = harness.records().filter(({ outcome }) => outcome === 'completed')
    expect(records).toHaveLength(OWED_MAX)
    for (const { cost } of records) expect(Number(cost)).toBeGreaterThan(0)
    const due = records.reduce((sum, { cost }) => sum + Number(cost), 0)
    expect(Math.round(1e9 - Number((await harness.balance(key)).balance) * 1e9)).toBe(due)
    expect((await openCall(harness, key, {}).whole()).status).toBe(200)
  } finally {
    db.close()
    await harness.stop()
  }
})
