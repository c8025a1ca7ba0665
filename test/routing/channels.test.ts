// Several credentials of one provider: conversations stay with one, failing ones are avoided, and a call waits or is
// retried where that helps.

import { afterEach, describe, expect, test } from 'bun:test'
import { channelId } from '../../src/upstreams/channels.ts'
import { answer, fail, garbage } from '../../tools/fake-upstream/answers.ts'
import { gate, scripted } from '../../tools/fake-upstream/script.ts'
import type { Harness, HarnessOptions } from '../support/gateway.ts'
import { chat, startHarness } from '../support/gateway.ts'
import { keysSince } from './two-upstreams.ts'

let harness: Harness
afterEach(() => harness.stop())

const model = 'openai/gpt-4o-mini'

async function start(
  upstreamKeys: string,
  env: Record<string, string> = {},
  more: HarnessOptions['world'] = {},
): Promise<string> {
  // Pauses are recorded and not waited for.
  const world = { pause: async (ms: number) => void pauses.push(ms), ...more }
  pauses.length = 0
  harness = await startHarness({ upstreamKeys, env: { WEIR_ATTEMPTS: '3', WEIR_DRAIN_SECONDS: '0', ...env }, world })
  return await harness.key({ qpm: 100_000 })
}

const pauses: number[] = []
/** For tests of how long something lasts or waits: nothing is over because the machine is busy. */
const still = { clock: { nowMs: () => 1_000, dateMs: Date.now } }
const chatCall = (key: string, content = 'Hello'): Promise<Response> =>
  chat(harness, key, { model, messages: [{ role: 'user', content }] })

describe('a conversation', () => {
  const turnsOf = (topic: string, turns: number): object[] =>
    Array.from({ length: 2 * turns - 1 }, (_, at) => {
      return { role: at % 2 === 0 ? 'user' : 'assistant', content: `${topic} ${at}` }
    })

  test('stays with the credential that has its prompt cached, and every credential gets some conversations', async () => {
    const key = await start('a,b,c')
    const used = new Map<string, Set<string | undefined>>()
    for (let turns = 1; turns <= 4; turns++) {
      for (let topic = 0; topic < 20; topic++) {
        const before = harness.upstream.requests.length
        await chat(harness, key, { model, messages: turnsOf(`topic ${topic}`, turns) })
        const credentials = used.get(`${topic}`) ?? new Set()
        for (const one of keysSince(harness.upstream, before)) credentials.add(one)
        used.set(`${topic}`, credentials)
      }
    }
    expect([...used.values()].map(({ size }) => size)).toEqual(Array.from(used, () => 1))
    expect(new Set([...used.values()].flatMap(one => [...one])).size).toBe(3)
  })

  test('moves when that credential fails, and stays at the new one', async () => {
    const key = await start('a,b')
    const [first] = [harness.upstream.requests.length]
    await chatCall(key)
    const [preferred] = keysSince(harness.upstream, first)
    harness.upstream.plan(fail(503))
    const before = harness.upstream.requests.length
    await chatCall(key)
    await chatCall(key)
    const [failed, replacement, next] = keysSince(harness.upstream, before)
    expect(failed).toBe(preferred)
    expect(replacement).not.toBe(preferred)
    expect(next).toBe(replacement)
  })
})

