// Stored answers of idempotency keys on the disk: encrypted, present after a restart and a crash, deleted after a day.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { plain } from '../../tools/fake-upstream/answers.ts'
import { openDatabase } from '../support/database.ts'
import type { Harness } from '../support/gateway.ts'
import { until } from '../support/gateway.ts'
import { errorOf, startHasty } from './caller.ts'
import { bodyOf, idOf, send } from './idempotent-calls.ts'

let folder: string
let ownHarness: Harness
let ownKey: string
const plainText = 'Nobody may read this on the disk'

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'weir-'))
  ownHarness = await startHasty({ folder })
  ownKey = await ownHarness.key()
})
afterAll(async () => {
  await ownHarness.stop()
  rmSync(folder, { recursive: true, force: true })
})

const callAgain = (name: string): Promise<Response> => send({ harness: ownHarness, key: ownKey, name })
const change = (sql: string): void => {
  const db = openDatabase(join(folder, 'weir.db'))
  db.run(sql)
  db.close()
}
const restart = async (env: Record<string, string> = {}): Promise<void> => {
  await ownHarness.stop()
  ownHarness = await startHasty({ folder, env })
}
const storedCount = (): number => {
  const db = openDatabase(join(folder, 'weir.db'), { readonly: true })
  const row = db.query('SELECT (SELECT count(*) FROM kept_answer) + (SELECT count(*) FROM idempotency) AS n').get()
  db.close()
  return (row as { n: number }).n
}

/** Returns the sealed answer that is stored; with an argument, replaces it. */
function envelope(given?: Buffer): Buffer {
  const db = openDatabase(join(folder, 'weir.db'))
  const { sealed } = db.query('SELECT sealed FROM kept_answer').get() as { sealed: Uint8Array }
  if (given !== undefined) db.query('UPDATE kept_answer SET sealed = ?1').run(given)
  db.close()
  return Buffer.from(sealed)
}

test('a stored answer is encrypted, and is replayed after a restart even if its model is gone', async () => {
  ownHarness.upstream.plan(plain(plainText))
  const first = await callAgain('sealed')
  expect(await first.text()).toContain(plainText)
  for (const file of readdirSync(folder).filter(one => one.startsWith('weir.db'))) {
    expect(readFileSync(join(folder, file)).toString('latin1')).not.toContain(plainText)
  }
  await restart({ OPENAI_API_KEY: '' })
  expect((await callAgain('another')).status).toBeGreaterThanOrEqual(400)
  const replayed = await callAgain('sealed')
  expect(await replayed.text()).toContain(plainText)
  expect(replayed.headers.get('x-weir-replayed')).toBe(idOf(first))
})

test('a stored answer that cannot be decrypted counts as absent, and is logged', async () => {
  const sealed = envelope()
  envelope(Buffer.concat([sealed.subarray(0, 1), Buffer.from('another!').subarray(0, 4), sealed.subarray(5)]))
  const closed = await callAgain('sealed')
  expect([closed.status, errorOf(await closed.text()).code]).toEqual([409, 'idempotency_not_kept'])
  expect(ownHarness.logs.join('')).toContain('an encryption key that is not configured')
  envelope(sealed)
  expect((await callAgain('sealed')).status).toBe(200)
})

test('a stored answer is deleted after a day', async () => {
  expect(storedCount()).toBe(2)
  await ownHarness.stop()
  const hours = (n: number): string => String(n * 3_600_000 * 8_192)
  change(`UPDATE idempotency SET call_id = call_id - ${hours(23)}`)
  change(`UPDATE kept_answer SET call_id = call_id - ${hours(23)}`)
  ownHarness = await startHasty({ folder })
  expect(storedCount()).toBe(2)
  await ownHarness.stop()
  change(`UPDATE idempotency SET call_id = call_id - ${hours(1)}`)
  change(`UPDATE kept_answer SET call_id = call_id - ${hours(1)}`)
  ownHarness = await startHasty({ folder })
  await until(() => storedCount() === 0, 'the answer is deleted')
  const anew = await callAgain('sealed')
  expect([anew.status, anew.headers.get('x-weir-replayed')]).toEqual([200, null])
})

test('the idempotency key of a call that a crash of the gateway cut off is free again', async () => {
  await ownHarness.stop()
  const fingerprint = new Bun.CryptoHasher('sha256').update(`/v1/chat/completions\n${bodyOf()}`).digest('hex')
  const draft = '{"dialect":"openai-chat","provider":null,"model":null,"streamed":false,"priceVersion":null}'
  change(`INSERT INTO hold (call_id, kind, account_id, key_id, amount, used, draft)
    SELECT 77, 'call', account_id, id, 500, 400, '${draft}' FROM api_key`)
  change('UPDATE account SET held = held + 500 WHERE id = (SELECT account_id FROM api_key)')
  change(`INSERT INTO idempotency SELECT id, 'cut', x'${fingerprint}', 77, 0 FROM api_key`)
  ownHarness = await startHasty({ folder })
  const free = await callAgain('cut')
  expect([free.status, free.headers.get('x-weir-replayed')]).toEqual([200, null])
  expect(ownHarness.records()[0]).toMatchObject({ call_id: 77, outcome: 'gateway_crash', cost: 0 })
  expect(ownHarness.openHolds()).toBe(0)
})
