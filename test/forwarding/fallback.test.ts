// Two keys of one provider are two channels: until the first content an attempt may be replaced by one on the other
// channel, and whatever happens the caller gets one answer and one charge. The random choice always takes the first
// channel that is left here, and each test has a gateway that knows nothing about its channels yet.

import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { systemClock } from '../../src/base/clock.ts'
import { channelId } from '../../src/upstreams/channels.ts'
import {
  answer,
  errorMidStream,
  fail,
  garbage,
  jsonAnswer,
  resetAfterRequest,
  silence,
  streamHead,
} from '../../tools/fake-upstream/answers.ts'
import type { Script, Step } from '../../tools/fake-upstream/script.ts'
import { chunk, close, end, gate, script, scripted } from '../../tools/fake-upstream/script.ts'
import type { Harness } from '../support/gateway.ts'
import { errorOf, eventsOf, openCall, startHasty } from './caller.ts'
import { counts, done, errorEvent, event, finish, piece, role, sends } from './wire.ts'

const LIMIT_MS = 60_000
let skewMs = 0
const clock = { ...systemClock, nowMs: () => systemClock.nowMs() + skewMs }
const attemptTimes = { firstContentMs: LIMIT_MS, betweenChunksMs: LIMIT_MS }
const world = { clock, attemptTimes, random: () => 0 }

/** Sends these steps and then nothing, and the time of the attempt is over. A slow machine must not look like silence. */
const silentAfter = (...steps: readonly Step[]): Script =>
  scripted(function* silent() {
    yield* steps
    skewMs += LIMIT_MS
  })

const channel = (key: string): string => channelId('openai', key)
const forms = [
  ['plain', false],
  ['streamed', true],
] as const

/** The keys that the upstream received since then, in order. */
function keysSince(harness: Harness, before: number): readonly (string | undefined)[] {
  return harness.upstream.requests.slice(before).map(request => request.headers.get('authorization')?.slice(7))
}

