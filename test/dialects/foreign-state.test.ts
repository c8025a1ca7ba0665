// Reasoning state when a conversation changes its model: an upstream gets back its own state, no upstream gets the state of
// another, and state that a native request loses is reported, or refused under `strict`.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { PACKED_PREFIX, unpackReasoningState } from '../../src/protocols/neutral/reasoning-state.ts'
import { answer } from '../../tools/fake-upstream/answers.ts'
import { issueState } from '../../tools/fake-upstream/reasoning-state.ts'
import type { Harness } from '../support/gateway.ts'
import type { Dialect } from './upstreams.ts'
import { dialects, modelOf, startDialects } from './upstreams.ts'

let harness: Harness
let key: string
beforeAll(async () => {
  harness = await startDialects({ env: { LOG_LEVEL: 'error' } })
})
afterAll(() => harness.stop())

type Json = Record<string, unknown>
type List = readonly Json[]

const THOUGHT = 'Let me think about it.'
const list = (value: unknown): List => (Array.isArray(value) ? (value as Json[]) : [])

interface Sent {
  readonly status: number
  readonly json: Json
  readonly losses: readonly string[]
  /** The request that the upstream received. */
  readonly upstream: Json
  readonly ordinal: number
}

async function send(path: string, body: Json, headers: Record<string, string> = {}): Promise<Sent> {
  const before = harness.upstream.requests.length
  const response = await fetch(harness.url + path, {
    method: 'POST',
    headers: { 'authorization': `Bearer ${key}`, 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
  })
  const json = (await response.json()) as Json
  const request = harness.upstream.requests.slice(before).at(-1)
  const losses = (response.headers.get('x-weir-loss') ?? '').split(', ').filter(code => code !== '')
  const upstream = request === undefined ? {} : (JSON.parse(Buffer.from(request.body).toString()) as Json)
  return { status: response.status, json, losses, upstream, ordinal: request?.ordinal ?? -1 }
}

/** A caller of each dialect: its first request, and the request with the results of the tool calls. */
interface StateCaller {
  path(model: string): string
  ask(model: string): Json
  /** The next request, of a client that keeps the whole answer. */
  answer(model: string, request: Json, reply: Json): Json
  /** Removes fields that some clients drop. */
  dropFields?(body: Json): Json
}

const tool = { name: 'map', description: 'Finds a place', parameters: { type: 'object', properties: { city: {} } } }
const question = 'use map {"city":"Paris"}'

const chat = (prefix: string, thinking: Json): StateCaller => ({
  path: () => `${prefix}/chat/completions`,
  ask: model => ({
    model,
    ...thinking,
    messages: [{ role: 'user', content: question }],
    tools: [{ type: 'function', function: tool }],
  }),
  answer(model, request, reply) {
    const [choice] = list(reply.choices)
    const message = choice!.message as Json
    const results = list(message.tool_calls).map(({ id }) => ({ role: 'tool', tool_call_id: id, content: 'sunny' }))
    return { ...request, model, messages: [...list(request.messages), message, ...results] }
  },
  dropFields: body => ({
    ...body,
    messages: list(body.messages).map(({ reasoning_content: _text, encrypted_content: _state, ...rest }) => rest),
  }),
})

const stateCallers: Readonly<Record<Dialect, StateCaller>> = {
  'openai-chat': chat('/v1', { reasoning_effort: 'low' }),
  'ark': chat('/api/v3', { thinking: { type: 'enabled' } }),
  'openai-responses': {
    path: () => '/v1/responses',
    ask: model => ({
      model,
      store: false,
      include: ['reasoning.encrypted_content'],
      input: [{ role: 'user', content: question }],
      reasoning: { effort: 'low', summary: 'auto' },
      tools: [{ type: 'function', ...tool }],
    }),
    answer(model, request, reply) {
      const calls = list(reply.output).filter(({ type }) => type === 'function_call')
      const results = calls.map(({ call_id: id }) => ({ type: 'function_call_output', call_id: id, output: 'sunny' }))
      return { ...request, model, input: [...list(request.input), ...list(reply.output), ...results] }
    },
    // Some clients keep only what they show.
    dropFields: body => ({
      ...body,
      input: list(body.input).map(({ encrypted_content: _state, ...rest }) => rest),
    }),
  },
  'anthropic-messages': {
    path: () => '/v1/messages',
    ask: model => ({
      model,
      max_tokens: 4_000,
      thinking: { type: 'enabled', budget_tokens: 2_000 },
      messages: [{ role: 'user', content: question }],
      tools: [{ name: tool.name, description: tool.description, input_schema: tool.parameters }],
    }),
    answer(model, request, reply) {
      const calls = list(reply.content).filter(({ type }) => type === 'tool_use')
      const results = calls.map(({ id }) => ({ type: 'tool_result', tool_use_id: id, content: 'sunny' }))
      const more = [
        { role: 'assistant', content: reply.content },
        { role: 'user', content: results },
      ]
      return { ...request, model, messages: [...list(request.messages), ...more] }
    },
  },
  'gemini': {
    path: model => `/v1beta/models/${model}:generateContent`,
    ask: () => ({
      contents: [{ role: 'user', parts: [{ text: question }] }],
      generationConfig: { thinkingConfig: { includeThoughts: true } },
      tools: [{ functionDeclarations: [tool] }],
    }),
    answer(_model, request, reply) {
      const content = list(reply.candidates)[0]!.content as Json
      const calls = list(content.parts).flatMap(({ functionCall: call }) => (call === undefined ? [] : [call as Json]))
      const parts = calls.map(({ id, name }) => ({ functionResponse: { id, name, response: { output: 'sunny' } } }))
      return { ...request, contents: [...list(request.contents), content, { role: 'user', parts }] }
    },
    dropFields: body => ({
      ...body,
      contents: list(body.contents).map(({ role, parts }) => ({
        role,
        parts: list(parts).filter(({ thought }) => thought !== true),
      })),
    }),
  },
}

/** Sends the first turn to one model, and the second, with the result of the call, to another. */
async function turns(caller: Dialect, first: Dialect, second: Dialect, options: Options = {}) {
  const { path, ask, answer: next, dropFields } = stateCallers[caller]
  key = await harness.key()
  const [one, two] = [modelOf(first, 'think'), modelOf(second, 'think')]
  const request = ask(one)
  const firstSent = await send(path(one), request)
  expect([firstSent.status, firstSent.json.error ?? null]).toEqual([200, null])
  const body = next(two, request, firstSent.json)
  const sent = options.dropFields === true && dropFields !== undefined ? dropFields(body) : body
  return { firstSent, back: await send(path(two), sent, options.headers) }
}

interface Options {
  readonly dropFields?: boolean
  readonly headers?: Record<string, string>
}

const strict = { 'x-weir-translate': 'strict' }

describe.each(dialects)('a caller of %s', caller => {
  // A client of anthropic-messages keeps every block: the dialect demands it.
  test.each(caller === 'anthropic-messages' ? [false] : [false, true])(
    'sends thoughts back with signature and text, also if the client drops them (%p)',
    async dropFields => {
      const { firstSent, back } = await turns(caller, 'anthropic-messages', 'anthropic-messages', {
        dropFields,
      })
      expect(back.status).toBe(200)
      const signature = issueState({ by: 'messages', ordinal: firstSent.ordinal, text: THOUGHT })
      const blocks = list(back.upstream.messages).flatMap(({ content }) => list(content))
      const thoughts = blocks.filter(({ type }) => type === 'thinking')
      // A Responses client that drops the state of an item has lost it.
      if (caller === 'openai-responses' && dropFields) expect(thoughts).toEqual([])
      else expect(thoughts).toEqual([{ type: 'thinking', thinking: THOUGHT, signature }])
    },
  )

  test.each(dialects.flatMap(a => dialects.filter(b => b !== a).map(b => [a, b] as const)))(
    'sends no state of %s to %s',
    async (first, second) => {
      for (const dropFields of [false, true]) {
        const { back } = await turns(caller, first, second, { dropFields })
        expect([back.status, back.json.error ?? null]).toEqual([200, null])
        const text = JSON.stringify(back.upstream)
        expect(text).not.toContain(PACKED_PREFIX)
        expect(text).not.toContain('sig-')
        expect(text).not.toContain(Buffer.from('sig-').toString('base64').slice(0, 5))
      }
    },
  )
})

describe('a native request after a turn of another upstream', () => {
  const natives = dialects.filter(dialect => dialect !== 'openai-chat' && dialect !== 'ark')

  test.each(natives)('of %s reports the state that it loses, and is refused under strict', async caller => {
    for (const first of dialects.filter(dialect => dialect !== caller)) {
      const { back } = await turns(caller, first, caller)
      expect(back.status).toBe(200)
      expect(back.losses.filter(code => code !== 'thinking')).toEqual(['reasoning_state'])
      await harness.idle()
      expect(String(harness.lastRecord()!.loss)).toContain('reasoning_state')
      const refused = await turns(caller, first, caller, { headers: strict })
      expect(refused.back.status).toBe(400)
      expect(JSON.stringify(refused.back.json)).toContain('reasoning_state')
    }
  })

  test('of anthropic-messages reports that thinking was turned off', async () => {
    const { back } = await turns('anthropic-messages', 'gemini', 'anthropic-messages')
    expect(back.upstream.thinking).toEqual({ type: 'disabled' })
    expect(back.losses).toContain('thinking')
    const refused = await turns('anthropic-messages', 'gemini', 'anthropic-messages', { headers: strict })
    expect(JSON.stringify(refused.back.json)).toContain('thinking')
  })

  test.each(natives)('of %s after a turn of the same upstream is unchanged, also under strict', async caller => {
    const { back } = await turns(caller, caller, caller, { headers: strict })
    expect([back.status, back.losses]).toEqual([200, []])
  })
})

test('each reasoning item for a caller of openai-responses has a state that names its origin', async () => {
  key = await harness.key()
  for (const upstream of dialects.filter(dialect => dialect !== 'openai-responses')) {
    harness.upstream.plan(answer('Well', { reasoning: THOUGHT }))
    const { path, ask } = stateCallers['openai-responses']
    const model = modelOf(upstream, 'think')
    const { json } = await send(path(model), ask(model))
    const thoughts = list(json.output).filter(({ type }) => type === 'reasoning')
    expect(thoughts.length).toBeGreaterThan(0)
    for (const { encrypted_content: state } of thoughts) expect(unpackReasoningState(state)?.origin).toBeString()
  }
})