describe('a credential', () => {
  test('that its provider refuses is not used again, and this is logged', async () => {
    const key = await start('bad,good')
    harness.upstream.planModel(
      'gpt-4o-mini',
      scripted(request =>
        (request.headers.get('authorization') === 'Bearer bad' ? fail(401) : answer('Hello')).steps(request),
      ),
    )
    for (let call = 0; call < 12; call++) expect((await chatCall(key, `question ${call}`)).status).toBe(200)
    expect(harness.upstream.requests.filter(one => one.headers.get('authorization') === 'Bearer bad')).toHaveLength(1)
    expect(harness.logs.filter(line => line.includes('refuses the credential'))).toHaveLength(1)
    const { data: channels } = (await harness.weir('channels list')) as { data: object[] }
    const health = expect.objectContaining({ state: 'credential_bad' })
    const bad = { id: channelId('openai', 'bad'), health }
    expect(channels).toContainEqual(expect.objectContaining(bad))
  })

  test('that fails repeatedly is skipped', async () => {
    const key = await start('down,up', {}, still)
    harness.upstream.planModel(
      'gpt-4o-mini',
      scripted(request =>
        (request.headers.get('authorization') === 'Bearer down' ? fail(500) : answer('Hello')).steps(request),
      ),
    )
    for (let call = 0; call < 40; call++) expect((await chatCall(key, `question ${call}`)).status).toBe(200)
    // Five failures in a row open its circuit breaker; only a second later one call may try it again.
    const tried = harness.upstream.requests.filter(one => one.headers.get('authorization') === 'Bearer down').length
    expect(tried).toBe(5)
  })

  test('is used although it fails if there is no other', async () => {
    const key = await start('only', { WEIR_ATTEMPTS: '1' })
    harness.upstream.planModel('gpt-4o-mini', fail(500))
    for (let call = 0; call < 8; call++) expect((await chatCall(key)).status).toBe(502)
    expect(harness.upstream.requests).toHaveLength(8)
    harness.upstream.planModel('gpt-4o-mini', undefined)
    expect((await chatCall(key)).status).toBe(200)
  })

  test('has no more active calls than its limit, and further calls wait', async () => {
    const key = await start('only', {}, still)
    await harness.weir('channels set', { channel: channelId('openai', 'only'), concurrency: '1' })
    const opens = Promise.withResolvers<void>()
    harness.upstream.plan(
      scripted(function* (request) {
        yield gate(opens.promise)
        yield* answer('first').steps(request)
      }),
    )
    const received = harness.upstream.nextRequest()
    const first = chatCall(key)
    await received
    const second = chatCall(key)
    const third = chatCall(key)
    await Bun.sleep(50) // that no request arrives cannot be awaited
    expect(harness.upstream.requests).toHaveLength(1)
    opens.resolve()
    expect((await Promise.all([first, second, third])).map(({ status }) => status)).toEqual([200, 200, 200])
    expect(harness.upstream.requests).toHaveLength(3)
  })

  test('has no more active calls than its limit, even for calls that arrive at the same moment', async () => {
    const key = await start('only', {}, still)
    await harness.weir('channels set', { channel: channelId('openai', 'only'), concurrency: '2' })
    let [underWay, most] = [0, 0]
    harness.upstream.planModel(
      'gpt-4o-mini',
      scripted(function* (request) {
        most = Math.max(most, ++underWay)
        yield gate(Bun.sleep(5).then(() => void underWay--))
        yield* answer('Hello').steps(request)
      }),
    )
    const answers = await Promise.all(Array.from({ length: 40 }, (_, at) => chatCall(key, `question ${at}`)))
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]))
    expect(most).toBe(2)
  })
})

describe('the only channel', () => {
  test.each([500, 503, 529])('is tried again after %i, after a pause', async status => {
    const key = await start('only')
    harness.upstream.plan(fail(status), fail(status))
    const answered = await chatCall(key)
    expect([answered.status, answered.headers.get('x-weir-attempts')]).toEqual([200, '3'])
    expect(pauses).toHaveLength(2)
    expect(Math.max(...pauses)).toBeLessThanOrEqual(1_000)
  })

  test('is not used for as long as its Retry-After says, if that is not too long', async () => {
    const key = await start('only')
    harness.upstream.plan(fail(429, { retryAfter: '3' }))
    expect((await chatCall(key)).status).toBe(200)
    expect(pauses).toEqual([3_000])
  })

  test.each([
    ['30', '30'],
    ['31536000', '60'],
    ['soon', '1'],
    ['-5', '1'],
  ])('with Retry-After %s returns %s to the caller, or is tried again', async (retryAfter, shownRetryAfter) => {
    const key = await start('only')
    harness.upstream.planModel('gpt-4o-mini', fail(429, { retryAfter }))
    const answered = await chatCall(key)
    expect(answered.status).toBe(503)
    expect(Number(answered.headers.get('retry-after'))).toBeLessThanOrEqual(Number(shownRetryAfter))
    expect(harness.upstream.requests).toHaveLength(Number(retryAfter) > 5 ? 1 : 3)
  })

  test('is not asked twice for an answer that it may have produced', async () => {
    const key = await start('only')
    harness.upstream.planModel('gpt-4o-mini', garbage())
    expect((await chatCall(key)).status).toBe(502)
    expect(harness.upstream.requests).toHaveLength(1)
  })
})

test('a provider that is down does not get three times its load', async () => {
  const key = await start('a,b,c', {}, still) // retries are counted over ten seconds
  harness.upstream.planModel('gpt-4o-mini', fail(500))
  const calls = 200
  const answers = await Promise.all(Array.from({ length: calls }, (_, at) => chatCall(key, `question ${at}`)))
  expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([502]))
  expect(harness.upstream.requests.length).toBeLessThanOrEqual(calls * 1.2 + 3)
})
