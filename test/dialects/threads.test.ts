// Threads of anthropic-messages with the official SDK: its tool runner creates one, continues from the last message by its
// id, and learns from `error.details.error_code` when it must send the whole conversation instead.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Anthropic from '@anthropic-ai/sdk'
import { betaTool } from '@anthropic-ai/sdk/helpers/beta/json-schema'
import { says } from '../passthrough/upstream.ts'
import type { Harness } from '../support/gateway.ts'
import { startHarness } from '../support/gateway.ts'

const models = [{ id: 'echo', contextTokens: 8_192, outputTokensMax: 4_096, price: { input: '1', output: '2' } }]
const provider = (id: string, speaks: object, can: object = {}) => ({
  id,
  name: id,
  baseUrl: 'http://127.0.0.1:9',
  keyEnv: `${id.toUpperCase()}_KEY`,
  baseUrlEnv: `${id.toUpperCase()}_URL`,
  speaks,
  sign: 'bearer',
  models,
  can,
})
const native = { 'anthropic-messages': '/v1/messages' }
const providers = [
  provider('pond', native, { keepsThreads: true }),
  provider('creek', native),
  provider('brook', { 'openai-chat': '/v1/chat/completions' }),
]

let harness: Harness
let folder: string

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'weir-threads-'))
  for (const one of providers) writeFileSync(join(folder, `${one.id}.json`), JSON.stringify(one))
  const settings = { WEIR_PROVIDERS: folder, WEIR_DRAIN_SECONDS: '0' }
  harness = await startHarness({
    env: { ...settings, POND_KEY: 'sk-1,sk-2,sk-3', CREEK_KEY: 'c', BROOK_KEY: 'b' },
    upstreamEnv: url => ({ POND_URL: url, CREEK_URL: url, BROOK_URL: url }),
  })
})
afterAll(async () => {
  await harness.stop()
  rmSync(folder, { recursive: true, force: true })
})

type Json = Record<string, unknown>

const usage = { input_tokens: 1, output_tokens: 1 }
const base = { type: 'message', role: 'assistant', model: 'echo', stop_sequence: null, usage }
const toolMessage = (id: string) => ({
  ...base,
  id,
  stop_reason: 'tool_use',
  content: [{ type: 'tool_use', id: 'toolu_1', name: 'depth', input: { of: 'the pond' } }],
})
const finalContent = [{ type: 'text', text: 'Two metres.' }]
const finalMessage = (id: string) => ({ ...base, id, stop_reason: 'end_turn', content: finalContent })
const failed = (code: string, more: Json = {}) => ({
  type: 'error',
  request_id: 'up',
  error: { type: 'invalid_request_error', message: 'No thread.', details: { error_code: code, ...more } },
})
const chatCalls = {
  id: 'c',
  object: 'chat.completion',
  created: 1,
  model: 'echo',
  choices: [
    {
      index: 0,
      finish_reason: 'tool_calls',
      message: {
        role: 'assistant',
        content: null,
        tool_calls: [{ id: 'call_1', type: 'function', function: { name: 'depth', arguments: '{"of":"the pond"}' } }],
      },
    },
  ],
  usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
}
const chatEnds = {
  ...chatCalls,
  choices: [{ index: 0, finish_reason: 'stop', message: { role: 'assistant', content: 'Two metres.' } }],
}

const depth = betaTool({
  name: 'depth',
  description: 'how deep it is',
  inputSchema: { type: 'object', properties: { of: { type: 'string' } }, required: ['of'] },
  run: () => '2 m',
})

async function clientOf(key?: string): Promise<Anthropic> {
  return new Anthropic({ baseURL: harness.url, apiKey: key ?? (await harness.key()), maxRetries: 0 })
}

/** The final text of the tool runner, and the requests that the upstream received meanwhile. */
async function run(model: string, client?: Anthropic) {
  const since = harness.upstream.requests.length
  const runner = (client ?? (await clientOf())).beta.messages.toolRunner({
    model,
    max_tokens: 100,
    tools: [depth],
    messages: [{ role: 'user', content: 'How deep is the pond?' }],
  })
  const message = await runner
  const requests = harness.upstream.requests.slice(since).map(({ body, headers }) => ({
    json: JSON.parse(body.toString()) as Json,
    key: headers.get('authorization'),
    beta: headers.get('anthropic-beta'),
  }))
  return { text: message.content.map(block => ('text' in block ? block.text : '')).join(''), requests }
}

