// An error inside an answer with status 200, as the first event of a stream or as its body, is treated like the status that
// it means: the same status and Retry-After for the caller, the same attempt on the next channel. And Retry-After is what
// the upstream asked for, wherever it is stated.

import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { answer, jsonAnswer, streamHead } from '../../tools/fake-upstream/answers.ts'
import type { Script } from '../../tools/fake-upstream/script.ts'
import { chunk, end, script } from '../../tools/fake-upstream/script.ts'
import type { Harness } from '../support/gateway.ts'
import { startHarness, upstreamKey } from '../support/gateway.ts'
import { rawCallers } from './raw-callers.ts'
import type { Dialect } from './upstreams.ts'
import { modelOf, startDialects } from './upstreams.ts'

let harness: Harness
beforeEach(async () => {
  // A rate-limited channel stays unavailable, so each test has a gateway of its own.
  harness = await startDialects({ env: { WEIR_DRAIN_SECONDS: '0' } })
})
afterEach(() => harness.stop())

const sse = (data: unknown): string => `data: ${JSON.stringify(data)}\n\n`
const inStream = (event: string): Script => script(streamHead, chunk(event), end)
const inBody = (json: unknown): Script => script(...jsonAnswer(200, JSON.stringify(json)))

async function ask(caller: Dialect, upstream: Dialect, stream: boolean): Promise<Response> {
  const input = { model: modelOf(upstream), stream }
  const headers = { 'authorization': `Bearer ${await harness.key()}`, 'content-type': 'application/json' }
  const { path, body } = rawCallers[caller]
  return await fetch(harness.url + path(input), { method: 'POST', headers, body: JSON.stringify(body(input)) })
}

interface Row {
  readonly upstream: Dialect
  readonly error: object
  readonly status: number
}

const chatQuota = { error: { message: 'spent', type: 'insufficient_quota', code: 'insufficient_quota' } }
const rows: Readonly<Record<string, Row>> = {
  'a spent quota': { upstream: 'openai-chat', error: chatQuota, status: 503 },
  'a limit': {
    upstream: 'openai-chat',
    error: { error: { message: 'Rate limit reached', type: 'tokens', code: 'rate_limit_exceeded' } },
    status: 503,
  },
  'a limit as a number': {
    upstream: 'openai-chat',
    error: { id: 'x', error: { message: 'limited', code: 429, metadata: {} } },
    status: 503,
  },
  'an error without a wrapper': {
    upstream: 'openai-chat',
    error: { object: 'error', message: 'limited', type: 'rate_limit_error', code: '429' },
    status: 503,
  },
  'a bad request': {
    upstream: 'openai-chat',
    error: { error: { message: 'Too long', type: 'invalid_request_error', code: 'context_length_exceeded' } },
    status: 400,
  },
  'overload': {
    upstream: 'anthropic-messages',
    error: { type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } },
    status: 503,
  },
  'an Anthropic limit': {
    upstream: 'anthropic-messages',
    error: { type: 'error', error: { type: 'rate_limit_error', message: 'slow' } },
    status: 503,
  },
  'a spent quota of responses': {
    upstream: 'openai-responses',
    error: { type: 'error', error: { type: 'insufficient_quota', code: 'insufficient_quota', message: 'spent' } },
    status: 503,
  },
  'a Gemini limit': {
    upstream: 'gemini',
    error: { error: { code: 429, status: 'RESOURCE_EXHAUSTED', message: 'quota' } },
    status: 503,
  },
  'a Gemini request': {
    upstream: 'gemini',
    error: { error: { code: 400, status: 'INVALID_ARGUMENT', message: 'bad' } },
    status: 400,
  },
  'an Ark limit': {
    upstream: 'ark',
    error: { error: { code: 'RateLimitExceeded.EndpointTPMExceeded', type: 'TooManyRequests', message: 'tpm' } },
    status: 503,
  },
  'an Ark overload': {
    upstream: 'ark',
    error: { error: { code: 'ServerOverloaded', type: 'TooManyRequests', message: 'busy' } },
    status: 502,
  },
  'an error without a type': { upstream: 'openai-chat', error: { error: { message: 'oops' } }, status: 502 },
}

describe.each(Object.entries(rows))('inside a 200, %s', (_, { upstream, error, status }) => {
  const other = upstream === 'openai-responses' ? 'gemini' : 'openai-responses'
  test.each<[Dialect]>([[upstream], [other]])('as the first event has its own status for %s', async caller => {
    harness.upstream.plan(inStream(sse(error)))
    const answered = await ask(caller, upstream, true)
    expect(answered.status === 529 ? 503 : answered.status).toBe(status)
    if (status === 503) expect(answered.headers.get('retry-after')).not.toBeNull()
    await harness.idle()
    expect(harness.lastRecord()).toMatchObject({ cost: 0 })
  })

  test('as the body has its own status', async () => {
    harness.upstream.plan(inBody(error))
    const answered = await ask('openai-chat', upstream, false)
    expect(answered.status).toBe(status)
  })
})

