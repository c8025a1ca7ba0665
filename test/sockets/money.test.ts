// The money of calls that come over a WebSocket: each message is held, charged and recorded once, however it ends.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { bounds } from '../../src/base/bounds.ts'
import { systemClock } from '../../src/base/clock.ts'
import { pausedStream, silence, streamHead, truncatedStream } from '../../tools/fake-upstream/answers.ts'
import type { Script } from '../../tools/fake-upstream/script.ts'
import { chunk, end, scripted } from '../../tools/fake-upstream/script.ts'
import { memoryWithin, openRaw, standstill, startHasty } from '../forwarding/caller.ts'
import type { Harness } from '../support/gateway.ts'
import { until } from '../support/gateway.ts'
import { post } from '../support/raw.ts'
import type { Wire } from '../support/responses-wire.ts'
import type { SocketClient } from './client.ts'
import { connect, model, textOf } from './client.ts'

let harness: Harness
beforeAll(async () => {
  harness = await startHasty()
})
afterAll(() => harness.stop())

const never = new Promise<void>(() => {})

/** Waits until all calls are settled, and returns the last record. */
async function settled(key: string): Promise<Record<string, unknown>> {
  await harness.idle()
  expect(harness.openHolds()).toBe(0)
  expect((await harness.balance(key)).held).toBe('0.00')
  return harness.lastRecord()!
}

/** A response that has begun and does not end. */
async function begin(client: SocketClient): Promise<void> {
  harness.upstream.plan(pausedStream(['four', 'more'], never))
  client.create({ input: 'hello', store: false })
  await client.until(() => textOf(client.events).includes('four'), 'content has arrived')
}

const USD_NANOS = 1e9
const nanosOf = (usd: string): number => Math.round(Number(usd) * USD_NANOS)

test('each message is one call with one record, and the costs are exact', async () => {
  const key = await harness.key({ credit: '1' })
  const client = await connect(harness, key)
  const before = harness.recordCount()
  for (const input of ['one', 'two', 'three']) await client.ask({ input })
  await settled(key)
  const records = harness.records().slice(before)
  expect(records.map(({ outcome, status }) => [outcome, status])).toEqual(Array(3).fill(['completed', 200]))
  const cost = records.reduce((sum, record) => sum + (record.cost as number), 0)
  expect(cost).toBeGreaterThan(0)
  expect(nanosOf((await harness.balance(key)).balance)).toBe(USD_NANOS - cost)
  expect(new Set(records.map(({ call_id: id }) => id)).size).toBe(3)
  client.leave()
})

test('the last event waits until the charge is written', async () => {
  const key = await harness.key({ credit: '1' })
  const client = await connect(harness, key)
  for (let at = 0; at < 10; at++) {
    const count = harness.recordCount()
    await client.ask({ input: 'x' })
    expect(harness.recordCount()).toBe(count + 1)
  }
  client.leave()
})

