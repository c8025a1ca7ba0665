// Responses that are translated from every other dialect are checked against the types of the official SDK and the Open
// Responses schema, plain and event by event.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import type { AnswerOptions } from '../../tools/fake-upstream/answers.ts'
import { answer, streamed } from '../../tools/fake-upstream/answers.ts'
import type { Harness } from '../support/gateway.ts'
import type { WholeResponse } from '../support/open-responses.ts'
import { checkResponse, checkStream } from '../support/open-responses.ts'
import type { Dialect } from './upstreams.ts'
import { dialects, modelOf, startDialects } from './upstreams.ts'

let harness: Harness
let key: string
beforeAll(async () => {
  harness = await startDialects({ env: { LOG_LEVEL: 'error' } })
  key = await harness.key()
})
afterAll(() => harness.stop())

type Fields = Readonly<Record<string, unknown>>

interface Case {
  readonly text: string
  readonly options: AnswerOptions
  readonly fields?: Fields
  readonly status: WholeResponse['status']
  /** A dialect without such an answer. */
  readonly except?: Dialect
  /** The required types of items in this order; others may stand between them. */
  readonly items: readonly string[]
}

const tool = { type: 'function', name: 'map', parameters: { type: 'object', properties: {} } }
const call = { name: 'map', arguments: '{"city":"Paris"}' }
const schema = { type: 'object', properties: { a: { type: 'string' } }, required: ['a'], additionalProperties: false }

const cases: Readonly<Record<string, Case>> = {
  'a text': { text: 'Hello', options: {}, status: 'completed', items: ['message'] },
  'a call': {
    text: '',
    options: { toolCall: call },
    fields: { tools: [tool] },
    status: 'completed',
    items: ['function_call'],
  },
  'a text and calls': {
    text: 'Well',
    options: { toolCalls: [call, { ...call, arguments: '{"city":"Rome"}' }] },
    fields: { tools: [tool], tool_choice: 'required', parallel_tool_calls: true },
    status: 'completed',
    items: ['message', 'function_call', 'function_call'],
  },
  'a call without arguments': {
    text: '',
    options: { toolCall: { name: 'map', arguments: '{}' } },
    fields: { tools: [tool] },
    status: 'completed',
    items: ['function_call'],
  },
  'thoughts': {
    text: 'Hello',
    options: { reasoning: 'Let me see.' },
    fields: { reasoning: { effort: 'low', summary: 'auto' } },
    status: 'completed',
    items: ['reasoning', 'message'],
  },
  'thoughts and a call': {
    text: '',
    options: { reasoning: 'Let me see.', toolCall: call },
    fields: { tools: [tool] },
    status: 'completed',
    items: ['reasoning', 'function_call'],
  },
  'a text that was cut off': {
    text: 'Hel',
    options: { finish: 'length' },
    fields: { max_output_tokens: 16 },
    status: 'incomplete',
    items: ['message'],
  },
  'a call that was cut off': {
    text: 'Well',
    options: { finish: 'length', toolCall: call },
    fields: { tools: [tool] },
    status: 'incomplete',
    items: ['message', 'function_call'],
  },
  'thoughts that were cut off': {
    text: '',
    options: { finish: 'length', reasoning: 'Let me' },
    fields: { reasoning: { effort: 'high' } },
    status: 'incomplete',
    items: ['reasoning'],
  },
  'a text that was filtered': {
    // In anthropic-messages the text is the explanation of a refusal, and complete.
    text: 'Hel',
    options: { finish: 'content_filter' },
    except: 'anthropic-messages',
    status: 'incomplete',
    items: ['message'],
  },
  'settings of every kind': {
    text: '{"a":"b"}',
    options: {},
    status: 'completed',
    items: ['message'],
    fields: {
      temperature: 0.5,
      top_p: 0.9,
      presence_penalty: 0.1,
      frequency_penalty: 0.2,
      top_logprobs: 2,
      store: false,
      metadata: { a: 'b' },
      instructions: 'Be brief',
      truncation: 'auto',
      user: 'u',
      safety_identifier: 's',
      prompt_cache_key: 'k',
      service_tier: 'auto',
      max_tool_calls: 3,
      include: ['reasoning.encrypted_content'],
      text: { format: { type: 'json_schema', name: 'a', schema }, verbosity: 'low' },
    },
  },
}

const upstreams = dialects.filter(dialect => dialect !== 'openai-responses')
const paths = ['/v1/responses', '/api/v3/responses'] as const
const rows = upstreams.flatMap(upstream => paths.map(path => [upstream, path] as const))