const threadsOf = (requests: readonly { readonly json: Json }[]) => requests.map(({ json }) => json.thread)

describe('the tool runner', () => {
  test('continues a thread at the channel that keeps it', async () => {
    const ids = Array.from({ length: 4 }, (_, at) => `msg_kept_${at}`)
    for (const id of ids) {
      harness.upstream.plan(says(toolMessage(id)), says(finalMessage(`${id}_end`)))
      const { text, requests } = await run('pond/echo')
      expect(text).toBe('Two metres.')
      expect(threadsOf(requests)).toEqual([{ type: 'create' }, { type: 'continue', previous_message_id: id }])
      expect(requests[1]!.key).toBe(requests[0]!.key)
      expect(requests[1]!.beta).toContain('message-threads')
    }
  })

  test('sends the whole conversation if the upstream supports no threads', async () => {
    const refused = failed('thread_unsupported_request', { unsupported: ['model'] })
    harness.upstream.plan(says(refused, 400), says(toolMessage('msg_a')), says(finalMessage('msg_b')))
    const { text, requests } = await run('pond/echo')
    expect(text).toBe('Two metres.')
    expect(threadsOf(requests)).toEqual([{ type: 'create' }, undefined, undefined])
    expect(requests[2]!.json.messages).toHaveLength(3)
  })

  test('creates a new thread if the upstream has lost one', async () => {
    harness.upstream.plan(
      says(toolMessage('msg_c')),
      says(failed('thread_not_found'), 404),
      says(finalMessage('msg_d')),
    )
    const { text, requests } = await run('pond/echo')
    expect(text).toBe('Two metres.')
    expect(threadsOf(requests)).toEqual([
      { type: 'create' },
      { type: 'continue', previous_message_id: 'msg_c' },
      { type: 'create' },
    ])
  })

  test('sends the whole conversation if the provider keeps no threads', async () => {
    harness.upstream.plan(says(toolMessage('msg_e')), says(finalMessage('msg_f')))
    const { text, requests } = await run('creek/echo')
    expect([text, threadsOf(requests)]).toEqual(['Two metres.', [undefined, undefined]])
    expect(requests[1]!.json.messages).toHaveLength(3)
  })

  test('sends the whole conversation if the call is translated', async () => {
    harness.upstream.plan(says(chatCalls), says(chatEnds))
    const { text, requests } = await run('brook/echo')
    expect(text).toBe('Two metres.')
    const last = requests[1]!.json.messages as readonly Json[]
    expect(last.map(({ role }) => role)).toEqual(['user', 'assistant', 'tool'])
    expect(JSON.stringify(requests)).not.toContain('thread"')
  })
})

describe('a thread', () => {
  const question = { max_tokens: 100, messages: [{ role: 'user' as const, content: 'And the brook?' }] }
  const follow = (client: Anthropic, id: string, model = 'pond/echo') =>
    client.beta.messages.create({ model, ...question, thread: { type: 'continue', previous_message_id: id } })

  test('of another account is a 404, like an unknown one', async () => {
    const [alice, bob] = [await clientOf(), await clientOf()]
    harness.upstream.plan(says(finalMessage('msg_alice')))
    await alice.beta.messages.create({ model: 'pond/echo', ...question, thread: { type: 'create' } })
    const before = harness.upstream.requests.length
    for (const id of ['msg_alice', 'msg_nobody']) {
      const fault: unknown = await follow(bob, id).catch((one: unknown) => one)
      expect(fault).toBeInstanceOf(Anthropic.NotFoundError)
      const { error } = (fault as InstanceType<typeof Anthropic.APIError>).error as { error: Json }
      expect(error).toMatchObject({ type: 'not_found_error', details: { error_code: 'thread_not_found' } })
    }
    expect(harness.upstream.requests.length).toBe(before)
    harness.upstream.plan(says(finalMessage('msg_alice_2')))
    expect((await follow(alice, 'msg_alice')).id).toBe('msg_alice_2')
  })

  test.each(['creek/echo', 'brook/echo'])('is refused for %s, which keeps no threads', async model => {
    const client = await clientOf()
    const created = client.beta.messages.create({ model, ...question, thread: { type: 'create' } })
    const fault = (await created.catch((one: unknown) => one)) as InstanceType<typeof Anthropic.APIError>
    expect(fault.status).toBe(400)
    const details = { error_code: 'thread_unsupported_request', unsupported: ['model'] }
    expect((fault.error as { error: Json }).error).toMatchObject({ type: 'invalid_request_error', details })
  })
})
