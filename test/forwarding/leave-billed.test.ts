// A caller that leaves an upstream which bills the whole answer anyway: the call goes on to its reported usage, within
// bounds, and is charged by the report; beyond the bounds it is cut off and its tokens are counted.

import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { bounds } from '../../src/base/bounds.ts'
import { fail, plain, silence, streamHead } from '../../tools/fake-upstream/answers.ts'
import { chunk, end, gate, reset, script } from '../../tools/fake-upstream/script.ts'
import type { Harness } from '../support/gateway.ts'
import { until } from '../support/gateway.ts'
import type { Caller } from './caller.ts'
import { openCall, standstill, startHasty } from './caller.ts'
import { after, done, finish, piece, role, usageOnly } from './wire.ts'

const folder = mkdtempSync(join(tmpdir(), 'weir-billed-'))
let harness: Harness
let key: string
let jumpMs = 0
const clock = { nowMs: () => performance.now() + jumpMs, dateMs: () => Date.now() + jumpMs }

const price = { input: '1', output: '2' }
const bytes = { contextTokens: 32_768, outputTokensMax: 4_096, price, traits: { thinking: 'none' } }

beforeAll(async () => {
  const lake = {
    id: 'lake',
    name: 'Lake',
    baseUrl: 'http://127.0.0.1:9',
    keyEnv: 'LAKE_KEY',
    baseUrlEnv: 'LAKE_URL',
    speaks: { 'openai-chat': '/chat/completions' },
    sign: 'bearer',
    can: { billsWhenLeft: true },
    models: [
      { id: 'deep', ...bytes },
      { id: 'shallow', ...bytes, billsWhenLeft: false },
    ],
  }
  const brook = { ...lake, id: 'brook', name: 'Brook', can: {}, models: [{ id: 'bed', ...bytes }] }
  for (const provider of [lake, brook]) writeFileSync(join(folder, `${provider.id}.json`), JSON.stringify(provider))
  harness = await startHasty({
    world: { clock },
    env: { WEIR_PROVIDERS: folder, LAKE_KEY: 'sk-1,sk-2' },
    upstreamEnv: url => ({ LAKE_URL: `${url}/v1` }),
  })
})
afterAll(async () => {
  await harness.stop()
  rmSync(folder, { recursive: true, force: true })
})
beforeEach(async () => {
  key = await harness.key({ qpm: 10_000 })
})

const open = (more: object = {}): Caller => openCall(harness, key, { model: 'lake/deep', ...more })

/** The record of the only call since then, settled. */
async function settled(): Promise<Record<string, unknown>> {
  await harness.idle()
  expect(harness.openHolds()).toBe(0)
  expect((await harness.balance(key)).held).toBe('0.00')
  return harness.lastRecord()!
}

/** When another request is answered, the gateway has noticed what happened on its sockets before. */
async function noticed(): Promise<void> {
  for (let round = 0; round < 5; round++) await fetch(`${harness.url}/health/live`)
}

const exactly = (input: number, output: number): object => ({
  outcome: 'client_left',
  status: 499,
  usage_source: 'reported',
  input_tokens: input,
  output_tokens: output,
  cost: input * 1_000 + output * 2_000,
})

