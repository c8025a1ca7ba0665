// What callers learn about their limits: how much is left, why they are refused and when to retry, each in its own
// dialect and as its SDK reads it; and which calls are refused before their bodies are read.

import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import Anthropic from '@anthropic-ai/sdk'
import OpenAI from 'openai'
import { modelOf, startDialects } from '../dialects/upstreams.ts'
import type { Harness } from '../support/gateway.ts'
import { chat, hello } from '../support/gateway.ts'
import { post, rawRequest } from '../support/raw.ts'

const model = modelOf('openai-chat')
const claude = modelOf('anthropic-messages')
const DAY_S = 86_400

let harness: Harness
let key: string

beforeAll(async () => {
  // Time stands still for limits: nothing is refilled between two calls.
  const clock = { nowMs: () => 1_000, dateMs: () => Date.now() }
  harness = await startDialects({ env: { WEIR_CORS_ORIGIN: '*' }, world: { clock } })
})
afterAll(() => harness.stop())
beforeEach(async () => {
  key = await harness.key({ qpm: 1_000 })
})
afterEach(async () => {
  const { data: limits } = await harness.weir('limits list')
  for (const { id } of limits as { id: number }[]) await harness.weir('limits remove', { id: String(id) })
})

const limit = (resource: string, amount: string, more: object = {}) =>
  harness.weir('limits set', { resource, amount, per: 'key', ...more })
const chatCall = (more: object = {}) => chat(harness, key, { model, messages: hello, max_tokens: 10, ...more })
const headersOf = ({ headers }: Response, ...names: string[]) => names.map(name => headers.get(name))
const errorOf = async (response: Response) => ((await response.json()) as { error: Record<string, unknown> }).error

function asClaude(more: object = {}): Promise<Response> {
  const headers = { 'x-api-key': key, 'content-type': 'application/json', 'anthropic-version': '2023-06-01' }
  const body = JSON.stringify({ model: claude, messages: hello, max_tokens: 10, ...more })
  return fetch(`${harness.url}/v1/messages`, { method: 'POST', headers, body })
}

describe('the headers of what is left', () => {
  test('cover requests for every call, and tokens if they are limited', async () => {
    const free = await chatCall()
    expect(headersOf(free, 'x-ratelimit-limit-requests', 'x-ratelimit-remaining-requests')).toEqual(['1000', '999'])
    expect(free.headers.has('x-ratelimit-limit-tokens')).toBe(false)
    await limit('tokens', '10000/minute')
    const limited = await chatCall()
    const names = ['limit', 'remaining', 'reset'].map(one => `x-ratelimit-${one}-tokens`)
    const [most, left, reset] = headersOf(limited, ...names)
    expect(most).toBe('10000')
    expect(Number(left)).toBeWithin(9_900, 10_000)
    expect(reset).toMatch(/^\d+(ms|(\.\d+)?s)$/)
  })

  test('describe the tightest limit of each', async () => {
    await limit('requests', '5/day')
    await limit('tokens', '1000000/minute')
    await limit('tokens', '2000/day')
    const answer = await chatCall()
    expect(headersOf(answer, 'x-ratelimit-limit-requests', 'x-ratelimit-remaining-requests')).toEqual(['5', '4'])
    expect(headersOf(answer, 'x-ratelimit-limit-tokens')).toEqual(['2000'])
    expect(answer.headers.get('x-ratelimit-reset-requests')).toMatch(/^4h(48|47)m\d+s$/)
  })

  test("have Anthropic's names in Messages, with points in time", async () => {
    await limit('tokens', '5000/minute')
    const beforeMs = Date.now()
    const answer = await asClaude()
    const afterMs = Date.now()
    expect(headersOf(answer, 'anthropic-ratelimit-requests-limit', 'anthropic-ratelimit-requests-remaining')).toEqual([
      '1000',
      '999',
    ])
    expect(headersOf(answer, 'anthropic-ratelimit-tokens-limit')).toEqual(['5000'])
    const resets = headersOf(answer, 'anthropic-ratelimit-requests-reset', 'anthropic-ratelimit-tokens-reset')
    for (const reset of resets) {
      expect(reset).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/)
      expect(Date.parse(reset!)).toBeWithin(beforeMs - 1_000, afterMs + 10_000) // in whole seconds
    }
    expect((await chatCall()).headers.has('anthropic-ratelimit-requests-limit')).toBe(false)
  })

  test('may be read by pages of other origins', async () => {
    const response = await chat(harness, key, { model, messages: hello }, { origin: 'https://a.example' })
    const exposed = response.headers.get('access-control-expose-headers')
    for (const name of ['x-ratelimit-reset-tokens', 'anthropic-ratelimit-tokens-remaining']) {
      expect(exposed).toContain(name)
    }
  })
})

