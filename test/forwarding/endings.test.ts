// How calls end that a caller could try to profit from, and how calls end while the ledger does not answer.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import { bounds } from '../../src/base/bounds.ts'
import { systemClock } from '../../src/base/clock.ts'
import type { Exchange, StopReason } from '../../src/pipeline/exchange.ts'
import { ActiveCalls } from '../../src/pipeline/lifetime/active-calls.ts'
import type { Timeouts } from '../../src/upstreams/timeouts.ts'
import { defaultTimeouts } from '../../src/upstreams/timeouts.ts'
import { plain } from '../../tools/fake-upstream/answers.ts'
import { chunk, end, gate, head, script } from '../../tools/fake-upstream/script.ts'
import { openDatabase } from '../support/database.ts'
import type { Harness } from '../support/gateway.ts'
import { until } from '../support/gateway.ts'
import { errorOf, model, openCall, openRaw, startHasty } from './caller.ts'
import { after, done, finish, piece, role, usageOnly } from './wire.ts'

let harness: Harness
/** The time at which the clock of the gateway stands still; undefined while it runs. */
let stoppedMs: number | undefined
const clock = { ...systemClock, nowMs: () => stoppedMs ?? systemClock.nowMs() }
beforeAll(async () => {
  harness = await startHasty({ world: { clock, eventBytesMax: 1024 * 1024, ledgerMs: bounds.settleMsMax } })
})
afterAll(() => harness.stop())

const SSE = { 'content-type': 'text/event-stream', 'transfer-encoding': 'chunked' }

describe('a caller that leaves when the model has finished', () => {
  test('pays the usage that is reported after it has left', async () => {
    const key = await harness.key()
    const left = Promise.withResolvers<void>()
    const content = role() + piece('42') + finish()
    const tail = usageOnly(9, 50_000) + done
    harness.upstream.plan(script(head(200, SSE), chunk(content), gate(left.promise), chunk(tail), end))
    const received = harness.upstream.nextRequest()
    const caller = openCall(harness, key, { stream: true })
    await caller.until(({ text }) => text.includes('"stop"'), 'the model is done')
    await received
    stoppedMs = clock.nowMs() // the gateway waits two seconds for the report
    caller.leave()
    await caller.closed
    left.resolve()
    await harness.idle()
    stoppedMs = undefined
    expect(harness.lastRecord()).toMatchObject({
      usage_source: 'reported',
      output_tokens: 50_000,
      cost: 9 * 150 + 50_000 * 600,
    })
  })

  test('releases the upstream when no usage comes', async () => {
    const key = await harness.key()
    harness.upstream.plan(script(head(200, SSE), chunk(role() + piece('42') + finish()), gate(new Promise(() => {}))))
    const received = harness.upstream.nextRequest()
    const caller = openCall(harness, key, { stream: true })
    await caller.until(({ text }) => text.includes('"stop"'), 'the model is done')
    caller.leave()
    await (await received).closed
    await harness.idle()
    expect(harness.lastRecord()).toMatchObject({ outcome: 'client_left', usage_source: 'estimated' })
    expect(harness.openHolds()).toBe(0)
  })
})

test('a call that exceeds the longest duration is stopped, with a reason that is charged', () => {
  let nowMs = 0
  const underWay = new ActiveCalls(() => nowMs)
  const reasons: StopReason[] = []
  const stop = { stop: (reason: StopReason) => void reasons.push(reason) }
  const open = (): Exchange => ({ startedMs: nowMs, attempt: {}, lifetime: { stop } }) as unknown as Exchange
  underWay.add(open())
  nowMs = bounds.callMsMax - 1
  underWay.check()
  expect(reasons).toEqual([])
  underWay.add(open())
  nowMs = bounds.callMsMax
  underWay.check()
  expect(reasons.map(({ outcome }) => outcome)).toEqual(['too_long'])
})

test('the timeouts of a model decide when its calls are stopped', () => {
  let nowMs = 0
  const underWay = new ActiveCalls(() => nowMs)
  const stopped: string[] = []
  const open = (name: string, own: Partial<Timeouts>, ofModel?: Partial<Timeouts>): Exchange => {
    const model = ofModel && { times: { ...defaultTimeouts, ...ofModel } }
    const candidate = { provider: { times: { ...defaultTimeouts, ...own } }, model: { ...model } }
    return {
      startedMs: nowMs,
      attempt: { candidate },
      lifetime: { stop: { stop: () => void stopped.push(name) } },
    } as unknown as Exchange
  }
  for (const exchange of [
    open('long', {}, { totalMs: 3_600_000 }),
    open('usual', {}),
    open('short', { totalMs: 60_000 }),
    open('longer than its others', { totalMs: 60_000 }, { totalMs: 120_000 }),
  ]) {
    underWay.add(exchange)
  }
  const stoppedBy = (ms: number): readonly string[] => {
    nowMs = ms
    underWay.check()
    return stopped.splice(0)
  }
  expect(stoppedBy(59_999)).toEqual([])
  expect(stoppedBy(60_000)).toEqual(['short'])
  expect(stoppedBy(120_000)).toEqual(['short', 'longer than its others'])
  expect(stoppedBy(600_000)).toEqual(['usual', 'short', 'longer than its others'])
  expect(stoppedBy(3_600_000)).toContain('long')
})

