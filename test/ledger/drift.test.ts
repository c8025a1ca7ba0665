// An inconsistent ledger in a running gateway: the account is frozen and no other, and the drift shows in health,
// metrics and log. Nothing is repaired.

import { afterEach, beforeEach, expect, test } from 'bun:test'
import { join } from 'node:path'
import { openWriter } from '../../src/store/engine/database.ts'
import { call, expectChatError } from '../front/asking.ts'
import { readExposition } from '../metrics/exposition.ts'
import { openDatabase } from '../support/database.ts'
import type { Harness } from '../support/gateway.ts'
import { startHarness, until } from '../support/gateway.ts'
import { spoil } from './sample-books.ts'

let harness: Harness
let metricsUrl: string

beforeEach(async () => {
  harness = await startHarness({ env: { WEIR_AUDIT_SECONDS: '1', METRICS_PORT: '0' } })
  metricsUrl = /http:\S+\/metrics/.exec(harness.logs.find(line => line.includes('"metrics"'))!)![0]
})
afterEach(() => harness.stop())

const metrics = async (): Promise<string> => await (await fetch(metricsUrl)).text()
interface Ready {
  readonly status: string
  readonly ledger: { readonly drift: number; readonly auditedMs: number | null }
}

/** A gateway whose last write took longer than a second is not ready for a moment, which happens on a busy machine. */
const ready = async (): Promise<Ready> => {
  let answer = await fetch(`${harness.url}/health/ready`)
  for (; answer.status !== 200; answer = await fetch(`${harness.url}/health/ready`)) await Bun.sleep(20)
  return (await answer.json()) as Ready
}

async function accountOf(key: string): Promise<string> {
  return (await harness.weir('accounts show', { account: key })).id as string
}

function damageLedger(sql: string): void {
  const db = openWriter(join(harness.folder, 'weir.db'))
  spoil(db, sql)
  db.close()
}

const balances = (): unknown => {
  const db = openDatabase(join(harness.folder, 'weir.db'), { readonly: true, safeIntegers: true })
  try {
    return db.query('SELECT id, balance, held FROM account').all()
  } finally {
    db.close()
  }
}

/** Waits for an audit that began after this call. The first one that ends after it may have begun before. */
async function nextAudit(): Promise<void> {
  let sinceMs = Date.now()
  for (let ended = 0; ended < 2; await Bun.sleep(20)) {
    const { auditedMs } = (await ready()).ledger
    if (auditedMs === null || auditedMs <= sinceMs) continue
    sinceMs = auditedMs
    ended++
  }
}

test('an account with drift is frozen, the others are served, and the operator unfreezes it', async () => {
  const [driftedKey, otherKey] = [await harness.key(), await harness.key()]
  expect((await call(harness, driftedKey)).status).toBe(200)
  await nextAudit()
  expect((await ready()).ledger.drift).toBe(0)
  expect(await metrics()).toContain('\nweir_ledger_drift 0\n')

  const account = await accountOf(driftedKey)
  damageLedger('UPDATE account SET held = held + 5 WHERE id = (SELECT account_id FROM api_key ORDER BY id LIMIT 1)')
  const damagedBalances = balances()
  await until(() => harness.logs.some(line => line.includes('the ledger is inconsistent')), 'the drift is logged')
  const logged = JSON.parse(harness.logs.find(line => line.includes('the ledger is inconsistent'))!)
  expect(logged).toMatchObject({ level: 'error', check: 'held', account })
  await nextAudit()

  expectChatError(await call(harness, driftedKey), 403)
  expect((await call(harness, otherKey)).status).toBe(200)
  expect(await ready()).toMatchObject({ status: 'ready', ledger: { drift: 1 } })
  await harness.idle()
  const exposition = await metrics()
  expect(exposition).toContain('\nweir_ledger_drift 1\n')
  expect(exposition).toContain('weir_calls_total{outcome="refused"} 1\n')
  expect(exposition).toMatch(/\nweir_ledger_audit_age_seconds \d/)

  const unfrozen = await harness.weir('accounts unfreeze', { account })
  expect(unfrozen).toMatchObject({ frozen: false })
  await nextAudit()
  await nextAudit()
  // Drift that the operator has seen does not freeze the account again, and is still reported.
  expect((await call(harness, driftedKey)).status).toBe(200)
  expect((await ready()).ledger.drift).toBe(1)
  expect(harness.logs.filter(line => line.includes('the ledger is inconsistent'))).toHaveLength(1)
  const heldOf = (rows: unknown): unknown[] => (rows as { held: bigint }[]).map(({ held }) => held)
  expect(heldOf(balances())).toEqual(heldOf(damagedBalances))
})

test("drift of the operator's own account is reported and freezes no account", async () => {
  const key = await harness.key()
  damageLedger('UPDATE account SET balance = balance + 5 WHERE id = 1')
  await nextAudit()
  expect((await ready()).ledger.drift).toBe(2) // the drift of its balance, and of the sum of all
  expect((await call(harness, key)).status).toBe(200)
})

test('an audit on demand finds drift in old rows, and freezes the account', async () => {
  const key = await harness.key()
  expect((await call(harness, key)).status).toBe(200)
  await harness.idle()
  await nextAudit()
  damageLedger('UPDATE transfer SET amount = amount + 1 WHERE ref = (SELECT max(call_id) FROM record)')
  const { books, findings } = await harness.weir('audit')
  expect(books).toBe('do not agree')
  const account = await accountOf(key)
  expect(findings).toContainEqual({ check: 'balance', account, finding: expect.stringContaining(account) })
  expectChatError(await call(harness, key), 403)
  await nextAudit()
  expect((await ready()).ledger.drift).toBe((findings as unknown[]).length)
})

test('metrics are served on their own port only, in the text format, and name no key', async () => {
  const key = await harness.key()
  expect((await call(harness, key)).status).toBe(200)
  await harness.idle()
  const answer = await fetch(metricsUrl)
  expect(answer.headers.get('content-type')).toBe('text/plain; version=0.0.4; charset=utf-8')
  const text = await answer.text()
  readExposition(text)
  expect(text).toContain('\nweir_calls_total{outcome="completed"} 1\n')
  expect(text).toMatch(/\nweir_ledger_commit_seconds_count [1-9]/)
  for (const name of ['calls_active', 'ledger_queue', 'holds_open', 'held_usd', 'shortfall_usd', 'store_full']) {
    expect(text).toContain(`\nweir_${name} 0\n`)
  }
  expect(text).not.toMatch(/wk-|key_|acc_/)
  expect((await fetch(new URL('/', metricsUrl))).status).toBe(404)
  expect((await fetch(metricsUrl, { method: 'POST' })).status).toBe(405)
  expect((await fetch(`${harness.url}/metrics`)).status).toBe(404)
})
