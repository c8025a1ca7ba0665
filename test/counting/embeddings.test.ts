// Vectors, asked for by the official SDKs in one dialect and made in another.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { GoogleGenAI } from '@google/genai'
import OpenAI from 'openai'
import OpenAI6 from 'openai-6'
import { ask, bearer, expectStages, reached } from '../front/asking.ts'
import { nanosOf, says } from '../passthrough/upstream.ts'
import type { Harness } from '../support/gateway.ts'
import { rawRequest } from '../support/raw.ts'
import { startLakes } from './lakes.ts'

let harness: Harness
let key: string

beforeAll(async () => {
  harness = await startLakes()
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
const noted = () => harness.records().at(-1)!

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

describe.each(springs)('at %s', spring => {
  const answer = (): object => {
    if (spring === 'spring-gemini') return { embeddings: vectors.map(values => ({ values })) }
    return { object: 'list', data, usage: { prompt_tokens: 40, total_tokens: 40 } }
  }

  test('Google’s SDK gets the vectors as they are, and the call is paid for', async () => {
    const before = await spent()
    harness.upstream.plan(says(answer()))
    const contents = ['the river', 'the sea']
    const found = await google().models.embedContent({ model: `${spring}/echo`, contents })
    expect(found.embeddings!.map(one => one.values)).toEqual(vectors)
    expect(last().path).toMatch(/embeddings$|:batchEmbedContents$/)
    expect(JSON.stringify(last().json())).not.toContain('spring')
    const isReported = spring !== 'spring-gemini'
    const usage_source = isReported ? 'reported' : 'estimated'
    expect(noted()).toMatchObject({ usage_source, dialect: 'gemini-batch-embed' })
    // Where nothing is reported, sixteen bytes of text are four tokens.
    expect((await spent()) - before).toBe(isReported ? 40_000n : 4_000n)
  })

  test.each(sdks)('P35: OpenAI’s %s too, which asks for bytes', async (_, Sdk) => {
    // Natively what the upstream says passes, and this one says numbers to who asks for bytes.
    if (spring !== 'spring-openai') harness.upstream.plan(says(answer()))
    const found = await openai(Sdk).embeddings.create({ model: `${spring}/echo`, input: ['the river', 'the sea'] })
    if (spring === 'spring-openai') expect(found.data.map(one => one.embedding.length)).toEqual([8, 8])
    else expect(found.data.map(one => one.embedding)).toEqual(vectors.map(vector => vector.map(Math.fround)))
    expect(found.usage.total_tokens).toBeGreaterThan(0)
  })

  test('real answers of the fake one are read', async () => {
    const wish = { model: `${spring}/echo`, contents: 'the river', config: { outputDimensionality: 4 } }
    const { embeddings } = await google().models.embedContent(wish)
    expect(embeddings![0]!.values).toHaveLength(4)
  })
})

describe('a single one', () => {
  const post = (path: string, json: object) =>
    rawRequest(harness.url, ask('POST', path, bearer(key), JSON.stringify(json)))
  const content = { parts: [{ text: 'the river' }] }

  test.each(['/v1beta/models/', '/v1beta/', '/v1/models/'])('at %s is one vector, without stages', async prefix => {
    for (const spring of springs) {
      const body = { model: `models/${spring}/echo`, content, outputDimensionality: 4 }
      const answer = await post(`${prefix}${spring}/echo:embedContent`, body)
      expect(answer.status).toBe(200)
      expectStages(answer, reached.nothing)
      const { embedding } = JSON.parse(answer.body.toString('utf8')) as { embedding: { values: number[] } }
      expect(embedding.values).toHaveLength(4)
      if (spring === 'spring-gemini') expect(last().json()).toMatchObject({ model: 'models/echo', content })
    }
  })

  test('says what is lost, or refuses', async () => {
    const wish = { content, taskType: 'RETRIEVAL_QUERY', title: 'A river' }
    const path = '/v1beta/models/spring-openai/echo:embedContent'
    const answer = await post(path, wish)
    expect(answer.header('x-weir-loss')).toBe('title, task_type')
    expect(noted()).toMatchObject({ loss: 'title,task_type' })
    const strict = { ...bearer(key), 'x-weir-translate': 'strict' }
    const refused = await rawRequest(harness.url, ask('POST', path, strict, JSON.stringify(wish)))
    expect(refused.status).toBe(400)
    expect((await post('/v1beta/models/spring-gemini/echo:embedContent', wish)).header('x-weir-loss')).toBeUndefined()
  })

  test.each([
    ['no content', {}, 'spring-openai'],
    ['a picture', { content: { parts: [{ inlineData: { mimeType: 'image/png', data: 'AA==' } }] } }, 'spring-openai'],
    ['a text for its content', { content: 'river' }, 'spring-openai'],
  ])('of %s is refused', async (_, body, spring) => {
    const answer = await post(`/v1beta/models/${spring}/echo:embedContent`, body)
    expect([answer.status, JSON.parse(answer.body.toString('utf8'))]).toMatchObject([400, { error: { code: 400 } }])
  })

  test('of tokens is refused where the model has others', async () => {
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
  ])('an upstream that gives %s has not answered, and is not paid', async (_, answer) => {
    const before = await spent()
    harness.upstream.plan(says(answer))
    const fault = await openai()
      .embeddings.create({ model: 'spring-gemini/echo', input: ['a', 'b'] })
      .catch((thrown: unknown) => thrown)
    expect(fault).toMatchObject({ status: 502 })
    expect(await spent()).toBe(before)
  })

  test('talk is not embedded', async () => {
    const asking = google().models.embedContent({ model: 'pond-chat/echo', contents: 'a' })
    const fault = await asking.catch((thrown: unknown) => thrown)
    expect(fault).toMatchObject({ status: 400 })
  })
})
