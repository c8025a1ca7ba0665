// Plain answers that are collected from a stream, and that the gateway ends: what their callers get, and who pays.

import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { bounds } from '../../src/base/bounds.ts'
import { systemClock } from '../../src/base/clock.ts'
import { pausedStream } from '../../tools/fake-upstream/answers.ts'
import { openDatabase } from '../support/database.ts'
import type { Harness, HarnessOptions } from '../support/gateway.ts'
import { hello, startHarness, until } from '../support/gateway.ts'
import { post } from '../support/raw.ts'
import type { Caller } from './caller.ts'
import { model, openRaw, startHasty } from './caller.ts'

async function withGateway(options: HarnessOptions, run: (harness: Harness) => Promise<void>): Promise<void> {
  const harness = await startHasty(options)
  try {
    await run(harness)
  } finally {
    await harness.stop()
  }
}

function held({ folder }: Harness): number {
  const db = openDatabase(join(folder, 'weir.db'), { readonly: true })
  try {
    return (db.query('SELECT coalesce(sum(amount), 0) AS n FROM hold').get() as { n: number }).n
  } finally {
    db.close()
  }
}

const TOKENS = 3_000
const CREDIT = '0.05'

/** A plain call of which so many tokens have arrived: more than half of its first slice. No more will come. */
async function beginCall(harness: Harness, key: string, more: Record<string, string> = {}): Promise<Caller> {
  const [arrives, never] = [Promise.withResolvers<void>(), new Promise<void>(() => {})]
  const gates = [arrives.promise, never]
  harness.upstream.plan(pausedStream(['word', 'word'.repeat(TOKENS - 1), 'never'], gates, { usage: 'missing' }))
  const headers = { 'authorization': `Bearer ${key}`, 'content-type': 'application/json', ...more }
  const body = JSON.stringify({ model, messages: hello })
  const caller = openRaw(harness.url, post('/v1/chat/completions', headers, body))
  await until(() => harness.openHolds() === 1, 'the first slice is reserved')
  const first = held(harness)
  arrives.resolve()
  await until(() => held(harness) > first, 'the next slice is reserved')
  return caller
}

/** Either the end of the call is noticed first, or that of the attempt. */
test.each([1e9, bounds.callMsMax])(
  'at the longest duration, the caller gets what has arrived, and pays (%d)',
  async wholeMs => {
    let skewMs = 0
    const clock = { ...systemClock, nowMs: () => systemClock.nowMs() + skewMs }
    const attemptTimes = { firstContentMs: 1e9, wholeMs, betweenChunksMs: 1e9 }
    await withGateway({ world: { clock, attemptTimes } }, async harness => {
      const key = await harness.key({ credit: CREDIT })
      const claim = { 'idempotency-key': 'once' }
      const caller = await beginCall(harness, key, claim)
      skewMs += bounds.callMsMax
      await caller.whole()
      expect([caller.status, caller.header('x-weir-stop')]).toEqual([200, 'upstream_too_slow'])
      const { choices, usage } = JSON.parse(caller.text)
      expect(choices).toMatchObject([{ finish_reason: 'length', message: { content: 'word'.repeat(TOKENS) } }])
      expect(usage).toMatchObject({ completion_tokens: TOKENS })
      await harness.idle()
      const cut = { outcome: 'too_long', rule: 'too_long_answered', status: 200, output_tokens: TOKENS }
      expect(harness.records()).toMatchObject([cut])
      // What was paid is not paid again: the same request gets the same answer.
      skewMs = 0
      const headers = { 'authorization': `Bearer ${key}`, 'content-type': 'application/json', ...claim }
      const body = JSON.stringify({ model, messages: hello })
      const again = await openRaw(harness.url, post('/v1/chat/completions', headers, body)).whole()
      expect([again.status, again.text]).toEqual([200, caller.text])
      expect(harness.upstream.requests).toHaveLength(1)
    })
  },
)

test('at the end of the gateway, the caller gets an error and pays nothing', async () => {
  const harness = await startHarness({ env: { WEIR_DRAIN_SECONDS: '0' } })
  try {
    const key = await harness.key({ credit: CREDIT })
    const caller = await beginCall(harness, key, { 'idempotency-key': 'once' })
    const drained = harness.gateway.drain()
    await caller.whole()
    await drained
    expect([caller.status, caller.header('x-weir-stop')]).toEqual([503, undefined])
    expect(harness.records()).toMatchObject([{ outcome: 'drained', rule: 'drained', cost: 0 }])
    expect(harness.openHolds()).toBe(0)
  } finally {
    await harness.stop()
  }
})
