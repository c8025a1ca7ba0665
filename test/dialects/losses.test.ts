// No silent loss: fields that the dialect of the upstream does not have are reported in a header and in the record, or the
// call is refused if the caller wants that.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import type { Harness } from '../support/gateway.ts'
import type { Dialect } from './upstreams.ts'
import { dialects, modelOf, models, startDialects } from './upstreams.ts'

let harness: Harness
let key: string
beforeAll(async () => {
  harness = await startDialects({ models: [...models, { ...models[0], id: 'fixed', traits: { sampling: false } }] })
  key = await harness.key()
})
afterAll(() => harness.stop())

const send = (path: string, body: object, headers: Record<string, string> = {}): Promise<Response> =>
  fetch(harness.url + path, {
    method: 'POST',
    headers: { 'authorization': `Bearer ${key}`, 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
  })

const strict = { 'x-weir-translate': 'Strict' }

const ask = (body: object, headers?: Record<string, string>): Promise<Response> =>
  send('/v1/chat/completions', { messages: [{ role: 'user', content: 'Hello' }], ...body }, headers)

/** anthropic-messages has neither a seed nor a logit bias, and x_new is unknown. */
const untranslatable = { model: modelOf('anthropic-messages'), seed: 7, logit_bias: { 5: -1 }, x_new: true }

test('a loss is reported in a header and in the record, for streams as well', async () => {
  for (const stream of [false, true]) {
    const answer = await ask({ ...untranslatable, stream })
    expect([answer.status, answer.headers.get('x-weir-loss')]).toEqual([200, 'x_new, seed, logit_bias'])
    await answer.text()
    await harness.idle()
    expect(harness.lastRecord()).toMatchObject({ loss: 'x_new,seed,logit_bias', status: 200 })
  }
})

test('a call without losses has no loss header', async () => {
  const answer = await ask({ model: modelOf('anthropic-messages'), temperature: 0.5 })
  expect([answer.status, answer.headers.get('x-weir-loss')]).toEqual([200, null])
})

async function expectRefused(answer: Response, requests: number): Promise<void> {
  const { error } = (await answer.json()) as { error: { code: string; message: string } }
  expect([answer.status, error.code]).toEqual([400, 'translation_loses'])
  expect(error.message).toContain('x_new, seed, logit_bias')
  expect(answer.headers.get('x-pipeline-adapter')).toMatch(/^fail \(\d+ms\)$/)
  expect(harness.upstream.requests.length).toBe(requests)
  await harness.idle()
  expect([harness.openHolds(), harness.lastRecord()]).toMatchObject([0, { cost: 0, error: 'translation_loses' }])
}

test('a call with strict translation is refused with the lost fields, and is neither sent nor charged', async () => {
  await expectRefused(await ask(untranslatable, strict), harness.upstream.requests.length)
  expect((await ask({ model: modelOf('openai-chat'), seed: 7 }, { 'x-weir-translate': 'strict' })).status).toBe(200)
})

test('a call of a key with strict on is refused as well', async () => {
  await harness.weir('keys set', { key, strict: 'on' })
  await expectRefused(await ask(untranslatable), harness.upstream.requests.length)
  await harness.weir('keys set', { key, strict: 'off' })
  expect((await ask(untranslatable)).status).toBe(200)
})

test.each<Dialect>(['openai-chat', 'openai-responses', 'anthropic-messages', 'ark'])(
  '%s has no name for an image, also not in a result, so that the name is reported',
  async upstream => {
    const image = { inlineData: { mimeType: 'image/png', data: 'AAAA', displayName: 'cat.png' } }
    const response = { image: { $ref: 'cat.png' } }
    const contents = {
      user: [{ role: 'user', parts: [{ text: 'What is it?' }, image] }],
      result: [
        { role: 'user', parts: [{ text: 'Show it.' }] },
        { role: 'model', parts: [{ functionCall: { name: 'f', args: {} } }] },
        { role: 'user', parts: [{ functionResponse: { name: 'f', response, parts: [image] } }] },
      ],
    }
    for (const content of Object.values(contents)) {
      const answer = await send(`/v1beta/models/${modelOf(upstream)}:generateContent`, { contents: content })
      expect([answer.status, answer.headers.get('x-weir-loss')]).toEqual([200, 'image.name'])
    }
  },
)

test.each<readonly [Dialect, string]>([
  ['openai-chat', 'cache_control'],
  ['openai-responses', 'cache'],
  ['gemini', 'cache_control'],
  ['ark', 'cache_control'],
])('%s has no cache breakpoint on a call, which is reported', async (upstream, code) => {
  const call = { type: 'tool_use', id: 'a', name: 'f', input: {}, cache_control: { type: 'ephemeral' } }
  const messages = [
    { role: 'user', content: 'Hello' },
    { role: 'assistant', content: [call] },
    { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'a', content: 'ok' }] },
  ]
  const answer = await send('/v1/messages', { model: modelOf(upstream), max_tokens: 99, messages })
  expect([answer.status, answer.headers.get('x-weir-loss')?.split(', ')]).toEqual([
    200,
    expect.arrayContaining([code]) as unknown as string[],
  ])
})

