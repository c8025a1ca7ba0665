// Token counts in every dialect on every upstream, requested by the official SDKs.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import Anthropic from '@anthropic-ai/sdk'
import { GoogleGenAI } from '@google/genai'
import Anthropic0 from 'anthropic-0'
import OpenAI from 'openai'
import { bounds } from '../../src/base/bounds.ts'
import { ask, bearer, expectStages, reached } from '../front/asking.ts'
import { says } from '../passthrough/upstream.ts'
import type { Harness } from '../support/gateway.ts'
import { HUNG_MS } from '../support/gateway.ts'
import { rawRequest } from '../support/raw.ts'
import { startProviders } from './providers.ts'

let harness: Harness
let key: string

beforeAll(async () => {
  harness = await startProviders()
  key = await harness.key({ qpm: 10_000 })
})
afterAll(() => harness.stop())

const anthropic = () => new Anthropic({ apiKey: key, baseURL: harness.url, maxRetries: 0 })
const openai = () => new OpenAI({ apiKey: key, baseURL: `${harness.url}/v1`, maxRetries: 0 })
const google = () => new GoogleGenAI({ apiKey: key, httpOptions: { baseUrl: harness.url } })

const system = 'You are a river guide who answers in short sentences.'
const words = 'How deep is the water at the old bridge today?'
const schema = { type: 'object' as const, properties: { place: { type: 'string' } }, required: ['place'] }

type Count = (model: string) => Promise<number | undefined>

/** Counts the same conversation, with instructions and a tool, by each SDK. */
const sdks: Readonly<Record<string, Count>> = {
  async anthropic(model) {
    const tools = [{ name: 'depth', description: 'Tells how deep the water is', input_schema: schema }]
    const messages = [{ role: 'user' as const, content: words }]
    return (await anthropic().messages.countTokens({ model, system, messages, tools })).input_tokens
  },
  async responses(model) {
    const about = { description: 'Tells how deep the water is', parameters: schema, strict: false }
    const tools = [{ type: 'function' as const, name: 'depth', ...about }]
    const count = await openai().responses.inputTokens.count({ model, instructions: system, input: words, tools })
    expect(count.object).toBe('response.input_tokens')
    return count.input_tokens
  },
  async gemini(model) {
    return (await google().models.countTokens({ model, contents: words })).totalTokens
  },
}

const callers = Object.keys(sdks)
const lakes = ['lake-anthropic', 'lake-responses', 'lake-gemini']
const ponds = ['pond-chat', 'pond-anthropic', 'lake-ark']

const lastPath = () => harness.upstream.requests.at(-1)!.path

describe.each(callers)('a count by the SDK of %s', caller => {
  test.each(lakes)('is made by %s, without a generation', async lake => {
    const before = harness.upstream.requests.length
    const count = await sdks[caller]!(`${lake}/echo`)
    const sent = harness.upstream.requests.slice(before)
    expect(sent).toHaveLength(1)
    expect(lastPath()).toMatch(/count_tokens$|input_tokens$|:countTokens$/)
    // The fake upstream counts a word as a token.
    const least = caller === 'gemini' ? 10 : 19
    expect(count).toBeGreaterThanOrEqual(least)
  })

  test.each(ponds)('P23: for %s is made by the gateway, without a request upstream', async pond => {
    const before = harness.upstream.requests.length
    const count = await sdks[caller]!(`${pond}/echo`)
    expect(harness.upstream.requests.length).toBe(before)
    // With instructions and tools the count is several times that of the question.
    if (caller === 'gemini') expect(count).toBeWithin(10, 25)
    else expect(count).toBeWithin(45, 90)
  })
})