describe('a call whose caller left goes on, and costs what was reported', () => {
  test.each(['before its first content', 'after its first content'])('a stream, %s', async when => {
    const opens = Promise.withResolvers<void>()
    const isBegun = when.startsWith('after')
    const rest = piece('lo') + finish() + usageOnly(70, 50) + done
    const opening = role() + (isBegun ? piece('Hel') : '')
    harness.upstream.plan(script(streamHead, chunk(opening), gate(opens.promise), chunk(rest), end))
    const received = harness.upstream.nextRequest()
    const caller = open({ stream: true })
    const request = await received
    if (isBegun) await caller.until(({ text }) => text.includes('Hel'), 'content has arrived')
    caller.leave()
    await caller.closed
    await noticed() // an ordinary call would release its upstream then
    expect([request.closedAtMs, harness.gateway.activeCalls]).toEqual([undefined, 1])
    opens.resolve()
    expect(await settled()).toMatchObject({ ...exactly(70, 50), streamed: 1, attempts: 1 })
  })

  test('if it is plain', async () => {
    const opens = Promise.withResolvers<void>()
    harness.upstream.plan(after(opens.promise, plain('Hello')))
    const received = harness.upstream.nextRequest()
    const caller = open()
    await received
    caller.leave()
    await caller.closed
    await noticed()
    opens.resolve()
    expect(await settled()).toMatchObject({ outcome: 'client_left', status: 499, usage_source: 'reported' })
  })

  test('if its caller did not read', async () => {
    const stallHarness = await startHasty({
      world: { clock },
      env: { WEIR_PROVIDERS: folder, LAKE_KEY: 'sk-1' },
      upstreamEnv: url => ({ LAKE_URL: `${url}/v1` }),
    })
    try {
      const long = Array.from({ length: 40 }, () => chunk(piece('z'.repeat(900_000))))
      stallHarness.upstream.plan(
        script(streamHead, chunk(role()), ...long, chunk(finish() + usageOnly(7, 5) + done), end),
      )
      const received = stallHarness.upstream.nextRequest()
      const caller = openCall(stallHarness, await stallHarness.key(), { model: 'lake/deep', stream: true })
      await caller.until(({ head }) => head !== '', 'the head has arrived')
      caller.stopReading()
      await standstill(await received)
      jumpMs += bounds.betweenChunksMsMax // its socket was full for as long as it may be
      await stallHarness.idle()
      expect(stallHarness.lastRecord()).toMatchObject(exactly(7, 5))
      caller.leave()
    } finally {
      await stallHarness.stop()
    }
  })
})

/** What a provider counts in it is not known before its report. */
const pdf = `data:application/pdf;base64,${Buffer.from(`%PDF-1.4\n${'x'.repeat(3_000)}`).toString('base64')}`
const file = { type: 'file', file: { filename: 'a.pdf', file_data: pdf } }
const withFile = { messages: [{ role: 'user', content: [{ type: 'text', text: 'Sum it up' }, file] }] }

test('a call with a file goes on to the report of its input at every model', async () => {
  const opens = Promise.withResolvers<void>()
  const rest = finish() + usageOnly(20_000, 5) + done
  harness.upstream.plan(script(streamHead, chunk(role() + piece('All of it')), gate(opens.promise), chunk(rest), end))
  const caller = open({ model: 'brook/bed', stream: true, ...withFile })
  await caller.until(({ text }) => text.includes('All of it'), 'the answer has been read')
  caller.leave()
  await caller.closed
  await noticed()
  expect(harness.gateway.activeCalls).toBe(1)
  opens.resolve()
  expect(await settled()).toMatchObject(exactly(20_000, 5))
})

test('a call with a file goes on to the report of its input when its key is revoked, without its caller', async () => {
  const opens = Promise.withResolvers<void>()
  const rest = piece('the secret rest') + finish() + usageOnly(20_000, 5) + done
  harness.upstream.plan(script(streamHead, chunk(role() + piece('All of it')), gate(opens.promise), chunk(rest), end))
  const caller = open({ model: 'brook/bed', stream: true, ...withFile })
  await caller.until(({ text }) => text.includes('All of it'), 'the answer has been read')
  await harness.weir('keys revoke', { key })
  await caller.closed
  expect(harness.gateway.activeCalls).toBe(1)
  opens.resolve()
  await harness.idle()
  expect(caller.text).not.toContain('the secret rest')
  expect(harness.openHolds()).toBe(0)
  expect(harness.lastRecord()).toMatchObject(exactly(20_000, 5))
})

describe('a call with a prediction, of which only a report tells how much was rejected,', () => {
  const prediction = { type: 'content', content: [{ type: 'text', text: 'word'.repeat(200) }] }

  async function leaveWhenRead(): Promise<() => void> {
    const opens = Promise.withResolvers<void>()
    const rest = finish() + usageOnly(70, 160) + done
    harness.upstream.plan(script(streamHead, chunk(role() + piece('All of it')), gate(opens.promise), chunk(rest), end))
    const caller = open({ model: 'brook/bed', stream: true, prediction })
    await caller.until(({ text }) => text.includes('All of it'), 'the answer has been read')
    caller.leave()
    await caller.closed
    await noticed()
    expect(harness.gateway.activeCalls).toBe(1)
    return opens.resolve
  }

  test('goes on to that report', async () => {
    const report = await leaveWhenRead()
    report()
    expect(await settled()).toMatchObject(exactly(70, 160))
  })

  test('pays for all of it if no report comes', async () => {
    const release = await leaveWhenRead()
    jumpMs += bounds.callerGoneMsMax
    const record = await settled()
    release()
    expect(record).toMatchObject({ rule: 'left_reading', usage_source: 'estimated', output_tokens: 200 })
    expect(record.cost).toBe(Number(record.input_tokens) * 1_000 + 200 * 2_000)
  })
})

