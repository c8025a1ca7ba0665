// Translated requests at providers of the chat dialect: a provider that declares nothing gets only what all of them accept.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { BASIC_CHAT_FIELDS, CHAT_FIELDS } from '../../src/base/chat-fields.ts'
import { parseProvider } from '../../src/upstreams/provider.ts'
import type { Harness } from '../support/gateway.ts'
import { startHarness } from '../support/gateway.ts'

const price = { input: '1', output: '2' }
const models = [{ id: 'echo', contextTokens: 32_768, outputTokensMax: 4_096, price }]
const provider = (id: string, speaks: object, can: object) => ({
  id,
  name: id,
  baseUrl: 'http://127.0.0.1:9',
  keyEnv: `${id.toUpperCase()}_KEY`,
  baseUrlEnv: `${id.toUpperCase()}_URL`,
  speaks,
  sign: 'bearer',
  can,
  models,
})
const chat = { 'openai-chat': '/v1/chat/completions' }
/** Speaks Responses better than chat, and its model searches in both. */
const fen = {
  ...provider('fen', { 'openai-responses': '/v1/responses', ...chat }, {}),
  models: models.map(model => ({
    ...model,
    price: { ...price, perSearch: '0.01' },
    traits: { thinking: 'none', searches: true },
  })),
}
const providers = [
  fen,
  provider('brook', chat, {}),
  provider('moor', chat, { chatFields: CHAT_FIELDS, systemAnywhere: true }),
  provider('heath', chat, { missingChatFields: BASIC_CHAT_FIELDS, userAfterTool: false }),
  provider('creek', { 'anthropic-messages': '/v1/messages' }, {}),
]

let harness: Harness
let folder: string
let key: string

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'weir-chat-fields-'))
  for (const one of providers) writeFileSync(join(folder, `${one.id}.json`), JSON.stringify(one))
  const keys = Object.fromEntries(providers.map(({ keyEnv }) => [keyEnv, 'sk']))
  harness = await startHarness({
    env: { WEIR_PROVIDERS: folder, WEIR_DRAIN_SECONDS: '0', ...keys },
    upstreamEnv: url => Object.fromEntries(providers.map(({ baseUrlEnv }) => [baseUrlEnv, url])),
  })
  key = await harness.key()
})
afterAll(async () => {
  await harness.stop()
  rmSync(folder, { recursive: true, force: true })
})

type Json = Record<string, unknown>

const closed = { type: 'object', properties: { a: { type: 'string' } }, required: ['a'], additionalProperties: false }
const strictCall = (model: string): Json => ({
  model,
  max_tokens: 10,
  messages: [{ role: 'user', content: 'hi' }],
  tools: [{ name: 'f', input_schema: closed, strict: true }],
  output_config: { format: { type: 'json_schema', schema: closed } },
})

async function ask(path: string, body: Json): Promise<{ status: number; losses: string; sent: Json; answer: Json }> {
  const headers = { 'authorization': `Bearer ${key}`, 'content-type': 'application/json' }
  const response = await fetch(harness.url + path, { method: 'POST', headers, body: JSON.stringify(body) })
  const answer = (await response.json()) as Json
  const sent = JSON.parse(String(Buffer.from(harness.upstream.requests.at(-1)?.body ?? '{}'))) as Json
  return { status: response.status, losses: response.headers.get('x-weir-loss') ?? '', sent, answer }
}

const ephemeral = { cache_control: { type: 'ephemeral' } }
/** As Claude Code asks. */
const agentCall = (model: string): Json => ({
  model,
  max_tokens: 100,
  metadata: { user_id: JSON.stringify({ device_id: 'a'.repeat(64), session_id: 'c'.repeat(36) }) },
  system: [
    { type: 'text', text: 'You are an agent.' },
    { type: 'text', text: 'Be brief.', ...ephemeral },
  ],
  messages: [
    {
      role: 'user',
      content: [
        { type: 'text', text: 'Reminder' },
        { type: 'text', text: 'hi', ...ephemeral },
      ],
    },
    { role: 'assistant', content: [{ type: 'tool_use', id: 'c1', name: 'f', input: {} }] },
    { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'c1', content: 'done', ...ephemeral }] },
  ],
  tools: [{ name: 'f', input_schema: { type: 'object' } }],
})

/** As Codex asks. */
const codexCall = (model: string): Json => ({
  model,
  input: 'use apply {"input":"x"}',
  prompt_cache_key: 'k',
  text: { verbosity: 'low' },
  tools: [{ type: 'custom', name: 'apply', description: 'Applies a patch.' }],
})