describe('a count', () => {
  const body = { model: 'pond-chat/echo', messages: [{ role: 'user', content: words }] }
  const post = (path: string, json: object, more: Record<string, string> = {}) =>
    rawRequest(harness.url, ask('POST', path, { ...bearer(key), ...more }, JSON.stringify(json)))

  test('P23: states its accuracy, costs nothing, leaves no record and needs no output cap', async () => {
    const [before, { balance }] = [harness.recordCount(), await harness.balance(key)]
    const counted = await post('/v1/messages/count_tokens?beta=true', body)
    expect(counted.status).toBe(200)
    expect(counted.header('x-weir-count')).toMatch(/^estimated; factor=1\.00; band=0\.30$/)
    expectStages(counted, reached.nothing)
    expect(counted.header('x-ratelimit-limit-requests')).toBe('10000')
    const own = await post('/v1/messages/count_tokens', { ...body, model: 'lake-anthropic/echo' })
    expect(own.header('x-weir-count')).toBe('provider')
    expect(harness.recordCount()).toBe(before)
    expect(await harness.balance(key)).toMatchObject({ balance })
    expect(harness.openHolds()).toBe(0)
  })

  test.each([
    ['lake-responses', ['input', 'model']],
    ['lake-gemini', ['generateContentRequest']],
  ])('of a large image is translated for %s up to 8 MiB, and estimated by the gateway beyond', async (lake, fields) => {
    const before = harness.upstream.requests.length
    const sendCount = async (bytes: number) => {
      const source = { type: 'base64', media_type: 'image/png', data: 'A'.repeat(bytes) }
      const content = [
        { type: 'image', source },
        { type: 'text', text: words },
      ]
      const json = { model: `${lake}/echo`, messages: [{ role: 'user', content }] }
      return (await post('/v1/messages/count_tokens', json)).header('x-weir-count')
    }
    expect(await sendCount(1024 * 1024)).toBe('provider')
    const sent = harness.upstream.requests.at(-1)!.body
    expect(Object.keys(JSON.parse(sent.toString()) as object).sort()).toEqual([...fields])
    expect(await sendCount(bounds.countTranslatedBytesMax)).toMatch(/^estimated; /)
    expect(harness.upstream.requests.length).toBe(before + 1)
  })

  test('without a valid key is refused in the dialect of the caller', async () => {
    const refused = await post('/v1/messages/count_tokens', body, { authorization: 'Bearer wk-no' })
    expect(refused.status).toBe(401)
    expectStages(refused, reached.refusedKey)
    const { error } = JSON.parse(refused.body.toString('utf8')) as { error: { type: string } }
    expect(error.type).toBe('authentication_error')
  })

  test('counts against the rate limit of its key', async () => {
    const few = await harness.key({ qpm: 1 })
    const sendCount = () => post('/v1/messages/count_tokens', body, bearer(few))
    expect([(await sendCount()).status, (await sendCount()).status]).toEqual([200, 429])
  })

  test('for an unknown model is a NotFoundError of the SDK', async () => {
    const error = sdks.anthropic!('pond-chat-none/echo').catch((fault: unknown) => fault)
    expect(await error).toBeInstanceOf(Anthropic.NotFoundError)
  })

  test.each([
    ['a failure', says({ error: { message: 'no' } }, 500)],
    ['a 404', says({ error: { message: 'no' } }, 404)],
    ['no count', says({ input_tokens: -5 })],
    ['nonsense', says('what?')],
  ])('that the provider answers with %s is estimated by the gateway', async (_, answer) => {
    harness.upstream.plan(answer)
    const counted = await post('/v1/messages/count_tokens', { ...body, model: 'lake-anthropic/echo' })
    expect(counted.status).toBe(200)
    expect(counted.header('x-weir-count')).toStartWith('estimated')
    expect(JSON.parse(counted.body.toString('utf8'))).toEqual({ input_tokens: expect.any(Number) })
  })

  test('that the provider refuses in the dialect of the caller is refused', async () => {
    const messages = [{ role: 'user' as const, content: words }]
    const wrong = { model: 'lake-anthropic/echo', messages, max_tokenz: 5 }
    const fault = await anthropic()
      .messages.countTokens(wrong)
      .catch((thrown: unknown) => thrown)
    expect(fault).toBeInstanceOf(Anthropic.BadRequestError)
    expect((fault as Error).message).toContain('max_tokenz')
  })

  test('of an image by URL is a fixed estimate, and the image is not fetched', async () => {
    const image = { type: 'image', source: { type: 'url', url: 'http://127.0.0.1:9/a.png' } }
    const withImage = { model: 'lake-gemini/echo', messages: [{ role: 'user', content: [image] }] }
    const counted = await post('/v1/messages/count_tokens', withImage)
    expect(counted.header('x-weir-count')).toStartWith('estimated')
    const { input_tokens } = JSON.parse(counted.body.toString('utf8')) as { input_tokens: number }
    expect(input_tokens).toBeWithin(1_000, 1_020)
  })

  test('works with the older SDK of Anthropic and its beta client', async () => {
    const client = new Anthropic0({ apiKey: key, baseURL: harness.url, maxRetries: 0 })
    const messages = [{ role: 'user' as const, content: words }]
    const plain = await client.messages.countTokens({ model: 'pond-chat/echo', messages })
    const beta = await client.beta.messages.countTokens({ model: 'pond-chat/echo', messages })
    expect(beta.input_tokens).toBe(plain.input_tokens)
  })
})

