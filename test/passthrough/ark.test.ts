// Ark's passthrough calls, at the address of a provider whose models have prices.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { streamHead } from '../../tools/fake-upstream/answers.ts'
import { chunk, close, end, gate, script } from '../../tools/fake-upstream/script.ts'
import { openRaw } from '../forwarding/caller.ts'
import type { Harness } from '../support/gateway.ts'
import { startHarness } from '../support/gateway.ts'
import { post } from '../support/raw.ts'
import { nanosOf, says, sendsBytes, sendsEvents } from './upstream.ts'

const tokens = { input: '1', output: '2', cacheRead: '0.5', inputImage: '3' }
const imagePrice = { input: '0', output: '0', perImage: '0.03' }
const rerank = { input: '0', output: '0', perSearch: '0.002' }

const provider = {
  id: 'pond',
  name: 'Pond',
  baseUrl: 'http://127.0.0.1:9',
  keyEnv: 'POND_KEY',
  baseUrlEnv: 'POND_URL',
  speaks: {
    'ark-embeddings': '/embeddings',
    'ark-multimodal-embeddings': '/embeddings/multimodal',
    'ark-images': '/images/generations',
    'ark-tokenization': '/tokenization',
    'ark-bots': '/bots/chat/completions',
    'ark-context-create': '/context/create',
    'ark-context-chat': '/context/chat/completions',
    'openai-rerank': '/rerank',
  },
  sign: 'bearer',
  models: [
    { id: 'text', contextTokens: 8_192, outputTokensMax: 4_096, price: tokens },
    { id: 'plugged', contextTokens: 8_192, outputTokensMax: 4_096, price: { ...tokens, perSearch: '0.002' } },
    { id: 'draw', price: imagePrice },
    { id: 'sort', price: rerank },
    { id: 'priceless' },
  ],
}

let harness: Harness
let folder: string

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'weir-pond-'))
  writeFileSync(join(folder, 'pond.json'), JSON.stringify(provider))
  harness = await startHarness({
    env: { WEIR_PROVIDERS: folder, POND_KEY: 'sk-pond', WEIR_DRAIN_SECONDS: '0' },
    upstreamEnv: url => ({ POND_URL: `${url}/api/v3` }),
  })
})
afterAll(async () => {
  await harness.stop()
  rmSync(folder, { recursive: true, force: true })
})

interface CallResult {
  readonly status: number
  readonly text: string
  readonly spent: bigint
}

interface Sent {
  readonly by?: string
  readonly headers?: Readonly<Record<string, string>>
}

