// Embeddings, requested by the official SDKs in one dialect and served by an upstream of another.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { GoogleGenAI } from '@google/genai'
import OpenAI from 'openai'
import OpenAI6 from 'openai-6'
import { ask, bearer, expectStages, reached } from '../front/asking.ts'
import { nanosOf, says } from '../passthrough/upstream.ts'
import type { Harness } from '../support/gateway.ts'
import { rawRequest } from '../support/raw.ts'
import { startProviders } from './providers.ts'

let harness: Harness
let key: string

beforeAll(async () => {
  harness = await startProviders()
  key = await harness.key({ credit: '10', qpm: 10_000 })
})
afterAll(() => harness.stop())

const google = () => new GoogleGenAI({ apiKey: key, httpOptions: { baseUrl: harness.url } })
const openai = (Sdk = OpenAI) => new Sdk({ apiKey: key, baseURL: `${harness.url}/v1`, maxRetries: 0 })
const last = () => harness.upstream.requests.at(-1)!
const spent = async (): Promise<bigint> => {
  await harness.idle()
  return 10_000_000_000n - nanosOf((await harness.balance(key)).balance)
}
const lastRecord = () => harness.lastRecord()!

const sdks = [
  ['7.x', OpenAI],
  ['6.x', OpenAI6 as unknown as typeof OpenAI],
] as const

const vectors = [
  [0.25, -0.5, 1],
  [1e-9, 0.125, -0.0625],
]
const data = vectors.map((embedding, index) => ({ object: 'embedding', index, embedding }))
const springs = ['spring-openai', 'spring-ark', 'spring-gemini']

describe.each(springs)('embeddings of %s', spring => {
  const answer = (): object => {
    if (spring === 'spring-gemini') return { embeddings: vectors.map(values => ({ values })) }
    return { object: 'list', data, usage: { prompt_tokens: 40, total_tokens: 40 } }
  }

  test('reach Google’s SDK unchanged, and are charged', async () => {
    const before = await spent()
    harness.upstream.plan(says(answer()))
    const contents = ['the river', 'the sea']
    const found = await google().models.embedContent({ model: `${spring}/echo`, contents })
    expect(found.embeddings!.map(one => one.values)).toEqual(vectors)
    expect(last().path).toMatch(/embeddings$|:batchEmbedContents$/)
    expect(JSON.stringify(last().json())).not.toContain('spring')
    const isReported = spring !== 'spring-gemini'
    const usage_source = isReported ? 'reported' : 'estimated'
    expect(lastRecord()).toMatchObject({ usage_source, dialect: 'gemini-batch-embed' })
    // Without reported usage, sixteen bytes of text count as four tokens.
    expect((await spent()) - before).toBe(isReported ? 40_000n : 4_000n)
  })

  test.each(sdks)('P35: reach OpenAI’s SDK %s, which asks for base64', async (_, Sdk) => {
    // Natively the answer of the upstream passes unchanged, and a planned answer has numbers instead of base64.
    if (spring !== 'spring-openai') harness.upstream.plan(says(answer()))
    const found = await openai(Sdk).embeddings.create({ model: `${spring}/echo`, input: ['the river', 'the sea'] })
    if (spring === 'spring-openai') expect(found.data.map(one => one.embedding.length)).toEqual([8, 8])
    else expect(found.data.map(one => one.embedding)).toEqual(vectors.map(vector => vector.map(Math.fround)))
    expect(found.usage.total_tokens).toBeGreaterThan(0)
  })

  test('are read from the default answer of the fake upstream', async () => {
    const request = { model: `${spring}/echo`, contents: 'the river', config: { outputDimensionality: 4 } }
    const { embeddings } = await google().models.embedContent(request)
    expect(embeddings![0]!.values).toHaveLength(4)
  })
})

describe('an embedding', () => {
  const post = (path: string, json: object) =>
    rawRequest(harness.url, ask('POST', path, bearer(key), JSON.stringify(json)))
  const content = { parts: [{ text: 'the river' }] }

  test.each(['/v1beta/models/', '/v1beta/', '/v1/models/'])(
    'of one text at %s is one vector, without stage headers',
    async prefix => {
      for (const spring of springs) {
        const body = { model: `models/${spring}/echo`, content, outputDimensionality: 4 }
        const answer = await post(`${prefix}${spring}/echo:embedContent`, body)
        expect(answer.status).toBe(200)
        expectStages(answer, reached.nothing)
        const { embedding } = JSON.parse(answer.body.toString('utf8')) as { embedding: { values: number[] } }
        expect(embedding.values).toHaveLength(4)
        if (spring === 'spring-gemini') expect(last().json()).toMatchObject({ model: 'models/echo', content })
      }
    },
  )

  test('lists losses, or is refused with strict translation', async () => {
    const request = { content, taskType: 'RETRIEVAL_QUERY', title: 'A river' }
    const path = '/v1beta/models/spring-openai/echo:embedContent'
    const answer = await post(path, request)
    expect(answer.header('x-weir-loss')).toBe('title, task_type')
    expect(lastRecord()).toMatchObject({ loss: 'title,task_type' })
    const strict = { ...bearer(key), 'x-weir-translate': 'strict' }
    const refused = await rawRequest(harness.url, ask('POST', path, strict, JSON.stringify(request)))
    expect(refused.status).toBe(400)
    expect(
      (await post('/v1beta/models/spring-gemini/echo:embedContent', request)).header('x-weir-loss'),
    ).toBeUndefined()
  })

  test.each([
    ['no content', {}, 'spring-openai'],
    ['a picture', { content: { parts: [{ inlineData: { mimeType: 'image/png', data: 'AA==' } }] } }, 'spring-openai'],
    ['a text for its content', { content: 'river' }, 'spring-openai'],
  ])('of %s is refused', async (_, body, spring) => {
    const answer = await post(`/v1beta/models/${spring}/echo:embedContent`, body)
    expect([answer.status, JSON.parse(answer.body.toString('utf8'))]).toMatchObject([400, { error: { code: 400 } }])
  })

  test('of token ids is refused for a model with another tokenizer', async () => {
    const fault = await openai()
      .embeddings.create({ model: 'spring-gemini/echo', input: [1, 2, 3] })
      .catch((thrown: unknown) => thrown)
    expect(fault).toBeInstanceOf(OpenAI.BadRequestError)
  })

  test.each([
    ['fewer vectors than texts', { embeddings: [{ values: [1] }] }],
    ['a vector of words', { embeddings: [{ values: ['a'] }, { values: [1] }] }],
    ['no vector', { embeddings: [{ values: [] }, { values: [1] }] }],
    ['nothing', {}],
  ])('for which the upstream returns %s is a 502 and free', async (_, answer) => {
    const before = await spent()
    harness.upstream.plan(says(answer))
    const fault = await openai()
      .embeddings.create({ model: 'spring-gemini/echo', input: ['a', 'b'] })
      .catch((thrown: unknown) => thrown)
    expect(fault).toMatchObject({ status: 502 })
    expect(await spent()).toBe(before)
  })

  test('is refused for a chat model', async () => {
    const embedding = google().models.embedContent({ model: 'pond-chat/echo', contents: 'a' })
    const fault = await embedding.catch((thrown: unknown) => thrown)
    expect(fault).toMatchObject({ status: 400 })
  })
})
