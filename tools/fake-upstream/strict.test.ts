// Tests what the fake upstream refuses in each dialect: each row is a mistake that a translation could make.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { expectCheap } from '../../test/support/cpu.ts'
import { issueState, issueStateBytes } from './reasoning-state.ts'
import type { FakeUpstream } from './server.ts'
import { startFakeUpstream } from './server.ts'

let upstream: FakeUpstream
beforeAll(async () => {
  upstream = await startFakeUpstream()
})
afterAll(() => upstream.stop())

interface UpstreamError {
  readonly message: string
  readonly type?: string
  readonly code?: unknown
  readonly status?: string
}

interface ErrorBody {
  readonly type?: string
  readonly error?: UpstreamError
}

async function post(path: string, body: object, headers: Record<string, string> = {}) {
  const response = await fetch(upstream.url + path, { method: 'POST', headers, body: JSON.stringify(body) })
  return { status: response.status, body: (await response.json()) as ErrorBody }
}

type Row = readonly [name: string, body: object, message: string | undefined]

const text = (role: string, content = 'hi') => ({ role, content })
const call = { id: 'c1', type: 'function', function: { name: 'clock', arguments: '{}' } }
const callMessage = { role: 'assistant', content: null, tool_calls: [call] }
const resultMessage = { role: 'tool', tool_call_id: 'c1', content: '12:00' }

const chat: readonly Row[] = [
  ['an answered call', { messages: [text('user'), callMessage, resultMessage] }, undefined],
  ['max_tokens', { messages: [text('user')], max_tokens: 5 }, undefined],
  [
    'the JSON mode without the word',
    { messages: [text('user')], response_format: { type: 'json_object' } },
    "must contain the word 'json'",
  ],
  ['a developer', { messages: [text('developer'), text('user')] }, undefined],
  [
    'a result without its call',
    { messages: [text('user'), resultMessage] },
    'must be a response to a preceeding message',
  ],
  [
    'a result of another call',
    { messages: [text('user'), callMessage, { ...resultMessage, tool_call_id: 'c2' }] },
    'preceeding',
  ],
  [
    'a call without result',
    { messages: [text('user'), callMessage, text('user')] },
    'did not have response messages: c1',
  ],
  ['a call at the end', { messages: [text('user'), callMessage] }, 'did not have response messages: c1'],
  ['an unknown role', { messages: [text('model')] }, "Invalid value: 'model'"],
  ['a part of another dialect', { messages: [{ role: 'user', content: [{ type: 'input_text' }] }] }, 'input_text'],
  [
    'invalid base64',
    {
      messages: [{ role: 'user', content: [{ type: 'image_url', image_url: { url: 'data:image/png;base64,?' } }] }],
    },
    'Invalid base64',
  ],
  ['a tool of another dialect', { messages: [text('user')], tools: [{ type: 'function', name: 'x' }] }, 'function'],
]

describe.each(chat)('chat: %s', (_name, body, message) => {
  test('is accepted or refused', async () => {
    const refused = await post('/v1/chat/completions', { model: 'echo', ...body })
    expect(refused.status).toBe(message === undefined ? 200 : 400)
    if (message !== undefined) expect(refused.body.error!.message).toContain(message)
  })
})

const ark: readonly Row[] = [
  ['system', { messages: [text('system'), text('user')] }, undefined],
  ['a developer', { messages: [text('developer'), text('user')] }, "Invalid value: 'developer'"],
  ['both caps', { messages: [text('user')], max_tokens: 5, max_completion_tokens: 5 }, 'at the same time'],
  ['foreign state', { messages: [text('user'), { ...text('assistant'), encrypted_content: 'x' }] }, 'encrypted'],
]

describe.each(ark)('ark: %s', (_name, body, message) => {
  test('is accepted or refused', async () => {
    const refused = await post('/api/v3/chat/completions', { model: 'echo', ...body })
    expect(refused.status).toBe(message === undefined ? 200 : 400)
    if (message === undefined) return
    expect(refused.body.error!.message).toContain(message)
    expect([refused.body.error!.type, refused.body.error!.code]).toEqual(['BadRequest', 'InvalidParameter'])
  })
})

