// The list of models, read by the official SDKs and without an SDK.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import OpenAI from 'openai'
import OpenAI6 from 'openai-6'
import type { Harness } from '../support/gateway.ts'
import { startHarness } from '../support/gateway.ts'
import { rawRequest } from '../support/raw.ts'
import { ask, expectChatError, expectStages, reached } from './asking.ts'

let harness: Harness

beforeAll(async () => {
  harness = await startHarness()
})
afterAll(() => harness.stop())

interface Card {
  readonly id: string
  readonly [field: string]: unknown
}

interface Pricing {
  readonly currency: string
  readonly data: readonly { readonly model: string; readonly input: string }[]
}

const get = (path: string) => rawRequest(harness.url, ask('GET', path))
const jsonOf = async (path: string): Promise<unknown> => JSON.parse((await get(path)).body.toString('utf8'))
const list = async (): Promise<readonly Card[]> => ((await jsonOf('/v1/models')) as { data: readonly Card[] }).data

describe.each([
  ['openai 7', OpenAI],
  ['openai 6', OpenAI6 as unknown as typeof OpenAI],
] as const)('%s', (_, Client) => {
  // The list needs no key.
  const client = () => new Client({ apiKey: 'none', baseURL: `${harness.url}/v1`, maxRetries: 0 })

  test('lists the models', async () => {
    const modelIds: string[] = []
    for await (const model of client().models.list()) {
      expect(model).toMatchObject({ object: 'model', created: expect.any(Number), owned_by: expect.any(String) })
      modelIds.push(model.id)
    }
    expect(modelIds).toContain('demo/echo')
    expect(modelIds).toContain('openai/gpt-4o-mini')
    expect(modelIds).toEqual((await list()).map(entry => entry.id))
  })

  test('retrieves one by its name', async () => {
    const model = await client().models.retrieve('openai/gpt-4o-mini')
    expect(model).toMatchObject({ id: 'openai/gpt-4o-mini', object: 'model', owned_by: 'openai' })
  })

  test('raises its own NotFoundError for an unknown model', async () => {
    const fault = await client()
      .models.retrieve('openai/gpt-9000')
      .catch((thrown: unknown) => thrown)
    expect(fault).toBeInstanceOf(Client.NotFoundError)
    expect((fault as InstanceType<typeof Client.NotFoundError>).requestID).toStartWith('req_')
  })
})

describe('a model by its name', () => {
  test.each(['/v1/models/demo/echo', '/v1/models/demo%2Fecho', '/v1/models/demo%2fecho', '/v1/models/%64emo/echo'])(
    'is found at %s',
    async path => {
      expect(await jsonOf(path)).toMatchObject({ id: 'demo/echo', object: 'model' })
    },
  )

  test.each(['/v1/models/demo', '/v1/models/ech', '/v1/models/demo%252Fecho', '/v1/models/__proto__'])(
    'is not found at %s',
    async path => {
      expectChatError(await get(path), 404)
    },
  )
})

describe('the list of models', () => {
  test("can be read in Anthropic's form too", async () => {
    const page = (await jsonOf('/v1/models')) as Record<string, unknown>
    const models = await list()
    expect(page).toMatchObject({ object: 'list', has_more: false, first_id: models[0]!.id, last_id: models.at(-1)!.id })
    for (const entry of models) {
      expect(entry).toMatchObject({ type: 'model', display_name: expect.any(String) })
      expect(new Date(entry.created_at as string).toISOString()).toStartWith((entry.created_at as string).slice(0, 19))
    }
  })

  test('holds only models that can be called, none of a provider without a channel', async () => {
    const providers = new Set((await list()).map(entry => entry.owned_by as string))
    expect([...providers].sort()).toEqual(['demo', 'openai'])
    expectChatError(await get('/v1/models/groq/llama-3.3-70b-versatile'), 404)
  })

  test('holds each model once with its provider, as the public data and the prices do, and once without', async () => {
    const all = (await list()).map(entry => entry.id)
    expect(new Set(all).size).toBe(all.length)
    const ids = all.filter(id => id.includes('/'))
    expect(all.slice(ids.length)).toEqual(ids.map(id => id.replace(/^[^/]*\//, '')))
    const { data } = (await jsonOf('/api/public/models')) as { data: readonly Card[] }
    expect(data.map(model => model.id)).toEqual(ids)
    const pricing = (await jsonOf('/api/public/pricing')) as Pricing
    expect(pricing.data.map(price => price.model)).toEqual(ids)
    const mini = pricing.data.find(price => price.model === 'openai/gpt-4o-mini')
    expect(pricing.currency).toBe('USD')
    expect(mini).toMatchObject({ free: false, input: '0.15', output: '0.60' })
  })

  test('holds nothing internal of the operator', async () => {
    const paths = ['models', 'providers', 'pricing', 'settings'].map(name => `/api/public/${name}`)
    for (const path of ['/v1/models', ...paths]) {
      const answer = await get(path)
      expectStages(answer, reached.nothing)
      const text = answer.body.toString('utf8')
      for (const internal of ['sk-canary', '127.0.0.1', harness.folder]) expect(text).not.toContain(internal)
    }
  })
})
