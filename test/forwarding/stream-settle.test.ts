// The last event of an answer waits until its settlement is durable. The proof is what another connection to the
// database reads at the moment when a caller receives that event.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { bounds } from '../../src/base/bounds.ts'
import { pausedStream, plain } from '../../tools/fake-upstream/answers.ts'
import { openDatabase } from '../support/database.ts'
import type { Harness } from '../support/gateway.ts'
import { chat, hello, until } from '../support/gateway.ts'
import { errorOf, eventsOf, model, openCall, startHasty } from './caller.ts'
import { after, done, finish, goodStream, piece, role, sends, usageOnly } from './wire.ts'

/** Blocks every write to the ledger until the returned function is called. */
function lockLedger(harness: Harness): () => void {
  const db = openDatabase(join(harness.folder, 'weir.db'))
  db.run('BEGIN IMMEDIATE')
  let held = true
  return () => {
    if (held) db.close()
    held = false
  }
}

const live = (harness: Harness): Promise<Response> => fetch(`${harness.url}/health/live`)

describe('the last event', () => {
  let harness: Harness
  let key: string
  beforeAll(async () => {
    harness = await startHasty()
    key = await harness.key({ credit: '1', qpm: 100_000 })
  })
  afterAll(() => harness.stop())

  test('of a stream comes when its record is in the database, with its cost', async () => {
    for (let round = 1; round <= 20; round++) {
      harness.upstream.plan(sends(goodStream))
      const caller = openCall(harness, key, { stream: true })
      let record: Record<string, unknown> | undefined
      // The record is read in the same turn of the event loop in which the bytes arrive.
      await caller.until(({ text }) => {
        if (!text.includes('[DONE]')) return false
        record = harness.records()[round - 1]
        return true
      }, 'the last word is here')
      expect(record).toMatchObject({ cost: 7 * 150 + 5 * 600, outcome: 'completed', status: 200, streamed: 1 })
      expect(harness.openHolds()).toBe(0)
      caller.leave()
    }
    expect(await harness.balance(key)).toMatchObject({ balance: '0.999919', held: '0.00' })
  })

  test('of a stream waits for the ledger, and everything before it does not', async () => {
    const ends = Promise.withResolvers<void>()
    harness.upstream.plan(pausedStream(['Hello'], ends.promise))
    const caller = openCall(harness, key, { stream: true })
    await caller.until(({ text }) => text.includes('Hello'), 'content has arrived')
    const unlock = lockLedger(harness)
    try {
      ends.resolve()
      await caller.until(({ text }) => text.includes('"finish_reason":"stop"'), 'the finish has arrived')
      await live(harness)
      expect(caller.text).not.toContain('[DONE]')
      expect(caller.text).not.toContain('X-Pipeline-Breakdown')
      expect(harness.openHolds()).toBe(1)
    } finally {
      unlock()
    }
    await caller.whole()
    expect(caller.text).toEndWith(done)
    expect(harness.openHolds()).toBe(0)
  })

  test('of a plain answer is its head, which waits for the ledger', async () => {
    const reached = harness.upstream.nextRequest()
    const opens = Promise.withResolvers<void>()
    harness.upstream.plan(after(opens.promise, plain('x')))
    const caller = openCall(harness, key, {})
    const request = await reached
    const unlock = lockLedger(harness)
    try {
      opens.resolve()
      await until(() => request.bytesWritten > 150, 'the upstream has answered')
      await live(harness)
      expect(caller.head).toBe('')
    } finally {
      unlock()
    }
    expect((await caller.whole()).status).toBe(200)
  })
})

describe('a ledger that does not answer in time', () => {
  let harness: Harness
  let restarted: Harness | undefined
  const folder = mkdtempSync(join(tmpdir(), 'weir-locked-'))
  beforeAll(async () => {
    harness = await startHasty({ folder, world: { ledgerMs: bounds.settleMsMax } })
  })
  afterAll(async () => {
    await harness.stop()
    await restarted?.stop()
    rmSync(folder, { recursive: true, force: true })
  })

  test('ends a stream with an error event, refuses a plain answer and a new call, and loses no money', async () => {
    const key = await harness.key({ credit: '1' })
    const [streamEnds, plainEnds] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    harness.upstream.plan(pausedStream(['Hello'], streamEnds.promise))
    const streamed = openCall(harness, key, { stream: true })
    await streamed.until(({ text }) => text.includes('Hello'), 'content has arrived')
    const reached = harness.upstream.nextRequest()
    harness.upstream.plan(after(plainEnds.promise, plain('x')))
    const plainCall = openCall(harness, key, {})
    await reached
    const before = harness.upstream.requests.length
    const unlock = lockLedger(harness)
    try {
      streamEnds.resolve()
      plainEnds.resolve()
      const fresh = chat(harness, key, { model, messages: hello })
      await streamed.whole()
      const [error, last] = eventsOf(streamed.body).slice(-2)
      expect(errorOf(error!)).toMatchObject({ type: 'server_error', code: 'settle_failed' })
      expect(last).toBe('[DONE]')
      await plainCall.whole()
      expect([plainCall.status, errorOf(plainCall.body).code]).toEqual([500, 'settle_failed'])
      expect(plainCall.header('x-should-retry')).toBe('false')
      expect((await fresh).status).toBe(503)
      expect((await fresh).headers.get('retry-after')).toBe('1')
      expect(harness.upstream.requests.length).toBe(before)
      // The holds stay: the costs of the calls are not known yet.
      expect(harness.openHolds()).toBe(2)
      expect(harness.records()).toEqual([])
    } finally {
      unlock()
    }
    await harness.idle()
    await harness.stop()
    // Unsettled calls are written before the stop, and not left to the next start, which would know less about them.
    restarted = await startHasty({ folder })
    expect(restarted.openHolds()).toBe(0)
    const ends = restarted
      .records()
      .map(({ outcome, cost, usage_source: source }) => [outcome, Number(cost) > 0, source])
    expect(ends).toEqual([['completed', true, 'reported'], ...Array(2).fill(['gateway_fault', false, 'none'])])
    const { balance, held } = await restarted.balance(key)
    expect(held).toBe('0.00')
    const charged = restarted.records().reduce((sum, { cost }) => sum + Number(cost), 0)
    expect(Math.round(Number(balance) * 1e9)).toBe(1e9 - charged)
    expect((await chat(restarted, key, { model, messages: hello })).status).toBe(200)
  })
})

test('a stream whose terminal frame arrives in pieces waits for its settlement too', async () => {
  const harness = await startHasty()
  try {
    const key = await harness.key()
    harness.upstream.plan(sends(role() + piece('x') + finish() + usageOnly(1, 1) + done, 1))
    const caller = openCall(harness, key, { stream: true })
    await caller.until(({ text }) => {
      if (text.includes('[DON')) expect(harness.recordCount()).toBe(1)
      return text.endsWith(done)
    }, 'the last word is here')
    caller.leave()
  } finally {
    await harness.stop()
  }
})