const toolUse = { type: 'tool_use', id: 'toolu_1', name: 'clock', input: {} }
const result = { type: 'tool_result', tool_use_id: 'toolu_1', content: '12:00' }
const blocks = (role: string, ...content: readonly object[]) => ({ role, content })
const textBlock = { type: 'text', text: 'hi' }
const signature = issueState({ by: 'messages', ordinal: 1, text: 'hm' })
const thinkingBlock = (rest: object) => ({ type: 'thinking', thinking: 'hm', signature, ...rest })
const afterAssistant = (...content: readonly object[]) => ({
  messages: [text('user'), blocks('assistant', ...content), text('user')],
})

const messages: readonly Row[] = [
  [
    'an answered call',
    { messages: [text('user'), blocks('assistant', toolUse), blocks('user', result, textBlock)] },
    undefined,
  ],
  [
    'results in two messages',
    {
      messages: [
        text('user'),
        blocks('assistant', toolUse, { ...toolUse, id: 'b' }),
        blocks('user', result),
        blocks('user', { ...result, tool_use_id: 'b' }),
      ],
    },
    undefined,
  ],
  ['thinking of this upstream', afterAssistant(thinkingBlock({}), textBlock), undefined],
  ['thinking of this upstream without its text', afterAssistant(thinkingBlock({ thinking: '' }), textBlock), undefined],
  [
    'redacted thinking of this upstream',
    afterAssistant({ type: 'redacted_thinking', data: signature }, textBlock),
    undefined,
  ],
  ['no max_tokens', { messages: [text('user')], max_tokens: undefined }, 'max_tokens: Field required'],
  [
    'an assistant message first',
    { messages: [text('assistant'), text('user')] },
    'first message must use the "user" role',
  ],
  ['no message', { messages: [] }, 'at least one message is required'],
  ['an unknown role', { messages: [text('user'), text('tool')] }, 'Unexpected role "tool"'],
  [
    'a call without result',
    { messages: [text('user'), blocks('assistant', toolUse), text('user')] },
    'immediately after',
  ],
  ['a call at the end', { messages: [text('user'), blocks('assistant', toolUse)] }, 'immediately after'],
  ['a result without its call', { messages: [blocks('user', result)] }, 'unexpected `tool_use_id`'],
  [
    'a result after text',
    { messages: [text('user'), blocks('assistant', toolUse), blocks('user', textBlock, result)] },
    'must come before',
  ],
  ['an empty text', { messages: [blocks('user', { type: 'text', text: '' })] }, 'must be non-empty'],
  [
    'an id with invalid characters',
    { messages: [text('user'), blocks('assistant', { ...toolUse, id: 'a.b' })] },
    'pattern',
  ],
  ['input that is text', { messages: [text('user'), blocks('assistant', { ...toolUse, input: '{}' })] }, 'dictionary'],
  ['a foreign signature', afterAssistant(thinkingBlock({ signature: 'EqQB' }), textBlock), 'Invalid `signature`'],
  [
    'a signature of another dialect',
    afterAssistant(thinkingBlock({ signature: issueState({ by: 'ark', ordinal: 1, text: 'hm' }) })),
    'Invalid `signature`',
  ],
  [
    'an altered signature',
    afterAssistant(thinkingBlock({ signature: signature.replace(/.$/, '!') }), textBlock),
    'Invalid `signature`',
  ],
  ['a signature on another text', afterAssistant(thinkingBlock({ thinking: 'ho' }), textBlock), 'Invalid `signature`'],
  ['foreign redacted thinking', afterAssistant({ type: 'redacted_thinking', data: 'x' }, textBlock), 'Invalid `data`'],
  ['an unknown field', { messages: [text('user')], stop: ['x'] }, 'stop: Extra inputs are not permitted'],
  ['a tool without schema', { messages: [text('user')], tools: [{ name: 'a' }] }, 'input_schema'],
  [
    'no thinking where it is required',
    {
      messages: [text('user'), blocks('assistant', toolUse), blocks('user', result)],
      max_tokens: 2_000,
      thinking: { type: 'enabled', budget_tokens: 1_024 },
    },
    'Expected `thinking`',
  ],
]

describe.each(messages)('messages: %s', (_name, body, message) => {
  test('is accepted or refused', async () => {
    const refused = await post('/v1/messages', { model: 'echo', max_tokens: 9, ...body })
    expect([refused.status, refused.body.type]).toEqual(message === undefined ? [200, 'message'] : [400, 'error'])
    if (message !== undefined) expect(refused.body.error!.message).toContain(message)
  })
})

