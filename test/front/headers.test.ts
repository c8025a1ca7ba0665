// The five X-Pipeline-* headers, byte for byte as a caller's socket receives them: on every kind of ending of a call,
// and nowhere else.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { systemClock } from '../../src/base/clock.ts'
import { fail, garbage, resetAfterRequest } from '../../tools/fake-upstream/answers.ts'
import type { Script } from '../../tools/fake-upstream/script.ts'
import { bytes, close, end, head, script, scripted } from '../../tools/fake-upstream/script.ts'
import type { Harness } from '../support/gateway.ts'
import { startHarness } from '../support/gateway.ts'
import type { RawAnswer } from '../support/raw.ts'
import { rawRequest } from '../support/raw.ts'
import {
  ask,
  bearer,
  CHAT,
  call,
  expectChatError,
  expectRequestId,
  expectStages,
  goodBody,
  lines,
  reached,
} from './asking.ts'

let harness: Harness
let key: string
const LIMIT_MS = 60_000
let skewMs = 0

/** An upstream that does not answer, and the time that it has is over. */
const silence = (): Script =>
  scripted(() => {
    skewMs += LIMIT_MS
    return []
  })

beforeAll(async () => {
  const clock = { ...systemClock, nowMs: () => skewMs }
  const attemptTimes = { firstContentMs: LIMIT_MS, betweenChunksMs: LIMIT_MS }
  harness = await startHarness({ world: { clock, attemptTimes } })
  key = await harness.key()
})
afterAll(() => harness.stop())

const raw = (request: Uint8Array | string): Promise<RawAnswer> => rawRequest(harness.url, request)
const forms = [
  ['plain', false],
  ['streamed', true],
] as const

describe('a completed call', () => {
  test('that is plain has all five headers', async () => {
    const answer = await call(harness, key)
    expect(answer.status).toBe(200)
    expectStages(answer, reached.answered)
    expectRequestId(answer)
  })

  test('that is streamed has all five headers, with what is known when the head is sent', async () => {
    const answer = await call(harness, key, goodBody({ stream: true }))
    expect(answer.status).toBe(200)
    expect(answer.header('content-type')).toStartWith('text/event-stream')
    expectStages(answer, reached.streaming)
    expectRequestId(answer)
  })

  test('that is streamed has the final figures in a comment directly before [DONE]', async () => {
    const answer = await call(harness, key, goodBody({ stream: true }), { 'x-weir-comments': 'on' })
    const text = answer.body.toString('latin1')
    const figures = lines.breakdown().replace('Breakdown:', 'Breakdown')
    expect(text).toMatch(new RegExp(`\n\n: ${figures}\n\ndata: \\[DONE\\]\n\n$`))
    expect(text.match(/X-Pipeline/g)).toHaveLength(1)
    expect(text.match(/\[DONE\]/g)).toHaveLength(1)
  })

  test.each([
    ['without a header for comments', {}],
    ['with comments off', { 'x-weir-comments': 'off' }],
  ])('that is streamed %s has no comment', async (_, headers) => {
    const answer = await call(harness, key, goodBody({ stream: true }), headers)
    const text = answer.body.toString('latin1')
    expect(text).toMatch(/\n\ndata: \[DONE\]\n\n$/)
    expect(text.split('\n').filter(line => line.startsWith(':'))).toEqual([])
    expect(text).not.toContain('X-Pipeline')
  })

  test('has an arrow of the bytes E2 86 92', async () => {
    const { head: text } = await call(harness, key)
    const route = Buffer.from(/^X-Pipeline-Route: .*$/m.exec(text)![0], 'latin1')
    const hex = (name: string): string => Buffer.from(name).toString('hex')
    expect(route.toString('hex')).toContain(`${hex('openai')}e28692${hex('gpt-4o-mini')}`)
  })

  test.each(['free', 'standard', 'pro'])('names the tier %s', async tier => {
    const answer = await call(harness, await harness.key({ tier, credit: '1' }), goodBody({ model: 'demo/echo' }))
    const stages = [lines.authPass(tier), lines.limitPass(), lines.routePass('demo', 'echo'), lines.adapterDone()]
    expectStages(answer, [...stages, lines.breakdown()])
  })

  test('has the remaining calls', async () => {
    const answer = await call(harness, await harness.key({ qpm: 7 }))
    expect(answer.header('x-ratelimit-limit-requests')).toBe('7')
    expect(answer.header('x-ratelimit-remaining-requests')).toBe('6')
    expect(answer.header('x-ratelimit-reset-requests')).toMatch(/^\d+(\.\d+)?(ms|s)$/)
  })
})