describe('a chat provider that declares nothing gets', () => {
  test('texts without lists and cache marks, and a short name of the user', async () => {
    const { status, sent, losses } = await ask('/v1/messages', agentCall('brook/echo'))
    expect([status, losses]).toEqual([200, 'cache_control'])
    expect((sent.messages as Json[]).map(({ role, content }) => [role, content])).toEqual([
      ['system', 'You are an agent.\n\nBe brief.'],
      ['user', 'Reminder\n\nhi'],
      ['assistant', null],
      ['tool', 'done'],
    ])
    expect(sent.user).toMatch(/^[0-9a-f]{64}$/)
  })

  test('custom tools as functions, and neither verbosity nor a cache key', async () => {
    const { status, sent, losses, answer } = await ask('/v1/responses', codexCall('brook/echo'))
    expect(status).toBe(200)
    expect(sent.tools).toMatchObject([{ type: 'function', function: { name: 'apply' } }])
    expect(Object.keys(sent)).not.toContain('verbosity')
    expect(Object.keys(sent)).not.toContain('prompt_cache_key')
    expect(losses.split(',').map(loss => loss.trim())).toEqual(['prompt_cache_key', 'verbosity'])
    expect(answer.output).toMatchObject([{ type: 'custom_tool_call', name: 'apply', input: 'x' }])
  })

  test('no `strict`, unless a caller of OpenAI asks for it', async () => {
    const held = await ask('/v1/messages', strictCall('brook/echo'))
    expect(held.sent).toMatchObject({
      tools: [{ function: { name: 'f', parameters: closed } }],
      response_format: { type: 'json_schema', json_schema: { schema: closed } },
    })
    expect(JSON.stringify(held.sent)).not.toContain('strict')
    expect(held.losses).toBe('tools.strict, response_format.schema')
    const tools = [{ type: 'function', name: 'f', parameters: closed, strict: true }]
    const own = await ask('/v1/responses', { model: 'brook/echo', input: 'hi', tools })
    expect([own.sent.tools, own.losses]).toMatchObject([[{ function: { strict: true } }], ''])
  })

  test('at most four stop sequences', async () => {
    const { sent, losses } = await ask('/v1/messages', {
      model: 'brook/echo',
      max_tokens: 10,
      messages: [{ role: 'user', content: 'hi' }],
      stop_sequences: ['1', '2', '3', '4', '5'],
    })
    expect([sent.stop, losses]).toEqual([['1', '2', '3', '4'], 'stop'])
  })

  test('one system message, at the beginning', async () => {
    const input = ['developer', 'user', 'developer'].map((role, index) => ({ role, content: `text ${index}` }))
    const asked = async (model: string): Promise<Json[]> => {
      const { status, sent, losses } = await ask('/v1/responses', { model, instructions: 'Be brief.', input })
      expect([status, losses]).toEqual([200, ''])
      return sent.messages as Json[]
    }
    expect(await asked('brook/echo')).toEqual([
      { role: 'system', content: 'Be brief.\n\ntext 0' },
      { role: 'user', content: 'text 1' },
      { role: 'user', content: '<system>\ntext 2\n</system>' },
    ])
    expect((await asked('moor/echo')).map(({ role }) => role)).toEqual(['system', 'system', 'user', 'system'])
  })

  test('all fields of a chat caller, because nothing is translated', async () => {
    const body = {
      ...codexCall('brook/echo'),
      input: undefined,
      text: undefined,
      verbosity: 'low',
      user: 'u'.repeat(99),
    }
    const content = [{ type: 'text', text: 'hi', prompt_cache_breakpoint: { mode: 'explicit' } }]
    const tools = [{ type: 'custom', custom: { name: 'apply' } }]
    const stop = ['1', '2', '3', '4', '5']
    const given = {
      ...body,
      tools,
      stop,
      messages: [
        { role: 'user', content },
        { role: 'user', content: '' },
      ],
    }
    const { sent, losses } = await ask('/v1/chat/completions', given)
    expect<Json>({ ...sent, model: 'brook/echo' }).toEqual(JSON.parse(JSON.stringify(given)) as Json)
    expect(losses).toBe('')
  })
})

test('a chat provider that declares all fields gets them', async () => {
  const marked = await ask('/v1/messages', agentCall('moor/echo'))
  const breakpoint = { prompt_cache_breakpoint: { mode: 'explicit' } }
  expect((marked.sent.messages as Json[])[0]!.content).toEqual([
    { type: 'text', text: 'You are an agent.' },
    { type: 'text', text: 'Be brief.', ...breakpoint },
  ])
  const { sent, losses } = await ask('/v1/responses', codexCall('moor/echo'))
  expect(sent).toMatchObject({ tools: [{ type: 'custom' }], verbosity: 'low', prompt_cache_key: 'k' })
  expect([marked.losses, losses]).toEqual(['', ''])
  const held = await ask('/v1/messages', strictCall('moor/echo'))
  expect(held.sent).toMatchObject({
    tools: [{ function: { strict: true } }],
    response_format: { json_schema: { strict: true } },
  })
  expect(held.losses).toBe('')
})