test('P29: sampling is refused under the new version of the messages API, and not under the old', async () => {
  const request = { model: 'echo', max_tokens: 9, temperature: 1, messages: [text('user')] }
  const postWith = (version: string) => post('/v1/messages', request, { 'anthropic-version': version })
  expect([(await postWith('2023-06-01')).status, (await postWith('2026-10-21')).status]).toEqual([200, 400])
})

const functionCall = { id: 'f1', name: 'clock', args: {} }
const functionResponse = { id: 'f1', name: 'clock', response: { output: 'x' } }
const thoughtSignature = issueStateBytes({ by: 'gemini', ordinal: 1, text: '' })
const content = (role: string, ...parts: readonly object[]) => ({ role, parts })
const userContent = content('user', { text: 'hi' })
const step = (call: object, response: object = functionResponse) => ({
  contents: [userContent, content('model', call), content('user', { functionResponse: response })],
})

const bothTools = [{ functionDeclarations: [{ name: 'a' }] }, { googleSearch: {} }]

const gemini: readonly Row[] = [
  ['a signed call', step({ functionCall, thoughtSignature }), undefined],
  [
    'a call with the placeholder signature',
    step({ functionCall, thoughtSignature: 'skip_thought_signature_validator' }),
    undefined,
  ],
  [
    'an unsigned call of an earlier turn',
    {
      contents: [...step({ functionCall }).contents, content('model', { text: 'x' }), userContent],
    },
    undefined,
  ],
  ['names with underscores', { contents: [userContent], generation_config: { max_output_tokens: 5 } }, undefined],
  [
    'both spellings at once',
    { contents: [userContent], system_instruction: { parts: [] }, generationConfig: {} },
    undefined,
  ],
  ['an unsigned call', step({ functionCall }), 'missing a thought_signature'],
  ['a foreign signature', step({ functionCall, thoughtSignature: 'AbCd' }), 'Thought signature is not valid'],
  ['P25: a signature inside the call', step({ functionCall: { ...functionCall, thoughtSignature } }), 'Unknown name'],
  ['a response without its call', { contents: [content('user', { functionResponse })] }, 'number of function response'],
  [
    'a call without its response',
    { contents: [userContent, content('model', { functionCall, thoughtSignature }), userContent] },
    'number of function response',
  ],
  [
    'a response of another name',
    step({ functionCall, thoughtSignature }, { ...functionResponse, name: 'map' }),
    'immediately after',
  ],
  [
    'a response that is a string',
    step({ functionCall, thoughtSignature }, { ...functionResponse, response: 'x' }),
    'function_response.response',
  ],
  ['a model content first', { contents: [content('model', { text: 'x' }), userContent] }, 'start with a user role'],
  ['another role', { contents: [content('assistant', { text: 'x' })] }, 'user'],
  ['an unknown field', { contents: [userContent], max_tokens: 5 }, 'Unknown name "max_tokens"'],
  ['an unknown field of a part', { contents: [content('user', { text: 'x', type: 'text' })] }, 'Unknown name "type"'],
  ['functions and a search', { contents: [userContent], tools: bothTools }, 'include_server_side_tool_invocations'],
  [
    'functions and a search that are asked for',
    { contents: [userContent], tools: bothTools, toolConfig: { includeServerSideToolInvocations: true } },
    undefined,
  ],
  [
    'P27: a schema with foreign keywords',
    {
      contents: [userContent],
      tools: [{ functionDeclarations: [{ name: 'a', parameters: { type: 'OBJECT', additionalProperties: false } }] }],
    },
    'Unknown name "additionalProperties" at \'tools[0].functionDeclarations[0].parameters\'',
  ],
  [
    'P27: the same keywords in a JSON Schema',
    {
      contents: [userContent],
      tools: [{ functionDeclarations: [{ name: 'a', parametersJsonSchema: { additionalProperties: false } }] }],
    },
    undefined,
  ],
  ['an empty part', { contents: [content('user', {})] }, 'initialized field'],
  ['no contents', {}, 'contents is not specified'],
]

describe.each(gemini)('gemini: %s', (_name, body, message) => {
  test('is accepted or refused', async () => {
    const refused = await post('/v1beta/models/echo:generateContent', body)
    expect(refused.status).toBe(message === undefined ? 200 : 400)
    if (message === undefined) return
    expect(refused.body.error!.message).toContain(message)
    expect([refused.body.error!.code, refused.body.error!.status]).toEqual([400, 'INVALID_ARGUMENT'])
  })
})