async function call(path: string, body: object, { by, headers }: Sent = {}): Promise<CallResult> {
  const key = by ?? (await harness.key({ credit: '10' }))
  const answer = await fetch(harness.url + path, {
    method: 'POST',
    headers: { 'authorization': `Bearer ${key}`, 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
  })
  const text = await answer.text()
  await harness.idle()
  const { balance, held } = await harness.balance(key)
  expect(nanosOf(held)).toBe(0n)
  return { status: answer.status, text, spent: 10_000_000_000n - nanosOf(balance) }
}

const lastSent = () => harness.upstream.requests.at(-1)!

describe('embeddings', () => {
  test('of text are billed by their input', async () => {
    const data = [{ object: 'embedding', index: 0, embedding: [1] }]
    harness.upstream.plan(says({ object: 'list', data, usage: { prompt_tokens: 40, total_tokens: 40 } }))
    const { status, spent } = await call('/api/v3/embeddings', { model: 'pond/text', input: ['a', 'b'] })
    expect([status, spent, lastSent().path]).toEqual([200, 40_000n, '/api/v3/embeddings'])
    expect(lastSent().json()).toEqual({ model: 'text', input: ['a', 'b'] })
  })

  test('P35: of images return one object as their data, and images have a rate of their own', async () => {
    const details = { text_tokens: 10, image_tokens: 30 }
    const usage = { prompt_tokens: 40, total_tokens: 40, prompt_tokens_details: details }
    const answer = { object: 'list', data: { object: 'embedding', embedding: [1] }, usage }
    harness.upstream.plan(says(answer))
    const input = [{ type: 'image_url', image_url: { url: 'https://example.com/a.png' } }]
    const { status, text, spent } = await call('/api/v3/embeddings/multimodal', { model: 'pond/text', input })
    expect([status, spent]).toEqual([200, 10_000n + 30n * 3_000n])
    expect(text).toBe(JSON.stringify(answer))
  })
})

describe('images', () => {
  const path = '/api/v3/images/generations'

  test('are billed by how many were generated, not by how many were requested', async () => {
    const data = [{ url: 'https://x/1' }, { error: { code: 'Filtered', message: 'no' } }, { url: 'https://x/3' }]
    harness.upstream.plan(says({ data, usage: { generated_images: 2, output_tokens: 8_000, total_tokens: 8_000 } }))
    const options = { max_images: 3 }
    const sequential = { sequential_image_generation: 'auto', sequential_image_generation_options: options }
    const { status, spent } = await call(path, { model: 'pond/draw', prompt: 'A river', ...sequential })
    expect([status, spent]).toEqual([200, 60_000_000n])
    expect(harness.lastRecord()).toMatchObject({ usage_source: 'reported', dialect: 'ark-images' })
  })

  test('are billed by the number in the answer if nothing is reported', async () => {
    harness.upstream.plan(says({ data: [{ b64_json: 'AAAA' }] }))
    expect(await call(path, { model: 'pond/draw', prompt: 'A river' })).toMatchObject({ spent: 30_000_000n })
  })

  test('are billed by the number in the answer if none is reported as generated', async () => {
    const usage = { generated_images: 0, output_tokens: 100, total_tokens: 100 }
    harness.upstream.plan(says({ data: [{ b64_json: 'AAAA' }], usage }))
    expect(await call(path, { model: 'pond/draw', prompt: 'A river' })).toMatchObject({ spent: 30_000_000n })
  })

  test('are streamed as events, the last of which waits for the settlement', async () => {
    const events = [
      { type: 'image_generation.partial_succeeded', image_index: 0, url: 'https://x/1' },
      { type: 'image_generation.partial_failed', image_index: 1, error: { code: 'x', message: 'no' } },
      { type: 'image_generation.completed', usage: { generated_images: 1, output_tokens: 10, total_tokens: 10 } },
    ]
    harness.upstream.plan(sendsEvents(events))
    const { status, text, spent } = await call(path, { model: 'pond/draw', prompt: 'A river', stream: true })
    expect([status, spent]).toEqual([200, 30_000_000n])
    expect([...(text.match(/image_generation\.\w+/g) ?? [])]).toEqual(events.map(({ type }) => type))
    expect(text).not.toContain('X-Pipeline')
  })

  const sequence = { model: 'pond/draw', prompt: 'A river', stream: true, sequential_image_generation: 'auto' }
  const made = (index: number): object => ({
    type: 'image_generation.partial_succeeded',
    image_index: index,
    url: `https://x/${index}`,
  })
  const completed = (usage?: object): object => ({ type: 'image_generation.completed', usage })
  const nonsense = { generated_images: 1, output_tokens: -1 }

  test.each([
    ['streamed without a report', { stream: true }, sendsEvents([made(0), completed()])],
    ['streamed with an implausible report', { stream: true }, sendsEvents([made(0), completed(nonsense)])],
    ['in a plain answer with an implausible report', { stream: false }, says({ data: [made(0)], usage: nonsense })],
  ])('of a sequence are billed by their number: %s', async (_how, more, upstream) => {
    harness.upstream.plan(upstream)
    expect(await call(path, { ...sequence, ...more })).toMatchObject({ status: 200, spent: 30_000_000n })
    expect(harness.lastRecord()).toMatchObject({ outcome: 'completed', usage_source: 'estimated' })
  })

  test.each([
    ['and the one that was being made, if the caller leaves', {}, 1, 2],
    ['and no more than were requested', { sequential_image_generation_options: { max_images: 2 } }, 2, 2],
    ['and no other one, if only one was requested', { sequential_image_generation: 'disabled' }, 1, 1],
  ])('that were delivered are billed, %s', async (_how, more, delivered, billed) => {
    const never = Promise.withResolvers<void>()
    const events = Array.from({ length: delivered }, (_none, index) => `data: ${JSON.stringify(made(index))}\n\n`)
    harness.upstream.plan(sendsBytes('text/event-stream', events, gate(never.promise)))
    const key = await harness.key({ credit: '10' })
    const headers = { 'authorization': `Bearer ${key}`, 'content-type': 'application/json' }
    const caller = openRaw(harness.url, post(path, headers, JSON.stringify({ ...sequence, ...more })))
    await caller.until(({ text }) => text.includes(`https://x/${delivered - 1}`), 'the caller has the images')
    caller.leave()
    await harness.idle()
    never.resolve()
    expect(harness.lastRecord()).toMatchObject({ rule: 'left_reading', cost: billed * 30_000_000 })
  })

  test('that fail do not fail the others', async () => {
    const failed = { type: 'image_generation.partial_failed', image_index: 0, error: { code: 'x', message: 'no' } }
    const usage = { generated_images: 0, output_tokens: 0, total_tokens: 0 }
    const done = { type: 'image_generation.completed', usage }
    harness.upstream.plan(sendsEvents([failed, done]))
    const { status, text, spent } = await call(path, { model: 'pond/draw', prompt: 'A river', stream: true })
    expect([status, spent]).toEqual([200, 0n])
    expect(text).toContain('partial_failed')
  })

  test('have a price that does not apply to text, and a model without a price is refused', async () => {
    const chat = { model: 'pond/draw', messages: [{ role: 'user', content: 'x' }] }
    const { status, text } = await call('/api/v3/bots/chat/completions', chat)
    expect([status, (JSON.parse(text) as { error: { type: string } }).error.type]).toEqual([503, 'InternalServerError'])
    expect(text).toContain('calls of this kind')
    expect(await call('/api/v3/embeddings', { model: 'pond/priceless', input: 'x' })).toMatchObject({ status: 503 })
  })
})

test('counting tokens costs nothing', async () => {
  harness.upstream.plan(says({ object: 'list', data: [{ index: 0, object: 'tokenization', total_tokens: 3 }] }))
  const { status, spent } = await call('/api/v3/tokenization', { model: 'pond/text', text: 'Hello' })
  expect([status, spent]).toEqual([200, 0n])
})

describe('bots', () => {
  const chat = { model: 'pond/text', messages: [{ role: 'user', content: 'Hello' }], max_tokens: 100 }
  const counted = { prompt_tokens: 100, completion_tokens: 10, total_tokens: 110 }
  const models = {
    model_usage: [
      { name: 'a', ...counted },
      { name: 'b', ...counted },
    ],
    action_usage: [],
  }

  const message = { role: 'assistant', content: 'Hi' }
  const answered = { choices: [{ index: 0, message, finish_reason: 'stop' }] }
  const piece = { choices: [{ index: 0, delta: message, finish_reason: 'stop' }] }
  const actions = [{ action_name: 'content_plugin', count: 2 }, { search_count: 1 }, { count: 'x' }, 5]
  const used = { ...models, action_usage: actions }
  const stream = true
  const done = 'data: [DONE]\n\n'
  const late = [piece, { choices: [], usage: counted }, { choices: [], bot_usage: { action_usage: actions } }]
  const early = [
    { ...piece, bot_usage: { action_usage: actions } },
    { choices: [], usage: counted },
  ]

  test("are billed by the sum of their models' usage", async () => {
    harness.upstream.plan(says({ ...answered, bot_usage: models }))
    expect(await call('/api/v3/bots/chat/completions', chat)).toMatchObject({ status: 200, spent: 240_000n })
  })

  test.each([
    ['in an answer', {}, says({ ...answered, bot_usage: used }), 240],
    ['beside the total', {}, says({ ...answered, usage: counted, bot_usage: used }), 120],
    ['in a stream', { stream }, sendsEvents([piece, { choices: [], bot_usage: used }], done), 240],
    ['after the total of a stream', { stream }, sendsEvents(late, done), 120],
    ['before the total of a stream', { stream }, sendsEvents(early, done), 120],
  ])('are billed for each use of a plug-in, %s', async (_where, more, upstream, thousands) => {
    harness.upstream.plan(upstream)
    const { status, spent } = await call('/api/v3/bots/chat/completions', { ...chat, model: 'pond/plugged', ...more })
    expect([status, spent]).toEqual([200, BigInt(thousands) * 1_000n + 3n * 2_000_000n])
    expect(harness.lastRecord()).toMatchObject({ usage_source: 'reported' })
  })

  test('whose plug-ins alone are reported pay an estimate of their tokens as well', async () => {
    harness.upstream.plan(says({ ...answered, bot_usage: { action_usage: actions } }))
    const body = { ...chat, model: 'pond/plugged' }
    const { spent } = await call('/api/v3/bots/chat/completions', body)
    expect(harness.lastRecord()).toMatchObject({ usage_source: 'estimated' })
    expect(spent).toBeGreaterThan(3n * 2_000_000n)
  })

  const commentHeaders = [
    [{}, false],
    [{ 'x-weir-comments': 'on' }, true],
  ] as const
  test.each(commentHeaders)('stream like chats, with %j', async (headers, isCommented) => {
    harness.upstream.plan(sendsEvents([piece, { choices: [], bot_usage: models }], done))
    const streamed = { ...chat, stream: true }
    const { status, text, spent } = await call('/api/v3/bots/chat/completions', streamed, { headers })
    expect([status, spent]).toEqual([200, 240_000n])
    expect(text.includes(': X-Pipeline-Breakdown ')).toBe(isCommented)
    expect(text).toEndWith('data: [DONE]\n\n')
  })
})

describe('a caller that leaves a bot with the answer', () => {
  const chat = { model: 'pond/text', messages: [{ role: 'user', content: 'Hello' }], max_tokens: 100, stream: true }
  const piece = { choices: [{ index: 0, delta: { content: 'Hi' } }] }
  const last = { choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] }
  const report = { prompt_tokens: 5_000, completion_tokens: 10, total_tokens: 5_010 }
  const events = (...all: readonly object[]): string => all.map(one => `data: ${JSON.stringify(one)}\n\n`).join('')

  test.each([
    [
      'pays what the bot has read',
      [chunk(events(last, { choices: [], bot_usage: { model_usage: [report] } })), end],
      5_000,
    ],
    ['pays the whole context, if its upstream breaks off before the report', [close], 8_192],
  ])('%s', async (_what, rest, inputTokens) => {
    const opens = Promise.withResolvers<void>()
    harness.upstream.plan(script(streamHead, chunk(events(piece)), gate(opens.promise), ...rest))
    const key = await harness.key({ credit: '10' })
    const headers = { 'authorization': `Bearer ${key}`, 'content-type': 'application/json' }
    const caller = openRaw(harness.url, post('/api/v3/bots/chat/completions', headers, JSON.stringify(chat)))
    await caller.until(({ text }) => text.includes('Hi'), 'the caller has content')
    caller.leave()
    await caller.closed
    for (let round = 0; round < 5; round++) await fetch(`${harness.url}/health/live`)
    expect(harness.gateway.activeCalls).toBe(1)
    opens.resolve()
    await harness.idle()
    expect(harness.lastRecord()).toMatchObject({ rule: 'left_reading', input_tokens: inputTokens })
  })
})