test('a chat provider that lacks the usual fields gets none of them', async () => {
  const asked = (settings: Json): Promise<{ status: number; losses: string; sent: Json }> =>
    ask('/api/v3/chat/completions', {
      model: 'heath/echo',
      messages: [{ role: 'user', content: 'hi', name: 'Ann' }],
      tools: [{ type: 'function', function: { name: 'f' } }],
      ...settings,
    })
  const penalties = { frequency_penalty: 1, presence_penalty: 1 }
  const others = { seed: 0, stop: ['X'], logit_bias: { 5: 1 }, service_tier: 'default', parallel_tool_calls: false }
  const { status, sent, losses } = await asked({ ...penalties, ...others, logprobs: true, top_logprobs: 2 })
  expect(status).toBe(200)
  expect(losses.split(', ').toSorted()).toEqual(BASIC_CHAT_FIELDS.filter(field => field !== 'n'))
  expect(Object.keys(sent)).toEqual(['model', 'messages', 'tools'])
  expect(sent.messages).toEqual([{ role: 'user', content: 'hi' }])
  const defaults = { frequency_penalty: 0, presence_penalty: 0, parallel_tool_calls: true }
  expect((await asked(defaults)).losses).toBe('name')
  expect((await asked({ n: 2 })).status).toBe(400)
})

test('a chat provider that refuses a message of the user after results gets an answer between them', async () => {
  const asked = async (model: string): Promise<Json[]> => {
    const result = { type: 'tool_result', tool_use_id: 'c1', content: 'done' }
    const messages = [
      { role: 'user', content: 'hi' },
      { role: 'assistant', content: [{ type: 'tool_use', id: 'c1', name: 'f', input: {} }] },
      { role: 'user', content: [result, { type: 'text', text: 'Go on.' }] },
    ]
    const tools = [{ name: 'f', input_schema: { type: 'object' } }]
    const { status, sent, losses } = await ask('/v1/messages', { model, max_tokens: 10, messages, tools })
    expect([status, losses]).toEqual([200, ''])
    return (sent.messages as Json[]).slice(2)
  }
  const [result, user] = [
    { role: 'tool', tool_call_id: 'c1', content: 'done' },
    { role: 'user', content: 'Go on.' },
  ]
  expect(await asked('heath/echo')).toEqual([result, { role: 'assistant', content: 'Done.' }, user])
  expect(await asked('brook/echo')).toEqual([result, user])
})

test('a search in chat is billed as one that is not reported, also if Responses is the first dialect', async () => {
  const { status, sent, losses } = await ask('/v1/messages', {
    model: 'fen/echo',
    max_tokens: 10,
    messages: [{ role: 'user', content: 'hi' }],
    stop_sequences: ['X'],
    tools: [{ type: 'web_search_20250305', name: 'web_search' }],
  })
  expect([status, losses]).toEqual([200, ''])
  expect(sent).toMatchObject({ stop: ['X'], web_search_options: {} })
  await harness.idle()
  expect(harness.lastRecord()!.lines).toContain('search')
})

describe('a chat call for another dialect may have', () => {
  const instructions = { role: 'system', content: 'Say hi' }
  test.each<readonly [string, readonly object[]]>([
    ['only instructions', [instructions]],
    ['an empty message of the user', [instructions, { role: 'user', content: '' }]],
  ])('%s', async (_name, messages) => {
    const { status, sent } = await ask('/v1/chat/completions', { model: 'creek/echo', messages })
    expect(status).toBe(200)
    expect(sent.messages).toEqual([{ role: 'user', content: [{ type: 'text', text: 'Say hi' }] }])
  })

  test('no conversation without any content', async () => {
    const { status, answer } = await ask('/v1/chat/completions', {
      model: 'creek/echo',
      messages: [{ role: 'user', content: '' }],
    })
    expect([status, (answer.error as Json).param]).toEqual([400, 'messages[0].content'])
  })
})

test('the shipped files declare what their vendors document', () => {
  const shipped = join(import.meta.dir, '..', '..', 'providers')
  const files = readdirSync(shipped).map(name => parseProvider(readFileSync(join(shipped, name), 'utf8'), name))
  const systemAnywhere = files.flatMap(({ id, can }) => (can.systemAnywhere ? id : []))
  expect(systemAnywhere.toSorted()).toEqual(['azure', 'openai', 'xai'])
  expect(files.filter(({ can }) => !can.userAfterTool).map(({ id }) => id)).toEqual(['mistral'])
  const declared = files
    .filter(({ can }) => can.chatFields.join() !== 'user' || can.missingChatFields.length > 0)
    .map(({ id, can }) => [id, [...can.chatFields, ...can.missingChatFields.map(field => `-${field}`)].join(' ')])
  const all = 'custom_tools prompt_cache_breakpoint prompt_cache_key refusal strict user verbosity'
  expect(Object.fromEntries(declared) as object).toEqual({
    azure: all,
    deepinfra: 'prompt_cache_key user',
    fireworks: 'prompt_cache_key user',
    // Its page on the compatibility with OpenAI lists what it answers with 400.
    groq: 'user -logit_bias -logprobs -n -name -top_logprobs',
    lmstudio: 'strict user',
    // Refuses every field that it does not know, also `user`.
    mistral: 'prompt_cache_key random_seed strict -logit_bias -logprobs -name -seed -service_tier -top_logprobs',
    moonshot: 'prompt_cache_key user',
    openai: all,
    // Has `strict`, but then finds no endpoint for a model whose hosts do not have it.
    openrouter: 'user verbosity',
    sglang: 'strict user',
    vllm: 'strict user',
  })
})
