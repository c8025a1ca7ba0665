// Books that do not agree, in a gateway that runs: the account is frozen and no other, and it shows wherever somebody
// may look. Nothing is repaired.

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

const ready = async (): Promise<Ready> => {
  const answer = await fetch(`${harness.url}/health/ready`)
  expect(answer.status).toBe(200)
  return (await answer.json()) as Ready
}

async function accountOf(key: string): Promise<string> {
  return (await harness.weir('accounts show', { account: key })).id as string
}

function spoilFolder(sql: string): void {
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

/** Waits for a look that began after this was called. */
async function nextAudit(): Promise<void> {
  const sinceMs = Date.now()
  let seenMs: number | null = null
  while (seenMs === null || seenMs <= sinceMs) {
    seenMs = (await ready()).ledger.auditedMs
    await Bun.sleep(20)
  }
}

test('one account is frozen, the others are served, and a person lets it go again', async () => {
  const [wrong, right] = [await harness.key(), await harness.key()]
  expect((await call(harness, wrong)).status).toBe(200)
  await nextAudit()
  expect((await ready()).ledger.drift).toBe(0)
  expect(await metrics()).toContain('\nweir_ledger_drift 0\n')

  const account = await accountOf(wrong)
  spoilFolder('UPDATE account SET held = held + 5 WHERE id = (SELECT account_id FROM api_key ORDER BY id LIMIT 1)')
  const spoilt = balances()
  await until(() => harness.logs.some(line => line.includes('the ledger is inconsistent')), 'it is logged')
  const logged = JSON.parse(harness.logs.find(line => line.includes('the ledger is inconsistent'))!)
  expect(logged).toMatchObject({ level: 'error', check: 'held', account })
  await nextAudit()

  expectChatError(await call(harness, wrong), 403)
  expect((await call(harness, right)).status).toBe(200)
  expect(await ready()).toMatchObject({ status: 'ready', ledger: { drift: 1 } })
  const told = await metrics()
  expect(told).toContain('\nweir_ledger_drift 1\n')
  expect(told).toContain('weir_calls_total{outcome="refused"} 1\n')
  expect(told).toMatch(/\nweir_ledger_audit_age_seconds \d/)

  const shown = await harness.weir('accounts unfreeze', { account })
  expect(shown).toMatchObject({ frozen: false })
  await nextAudit()
  await nextAudit()
  // What a person has seen is not held against the account again, and is still there to be seen.
  expect((await call(harness, wrong)).status).toBe(200)
  expect((await ready()).ledger.drift).toBe(1)
  expect(harness.logs.filter(line => line.includes('the ledger is inconsistent'))).toHaveLength(1)
  const heldOf = (rows: unknown): unknown[] => (rows as { held: bigint }[]).map(({ held }) => held)
  expect(heldOf(balances())).toEqual(heldOf(spoilt))
})

test("drift of the operator's own account shows and freezes nobody", async () => {
  const key = await harness.key()
  spoilFolder('UPDATE account SET balance = balance + 5 WHERE id = 1')
  await nextAudit()
  expect((await ready()).ledger.drift).toBe(2) // its balance, and the sum of all
  expect((await call(harness, key)).status).toBe(200)
})

test('an audit on demand finds what the past hides, and acts upon it', async () => {
  const key = await harness.key()
  expect((await call(harness, key)).status).toBe(200)
  await harness.idle()
  await nextAudit()
  spoilFolder('UPDATE transfer SET amount = amount + 1 WHERE ref = (SELECT max(call_id) FROM record)')
  const { books, findings } = await harness.weir('audit')
  expect(books).toBe('do not agree')
  const account = await accountOf(key)
  expect(findings).toContainEqual({ check: 'balance', account, finding: expect.stringContaining(account) })
  expectChatError(await call(harness, key), 403)
  await nextAudit()
  expect((await ready()).ledger.drift).toBe((findings as unknown[]).length)
})

test('metrics are told on their own port only, in the text format, and name no key', async () => {
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