interface Total {
  readonly totalTokens: number
}

describe('a previous response', () => {
  const earlierInput = 'The water at the old bridge is three fathoms deep, and rising by a hand every hour since noon.'

  test.each(['lake-responses', 'pond-chat', 'lake-anthropic'])('is included in a count at %s', async provider => {
    const model = `${provider}/echo`
    const first = await openai().responses.create({ model, input: earlierInput })
    const alone = await openai().responses.inputTokens.count({ model, input: words })
    const after = { model, input: words, previous_response_id: first.id }
    const all = await openai().responses.inputTokens.count(after)
    // The earlier input counts twice: as input, and as the answer that echoes it.
    expect(all.input_tokens).toBeGreaterThan(alone.input_tokens + 35)
    const other = new OpenAI({ apiKey: await harness.key(), baseURL: `${harness.url}/v1`, maxRetries: 0 })
    const fault = await other.responses.inputTokens.count(after).catch((thrown: unknown) => thrown)
    expect(fault).toBeInstanceOf(OpenAI.NotFoundError)
  })
})

describe('both request forms of Gemini', () => {
  const totalOf = ({ body }: { body: Buffer }) => (JSON.parse(body.toString('utf8')) as Total).totalTokens
  const contents = [{ role: 'user', parts: [{ text: words }] }]
  const post = (path: string, json: object) =>
    rawRequest(harness.url, ask('POST', path, { 'x-goog-api-key': key }, JSON.stringify(json)))
  const whole = { contents, systemInstruction: { parts: [{ text: system }] } }

  test.each(['/v1beta/models/', '/v1beta/', '/v1/models/'])('are counted at %s', async prefix => {
    for (const model of ['pond-chat/echo', 'lake-gemini/echo']) {
      const at = `${prefix}${model}:countTokens`
      const bare = await post(at, { contents })
      const full = await post(at, { generateContentRequest: { model: `models/${model}`, ...whole } })
      expect([bare.status, full.status]).toEqual([200, 200])
      expect(totalOf(full)).toBeGreaterThan(totalOf(bare) + 5)
    }
  })
})

describe('Ark’s tokenization', () => {
  const post = (model: string, text: unknown) =>
    rawRequest(harness.url, ask('POST', '/api/v3/tokenization', bearer(key), JSON.stringify({ model, text })))

  test('comes from a provider that has this endpoint', async () => {
    const answer = await post('lake-ark/echo', ['a b c'])
    expect(answer.header('x-weir-count')).toBe('provider')
    const { data } = JSON.parse(answer.body.toString('utf8')) as { data: { token_ids: number[] }[] }
    expect(data[0]!.token_ids).toEqual([1, 1, 1])
  })

  test('is an estimate for each text at other providers', async () => {
    const answer = await post('pond-chat/echo', [words, 'river'])
    expect(answer.header('x-weir-count')).toStartWith('estimated')
    const { data } = JSON.parse(answer.body.toString('utf8')) as { data: { total_tokens: number }[] }
    expect(data.map(one => one.total_tokens)).toEqual([11, 1])
    expect((await post('pond-chat/echo', [7])).status).toBe(400)
  })
})

describe('the correction factor of counts', () => {
  test('is learned from finished calls after the first count for a model', async () => {
    const messages = [{ role: 'user' as const, content: 'word '.repeat(200) }]
    const model = 'pond-anthropic/blind'
    const counts = () => anthropic().messages.countTokens({ model, messages }).withResponse()
    const first = await counts()
    expect(first.response.headers.get('x-weir-count')).toBe('estimated; factor=1.00; band=0.30')
    const usage = { input_tokens: first.data.input_tokens * 2, output_tokens: 1 }
    const message = { id: 'm', type: 'message', role: 'assistant', model: 'x', content: [{ type: 'text', text: 'a' }] }
    for (let call = 0; call < 12; call++) {
      harness.upstream.plan(says({ ...message, stop_reason: 'end_turn', stop_sequence: null, usage }))
      await anthropic().messages.create({ model, max_tokens: 10, messages })
    }
    await harness.idle()
    // The last calls may still be on their way into the factor.
    const learned = 'estimated; factor=2.00; band=0.01'
    const endMs = performance.now() + HUNG_MS
    let later = await counts()
    const isLearned = () => later.response.headers.get('x-weir-count') === learned
    while (!isLearned() && performance.now() < endMs) later = await counts()
    expect(later.response.headers.get('x-weir-count')).toBe(learned)
    expect(later.data.input_tokens).toBe(first.data.input_tokens * 2)
  })
})