describe('a client that leaves', () => {
  test.each([
    ['vanishes', (client: SocketClient) => client.leave()],
    ['closes the connection', (client: SocketClient) => client.sendBytes(Buffer.from([0x88, 0x80, 0, 0, 0, 0]))],
  ])('and %s pays what a client of a stream pays that leaves', async (_name, leave) => {
    const key = await harness.key({ credit: '1' })
    const client = await connect(harness, key)
    const received = harness.upstream.nextRequest()
    await begin(client)
    leave(client)
    await (await received).closed
    const record = await settled(key)

    harness.upstream.plan(pausedStream(['four', 'more'], never))
    const body = JSON.stringify({ stream: true, model, input: 'hello', store: false })
    const headers = { 'authorization': `Bearer ${key}`, 'content-type': 'application/json' }
    const caller = openRaw(harness.url, post('/v1/responses', headers, body))
    await caller.until(({ text }) => text.includes('four'), 'content has arrived')
    caller.leave()
    const overHttp = await settled(key)
    for (const field of ['outcome', 'rule', 'status', 'usage_source', 'input_tokens', 'output_tokens', 'cost']) {
      expect([field, record[field]]).toEqual([field, overHttp[field]])
    }
    expect(record).toMatchObject({ outcome: 'client_left' })
    expect(record.cost).toBeGreaterThan(0)
  })

  test('before any content pays for its input', async () => {
    const key = await harness.key({ credit: '1' })
    const client = await connect(harness, key)
    harness.upstream.plan(silence())
    const received = harness.upstream.nextRequest()
    client.create({ input: 'hello' })
    const request = await received
    client.leave()
    await request.closed
    expect(await settled(key)).toMatchObject({ outcome: 'client_left', rule: 'left_waiting', output_tokens: 0 })
  })

  test('loses the messages that wait: they cost nothing', async () => {
    const key = await harness.key({ credit: '1' })
    const client = await connect(harness, key)
    const asked = harness.upstream.requests.length
    const before = harness.recordCount()
    await begin(client)
    client.create({ input: 'never run' })
    client.create({ input: 'never run' })
    client.leave()
    await settled(key)
    expect(harness.recordCount()).toBe(before + 1)
    expect(harness.upstream.requests.length).toBe(asked + 1)
  })

  test('in several streams at once pays for each, once', async () => {
    const key = await harness.key({ credit: '1' })
    const client = await connect(harness, key)
    const before = harness.recordCount()
    harness.upstream.plan(...Array.from({ length: 4 }, () => pausedStream(['four', 'more'], never)))
    for (const id of ['a', 'b', 'c', 'd']) client.create({ input: 'hello', stream_id: id })
    await client.until(() => textOf(client.events) === 'four'.repeat(4), 'all have begun')
    client.leave()
    await settled(key)
    const records = harness.records().slice(before)
    expect(records.map(({ outcome }) => outcome)).toEqual(Array(4).fill('client_left'))
    const cost = records.reduce((sum, record) => sum + (record.cost as number), 0)
    expect(nanosOf((await harness.balance(key)).balance)).toBe(USD_NANOS - cost)
  })

  test('can come back for the answer of a message with an idempotency key', async () => {
    const key = await harness.key({ credit: '1' })
    const ends = Promise.withResolvers<void>()
    const message = { input: 'hello', store: false, idempotency_key: 'again-1' }
    const client = await connect(harness, key)
    harness.upstream.plan(pausedStream(['four', 'more'], ends.promise))
    client.create(message)
    await client.until(() => textOf(client.events).includes('four'), 'content has arrived')
    client.leave()
    ends.resolve()
    const record = await settled(key)
    expect(record.outcome).toBe('completed')
    const asked = harness.upstream.requests.length
    const later = await connect(harness, key, { headers: { 'x-weir-comments': 'on' } })
    expect(textOf(await later.ask(message))).toBe('fourmore')
    expect(later.events[0]).toMatchObject({ headers: { 'x-weir-replayed': expect.stringMatching(/^req_/) } })
    expect(harness.upstream.requests.length).toBe(asked)
    expect(await settled(key)).toMatchObject({ outcome: 'replayed', cost: 0 })
    const [other] = await later.ask({ ...message, input: 'another' })
    expect(other).toMatchObject({ type: 'error', status: 422, error: { code: 'idempotency_mismatch' } })
    later.leave()
  })
})

test('a message that continues a response is answered again for its idempotency key', async () => {
  const key = await harness.key({ credit: '1' })
  const headers = { 'x-weir-comments': 'on' }
  const client = await connect(harness, key, { headers })
  const first = (await client.ask({ input: 'one', store: false })).at(-1)!.response as Wire
  const message = { input: 'two', store: false, previous_response_id: first.id, idempotency_key: 'continued' }
  expect(textOf(await client.ask(message))).toBe('two')
  const asked = harness.upstream.requests.length
  const replayed = { headers: { 'x-weir-replayed': expect.stringMatching(/^req_/) } }
  expect((await client.ask({ ...message, stream_id: 'b' }))[0]).toMatchObject(replayed)
  const later = await connect(harness, key, { headers })
  expect((await later.ask(message))[0]).toMatchObject(replayed)
  expect(harness.upstream.requests.length).toBe(asked)
  const [other] = await client.ask({ ...message, input: 'three' })
  expect(other).toMatchObject({ status: 422, error: { code: 'idempotency_mismatch' } })
  client.leave()
  later.leave()
})