const ask = (path: string, body: Fields): Promise<Response> =>
  fetch(harness.url + path, {
    method: 'POST',
    headers: { 'authorization': `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ input: 'Hello', ...body }),
  })

function expectOf(whole: WholeResponse, { status, items }: Case): void {
  expect(whole.status).toBe(status)
  const types: string[] = whole.output.map(({ type }) => type)
  let from = 0
  for (const type of items) {
    const at = types.indexOf(type, from)
    expect([types, at >= 0]).toEqual([types, true])
    from = at + 1
  }
}

/** Without the fields that Ark does not have. */
const forPath = (path: string, fields: Fields = {}): Fields => {
  if (path === '/v1/responses') return fields
  const { tool_choice: _choice, top_logprobs: _probs, truncation: _truncation, ...rest } = fields
  return rest
}

describe.each(rows)('a response from an upstream of %s at %s', (upstream: Dialect, path) => {
  const ownCases = Object.entries(cases).filter(([, { except }]) => except !== upstream)

  test.each(ownCases)('is valid, plain: %s', async (_name, one) => {
    harness.upstream.plan(answer(one.text, one.options))
    const answered = await ask(path, { model: modelOf(upstream), ...forPath(path, one.fields) })
    const json = (await answered.json()) as Fields
    expect([answered.status, json.error]).toEqual([200, null])
    const whole = checkResponse(json)
    expectOf(whole, one)
    const { temperature = 1, top_p = 1, presence_penalty = 0, frequency_penalty = 0 } = one.fields ?? {}
    expect<Fields>(whole).toMatchObject({ temperature, top_p, presence_penalty, frequency_penalty })
  })

  test.each(ownCases)('is valid, streamed: %s', async (_name, one) => {
    const pieces = one.text === '' ? [] : [one.text.slice(0, 2), one.text.slice(2)]
    harness.upstream.plan(streamed(pieces, one.options))
    const answered = await ask(path, { model: modelOf(upstream), ...forPath(path, one.fields), stream: true })
    expect(answered.status).toBe(200)
    expectOf(checkStream(await answered.text()), one)
  })
})

test('a refusal of the model is a part of its own, plain and streamed', async () => {
  const one: Case = { text: '', options: { refusal: 'I will not.' }, status: 'completed', items: ['message'] }
  for (const stream of [false, true]) {
    harness.upstream.plan(answer('', one.options))
    const answered = await ask('/v1/responses', { model: modelOf('openai-chat'), stream })
    const whole = stream ? checkStream(await answered.text()) : checkResponse(await answered.json())
    expectOf(whole, one)
    expect(whole.output[0]).toMatchObject({ content: [{ type: 'refusal', refusal: 'I will not.' }] })
  }
})

describe('a stored response', () => {
  test.each(upstreams)('is returned again unchanged, from an upstream of %s', async upstream => {
    harness.upstream.plan(answer('Well', { reasoning: 'Let me see.', toolCall: call }))
    const first = await ask('/v1/responses', { model: modelOf(upstream), tools: [tool] })
    const whole = checkResponse(await first.json())
    const get = (query: string): Promise<Response> =>
      fetch(`${harness.url}/v1/responses/${whole.id}${query}`, { headers: { authorization: `Bearer ${key}` } })
    expect(checkResponse(await (await get('')).json())).toEqual(whole)
    expect(checkStream(await (await get('?stream=true')).text())).toEqual(whole)
  })

  test.each([false, true])('of a background call is valid, streamed: %p', async stream => {
    harness.upstream.plan(answer('Well'))
    const answered = await ask('/v1/responses', { model: modelOf('gemini'), background: true, stream })
    const { id } = stream ? checkStream(await answered.text()) : checkResponse(await answered.json())
    const events = await fetch(`${harness.url}/v1/responses/${id}?stream=true`, {
      headers: { authorization: `Bearer ${key}` },
    })
    expect(checkStream(await events.text())).toMatchObject({ id, status: 'completed', background: true })
    const late = await fetch(`${harness.url}/v1/responses/${id}?stream=true&starting_after=1`, {
      headers: { authorization: `Bearer ${key}` },
    })
    const text = await late.text()
    expect(text).not.toContain('"sequence_number":1,')
    expect(text).toContain('"sequence_number":2,')
    expect(text).toEndWith('data: [DONE]\n\n')
  })
})
