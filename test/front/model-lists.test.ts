// One list of models, in the form of the caller's dialect, read by the official SDKs.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import Anthropic from '@anthropic-ai/sdk'
import { GoogleGenAI } from '@google/genai'
import OpenAI from 'openai'
import type { Harness } from '../support/gateway.ts'
import { startHarness } from '../support/gateway.ts'
import { rawRequest } from '../support/raw.ts'
import { ask, bearer, expectStages, reached } from './asking.ts'

let harness: Harness
let key: string
let ids: readonly string[]

interface Page {
  readonly data: readonly { readonly id: string; readonly [field: string]: unknown }[]
  readonly [field: string]: unknown
}

beforeAll(async () => {
  harness = await startHarness()
  key = await harness.key()
  ids = (await page('/v1/models')).data.map(model => model.id)
})
afterAll(() => harness.stop())

const get = (path: string, headers: Record<string, string> = {}) => rawRequest(harness.url, ask('GET', path, headers))
const version = { 'anthropic-version': '2023-06-01' }

async function page(path: string, headers: Record<string, string> = {}): Promise<Page> {
  const answer = await get(path, headers)
  expect(answer.status).toBe(200)
  expectStages(answer, reached.nothing)
  return JSON.parse(answer.body.toString('utf8')) as Page
}

describe("Anthropic's list of models", () => {
  // The list needs no key.
  const client = () => new Anthropic({ apiKey: 'none', baseURL: harness.url, maxRetries: 0 })

  test('is read page by page', async () => {
    const modelIds: string[] = []
    for await (const model of client().models.list({ limit: 20 })) {
      expect(model).toMatchObject({ type: 'model', lifecycle: 'active', display_name: expect.any(String) })
      modelIds.push(model.id)
    }
    expect(modelIds).toEqual([...ids])
    expect(modelIds.length).toBeGreaterThan(40)
  })

  test('shows the details of one model', async () => {
    const model = await client().models.retrieve('openai/gpt-4o-mini')
    expect(model).toMatchObject({ id: 'openai/gpt-4o-mini', max_input_tokens: 128_000, max_tokens: 16_384 })
    expect(model.capabilities!.image_input.supported).toBe(true)
    expect(model.capabilities!.thinking.supported).toBe(false)
    expect((await client().models.retrieve('demo/echo')).capabilities).toBeNull()
    const fault = await client()
      .models.retrieve('openai/gpt-9000')
      .catch((thrown: unknown) => thrown)
    expect(fault).toBeInstanceOf(Anthropic.NotFoundError)
    expect((fault as { error: unknown }).error).toMatchObject({ type: 'error', error: { type: 'not_found_error' } })
  })

  test('has pages forwards and backwards', async () => {
    const first = await page('/v1/models?limit=2', version)
    expect(first).toMatchObject({ has_more: true, first_id: ids[0], last_id: ids[1] })
    const next = await page(`/v1/models?limit=2&after_id=${encodeURIComponent(ids[1]!)}`, version)
    expect(next.data.map(model => model.id)).toEqual(ids.slice(2, 4))
    const back = await page(`/v1/models?limit=2&before_id=${encodeURIComponent(ids[3]!)}`, version)
    expect(back).toMatchObject({ has_more: true, first_id: ids[1], last_id: ids[2] })
    expect(await page(`/v1/models?before_id=${ids[2]}`, version)).toMatchObject({ has_more: false, first_id: ids[0] })
    const end = await page(`/v1/models?after_id=${ids.at(-1)}`, version)
    expect(end).toEqual({ data: [], has_more: false, first_id: null, last_id: null })
  })

  test.each(['limit=-1', 'limit=1001', 'limit=x', 'after_id=openai/none', 'before_id=1'])('refuses %s', async query => {
    const answer = await get(`/v1/models?${query}`, version)
    expect([answer.status, JSON.parse(answer.body.toString('utf8'))]).toMatchObject([
      400,
      { type: 'error', error: { type: 'invalid_request_error' } },
    ])
  })
})

describe("Google's list of models", () => {
  const client = () => new GoogleGenAI({ apiKey: key, httpOptions: { baseUrl: harness.url } })

  test('is read page by page', async () => {
    const modelIds: string[] = []
    for await (const model of await client().models.list({ config: { pageSize: 25 } })) modelIds.push(model.name!)
    expect(modelIds).toEqual(ids.map(id => `models/${id}`))
  })

  test('shows what one model can do', async () => {
    const textModel = await client().models.get({ model: 'openai/gpt-4o-mini' })
    expect(textModel).toMatchObject({ name: 'models/openai/gpt-4o-mini', inputTokenLimit: 128_000 })
    expect(textModel.supportedActions).toEqual(['generateContent', 'streamGenerateContent', 'countTokens'])
    const embeds = await client().models.get({ model: 'openai/text-embedding-3-small' })
    expect(embeds.supportedActions).toEqual(['embedContent', 'batchEmbedContents', 'countTokens'])
    const draws = await page('/v1beta/models/openai/gpt-image-1', bearer(key))
    expect(draws).toMatchObject({ supportedGenerationMethods: [] })
    const fault = await client()
      .models.get({ model: 'openai/none' })
      .catch((thrown: unknown) => thrown)
    expect(fault).toMatchObject({ status: 404 })
  })

  test("is the answer of /v1/models to a request with Google's key header, errors included", async () => {
    const listed = (await page('/v1/models?key=whatever')).models as readonly object[]
    expect(listed).toHaveLength(ids.length)
    expect(await page('/v1/models/demo%2Fecho', { 'x-goog-api-key': 'x' })).toMatchObject({ name: 'models/demo/echo' })
    const wrong = await get('/v1/models?key=whatever&pageToken=eA')
    expect([wrong.status, JSON.parse(wrong.body.toString('utf8'))]).toMatchObject([
      400,
      { error: { status: 'INVALID_ARGUMENT' } },
    ])
    expect((await page('/v1/models?key=x&pageSize=100000')).models).toHaveLength(ids.length)
  })

  test('needs a key under /v1beta', async () => {
    const refused = await get('/v1beta/models')
    expect(refused.status).toBe(401)
    expectStages(refused, reached.refusedKey)
  })
})

describe('the other lists of models', () => {
  test("are OpenAI's under Google's path, and Ark's", async () => {
    const client = new OpenAI({ apiKey: key, baseURL: `${harness.url}/v1beta/openai`, maxRetries: 0 })
    const modelIds: string[] = []
    for await (const model of client.models.list()) modelIds.push(model.id)
    expect(modelIds).toEqual([...ids])
    expect((await client.models.retrieve('demo/echo')).id).toBe('demo/echo')
    const { data } = await page('/api/v3/models', bearer(key))
    expect(data.map(model => model.id)).toEqual([...ids])
    const kinds = (id: string) => data.find(model => model.id === id)
    expect(kinds('openai/gpt-4o-mini')).toMatchObject({ domain: 'VLM', token_limits: { context_window: 128_000 } })
    expect(kinds('openai/text-embedding-3-small')).toMatchObject({ domain: 'Embedding' })
    expect(kinds('openai/gpt-image-1')).toMatchObject({ domain: 'ImageGeneration' })
    expect((await get('/api/v3/models')).status).toBe(401)
  })

  test('mark a model that does not generate text', async () => {
    const speaks = ['openai-embeddings']
    const path = '/v1/models/openai/text-embedding-3-small'
    expect(await page(path)).toMatchObject({ speaks })
    expect(await page(path, version)).toMatchObject({ speaks, capabilities: null })
    expect(await page('/v1/models/openai/gpt-4o-mini')).not.toHaveProperty('speaks')
  })
})
