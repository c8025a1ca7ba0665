// A ledger that does not answer: new calls are refused at once, even before their body is read, and served again when
// it answers. The calls that waited for the ledger are served.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { join } from 'node:path'
import { defaultRuntime } from '../../src/boot/runtime.ts'
import { ask, bearer, CHAT, call, goodBody } from '../front/asking.ts'
import { openDatabase } from '../support/database.ts'
import type { Harness } from '../support/gateway.ts'
import { startHarness, until } from '../support/gateway.ts'
import { setUpOwner } from '../support/people.ts'
import { rawRequest } from '../support/raw.ts'

let harness: Harness
let haste = 1

beforeAll(async () => {
  const ledgerWaitMs = (sinceMs: number): number => defaultRuntime.ledgerWaitMs(sinceMs) * haste
  harness = await startHarness({ world: { ledgerWaitMs } })
})
afterAll(() => harness.stop())

const overload = async (): Promise<number> =>
  ((await (await fetch(`${harness.url}/health/ready`)).json()) as { overload: number }).overload

test('the gate closes while the ledger does not answer, and opens when it does', async () => {
  const key = await harness.key({ qpm: 10_000 })
  const owner = await setUpOwner(harness)
  const db = openDatabase(join(harness.folder, 'weir.db'))
  db.run('BEGIN IMMEDIATE')
  const pending = call(harness, key)
  await until(() => harness.gateway.activeCalls === 1, 'one call is active')
  haste = 50 // the gate closes after a second, and after five the ledger gives the call up: a slow machine needs room between
  while ((await overload()) !== 3) await Bun.sleep(10)
  const unread = ask('POST', CHAT, { ...bearer(key), 'content-length': '30000000' }, goodBody()) // the body is never sent
  const refused = await rawRequest(harness.url, unread)
  expect([refused.status, refused.body.toString()]).toEqual([503, expect.stringContaining('"overloaded"')])
  expect(Number(refused.header('retry-after'))).toBeGreaterThan(0)
  // Changes in the management interface are still read.
  expect((await owner.ask('POST', 'web/keys', { tier: 5 })).status).toBe(400)
  haste = 1
  db.run('ROLLBACK')
  db.close()
  expect((await pending).status).toBe(200)
  while ((await overload()) === 3) await Bun.sleep(10)
  expect((await call(harness, key)).status).toBe(200)
})