describe('a refusal', () => {
  const cases = [
    ['requests', '1/minute', 'qpm_exceeded', 'qpm_exceeded', 'The limit of this key is 1 a minute.'],
    ['requests', '1/day', 'rpd_exceeded', 'qpm_exceeded', 'The limit of this key is 1 a day. There is room again in 2'],
    ['tokens', '12/minute', 'tpm_exceeded', 'tpm_exceeded', 'The limit of this key is 12 tokens a minute.'],
    ['tokens', '12/day', 'tpd_exceeded', 'tpm_exceeded', 'The limit of this key is 12 tokens a day. There is room'],
  ] as const

  test.each(cases)('by a limit of %s %s says which limit it was', async (resource, amount, code, reason, words) => {
    await limit(resource, amount)
    await (await chatCall()).text()
    const refused = await chatCall()
    expect(refused.status).toBe(429)
    expect(refused.headers.get('x-pipeline-auth')).toStartWith('pass')
    expect(refused.headers.get('x-pipeline-ratelimit')).toMatch(new RegExp(`^fail \\(\\d+ms, reason=${reason}\\)$`))
    expect(refused.headers.has('x-pipeline-route')).toBe(false)
    const seconds = Number(refused.headers.get('retry-after'))
    expect(seconds).toBeWithin(1, 61)
    const isDaily = amount.endsWith('day')
    expect(headersOf(refused, 'x-should-retry')).toEqual([isDaily ? 'false' : null])
    if (isDaily) expect(seconds).toBe(60)
    expect(Number(refused.headers.get(`x-ratelimit-remaining-${resource}`))).toBeLessThan(12)
    const { message, code: said, type } = await errorOf(refused)
    expect([type, said]).toEqual(['rate_limit_error', 'rate_limit_exceeded'])
    expect(message).toContain(words)
    expect(harness.logs.some(line => line.includes(code))).toBe(true)
  })

  test("has the caller's dialect: Messages, Gemini, Ark", async () => {
    await limit('requests', '1/day')
    await (await asClaude()).text()
    const refused = await asClaude()
    expect(headersOf(refused, 'anthropic-ratelimit-requests-remaining')).toEqual(['0'])
    expect(await errorOf(refused)).toMatchObject({ type: 'rate_limit_error' })
    const headers = { 'authorization': `Bearer ${key}`, 'content-type': 'application/json' }
    const gemini = JSON.stringify({ contents: [{ role: 'user', parts: [{ text: 'Hello' }] }] })
    const path = `${harness.url}/v1beta/models/${modelOf('gemini')}:generateContent`
    const google = await errorOf(await fetch(path, { method: 'POST', headers, body: gemini }))
    expect(google).toMatchObject({ code: 429, status: 'RESOURCE_EXHAUSTED' })
    const { retryDelay } = (google.details as Record<string, string>[])[1]!
    expect(Number.parseInt(retryDelay!, 10)).toBeWithin(1, 61)
    const body = JSON.stringify({ model: modelOf('ark'), messages: hello })
    const ark = await fetch(`${harness.url}/api/v3/chat/completions`, { method: 'POST', headers, body })
    expect(await errorOf(ark)).toMatchObject({ type: 'TooManyRequests' })
  })

  test('is read by the SDKs as a rate limit error', async () => {
    await limit('requests', '1/day')
    let sent = 0
    const counting = ((...given: Parameters<typeof fetch>) => {
      sent++
      return fetch(...given)
    }) as typeof fetch
    const openai = new OpenAI({ apiKey: key, baseURL: `${harness.url}/v1`, fetch: counting })
    const messages = [{ role: 'user' as const, content: 'Hello' }]
    await openai.chat.completions.create({ model, messages })
    const refused = await openai.chat.completions.create({ model, messages }).catch(fault => fault)
    expect(refused).toBeInstanceOf(OpenAI.RateLimitError)
    expect(refused.headers.get('x-ratelimit-remaining-requests')).toBe('0')
    const anthropic = new Anthropic({ apiKey: key, baseURL: harness.url, fetch: counting })
    const anthropicError = await anthropic.messages
      .create({ model: claude, messages, max_tokens: 5 })
      .catch(fault => fault)
    expect(anthropicError).toBeInstanceOf(Anthropic.RateLimitError)
    expect(anthropicError.headers.get('anthropic-ratelimit-requests-remaining')).toBe('0')
    // No SDK has retried, and so none has waited: it would have been in vain.
    expect(sent).toBe(3)
  })

  test('costs nothing, and says nothing about other keys', async () => {
    const otherKey = await harness.key({ qpm: 1_000 })
    await limit('requests', '1/day', { per: 'model', model: 'up-*' })
    await (await chat(harness, otherKey, { model, messages: hello })).text()
    const refused = await chatCall()
    const { message } = await errorOf(refused)
    expect(message).toBe(
      'Too many calls in a day. The limit of all callers for this model is 1 a day. There is room again in 24 h 0 min.',
    )
    expect(Number(refused.headers.get('x-ratelimit-limit-requests'))).toBe(1)
    expect((await harness.balance(key)).balance).toBe('100.00')
  })
})