describe('contexts', () => {
  const messages = [{ role: 'system', content: 'You are a river.' }]

  test('are created at the price of their content', async () => {
    const usage = { prompt_tokens: 50, completion_tokens: 0, total_tokens: 50 }
    harness.upstream.plan(says({ id: 'ctx-1', mode: 'session', model: 'text', usage }))
    const body = { model: 'pond/text', mode: 'session', messages }
    expect(await call('/api/v3/context/create', body)).toMatchObject({ status: 200, spent: 50_000n })
  })

  test('are called like chats, with their content as input', async () => {
    const key = await harness.key({ credit: '10' })
    const none = { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 }
    harness.upstream.plan(says({ id: 'ctx-1', mode: 'session', model: 'text', usage: none }))
    const { spent: before } = await call('/api/v3/context/create', { model: 'pond/text', messages }, { by: key })
    const counted = { prompt_tokens: 60, completion_tokens: 5, total_tokens: 65 }
    const usage = { ...counted, prompt_tokens_details: { cached_tokens: 50 } }
    const choices = [{ index: 0, message: { role: 'assistant', content: 'Hi' }, finish_reason: 'stop' }]
    harness.upstream.plan(says({ choices, usage }))
    const body = { model: 'pond/text', context_id: 'ctx-1', messages: [{ role: 'user', content: 'Hello' }] }
    const { status, spent } = await call('/api/v3/context/chat/completions', body, { by: key })
    expect([status, spent - before]).toEqual([200, 10_000n + 50n * 500n + 10_000n])
    const { context_id: _left, ...without } = body
    expect(await call('/api/v3/context/chat/completions', without)).toMatchObject({ status: 400 })
  })
})

