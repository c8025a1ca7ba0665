// The list of models, as the official SDKs read it, and as anybody does.

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
  // No key of ours: whoever asks for the list is not asked who it is.
  const client = () => new Client({ apiKey: 'none', baseURL: `${harness.url}/v1`, maxRetries: 0 })

  test('lists the models', async () => {
    const found: string[] = []
    for await (const model of client().models.list()) {
      expect(model).toMatchObject({ object: 'model', created: expect.any(Number), owned_by: expect.any(String) })
      found.push(model.id)
    }
    expect(found).toContain('demo/echo')
    expect(found).toContain('openai/gpt-4o-mini')
    expect(found).toEqual((await list()).map(card => card.id))
  })

  test('retrieves one by its name', async () => {
    const model = await client().models.retrieve('openai/gpt-4o-mini')
    expect(model).toMatchObject({ id: 'openai/gpt-4o-mini', object: 'model', owned_by: 'openai' })
  })

  test('raises its own NotFoundError for one that is not there', async () => {
    const fault = await client()
      .models.retrieve('openai/gpt-9000')
      .catch((thrown: unknown) => thrown)
    expect(fault).toBeInstanceOf(Client.NotFoundError)
    expect((fault as InstanceType<typeof Client.NotFoundError>).requestID).toStartWith('req_')
  })
})

describe('a model by its name', () => {
  test.each(['/v1/models/demo/echo', '/v1/models/demo%2Fecho', '/v1/models/demo%2fecho', '/v1/models/%64emo/echo'])(
    'at %s',
    async path => {
      expect(await jsonOf(path)).toMatchObject({ id: 'demo/echo', object: 'model' })
    },
  )

  test.each(['/v1/models/', '/v1/models/demo', '/v1/models/ech', '/v1/models/demo%252Fecho', '/v1/models/__proto__'])(
    'nothing is at %s',
    async path => {
      expectChatError(await get(path), 404)
    },
  )
})

describe('the list', () => {
  test('can be read as Anthropic’s too', async () => {
    const page = (await jsonOf('/v1/models')) as Record<string, unknown>
    const cards = await list()
    expect(page).toMatchObject({ object: 'list', has_more: false, first_id: cards[0]!.id, last_id: cards.at(-1)!.id })
    for (const card of cards) {
      expect(card).toMatchObject({ type: 'model', display_name: expect.any(String) })
      expect(new Date(card.created_at as string).toISOString()).toStartWith((card.created_at as string).slice(0, 19))
    }
  })

  test('names only what can be called: a model of a provider without a channel is not there', async () => {
    const providers = new Set((await list()).map(card => card.owned_by as string))
    expect([...providers].sort()).toEqual(['demo', 'openai'])
    expectChatError(await get('/v1/models/groq/llama-3.3-70b-versatile'), 404)
  })

  test('names each model once with its provider, as the public data and the prices do, and once without', async () => {
    const all = (await list()).map(card => card.id)
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

  test('tells nothing that is the operator’s own', async () => {
    const paths = ['models', 'providers', 'pricing', 'settings'].map(name => `/api/public/${name}`)
    for (const path of ['/v1/models', ...paths]) {
      const answer = await get(path)
      expectStages(answer, reached.nothing)
      const text = answer.body.toString('utf8')
      for (const own of ['sk-canary', '127.0.0.1', harness.folder]) expect(text).not.toContain(own)
    }
  })
})
