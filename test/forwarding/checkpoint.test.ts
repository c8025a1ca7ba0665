// What a long stream has delivered is written down while it runs. A start on the data of that moment, as after a crash,
// charges that much: never more, and nothing for a stream that had no checkpoint yet.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { cpSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pausedStream } from '../../tools/fake-upstream/answers.ts'
import { openDatabase } from '../support/database.ts'
import type { Harness } from '../support/gateway.ts'
import { hello, startHarness, until } from '../support/gateway.ts'
import { model, openCall, startHasty } from './caller.ts'

let harness: Harness
let copy: string
beforeAll(async () => {
  harness = await startHasty({ env: { WEIR_CHECKPOINT_SECONDS: '0' } })
  copy = mkdtempSync(join(tmpdir(), 'weir-crash-'))
})
afterAll(async () => {
  await harness.stop()
  rmSync(copy, { recursive: true, force: true })
})

function usedNow(): bigint {
  const db = openDatabase(join(harness.folder, 'weir.db'), { readonly: true, safeIntegers: true })
  try {
    return (db.query('SELECT coalesce(max(used), 0) AS used FROM hold').get() as { used: bigint }).used
  } finally {
    db.close()
  }
}

test('a crash charges what was delivered at the last checkpoint, and writes the record', async () => {
  const key = await harness.key({ credit: '1' })
  const ends = Promise.withResolvers<void>()
  harness.upstream.plan(pausedStream(['x'.repeat(400)], ends.promise))
  const body = JSON.stringify({ model, messages: hello, stream: true })
  const caller = openCall(harness, key, body)
  await caller.until(({ text }) => text.includes('xxx'), 'content has arrived')
  await until(() => usedNow() > 0n, 'a checkpoint is written')
  const delivered = BigInt(Math.ceil(body.length / 4)) * 150n + 100n * 600n
  expect(usedNow()).toBe(delivered)
  for (const name of ['weir.db', 'weir.db-wal', 'pepper', 'jwt-secret', 'encryption-key']) {
    cpSync(join(harness.folder, name), join(copy, name))
  }

  const after = await startHarness({ folder: copy })
  try {
    const [record, ...more] = after.records()
    expect(more).toEqual([])
    expect(record).toMatchObject({
      outcome: 'gateway_crash',
      rule: 'crash_delivered',
      usage_source: 'estimated',
      status: 500,
      streamed: 1,
      cost: Number(delivered),
      output_tokens: 100,
      provider: 'openai',
      model: 'gpt-4o-mini',
    })
    expect(after.openHolds()).toBe(0)
    expect(await after.balance(key)).toMatchObject({ held: '0.00' })
  } finally {
    await after.stop()
  }

  // The gateway that lived on charges the whole stream, once.
  ends.resolve()
  await caller.until(({ text }) => text.includes('[DONE]'), 'the end has arrived')
  await harness.idle()
  expect(harness.recordCount()).toBe(1)
  expect(harness.records()[0]).toMatchObject({ outcome: 'completed', usage_source: 'reported' })
})