/** Blocks every write to the ledger until the returned function is called. */
function lockLedger(): () => void {
  const db = openDatabase(join(harness.folder, 'weir.db'))
  db.run('BEGIN IMMEDIATE')
  return () => db.close()
}

/** A writer counts as healthy again for a moment between two operations that fail. */
async function untilReady(status: 200 | 503): Promise<void> {
  let seen: number | undefined
  while (seen !== status) ({ status: seen } = await fetch(`${harness.url}/health/ready`))
  expect(seen).toBe(status)
}

describe('when the ledger does not answer', () => {
  test('a plain call that could not be settled costs nothing, and its hold is released when the ledger answers', async () => {
    const key = await harness.key({ credit: '1' })
    const locked = Promise.withResolvers<void>()
    harness.upstream.plan(after(locked.promise, plain('hi', { usage: { input: 7, output: 5 } })))
    const received = harness.upstream.nextRequest()
    const caller = openCall(harness, key, {})
    await received
    const unlock = lockLedger()
    locked.resolve()
    const answer = await caller.whole()
    expect([answer.status, errorOf(answer.body).code]).toEqual([500, 'settle_failed'])
    await untilReady(503)
    unlock()
    await until(() => harness.openHolds() === 0, 'the hold is released')
    await until(() => harness.lastRecord()?.status === 500, 'the record has the status of the answer')
    expect(harness.lastRecord()).toMatchObject({ outcome: 'gateway_fault', rule: 'gateway_fault', cost: 0 })
    expect(await harness.balance(key)).toMatchObject({ balance: '1.00', held: '0.00' })
    await untilReady(200)
  })

  test('a stream that delivered content is charged when the ledger answers', async () => {
    const key = await harness.key({ credit: '1' })
    const locked = Promise.withResolvers<void>()
    const [content, rest] = [role() + piece('Hello'), finish() + usageOnly(7, 5) + done]
    harness.upstream.plan(script(head(200, SSE), chunk(content), gate(locked.promise), chunk(rest), end))
    const caller = openCall(harness, key, { stream: true })
    await caller.until(({ text }) => text.includes('Hello'), 'content has arrived')
    const unlock = lockLedger()
    locked.resolve()
    expect((await caller.whole()).text).toContain('settle_failed')
    unlock()
    await until(() => harness.openHolds() === 0, 'the call is settled')
    expect(harness.lastRecord()).toMatchObject({ outcome: 'completed', cost: 7 * 150 + 5 * 600 })
    expect(await harness.balance(key)).toMatchObject({ balance: '0.99999595', held: '0.00' })
  })
})

test('a drain does not wait for a request body that does not arrive', async () => {
  // The time for a body never ends: a drain that waited for the body would not end either.
  const nowMs = systemClock.nowMs()
  const ownHarness = await startHasty({ world: { clock: { ...systemClock, nowMs: () => nowMs } } })
  const key = await ownHarness.key()
  const headers = `host: weir\r\nauthorization: Bearer ${key}\r\ncontent-type: application/json\r\ncontent-length: 99`
  const caller = openRaw(ownHarness.url, Buffer.from(`POST /v1/chat/completions HTTP/1.1\r\n${headers}\r\n\r\n{`))
  await until(() => ownHarness.gateway.activeCalls === 1, 'the call is active')
  await ownHarness.stop()
  await caller.closed
  expect(ownHarness.gateway.activeCalls).toBe(0)
})

describe('a hold', () => {
  test('for an image covers the whole context, because its bytes do not tell its tokens', async () => {
    const key = await harness.key({ credit: '0.0005' })
    const parts = [{ type: 'image_url', image_url: { url: 'https://a.test/b.png' } }]
    const before = harness.upstream.requests.length
    const image = { model, messages: [{ role: 'user', content: parts }], max_tokens: 1 }
    expect((await openCall(harness, key, image).whole()).status).toBe(402)
    expect(harness.upstream.requests.length).toBe(before)
    const text = { ...image, messages: [{ role: 'user', content: [{ type: 'text', text: 'hi' }] }] }
    expect((await openCall(harness, key, text).whole()).status).toBe(200)
  })
})

describe("a name that another parser could take for one of the gateway's names", () => {
  test.each([
    ['Model', { Model: 'openai/gpt-4' }],
    ['MAX_TOKENS', { MAX_TOKENS: 1_000_000 }],
    ['N', { N: 128 }],
  ])('%s is refused', async (_, more) => {
    const answer = await openCall(harness, await harness.key(), more).whole()
    expect([answer.status, errorOf(answer.body).code]).toEqual([400, 'field_duplicate'])
  })

  test('include_usage twice is refused', async () => {
    const body = `{"model":"${model}","messages":[{"role":"user","content":"hi"}],"stream":true,
      "stream_options":{"include_usage":false,"include_usage":true}}`
    const answer = await openCall(harness, await harness.key(), body).whole()
    expect([answer.status, errorOf(answer.body).code]).toEqual([400, 'field_duplicate'])
  })
})

test('a stream of several choices without its last event counts as complete only if all choices are finished', async () => {
  const key = await harness.key()
  harness.upstream.plan(script(head(200, SSE), chunk(role() + piece('one') + finish()), end))
  const caller = await openCall(harness, key, { stream: true, n: 2 }).whole()
  expect(caller.text).toContain('upstream_failed')
  expect(harness.lastRecord()).toMatchObject({ outcome: 'upstream_failed', cost: 0 })
})
