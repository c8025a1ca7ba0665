// Plain calls whose upstream is asked for a stream, because their money is reserved in slices: the collected answer is
// the plain answer of the same upstream, field for field, as far as the stream carries it.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import type { AnswerOptions } from '../../tools/fake-upstream/answers.ts'
import { answer } from '../../tools/fake-upstream/answers.ts'
import type { Script } from '../../tools/fake-upstream/script.ts'
import { done, sends } from '../forwarding/wire.ts'
import type { Harness } from '../support/gateway.ts'
import { rawCallers } from './raw-callers.ts'
import type { Dialect } from './upstreams.ts'
import { dialects, modelOf, startDialects } from './upstreams.ts'

type Json = Record<string, unknown>

let harness: Harness
beforeAll(async () => {
  harness = await startDialects()
})
afterAll(() => harness.stop())

/** With little money the upstream is asked for a stream, with much it is not. */
const [LITTLE, MUCH] = ['0.05', '1000']

async function ask(dialect: Dialect, credit: string, script: Script): Promise<Json> {
  const key = await harness.key({ credit })
  harness.upstream.plan(script)
  const input = { model: modelOf(dialect), stream: false, outputTokensMax: 4_000 }
  const response = await fetch(harness.url + rawCallers[dialect].path(input), {
    method: 'POST',
    headers: { 'authorization': `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify(rawCallers[dialect].body(input)),
  })
  const json = (await response.json()) as Json
  expect(response.status).toBe(200)
  expect(response.headers.get('x-weir-loss')).toBeNull()
  const { path, body } = harness.upstream.requests.at(-1)!
  const asksForStream = path.includes(':stream') || (JSON.parse(body.toString()) as Json).stream === true
  expect(asksForStream).toBe(credit === LITTLE)
  return json
}

const calls = [
  { name: 'weather', arguments: '{"city":"Paris"}' },
  { name: 'weather', arguments: '{"city":"Rome"}' },
]
const answers: readonly (readonly [name: string, text: string, options: AnswerOptions])[] = [
  ['text', 'Hello, river', {}],
  ['tool calls', '', { toolCalls: calls }],
  ['a text and a tool call', 'Let me see.', { toolCall: calls[0]! }],
  ['thoughts', 'Hello, river', { reasoning: 'Let me think.' }],
  ['a text that was cut', 'Hello', { finish: 'length' }],
]

describe.each(dialects)('%s', dialect => {
  test.each(answers)('%s', async (_name, text, options) => {
    const script = answer(text, { ...options, ordinal: 7, usage: { input: 7, output: 5 } })
    const plain = await ask(dialect, MUCH, script)
    expect(await ask(dialect, LITTLE, script)).toEqual(plain)
  })
})

const eventsOf = (events: readonly object[]): string =>
  events.map(event => `data: ${JSON.stringify(event)}\n\n`).join('')

describe('fields that the gateway does not know', () => {
  test('of chat', async () => {
    const head = { id: 'c-up', object: 'chat.completion.chunk', created: 5, model: 'up', provider: 'Vendor' }
    const piece = (delta: object, more: object = {}, top: object = {}) => ({
      ...{ ...head, system_fingerprint: 'fp_1', service_tier: 'default', obfuscation: 'x' },
      choices: [{ index: 0, delta, logprobs: null, finish_reason: null, ...more }],
      ...top,
    })
    const detail = (text: string, more: object = {}) => ({
      type: 'reasoning.text',
      index: 0,
      format: 'v1',
      text,
      ...more,
    })
    const script = sends(
      eventsOf([
        piece({ role: 'assistant', content: '', channel: 'final' }, {}, { x_groq: { id: 'req_1' } }),
        piece({ role: 'assistant', reasoning: 'Let ', reasoning_details: [detail('Let ')], channel: 'final' }),
        piece({ reasoning: 'me', reasoning_details: [detail('me', { signature: 's' })] }),
        piece({ content: 'Hel' }, { logprobs: { content: [{ token: 'Hel', logprob: -1 }] } }),
        piece({ content: 'lo' }, { logprobs: { content: [{ token: 'lo', logprob: -2 }] } }),
        piece({ annotations: [{ type: 'url_citation', url_citation: { url: 'https://a.example' } }] }),
        piece({}, { finish_reason: 'stop', native_finish_reason: 'STOP', content_filter_results: { hate: {} } }),
        { ...head, choices: [], citations: ['https://a.example'], usage: usageOf(7, 5), x_groq: { id: 'req_1' } },
      ]) + done,
    )
    expect(await ask('openai-chat', LITTLE, script)).toEqual({
      ...{ id: 'c-up', object: 'chat.completion', created: 5, model: 'up', provider: 'Vendor' },
      ...{ system_fingerprint: 'fp_1', service_tier: 'default', x_groq: { id: 'req_1' } },
      citations: ['https://a.example'],
      usage: usageOf(7, 5),
      choices: [
        {
          index: 0,
          message: {
            ...{ role: 'assistant', content: 'Hello', channel: 'final', reasoning: 'Let me' },
            reasoning_details: [detail('Let me', { signature: 's' })],
            annotations: [{ type: 'url_citation', url_citation: { url: 'https://a.example' } }],
          },
          logprobs: {
            content: [
              { token: 'Hel', logprob: -1 },
              { token: 'lo', logprob: -2 },
            ],
          },
          ...{ finish_reason: 'stop', native_finish_reason: 'STOP', content_filter_results: { hate: {} } },
        },
      ],
    })
  })

  test('of Anthropic', async () => {
    const start = { ...{ id: 'm-up', type: 'message', role: 'assistant', model: 'up', content: [], vendor: { a: 1 } } }
    const script = sends(
      eventsOf([
        {
          type: 'message_start',
          message: { ...start, usage: { input_tokens: 7, output_tokens: 1, inference_geo: 'eu' } },
        },
        { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '', vendor: 'x' } },
        { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'Hello' } },
        { type: 'content_block_delta', index: 0, delta: { type: 'citations_delta', citation: { type: 'c', n: 1 } } },
        { type: 'content_block_stop', index: 0 },
        {
          type: 'content_block_start',
          index: 1,
          content_block: { type: 'mcp_tool_use', id: 't', name: 'n', input: {} },
        },
        { type: 'content_block_delta', index: 1, delta: { type: 'input_json_delta', partial_json: '{"a":' } },
        { type: 'content_block_delta', index: 1, delta: { type: 'input_json_delta', partial_json: '1}' } },
        { type: 'content_block_stop', index: 1 },
        {
          ...{ type: 'message_delta', delta: { stop_reason: 'end_turn', stop_sequence: null, container: { id: 'k' } } },
          ...{ usage: { output_tokens: 5 }, context_management: { applied_edits: [] } },
        },
        { type: 'message_stop' },
      ]),
    )
    expect(await ask('anthropic-messages', LITTLE, script)).toEqual({
      ...start,
      content: [
        { type: 'text', text: 'Hello', vendor: 'x', citations: [{ type: 'c', n: 1 }] },
        { type: 'mcp_tool_use', id: 't', name: 'n', input: { a: 1 } },
      ],
      ...{ stop_reason: 'end_turn', stop_sequence: null, container: { id: 'k' } },
      ...{
        context_management: { applied_edits: [] },
        usage: { input_tokens: 7, output_tokens: 5, inference_geo: 'eu' },
      },
    })
  })

  test('of Gemini', async () => {
    const tail = { modelVersion: 'up', responseId: 'r-up', vendor: { a: 1 } }
    const piece = (parts: object[], more: object = {}) => ({
      candidates: [{ content: { role: 'model', parts }, index: 0, ...more }],
      ...tail,
    })
    const usageMetadata = { promptTokenCount: 7, candidatesTokenCount: 5, totalTokenCount: 12, vendorCount: 1 }
    const script = sends(
      eventsOf([
        piece([{ text: 'Hmm', thought: true }]),
        piece([{ text: 'Hel' }]),
        piece([{ text: 'lo' }], { safetyRatings: [{ category: 'A' }] }),
        piece([{ functionCall: { name: 'w', willContinue: true } }]),
        piece([{ functionCall: { partialArgs: [{ jsonPath: '$.city', stringValue: 'Rome' }], willContinue: true } }]),
        piece([{ functionCall: {} }]),
        { ...piece([{ vendorPart: 1 }], { finishReason: 'STOP', avgLogprobs: -1 }), usageMetadata },
      ]),
    )
    expect(await ask('gemini', LITTLE, script)).toEqual({
      candidates: [
        {
          content: {
            role: 'model',
            parts: [
              { text: 'Hmm', thought: true },
              { text: 'Hello' },
              { functionCall: { name: 'w', args: { city: 'Rome' } } },
              { vendorPart: 1 },
            ],
          },
          ...{ index: 0, finishReason: 'STOP', avgLogprobs: -1, safetyRatings: [{ category: 'A' }] },
        },
      ],
      usageMetadata,
      ...tail,
    })
  })

  test('of Responses, also where the last event does not repeat the output', async () => {
    const response = { id: 'resp_up', object: 'response', created_at: 5, model: 'up', vendor: { a: 1 }, store: false }
    const item = { id: 'v_1', type: 'vendor_call', status: 'completed', vendor: 1 }
    const text = { type: 'output_text', text: 'Hello', annotations: [], logprobs: [], vendor: 1 }
    const message = { id: 'msg_1', type: 'message', role: 'assistant', status: 'completed', content: [text] }
    const completed = {
      ...response,
      status: 'completed',
      usage: { input_tokens: 7, output_tokens: 5, total_tokens: 12 },
    }
    const at = { item_id: 'msg_1', output_index: 1, content_index: 0 }
    for (const output of [[item, message], []]) {
      const script = sends(
        eventsOf([
          { type: 'response.created', response: { ...response, status: 'in_progress', output: [] } },
          { type: 'response.output_item.added', output_index: 0, item: { ...item, status: 'in_progress' } },
          { type: 'response.output_item.done', output_index: 0, item },
          { type: 'response.output_item.added', output_index: 1, item: { ...message, content: [] } },
          { type: 'response.content_part.added', ...at, part: { ...text, text: '' } },
          { type: 'response.output_text.delta', ...at, delta: 'Hello' },
          { type: 'response.output_item.done', output_index: 1, item: message },
          { type: 'response.completed', response: { ...completed, output } },
        ]),
      )
      expect(await ask('openai-responses', LITTLE, script)).toEqual({ ...completed, output: [item, message] })
    }
  })
})

const usageOf = (input: number, output: number): object => ({
  ...{ prompt_tokens: input, completion_tokens: output, total_tokens: input + output },
})