const item = { type: 'function_call', call_id: 'c1', name: 'clock', arguments: '{}' }
const output = { type: 'function_call_output', call_id: 'c1', output: 'x' }
const reasoning = (encrypted_content: string) => ({ type: 'reasoning', id: 'rs_1', summary: [], encrypted_content })

const ownState = issueState({ by: 'responses', ordinal: 1, text: '' })

const responses: readonly Row[] = [
  ['an answered call', { input: [text('user'), item, output] }, undefined],
  ['reasoning of this upstream', { input: [reasoning(ownState), text('user')] }, undefined],
  ['an output without its call', { input: [text('user'), output] }, 'No tool call found for function call output'],
  ['a call without its output', { input: [text('user'), item] }, 'No tool output found for function call c1'],
  ['foreign reasoning', { input: [reasoning('gAAA'), text('user')] }, 'could not be verified'],
  ['stop', { input: 'x', stop: ['a'] }, "Unknown parameter: 'stop'"],
  ['n', { input: 'x', n: 2 }, "Unknown parameter: 'n'"],
  ['another field', { input: 'x', max_tokens: 2 }, "Unknown parameter: 'max_tokens'"],
  ['a part of chat', { input: [{ role: 'user', content: [{ type: 'text', text: 'x' }] }] }, "Invalid value: 'text'"],
  ['a tool of chat', { input: 'x', tools: [{ type: 'function', function: { name: 'a' } }] }, "'tools[0].name'"],
  [
    'an input part in an assistant message',
    {
      input: [{ role: 'assistant', content: [{ type: 'input_text', text: 'x' }] }],
    },
    "Invalid value: 'input_text'",
  ],
  ['no input', {}, "Missing required parameter: 'input'"],
  ['a cap below 16', { input: 'x', max_output_tokens: 15 }, 'Expected a value >= 16'],
  [
    'the JSON mode with JSON in the instructions only',
    { input: 'x', instructions: 'JSON', text: { format: { type: 'json_object' } } },
    "must contain the word 'json'",
  ],
  ['the JSON mode', { input: 'x as json', text: { format: { type: 'json_object' } } }, undefined],
]

describe.each(responses)('responses: %s', (_name, body, message) => {
  test('is accepted or refused', async () => {
    const refused = await post('/v1/responses', { model: 'echo', ...body })
    expect(refused.status).toBe(message === undefined ? 200 : 400)
    if (message !== undefined) expect(refused.body.error!.message).toContain(message)
  })
})

test('P33: the state and the responses of another account are refused', async () => {
  const other = await startFakeUpstream({ account: 1 })
  const signature = issueState({ by: 'messages', ordinal: 1_000_001, text: 'hm' })
  const body = JSON.stringify({
    model: 'echo',
    max_tokens: 9,
    ...afterAssistant(thinkingBlock({ signature }), textBlock),
  })
  const status = async (url: string) => (await fetch(`${url}/v1/messages`, { method: 'POST', body })).status
  expect([await status(other.url), await status(upstream.url)]).toEqual([200, 400])
  const created = await fetch(`${other.url}/v1/responses`, { method: 'POST', body: '{"model":"echo","input":"x"}' })
  const { id } = (await created.json()) as { id: string }
  const { body: refused } = await post('/v1/responses', { model: 'echo', input: 'x', previous_response_id: id })
  expect(refused.error!.code).toBe('previous_response_not_found')
  await other.stop()
})

test('foreign reasoning is refused with the code that clients check', async () => {
  const { body } = await post('/v1/responses', { model: 'echo', input: [reasoning('gAAA'), text('user')] })
  expect(body.error!.code).toBe('invalid_encrypted_content')
})

test('a deeply nested body of a megabyte is refused quickly in every dialect', async () => {
  const deep = `${'{"a":'.repeat(100_000)}1${'}'.repeat(100_000)}`
  const gemini = '/v1beta/models/x:generateContent'
  await expectCheap(2_000, async () => {
    for (const path of ['/v1/messages', '/v1/responses', gemini, '/api/v3/chat/completions']) {
      const response = await fetch(upstream.url + path, { method: 'POST', body: deep })
      expect(response.status).toBe(400)
    }
  })
})