describe('a large body', () => {
  const large = 'a'.repeat(200 * 1024)

  /** Sends the head and nothing of the body: a gateway that waits for it does not answer with the status of a limit. */
  async function announced(length: number, by = key): Promise<number> {
    const head = post(
      '/v1/chat/completions',
      {
        'authorization': `Bearer ${by}`,
        'content-type': 'application/json',
        'content-length': String(length),
      },
      '',
    )
    return (await rawRequest(harness.url, head)).status
  }

  test('is not waited for from a key that has no call left', async () => {
    const slow = await harness.key({ qpm: 1 })
    expect((await chat(harness, slow, { model, messages: hello })).status).toBe(200)
    expect(await announced(30_000_000, slow)).toBe(429)
    expect(await announced(100, slow)).toBe(429)
    const headers = { 'authorization': `Bearer ${slow}`, 'content-type': 'application/json' }
    const whole = await rawRequest(harness.url, post('/v1/chat/completions', headers, large))
    expect(whole.status).toBe(429)
    expect(whole.header('x-pipeline-ratelimit')).toMatch(/^fail \(\d+ms, reason=qpm_exceeded\)$/)
  })

  test('is read from a key that may call, and counts as a call even if it is malformed', async () => {
    const headers = { 'authorization': `Bearer ${key}`, 'content-type': 'application/json' }
    const answer = await rawRequest(harness.url, post('/v1/chat/completions', headers, large))
    expect([answer.status, answer.header('x-pipeline-ratelimit')]).toEqual([400, undefined])
    expect((await chatCall()).headers.get('x-ratelimit-remaining-requests')).toBe('998')
  })
})