test('an idempotency key of the connection is not that of its messages', async () => {
  const client = await connect(harness, await harness.key(), { headers: { 'idempotency-key': 'one' } })
  expect([textOf(await client.ask({ input: 'a' })), textOf(await client.ask({ input: 'b' }))]).toEqual(['a', 'b'])
  client.leave()
})

describe('while a connection is open,', () => {
  test('an account without funds gets an error for its message, and can go on when it has some', async () => {
    const key = await harness.key({ credit: '0' })
    const client = await connect(harness, key)
    const [event] = await client.ask({ input: 'x' })
    expect(event).toMatchObject({ type: 'error', status: 402, error: { code: 'insufficient_balance' } })
    await harness.weir('top-up', { account: key, amount: '1' })
    expect(textOf(await client.ask({ input: 'y' }))).toBe('y')
    client.leave()
  })

  test('a key that is revoked ends its response, and then its connection', async () => {
    const key = await harness.key({ credit: '1' })
    const client = await connect(harness, key)
    await begin(client)
    await harness.weir('keys revoke', { key })
    expect((await client.response()).at(-1)).toMatchObject({ type: 'error', code: 'invalid_api_key' })
    expect(await settled(key)).toMatchObject({ outcome: 'revoked', rule: 'revoked_answered' })
    const [event] = await client.ask({ input: 'x' })
    expect(event).toMatchObject({ type: 'error', status: 401, error: { type: 'authentication_error' } })
    expect((event!.headers as Record<string, string>)['x-pipeline-auth']).toMatch(/^fail/)
    expect(await client.closed()).toMatchObject({ code: 1008 })
  })

  test('a key over its limit gets an error with the time to wait', async () => {
    const client = await connect(harness, await harness.key({ qpm: 1 }))
    expect(textOf(await client.ask({ input: 'x' }))).toBe('x')
    const [event] = await client.ask({ input: 'x' })
    expect(event).toMatchObject({ status: 429, error: { code: 'rate_limit_exceeded' } })
    expect(event!.headers).toMatchObject({ 'retry-after': expect.any(String) })
    expect((event!.headers as Record<string, string>)['x-pipeline-ratelimit']).toMatch(/reason=qpm_exceeded/)
    client.leave()
  })

  test('a key has no more responses at the same time than its limit', async () => {
    const key = await harness.key()
    const { account } = (await harness.weir('keys show', { key })) as { account: string }
    await harness.weir('limits set', { resource: 'concurrency', amount: '2', account })
    const client = await connect(harness, key)
    const ends = Promise.withResolvers<void>()
    harness.upstream.plan(pausedStream(['a', 'b'], ends.promise), pausedStream(['a', 'b'], ends.promise))
    for (const id of ['one', 'two']) client.create({ input: 'x', stream_id: id })
    await client.until(() => textOf(client.events) === 'aa', 'two have begun')
    client.create({ input: 'x', stream_id: 'three' })
    await client.until(() => client.events.some(({ type }) => type === 'error'), 'the third is refused')
    expect(client.events.at(-1)).toMatchObject({ status: 429, stream_id: 'three' })
    ends.resolve()
    await harness.idle()
    const next = await connect(harness, key)
    expect(textOf(await next.ask({ input: 'next' }))).toBe('next')
    client.leave()
    next.leave()
  })

  test('a key that is disabled gets 401, and loses its connection', async () => {
    const key = await harness.key()
    const client = await connect(harness, key)
    expect(textOf(await client.ask({ input: 'x' }))).toBe('x')
    await harness.weir('keys set', { key, disable: true })
    expect(await client.ask({ input: 'x' })).toMatchObject([{ type: 'error', status: 401 }])
    expect(await client.closed()).toMatchObject({ code: 1008 })
  })

  test('messages that are no calls count in the limit as well', async () => {
    const client = await connect(harness, await harness.key({ qpm: 1 }))
    client.send('garbage')
    expect((await client.response())[0]).toMatchObject({ status: 400 })
    client.send('garbage')
    expect((await client.response())[0]).toMatchObject({ status: 429 })
    client.leave()
  })

  test('a stream whose money ends gets the end of its dialect', async () => {
    const key = await harness.key({ credit: '0.0005' })
    const client = await connect(harness, key)
    harness.upstream.plan(pausedStream([...Array(4_000).fill('word '), 'end'], Promise.resolve()))
    const events = await client.ask({ input: 'x', store: false })
    expect(['response.incomplete', 'response.failed', 'error']).toContain(events.at(-1)!.type as string)
    await settled(key)
    expect(Number((await harness.balance(key)).balance)).toBeGreaterThanOrEqual(0)
    client.leave()
  })
})