describe('a field at its default value is no loss:', () => {
  const said = [{ role: 'user', content: 'Hello' }]
  const tool = { name: 'f', description: 'd' }
  const schema = { type: 'object', properties: {} }
  const chatDefaults = {
    messages: said,
    ...{ temperature: 1, top_p: 1, frequency_penalty: 0, presence_penalty: 0, n: 1, stop: [], logit_bias: {} },
    ...{ logprobs: false, verbosity: 'medium', metadata: {}, store: false, modalities: ['text'], min_p: 0 },
    ...{ repetition_penalty: 1, service_tier: 'auto', response_format: { type: 'text' }, parallel_tool_calls: true },
    tools: [{ type: 'function', function: { ...tool, parameters: schema } }],
    tool_choice: 'auto',
  }
  const responsesDefaults = {
    input: 'Hello',
    ...{ temperature: 1, top_p: 1, frequency_penalty: 0, presence_penalty: 0, top_logprobs: 0, metadata: {} },
    ...{ truncation: 'disabled', background: false, store: false, include: [], context_management: [] },
    ...{ text: { format: { type: 'text' }, verbosity: 'medium' }, service_tier: 'auto', parallel_tool_calls: true },
    tools: [{ type: 'function', ...tool, parameters: schema, async: false, defer_loading: false }],
    tool_choice: 'auto',
  }
  const document = { type: 'document', source: { type: 'text', media_type: 'text/plain', data: 'd' } }
  const messagesDefaults = {
    messages: [{ role: 'user', content: [{ ...document, citations: { enabled: false } }] }],
    ...{ max_tokens: 99, temperature: 1, top_p: 1, stop_sequences: [], mcp_servers: [], service_tier: 'auto' },
    tools: [{ ...tool, input_schema: schema, defer_loading: false, allowed_callers: ['direct'] }],
    tool_choice: { type: 'auto', disable_parallel_tool_use: false },
  }
  const config = { temperature: 1, topP: 1, candidateCount: 1, frequencyPenalty: 0, presencePenalty: 0 }
  const geminiDefaults = {
    contents: [{ parts: [{ text: 'Hello' }] }],
    safetySettings: [],
    generationConfig: {
      ...config,
      ...{ stopSequences: [], responseLogprobs: false, responseMimeType: 'text/plain', responseModalities: ['TEXT'] },
      ...{ audioTimestamp: false, enableAffectiveDialog: false },
    },
    tools: [{ functionDeclarations: [{ ...tool, parameters: schema, behavior: 'BLOCKING' }] }],
    toolConfig: { functionCallingConfig: { mode: 'AUTO' }, includeServerSideToolInvocations: false },
  }
  const callers: readonly (readonly [Dialect, (model: string) => string, object])[] = [
    ['openai-chat', () => '/v1/chat/completions', chatDefaults],
    ['openai-responses', () => '/v1/responses', responsesDefaults],
    ['anthropic-messages', () => '/v1/messages', messagesDefaults],
    ['gemini', model => `/v1beta/models/${model}:generateContent`, geminiDefaults],
  ]
  /** A model that takes no sampling settings loses none that are at their default. */
  const modelIds = ['echo', 'fixed']

  test.each(callers)('of %s', async (caller, path, body) => {
    for (const upstream of dialects.filter(dialect => dialect !== caller)) {
      for (const model of modelIds.map(id => modelOf(upstream, id))) {
        const answer = await send(path(model), { ...body, ...(caller !== 'gemini' && { model }) }, strict)
        expect([model, answer.status, await answer.text()]).toEqual([model, 200, expect.any(String)])
        expect(answer.headers.get('x-weir-loss')).toBeNull()
      }
    }
  })

  test('any other value is one', async () => {
    const sampling = { temperature: 0.5, top_p: 0.5, frequency_penalty: 0.1, presence_penalty: 0.1, verbosity: 'low' }
    const others = { ...sampling, min_p: 0.1, repetition_penalty: 1.1 }
    const answer = await ask({ model: modelOf('anthropic-messages', 'fixed'), ...others })
    expect([answer.status, answer.headers.get('x-weir-loss')?.split(', ').toSorted()]).toEqual([
      200,
      Object.keys(others).toSorted(),
    ])
  })
})