test('a call whose input was reported before its content does not go on', async () => {
  const early = usageOnly(20_000, 1)
  harness.upstream.plan(script(streamHead, chunk(early + role() + piece('Hel')), gate(new Promise(() => {}))))
  const received = harness.upstream.nextRequest()
  const caller = open({ model: 'brook/bed', stream: true, ...withFile })
  await caller.until(({ text }) => text.includes('Hel'), 'content has arrived')
  caller.leave()
  await (await received).closed
  expect(await settled()).toMatchObject({ outcome: 'client_left', input_tokens: 20_000 })
})

describe('a call whose caller left does not go on', () => {
  test('at a model that bills only what was delivered', async () => {
    harness.upstream.plan(silence())
    const received = harness.upstream.nextRequest()
    const caller = open({ model: 'lake/shallow' })
    const request = await received
    caller.leave()
    await request.closed
    expect(await settled()).toMatchObject({ outcome: 'client_left', usage_source: 'estimated' })
  })

  test('on another channel when its upstream fails', async () => {
    const fails = Promise.withResolvers<void>()
    harness.upstream.plan(script(gate(fails.promise), reset))
    const before = harness.upstream.requests.length
    const received = harness.upstream.nextRequest()
    const caller = open({ stream: true })
    await received
    caller.leave()
    await caller.closed
    await noticed()
    expect(harness.gateway.activeCalls).toBe(1) // the call goes on
    fails.resolve()
    expect(await settled()).toMatchObject({ outcome: 'client_left', status: 499, attempts: 1 })
    expect(harness.upstream.requests.length).toBe(before + 1)
  })

  test.each([429, 500, 422])('when its upstream refuses it with %p, and costs nothing', async status => {
    const refuses = Promise.withResolvers<void>()
    harness.upstream.plan(after(refuses.promise, fail(status)))
    const received = harness.upstream.nextRequest()
    const caller = open()
    await received
    caller.leave()
    await caller.closed
    await noticed()
    expect(harness.gateway.activeCalls).toBe(1) // the call goes on
    refuses.resolve()
    expect(await settled()).toMatchObject({ outcome: 'client_left', rule: 'left_unsent', cost: 0, attempts: 1 })
  })

  test('when its upstream breaks off, and costs what had arrived', async () => {
    const fails = Promise.withResolvers<void>()
    harness.upstream.plan(script(streamHead, chunk(role() + piece('x'.repeat(41))), gate(fails.promise), reset))
    const caller = open({ stream: true })
    await caller.until(({ text }) => text.includes('xxx'), 'content has arrived')
    caller.leave()
    await caller.closed
    await noticed()
    fails.resolve()
    const record = await settled()
    expect(record).toMatchObject({ outcome: 'client_left', usage_source: 'estimated', output_tokens: 11 })
  })

  test('for longer than the bound', async () => {
    harness.upstream.plan(script(streamHead, chunk(role() + piece('x'.repeat(41))), gate(new Promise(() => {}))))
    const received = harness.upstream.nextRequest()
    const caller = open({ stream: true })
    await caller.until(({ text }) => text.includes('xxx'), 'content has arrived')
    caller.leave()
    await caller.closed
    await noticed()
    expect(harness.gateway.activeCalls).toBe(1)
    jumpMs += bounds.callerGoneMsMax
    await (await received).closed
    expect(await settled()).toMatchObject({ outcome: 'client_left', usage_source: 'estimated', output_tokens: 11 })
  })

  test('if too many others do', async () => {
    harness.upstream.planModel('deep', silence())
    const before = harness.upstream.requests.length
    const callers = Array.from({ length: bounds.callerGoneCallsOfAccountMax + 6 }, () => open())
    await until(() => harness.upstream.requests.length - before === callers.length, 'all are upstream')
    for (const caller of callers) caller.leave()
    await until(() => harness.gateway.activeCalls === bounds.callerGoneCallsOfAccountMax, 'some have ended')
    expect(harness.openHolds()).toBe(bounds.callerGoneCallsOfAccountMax)
    jumpMs += bounds.callerGoneMsMax
    await settled()
    harness.upstream.planModel('deep', undefined)
  })
})