describe('an error inside a 200', () => {
  test.each([
    ['a spent quota', 429, chatQuota],
    ['a limit', 429, rows['a limit']!.error],
    ['a bad request', 400, rows['a bad request']!.error],
  ] as const)('has the same result as a plain status: %s', async (_, status, error) => {
    harness.upstream.plan(script(...jsonAnswer(status, JSON.stringify(error))))
    const plain = await ask('openai-chat', 'openai-chat', true)
    await harness.stop()
    harness = await startDialects({ env: { WEIR_DRAIN_SECONDS: '0' } })
    harness.upstream.plan(inStream(sse(error)))
    const inside = await ask('openai-chat', 'openai-chat', true)
    expect(inside.status).toBe(plain.status)
    for (const name of ['retry-after', 'x-should-retry']) expect(inside.headers.get(name)).toBe(plain.headers.get(name))
    const withoutId = (text: string): string => text.replace(/req_\w+/g, '')
    expect(withoutId(await inside.text())).toBe(withoutId(await plain.text()))
  })

  test('leads to an attempt on the next channel', async () => {
    const two = await startHarness({ upstreamKeys: `${upstreamKey},${upstreamKey}-2` })
    try {
      two.upstream.plan(inStream(sse(chatQuota)), answer('Hello'))
      const body = { model: 'openai/gpt-4o-mini', stream: true, messages: [{ role: 'user', content: 'x' }] }
      const headers = { 'authorization': `Bearer ${await two.key()}`, 'content-type': 'application/json' }
      const input = { method: 'POST', headers, body: JSON.stringify(body) }
      const answered = await fetch(`${two.url}/v1/chat/completions`, input)
      expect([answered.status, answered.headers.get('x-weir-attempts')]).toEqual([200, '2'])
      expect(await answered.text()).toContain('Hello')
    } finally {
      await two.stop()
    }
  })
})

describe('Retry-After is read from', () => {
  const google = (retryDelay: unknown) => ({
    error: {
      code: 429,
      status: 'RESOURCE_EXHAUSTED',
      message: 'You exceeded your current quota.',
      details: [
        { '@type': 'type.googleapis.com/google.rpc.QuotaFailure', violations: [{}] },
        { '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay },
      ],
    },
  })
  const errorWith = (message: string) => ({ error: { message, type: 'tokens', code: 'rate_limit_exceeded' } })
  const soon = (seconds: number): string => new Date(Date.now() + seconds * 1_000).toISOString()

  const waits: readonly (readonly [string, Dialect, object, Readonly<Record<string, string>>, string])[] = [
    ['34.4s of Google', 'gemini', google('34.4s'), {}, '35'],
    ['half a second of Google', 'gemini', google('0.5s'), {}, '1'],
    ['500ms of Google', 'gemini', google('500ms'), {}, '1'],
    ['seconds and nanos of Google', 'gemini', google({ seconds: '12', nanos: 1 }), {}, '13'],
    ['an hour of Google', 'gemini', google('3600s'), {}, '60'],
    ['nonsense of Google', 'gemini', google('soon'), {}, '1'],
    ['a header rather than the error', 'gemini', google('34.4s'), { 'retry-after': '7' }, '7'],
    ['milliseconds', 'openai-chat', errorWith('limited'), { 'retry-after-ms': '2500', 'retry-after': '9' }, '3'],
    [
      'a date',
      'openai-chat',
      errorWith('limited'),
      { 'date': 'Sun, 15 Nov 2026 12:00:00 GMT', 'retry-after': 'Sun, 15 Nov 2026 12:00:08 GMT' },
      '8',
    ],
    ['a sentence', 'openai-chat', errorWith('Rate limit reached. Please try again in 20s. Visit x.'), {}, '20'],
    ['a sentence with a fraction', 'openai-chat', errorWith('Please try again in 1.242s.'), {}, '2'],
    ['a sentence with milliseconds', 'openai-chat', errorWith('Please try again in 320ms.'), {}, '1'],
    ['a sentence with minutes', 'openai-chat', errorWith('Please try again in 6m0s.'), {}, '60'],
    ['a sentence with words', 'openai-chat', errorWith('Please retry after 15 seconds.'), {}, '15'],
    [
      'a limit that is used up',
      'openai-chat',
      errorWith('limited'),
      {
        'x-ratelimit-remaining-requests': '0',
        'x-ratelimit-reset-requests': '17.5s',
        'x-ratelimit-remaining-tokens': '9',
        'x-ratelimit-reset-tokens': '50s',
      },
      '18',
    ],
  ]
  test.each(waits)('%s', async (_, upstream, error, headers, seconds) => {
    harness.upstream.plan(script(...jsonAnswer(429, JSON.stringify(error), headers)))
    const answered = await ask('openai-chat', upstream, false)
    expect([answered.status, answered.headers.get('retry-after')]).toEqual([503, seconds])
  })

  test('dates of Anthropic', async () => {
    const headers = {
      'anthropic-ratelimit-requests-remaining': '0',
      'anthropic-ratelimit-requests-reset': soon(40),
    }
    const error = { type: 'error', error: { type: 'rate_limit_error', message: 'limited' } }
    harness.upstream.plan(script(...jsonAnswer(429, JSON.stringify(error), headers)))
    const answered = await ask('openai-chat', 'anthropic-messages', false)
    expect(answered.status).toBe(503)
    expect(Number(answered.headers.get('retry-after'))).toBeWithin(2, 41) // without the date it is 1
  })

  test('an error inside a stream', async () => {
    harness.upstream.plan(inStream(sse(google('34.4s'))))
    const answered = await ask('gemini', 'gemini', true)
    expect([answered.status, answered.headers.get('retry-after')]).toEqual([503, '35'])
  })
})