describe('two channels', () => {
  let harness: Harness
  let key: string
  beforeEach(async () => {
    harness = await startHasty({ world, upstreamKeys: 'first-key, second-key' })
    key = await harness.key({ qpm: 100_000 })
  })
  afterEach(() => harness.stop())

  const answersJson = (json: string): Script => script(...jsonAnswer(200, json))
  const failures: readonly (readonly [string, Script])[] = [
    ['500', fail(500)],
    ['502', fail(502)],
    ['503', fail(503)],
    ['529', fail(529)],
    ['408', fail(408)],
    ['429', fail(429, { retryAfter: '30' })],
    ['401', fail(401)],
    ['402', fail(402)],
    ['403', fail(403)],
    ['a redirect', fail(307, { headers: { location: 'http://127.0.0.1:1/' } })],
    ['silence', silentAfter()],
    ['garbage', garbage()],
    ['a reset', resetAfterRequest()],
    ['a close', script(close)],
    ['HTML', answersJson('<html>')],
    ['an error in a 200', answersJson('{"error":{"message":"bad"}}')],
    ['an empty 200', answersJson('')],
  ]

  describe.each(forms)('%s', (_form, stream) => {
    test.each(failures)('the second channel answers after %s', async (_name, failure) => {
      const before = harness.upstream.requests.length
      const records = harness.recordCount()
      harness.upstream.plan(failure, answer('Hello'))
      const caller = await openCall(harness, key, { stream }).whole()
      expect(caller.status).toBe(200)
      expect(caller.text).toContain('Hello')
      expect(keysSince(harness, before)).toEqual(['first-key', 'second-key'])
      await harness.idle()
      const [record, ...more] = harness.records().slice(records)
      expect(more).toEqual([])
      expect(record).toMatchObject({
        outcome: 'completed',
        status: 200,
        attempts: 2,
        channel: channel('second-key'),
        usage_source: 'reported',
        cost: 2 * 150 + 600,
      })
      expect(harness.openHolds()).toBe(0)
      expect(caller.header('x-pipeline-adapter')).toMatch(/^done/)
    })

    test.each([400, 404, 405, 409, 413, 415, 422, 431])('a %i from the first channel is final', async status => {
      const before = harness.upstream.requests.length
      const upstreamError = {
        message: 'Too many.',
        type: 'invalid_request_error',
        code: 'context_length_exceeded',
        param: 'n',
      }
      harness.upstream.plan(fail(status, { error: upstreamError }))
      const caller = await openCall(harness, key, { stream }).whole()
      expect(caller.status).toBe(status)
      expect(errorOf(caller.body)).toEqual(upstreamError)
      expect(keysSince(harness, before)).toEqual(['first-key'])
      await harness.idle()
      expect(harness.lastRecord()).toMatchObject({ outcome: 'refused', status, attempts: 1, cost: 0 })
      expect(harness.openHolds()).toBe(0)
      // The header stops SDKs from sending again what they would retry on their own.
      expect(caller.header('x-should-retry')).toBe(status === 409 ? 'false' : undefined)
    })

    test('when both channels fail the caller gets one error that SDKs do not retry', async () => {
      const before = harness.upstream.requests.length
      harness.upstream.plan(fail(500), fail(503))
      const caller = await openCall(harness, key, { stream }).whole()
      expect([caller.status, errorOf(caller.body).code]).toEqual([502, 'upstream_unusable'])
      expect(caller.header('x-should-retry')).toBe('false')
      expect(keysSince(harness, before)).toEqual(['first-key', 'second-key'])
      await harness.idle()
      expect(harness.lastRecord()).toMatchObject({ outcome: 'upstream_failed', attempts: 2, cost: 0 })
      expect(harness.openHolds()).toBe(0)
    })

    test('when both channels are rate limited the caller gets a retry time', async () => {
      harness.upstream.plan(fail(429, { retryAfter: '9' }), fail(429, { retryAfter: '7' }))
      const caller = await openCall(harness, key, { stream }).whole()
      expect([caller.status, errorOf(caller.body).code]).toEqual([503, 'upstream_rate_limited'])
      expect(caller.header('retry-after')).toBe('7')
    })

    test('a refusal from the second channel is final too', async () => {
      harness.upstream.plan(fail(500), fail(400))
      const caller = await openCall(harness, key, { stream }).whole()
      expect([caller.status, errorOf(caller.body).message]).toEqual([400, 'The upstream answers 400.'])
    })
  })

  const beforeContent: readonly (readonly [string, Script])[] = [
    ['an error event before content', errorMidStream([])],
    ['an error event after the role', sends(role() + errorEvent())],
    ['content and an error in one piece', sends(role() + piece('lost', counts(1_000, 1_000)) + errorEvent())],
    ['the role and then silence', silentAfter(streamHead, chunk(role(counts(1_000, 1_000))))],
    ['the role and then a reset', script(streamHead, chunk(role(counts(1_000, 1_000))), { kind: 'reset' })],
    ['an empty stream', sends('')],
    ['nonsense', sends('data: nonsense\n\n')],
    ['a stream of comments that ends', sends(': hello\n\n: bye\n\n')],
    ['a plain answer to a stream, of nothing', answersJson('{"choices":[]}')],
  ]

  test.each(beforeContent)(
    'a stream is replaced after %s, and nothing of the first attempt is charged',
    async (_name, failure) => {
      const before = harness.upstream.requests.length
      // The second attempt reports no usage, so that remains of the first would be visible.
      harness.upstream.plan(failure, sends(role() + piece('four') + finish() + done))
      const caller = await openCall(harness, key, { stream: true }).whole()
      expect(caller.status).toBe(200)
      expect(caller.text).not.toContain('lost')
      expect(eventsOf(caller.body)).toHaveLength(4)
      expect(keysSince(harness, before)).toEqual(['first-key', 'second-key'])
      await harness.idle()
      expect(harness.lastRecord()).toMatchObject({ attempts: 2, usage_source: 'estimated', output_tokens: 1 })
    },
  )

  test.each(beforeContent)('nobody pays when the second attempt fails in the same way: %s', async (_name, failure) => {
    harness.upstream.plan(failure, failure)
    const caller = await openCall(harness, key, { stream: true }).whole()
    expect([502, 504]).toContain(caller.status)
    await harness.idle()
    expect(harness.lastRecord()).toMatchObject({ attempts: 2, cost: 0, usage_source: 'none' })
  })

  const plain = { role: 'assistant', content: 'in one piece' }
  const inOnePiece = answersJson(JSON.stringify({ choices: [{ index: 0, message: plain, finish_reason: 'stop' }] }))

  test('a plain answer to a streamed call becomes a stream, and a stream to a plain call becomes a plain answer', async () => {
    harness.upstream.plan(inOnePiece, sends(role() + piece('bit ') + piece('by bit') + finish() + done))
    const streamed = await openCall(harness, key, { stream: true }).whole()
    expect([streamed.status, streamed.header('content-type')]).toEqual([200, 'text/event-stream; charset=utf-8'])
    expect(streamed.text).toContain('in one piece')
    expect(eventsOf(streamed.body).at(-1)).toBe('[DONE]')
    const collected = await openCall(harness, key, {}).whole()
    expect([collected.status, collected.header('content-type')]).toEqual([200, 'application/json'])
    const { choices } = JSON.parse(collected.text) as { choices: object[] }
    expect(choices).toMatchObject([{ message: { content: 'bit by bit' }, finish_reason: 'stop' }])
    await harness.idle()
    expect(harness.records().slice(-2)).toMatchObject([{ output_tokens: 3 }, { output_tokens: 3 }])
  })

  test('a finish reason of the first attempt does not count for the second', async () => {
    harness.upstream.plan(sends(role() + finish() + errorEvent()), sends(role() + piece('x')))
    const caller = await openCall(harness, key, { stream: true }).whole()
    expect(errorOf(eventsOf(caller.body).at(-2)!).code).toBe('upstream_failed')
  })

  const afterContent: readonly (readonly [string, Script['steps']])[] = [
    ['an error event', () => [chunk(errorEvent()), end]],
    ['a reset', () => [{ kind: 'reset' }]],
    ['silence', silentAfter().steps],
    ['nonsense', () => [chunk(event('nonsense')), end]],
  ]

  test.each(afterContent)('nothing is retried after the first content: %s', async (name, rest) => {
    const before = harness.upstream.requests.length
    const contentSeen = Promise.withResolvers<void>()
    harness.upstream.plan({
      starts: 'request',
      *steps(request) {
        yield streamHead
        yield chunk(role() + piece('x'))
        yield gate(contentSeen.promise)
        yield* rest(request)
      },
    })
    const caller = openCall(harness, key, { stream: true })
    await caller.until(({ text }) => text.includes('"x"'), 'content has arrived')
    contentSeen.resolve()
    await caller.whole()
    expect(eventsOf(caller.body).at(-1)).toBe('[DONE]')
    expect(keysSince(harness, before)).toEqual(['first-key'])
    await harness.idle()
    const ending = name === 'silence' ? { outcome: 'over_bound' } : { outcome: 'upstream_failed', cost: 0 }
    expect(harness.lastRecord()).toMatchObject({ attempts: 1, ...ending })
  })

  test('each attempt is sent once, also on a reused socket', async () => {
    await openCall(harness, key, {}).whole()
    const before = harness.upstream.requests.length
    harness.upstream.plan(script(close), resetAfterRequest())
    expect((await openCall(harness, key, {}).whole()).status).toBe(502)
    expect(keysSince(harness, before)).toEqual(['first-key', 'second-key'])
  })

  test('no attempt follows when the caller has left', async () => {
    const before = harness.upstream.requests.length
    harness.upstream.plan(silence())
    const received = harness.upstream.nextRequest()
    const caller = openCall(harness, key, {})
    const request = await received
    caller.leave()
    await request.closed
    await harness.idle()
    expect(keysSince(harness, before)).toEqual(['first-key'])
    expect(harness.lastRecord()).toMatchObject({ outcome: 'client_left' })
  })
})