describe('a client that does not read', () => {
  const letters = 'x'.repeat(64 * 1024)
  const EVENTS = 1_024
  const MIB = 1024 * 1024

  /** 64 MiB in the dialect of the client. The last event does not repeat them, as it would at OpenAI. */
  const longStream = (): Script =>
    scripted(function* long() {
      const delta = { type: 'response.output_text.delta', item_id: 'msg_1', output_index: 0, content_index: 0 }
      const usage = { input_tokens: 3, output_tokens: 4, total_tokens: 7 }
      const ended = { id: 'resp_1', object: 'response', status: 'completed', output: [], usage }
      yield streamHead
      for (let left = EVENTS; left > 0; left--) yield chunk(eventOf({ ...delta, delta: letters }))
      yield chunk(eventOf({ type: 'response.completed', sequence_number: EVENTS, response: ended }))
      yield end
    })
  const eventOf = (event: Wire): string => `event: ${String(event.type)}\ndata: ${JSON.stringify(event)}\n\n`

  test('stops its upstream, and gets everything when it reads on', async () => {
    const key = await harness.key()
    const client = await connect(harness, key)
    const rssBefore = process.memoryUsage().rss
    harness.upstream.plan(longStream())
    const received = harness.upstream.nextRequest()
    client.create({ input: 'x', store: false })
    await client.until(() => client.events.length > 0, 'the first event is here')
    client.stopReading()
    expect(await standstill(await received)).toBeLessThan(48 * MIB)
    await memoryWithin(rssBefore + 96 * MIB)
    const other = await connect(harness, key)
    expect(textOf(await other.ask({ input: 'not held up' }))).toBe('not held up')
    other.leave()
    client.readOn()
    expect((await client.response()).at(-1)!.type).toBe('response.completed')
    expect(textOf(client.events).length).toBe(EVENTS * letters.length)
    await settled(key)
    const [record] = harness.records().slice(-2)
    expect(record).toMatchObject({ outcome: 'completed', cost: 3 * 150 + 4 * 600 })
    client.leave()
  })

  test('for too long loses its connection, and pays', async () => {
    let skewMs = 0
    const clock = { ...systemClock, nowMs: () => systemClock.nowMs() + skewMs }
    const hasty = await startHasty({ world: { clock } })
    try {
      const key = await hasty.key()
      const client = await connect(hasty, key)
      hasty.upstream.plan(longStream())
      const received = hasty.upstream.nextRequest()
      client.create({ input: 'x', store: false })
      await client.until(() => client.events.length > 0, 'the first event is here')
      client.stopReading()
      await standstill(await received)
      skewMs = bounds.betweenChunksMsMax
      await until(() => hasty.recordCount() === 1, 'the call is settled')
      expect(hasty.records()[0]).toMatchObject({ outcome: 'client_left' })
      expect(hasty.openHolds()).toBe(0)
      client.readOn()
      await until(() => client.isGone, 'the connection is gone')
    } finally {
      await hasty.stop()
    }
  })
})

test('a response that fails in the middle is an error event, and the connection goes on', async () => {
  const key = await harness.key()
  const client = await connect(harness, key)
  harness.upstream.plan(truncatedStream())
  expect((await client.ask({ input: 'x' })).at(-1)).toMatchObject({ type: 'error', code: 'upstream_failed' })
  expect(await settled(key)).toMatchObject({ outcome: 'upstream_failed' })
  expect(textOf(await client.ask({ input: 'next' }))).toBe('next')
  client.leave()
})