describe('a refused key:', () => {
  const body = goodBody()
  const post = (headers: Record<string, string>) => raw(ask('POST', CHAT, headers, body))

  test.each<[string, () => Promise<Record<string, string>>]>([
    ['none', async () => ({})],
    ['malformed', async () => bearer('wk-nonsense')],
    ['another vendor’s', async () => ({ 'x-api-key': 'sk-ant-0123456789' })],
    ['with a typo', async () => bearer(`${key.slice(0, -1)}${key.endsWith('0') ? '1' : '0'}`)],
    [
      'revoked',
      async () => {
        const revoked = await harness.key()
        await harness.weir('keys revoke', { key: revoked })
        return bearer(revoked)
      },
    ],
  ])('%s is a 401 with Auth alone', async (_, headers) => {
    const answer = await post(await headers())
    expect(expectChatError(answer, 401).error.type).toBe('authentication_error')
    expectStages(answer, reached.refusedKey)
  })

  test('a bad key with a bad body is 401', async () => {
    const answer = await raw(ask('POST', CHAT, bearer('wk-nonsense'), '{'))
    expectChatError(answer, 401)
    expectStages(answer, reached.refusedKey)
  })
})

describe('a call that is refused by a stage', () => {
  test('for a bad body has Auth alone, and counts as a call of the minute', async () => {
    const limitedKey = await harness.key({ qpm: 3 })
    for (let time = 0; time < 2; time++) {
      const answer = await call(harness, limitedKey, '{')
      expectChatError(answer, 400)
      expectStages(answer, reached.authenticated)
    }
    const good = await call(harness, limitedKey)
    expect([good.status, good.header('x-ratelimit-remaining-requests')]).toEqual([200, '0'])
    const refused = await call(harness, limitedKey, '{')
    expect(expectChatError(refused, 429).error.code).toBe('rate_limit_exceeded')
    expectStages(refused, reached.limited)
  })

  test('for too many calls has Auth and RateLimit, and when to retry', async () => {
    const limitedKey = await harness.key({ qpm: 2 })
    await call(harness, limitedKey)
    await call(harness, limitedKey, goodBody({ stream: true }))
    for (const [, stream] of forms) {
      const answer = await call(harness, limitedKey, goodBody({ stream }))
      expect(expectChatError(answer, 429).error.code).toBe('rate_limit_exceeded')
      expectStages(answer, reached.limited)
      const [seconds, ms] = [Number(answer.header('retry-after')), Number(answer.header('retry-after-ms'))]
      expect(Number.isInteger(seconds) && seconds >= 1 && seconds <= 30).toBe(true)
      expect(Math.ceil(ms / 1_000)).toBe(seconds)
      expect(answer.header('x-ratelimit-limit-requests')).toBe('2')
      expect(answer.header('x-ratelimit-remaining-requests')).toBe('0')
      expect(answer.header('x-ratelimit-reset-requests')).toMatch(/^\d+(\.\d+)?s$|^1m0s$/)
    }
  })

  test('for a limit of one call a minute waits no longer than a minute', async () => {
    const limitedKey = await harness.key({ qpm: 1 })
    await call(harness, limitedKey)
    const answer = await call(harness, limitedKey)
    expect(answer.status).toBe(429)
    expect(Number(answer.header('retry-after'))).toBeLessThanOrEqual(60)
  })

  test.each([
    ['nobody/gpt-4o-mini', 404],
    ['openai/gpt-nobody', 404],
    ['demo/gpt-4o-mini', 404],
    // Known, but without a channel.
    ['groq/llama-3.3-70b-versatile', 503],
  ])('for model %s fails at Route with %p', async (model, status) => {
    const answer = await call(harness, key, goodBody({ model }))
    expectChatError(answer, status)
    expectStages(answer, reached.unrouted)
    expect(answer.header('retry-after') !== undefined).toBe(status === 503)
  })

  test.each(forms)(
    'for too little money (%s) is 402, with all stages before the upstream passed, and no Adapter',
    async (_, stream) => {
      const answer = await call(harness, await harness.key({ credit: '0' }), goodBody({ stream }))
      expectChatError(answer, 402)
      expectStages(answer, reached.routed)
    },
  )
})