describe('five channels', () => {
  let harness: Harness
  let key: string
  beforeEach(async () => {
    harness = await startHasty({ world, upstreamKeys: 'k1,k2,k3,k4,k5' })
    key = await harness.key()
  })
  afterEach(() => harness.stop())

  test.each(forms)('a call makes three attempts at most (%s)', async (_form, stream) => {
    const before = harness.upstream.requests.length
    harness.upstream.plan(fail(500), fail(429), fail(500))
    const caller = await openCall(harness, key, { stream }).whole()
    expect(caller.status).toBe(502)
    expect(caller.header('x-should-retry')).toBe('false')
    expect(keysSince(harness, before)).toEqual(['k1', 'k2', 'k3'])
    await harness.idle()
    expect(harness.lastRecord()).toMatchObject({ attempts: 3, cost: 0, channel: channel('k3') })
  })

  test('the third attempt may still answer', async () => {
    harness.upstream.plan(fail(500), fail(429), answer('Hello'))
    expect((await openCall(harness, key, {}).whole()).status).toBe(200)
    await harness.idle()
    expect(harness.lastRecord()).toMatchObject({ attempts: 3, outcome: 'completed', channel: channel('k3') })
  })

  test('with a single channel, retries are left to the SDK', async () => {
    const ownHarness = await startHasty()
    try {
      ownHarness.upstream.plan(fail(500))
      const caller = await openCall(ownHarness, await ownHarness.key(), {}).whole()
      expect([caller.status, caller.header('x-should-retry')]).toEqual([502, undefined])
    } finally {
      await ownHarness.stop()
    }
  })
})