test('a key can read its limits for any model, and reading counts nothing', async () => {
  await limit('tokens', '5000/day')
  await limit('concurrency', '3', { per: 'account' })
  await limit('requests', '9/day', { model: 'up-*' })
  await (await chatCall()).text()
  const report = () => fetch(`${harness.url}/v1/key`, { headers: { authorization: `Bearer ${key}` } })
  for (let look = 0; look < 3; look++) {
    const { limits } = (await (await report()).json()) as { limits: Record<string, unknown> }
    expect(limits).toMatchObject({ requests_per_minute: 1_000, remaining: 999 + (limits.remaining === 1_000 ? 1 : 0) })
    expect(limits.others).toMatchObject([
      { of: 'this key', resource: 'tokens', span: 'day', limit: 5_000 },
      { of: 'this account', resource: 'concurrency', span: null, limit: 3, remaining: 3, resets_in_ms: 0 },
    ])
  }
})

describe('requests about stored objects', () => {
  const requests: readonly (readonly [method: string, path: string])[] = [
    ['GET', '/v1/responses/resp_1'],
    ['GET', '/v1/responses/resp_1/input_items'],
    ['DELETE', '/v1/responses/resp_1'],
    ['POST', '/v1/responses/resp_1/cancel'],
    ['POST', '/v1/responses/compact'],
    ['GET', '/api/v3/responses/resp_1'],
    ['GET', '/api/v3/contents/generations/tasks'],
    ['GET', '/api/v3/contents/generations/tasks/cgt-1'],
    ['DELETE', '/api/v3/contents/generations/tasks/cgt-1'],
    ['GET', '/api/v3/files'],
    ['GET', '/api/v3/files/file-1'],
    ['DELETE', '/api/v3/files/file-1'],
  ]

  test.each(requests)('%s %s count as calls per minute of the key, and in no other limit', async (method, path) => {
    await limit('requests', '1/day')
    const slow = await harness.key({ qpm: 2 })
    const headers = { 'authorization': `Bearer ${slow}`, 'content-type': 'application/json' }
    const body = method === 'POST' ? '{}' : null
    const request = () => fetch(harness.url + path, { method, headers, body })
    const left: (string | null)[] = []
    for (let call = 0; call < 2; call++) {
      const answer = await request()
      expect(answer.status).not.toBe(429)
      left.push(answer.headers.get('x-ratelimit-remaining-requests'))
    }
    expect(left).toEqual(['1', '0'])
    const refused = await request()
    expect([refused.status, refused.headers.get('x-ratelimit-remaining-requests')]).toEqual([429, '0'])
    expect(Number(refused.headers.get('retry-after'))).toBeWithin(1, DAY_S)
  })

  test('POST /api/v3/files counts too, even if no provider takes files', async () => {
    const slow = await harness.key({ qpm: 2 })
    const headers = { 'authorization': `Bearer ${slow}`, 'content-type': 'application/json' }
    const put = () => fetch(`${harness.url}/api/v3/files`, { method: 'POST', headers, body: '{}' })
    const answers = [await put(), await put(), await put()]
    expect(answers.map(answer => headersOf(answer, 'x-ratelimit-remaining-requests')[0])).toEqual(['1', '0', '0'])
    expect(answers.map(({ status }) => status)).toEqual([503, 503, 429])
    expect(Number(answers[2]!.headers.get('retry-after'))).toBeWithin(1, DAY_S)
  })

  test('token counts are limited in the same way', async () => {
    const slow = await harness.key({ qpm: 1 })
    const headers = { 'x-api-key': slow, 'content-type': 'application/json' }
    const body = JSON.stringify({ model: claude, messages: hello })
    const count = () => fetch(`${harness.url}/v1/messages/count_tokens`, { method: 'POST', headers, body })
    const first = await count()
    expect([first.status, first.headers.get('anthropic-ratelimit-requests-remaining')]).toEqual([200, '0'])
    expect((await count()).status).toBe(429)
  })
})