test('a rerank is billed by its searches, which are counted if they are not reported', async () => {
  const body = { model: 'pond/sort', query: 'a', documents: Array.from({ length: 150 }, () => 'x') }
  const results = [{ index: 0, relevance_score: 0.5 }]
  harness.upstream.plan(says({ results, meta: { billed_units: { search_units: 3 } } }))
  expect(await call('/v1/rerank', body)).toMatchObject({ status: 200, spent: 6_000_000n })
  harness.upstream.plan(says({ results }))
  expect(await call('/v1/rerank', body)).toMatchObject({ status: 200, spent: 4_000_000n })
})

test('a rerank that reports no searches, but tokens, is billed by its documents', async () => {
  const body = { model: 'pond/sort', query: 'a', documents: ['x', 'y'] }
  const meta = { billed_units: { search_units: 0 }, tokens: { input_tokens: 50, output_tokens: 0 } }
  harness.upstream.plan(says({ results: [{ index: 0, relevance_score: 0.5 }], meta }))
  expect(await call('/v1/rerank', body)).toMatchObject({ status: 200, spent: 2_000_000n })
})

test('a rerank that is paid by tokens and reports only searches is billed by an estimate of its tokens', async () => {
  const body = { model: 'pond/text', query: 'a', documents: ['x', 'y'] }
  harness.upstream.plan(
    says({ results: [{ index: 0, relevance_score: 0.5 }], meta: { billed_units: { search_units: 1 } } }),
  )
  const inputTokens = BigInt(Math.ceil(JSON.stringify(body).length / 4))
  expect(await call('/v1/rerank', body)).toMatchObject({ status: 200, spent: inputTokens * 1_000n })
  expect(harness.lastRecord()).toMatchObject({ usage_source: 'estimated' })
})
