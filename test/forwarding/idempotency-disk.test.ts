// Kept answers on the disk: sealed, there after a restart and a crash, gone after a day.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { plain } from '../../tools/fake-upstream/answers.ts'
import { openDatabase } from '../support/database.ts'
import type { Harness } from '../support/gateway.ts'
import { until } from '../support/gateway.ts'
import { errorOf, startHasty } from './caller.ts'
import { ask, bodyOf, idOf } from './repeated.ts'

let folder: string
let own: Harness
let ownKey: string
const words = 'Nobody may read this on the disk'

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'weir-'))
  own = await startHasty({ folder })
  ownKey = await own.key()
})
afterAll(async () => {
  await own.stop()
  rmSync(folder, { recursive: true, force: true })
})

const again = (name: string): Promise<Response> => ask({ harness: own, key: ownKey, name })
const change = (sql: string): void => {
  const db = openDatabase(join(folder, 'weir.db'))
  db.run(sql)
  db.close()
}
const restart = async (env: Record<string, string> = {}): Promise<void> => {
  await own.stop()
  own = await startHasty({ folder, env })
}
const kept = (): number => {
  const db = openDatabase(join(folder, 'weir.db'), { readonly: true })
  const row = db.query('SELECT (SELECT count(*) FROM kept_answer) + (SELECT count(*) FROM idempotency) AS n').get()
  db.close()
  return (row as { n: number }).n
}

/** Of the answer that is kept; with one given, that is put in its place. */
function envelope(given?: Buffer): Buffer {
  const db = openDatabase(join(folder, 'weir.db'))
  const { sealed } = db.query('SELECT sealed FROM kept_answer').get() as { sealed: Uint8Array }
  if (given !== undefined) db.query('UPDATE kept_answer SET sealed = ?1').run(given)
  db.close()
  return Buffer.from(sealed)
}

test('an answer lies sealed, and is there after a restart, where its model may be gone', async () => {
  own.upstream.plan(plain(words))
  const first = await again('sealed')
  expect(await first.text()).toContain(words)
  for (const file of readdirSync(folder).filter(one => one.startsWith('weir.db'))) {
    expect(readFileSync(join(folder, file)).toString('latin1')).not.toContain(words)
  }
  await restart({ OPENAI_API_KEY: '' })
  expect((await again('another')).status).toBeGreaterThanOrEqual(400)
  const replayed = await again('sealed')
  expect(await replayed.text()).toContain(words)
  expect(replayed.headers.get('x-weir-replayed')).toBe(idOf(first))
})

test('an answer that does not open is as good as not kept, and is told in the log', async () => {
  const sealed = envelope()
  envelope(Buffer.concat([sealed.subarray(0, 1), Buffer.from('another!').subarray(0, 4), sealed.subarray(5)]))
  const closed = await again('sealed')
  expect([closed.status, errorOf(await closed.text()).code]).toEqual([409, 'idempotency_not_kept'])
  expect(own.logs.join('')).toContain('an encryption key that is not configured')
  envelope(sealed)
  expect((await again('sealed')).status).toBe(200)
})

test('an answer is forgotten after a day', async () => {
  expect(kept()).toBe(2)
  await own.stop()
  const hours = (n: number): string => String(n * 3_600_000 * 8_192)
  change(`UPDATE idempotency SET call_id = call_id - ${hours(23)}`)
  change(`UPDATE kept_answer SET call_id = call_id - ${hours(23)}`)
  own = await startHasty({ folder })
  expect(kept()).toBe(2)
  await own.stop()
  change(`UPDATE idempotency SET call_id = call_id - ${hours(1)}`)
  change(`UPDATE kept_answer SET call_id = call_id - ${hours(1)}`)
  own = await startHasty({ folder })
  await until(() => kept() === 0, 'it is forgotten')
  const anew = await again('sealed')
  expect([anew.status, anew.headers.get('x-weir-replayed')]).toEqual([200, null])
})

test('the key of a call that our own crash cut off is free again', async () => {
  await own.stop()
  const fingerprint = new Bun.CryptoHasher('sha256').update(`/v1/chat/completions\n${bodyOf()}`).digest('hex')
  const draft = '{"dialect":"openai-chat","provider":null,"model":null,"streamed":false,"priceVersion":null}'
  change(`INSERT INTO hold (call_id, kind, account_id, key_id, amount, used, draft)
    SELECT 77, 'call', account_id, id, 500, 400, '${draft}' FROM api_key`)
  change('UPDATE account SET held = held + 500 WHERE id = (SELECT account_id FROM api_key)')
  change(`INSERT INTO idempotency SELECT id, 'cut', x'${fingerprint}', 77, 0 FROM api_key`)
  own = await startHasty({ folder })
  const free = await again('cut')
  expect([free.status, free.headers.get('x-weir-replayed')]).toEqual([200, null])
  expect(own.records()[0]).toMatchObject({ call_id: 77, outcome: 'gateway_crash', cost: 0 })
  expect(own.openHolds()).toBe(0)
})