describe.each(forms)('an upstream that fails, %s', (_, stream) => {
  const answers = (type: string, body: string): Script =>
    script(head(200, { 'content-type': type, 'content-length': `${body.length}` }), bytes(body), end)
  const cases: readonly [string, Script, number][] = [
    ['says 400', fail(400), 400],
    ['says 404', fail(404), 404],
    ['says 422', fail(422), 422],
    ['refuses the credential', fail(401), 502],
    ['forbids', fail(403), 502],
    ['says 429', fail(429, { retryAfter: '7' }), 503],
    ['says 500', fail(500), 502],
    ['says 503', fail(503), 502],
    ['speaks no HTTP', garbage(), 502],
    ['resets the connection', resetAfterRequest(), 502],
    ['closes the connection', script(close), 502],
    ['answers with a page', answers('text/html', '<html>Bad gateway</html>'), 502],
    ['answers with broken JSON', answers('application/json', '{"id":'), 502],
    ['answers with an error as a success', answers('application/json', '{"error":{"message":"no"}}'), 502],
    ['never answers', silence(), 504],
  ]

  test.each(cases)('%s', async (_, plan, status) => {
    harness.upstream.plan(plan)
    const answer = await call(harness, key, goodBody({ stream }))
    expectChatError(answer, status)
    expectStages(answer, reached.failed)
    if (status === 503) expect(answer.header('retry-after')).toBe('7')
  })
})

describe('other requests have no X-Pipeline-* headers:', () => {
  test.each([
    ...['/v1/models', '/v1/models/demo/echo', '/v1/models/demo/nobody'],
    ...['models', 'providers', 'pricing', 'settings', 'nothing'].map(name => `/api/public/${name}`),
    ...['/health/live', '/health/ready', '/', '/x'],
  ])('GET %s', async path => {
    for (const headers of [{}, bearer(key), bearer('wk-nonsense')]) {
      const answer = await raw(ask('GET', path, headers))
      expectStages(answer, reached.nothing)
      expectRequestId(answer)
    }
  })

  test.each(['/v1/nothing', '/v1beta/nothing', '/api/v3/nothing', '/v1/messages/nothing'])(
    '%s has none with a key, and Auth alone without one',
    async path => {
      const known = await raw(ask('POST', path, bearer(key), '{}'))
      expect(known.status).toBe(404)
      expectStages(known, reached.nothing)
      const unknown = await raw(ask('POST', path, {}, '{}'))
      expect(unknown.status).toBe(401)
      expectStages(unknown, reached.refusedKey)
      for (const answer of [known, unknown]) expectRequestId(answer)
    },
  )

  test.each(['/api/web/me', '/api/web/nothing'])('%s has none with any credential', async path => {
    const { token } = await harness.weir('token')
    for (const headers of [{}, bearer(key), bearer(String(token))]) {
      const answer = await raw(ask('GET', path, headers))
      expectStages(answer, reached.nothing)
      expectRequestId(answer)
    }
  })
})

test('no two answers have the same request id', async () => {
  const ids = new Set<string>()
  for (let time = 0; time < 30; time++) ids.add(expectRequestId(await raw(ask('GET', '/health/live'))))
  ids.add(expectRequestId(await call(harness, key)))
  expect(ids.size).toBe(31)
})
