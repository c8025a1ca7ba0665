// Tests what is read from a request, and what is replaced in its bytes.

import { describe, expect, test } from 'bun:test'
import type { CallTarget } from '../neutral/call.ts'
import { packReasoningState } from '../neutral/reasoning-state.ts'
import type { RequestHead } from '../protocol.ts'
import { readCall, readCount, readCountCall, writeCall, writeCount } from './request.ts'

const requestHead = (headers: Record<string, string> = {}): RequestHead => ({
  path: '/v1/messages',
  query: () => null,
  header: name => headers[name],
})
const newVersion = requestHead({ 'anthropic-version': '2026-10-21' })
const greeting = [{ role: 'user', content: 'hi' }]
const base = { model: 'a/b', max_tokens: 10, messages: greeting }
const read = (fields: object, from = requestHead()) =>
  readCall(Buffer.from(JSON.stringify({ ...base, ...fields })), from)
const target: CallTarget = { model: 'b', askUsage: true, capField: 'max_tokens' }
const writeBody = (body: string, over: Partial<CallTarget> = {}) =>
  Buffer.from(writeCall(readCall(Buffer.from(body), requestHead()), { ...target, ...over })).toString()

describe('a request', () => {
  test('is read as far as the gateway needs it', () => {
    const { body, fields: _fields, json, ...call } = read({ stream: true, metadata: { user_id: 'u' } })
    expect(call).toEqual({
      dialect: 'anthropic-messages',
      model: 'a/b',
      stream: true,
      wantsUsage: true,
      choices: 1,
      outputTokensMax: 10,
      textOnly: true,
      searchesMax: 0,
      endUser: 'u',
      bodyBytes: body.length,
      inputBytes: body.length,
    })
    expect(json.max_tokens).toBe(10)
  })

  test('may have a cap of 0', () => {
    expect(read({ max_tokens: 0 }).outputTokensMax).toBe(0)
  })

  test.each<readonly [string, object, string | undefined]>([
    ['none by default', {}, undefined],
    ['a tier', { service_tier: 'standard_only' }, 'standard_only'],
    ['standard speed', { speed: 'standard', service_tier: 'auto' }, 'auto'],
    ['fast', { speed: 'fast', service_tier: 'auto' }, 'fast'],
    ['a region', { inference_geo: 'us' }, 'geo_us'],
    ['the global region', { inference_geo: 'global' }, undefined],
    ['fast in a region', { speed: 'fast', inference_geo: 'us' }, 'fast+geo_us'],
  ])('has a service class: %s', (_name, fields, serviceClass) => {
    expect(read(fields).serviceClass).toBe(serviceClass)
  })

  test.each<readonly [string, object, string]>([
    ['no model', { model: undefined }, 'model'],
    ['a model that is not a string', { model: 5 }, 'model'],
    ['no messages', { messages: undefined }, 'messages'],
    ['no message in the list', { messages: [] }, 'messages'],
    ['a message that is null', { messages: [null] }, 'messages[0]'],
    ['no cap', { max_tokens: undefined }, 'max_tokens'],
    ['a null cap', { max_tokens: null }, 'max_tokens'],
    ...[-1, 1.5, '10', 1e10].map(cap => [`a cap of ${cap}`, { max_tokens: cap }, 'max_tokens'] as const),
    ['a stream flag that is a string', { stream: 'true' }, 'stream'],
    ['fallback models', { fallbacks: [{ model: 'x' }] }, 'fallbacks'],
    ['the default fallback models', { fallbacks: 'default' }, 'fallbacks'],
    ['an adviser tool', { tools: [{ type: 'advisor_20260301', name: 'advisor', model: 'x' }] }, 'tools[0]'],
    ['metadata that is a string', { metadata: 'x' }, 'metadata'],
  ])('is refused with the name of the field: %s', (_name, fields, param) => {
    expect(() => read(fields)).toThrow(expect.objectContaining({ extras: expect.objectContaining({ param }) }))
  })

  test.each(['model', 'messages', 'stream', 'max_tokens', 'tools', 'fallbacks', 'speed', 'thinking'])(
    'may not have %s twice',
    field => {
      const twice = `{"${field}":1,"${field}":2,"model":"a/b","max_tokens":1,"messages":[]}`
      expect(() => readCall(Buffer.from(twice), requestHead())).toThrow('field_duplicate')
    },
  )
})

describe('the API version of a request', () => {
  const document = { type: 'document', source: { type: 'text', media_type: 'text/plain', data: 'x' } }
  const cited = { type: 'text', text: 'x', citations: [{ type: 'char_location' }] }
  const found = { type: 'search_result', source: 's', title: 't', content: [cited] }
  const withBlock = (role: string, block: object) => ({ messages: [{ role, content: [block] }] })

  test.each<readonly [string, object]>([
    ['P29: temperature, even at its default', { temperature: 1 }],
    ['top_p', { top_p: 0.9 }],
    ['top_k', { top_k: 5 }],
    ['a document of the assistant', withBlock('assistant', document)],
    ['citations of the user', withBlock('user', cited)],
    ['citations in a search result', withBlock('user', found)],
  ])('decides whether this is refused: %s', (_name, fields) => {
    expect(() => read(fields, newVersion)).toThrow('field_invalid')
    expect(read(fields).model).toBe('a/b')
    expect(read(fields, requestHead({ 'anthropic-version': '2023-06-01' })).model).toBe('a/b')
  })

  test('decides nothing else', () => {
    const fields = { temperature: null, ...withBlock('assistant', cited) }
    expect(read(fields, newVersion).model).toBe('a/b')
    expect(read(withBlock('user', document), newVersion).model).toBe('a/b')
  })
})

describe('the input of a request', () => {
  const image = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'A'.repeat(100_000) } }
  const result = (content: unknown) => ({ type: 'tool_result', tool_use_id: 'x', content })
  const withUserBlocks = (...content: unknown[]) => ({ messages: [{ role: 'user', content }] })

  test.each<readonly [string, object, boolean]>([
    ['text', withUserBlocks({ type: 'text', text: 'x' }), true],
    ['a tool result', withUserBlocks(result('x')), true],
    ['a tool result in blocks', withUserBlocks(result([{ type: 'text', text: 'x' }])), true],
    ['a document of text', withUserBlocks({ type: 'document', source: { type: 'text', data: 'x' } }), true],
    [
      "the caller's tools",
      {
        tools: [
          { name: 'f', input_schema: {} },
          { type: 'custom', name: 'g' },
        ],
      },
      true,
    ],
    ['an image', withUserBlocks(image), false],
    ['an image in a tool result', withUserBlocks(result([image])), false],
    ['a document at a URL', withUserBlocks({ type: 'document', source: { type: 'url', url: 'x' } }), false],
    ['an unknown block', withUserBlocks({ type: 'hologram' }), false],
    ['a tool of the provider', { tools: [{ type: 'code_execution_20260521', name: 'code_execution' }] }, false],
    ['MCP servers', { mcp_servers: [{ type: 'url', url: 'x', name: 'y' }] }, false],
    ['a conversation that the provider stores', { thread: { type: 'continue', previous_message_id: 'x' } }, false],
  ])('is recognized as text only or not: %s', (_name, fields, textOnly) => {
    expect(read(fields).textOnly).toBe(textOnly)
  })

  test('counts an image as a fixed amount of text', () => {
    const call = read(withUserBlocks(image, result([image])))
    expect(call.inputBytes).toBeLessThan(10_000)
    expect(call.bodyBytes).toBeGreaterThan(200_000)
  })

  test.each<readonly [string, readonly unknown[], number]>([
    ['no search', [{ name: 'web_search', input_schema: {} }], 0],
    ['searches without a maximum', [{ type: 'web_search_20250305', name: 'web_search' }], 10],
    ['searches with a maximum', [{ type: 'web_search_20260318', name: 'web_search', max_uses: 3 }], 3],
    ['a maximum of none', [{ type: 'web_search_20260318', name: 'web_search', max_uses: 0 }], 1],
    ['an invalid maximum', [{ type: 'web_search_20260318', max_uses: -3 }], 10],
    ['fetches, which cost nothing', [{ type: 'web_fetch_20250910', name: 'web_fetch' }], 0],
  ])('may include searches: %s', (_name, tools, searchesMax) => {
    expect(read({ tools }).searchesMax).toBe(searchesMax)
  })
})

describe('for an upstream of the same dialect,', () => {
  test('every byte but the model stays the same', () => {
    const body = '{ "x":1e2, "model" : "a/b",\n"max_tokens":10,"messages":[{"role":"user","content":"\\u0041 7"}] }'
    expect(writeBody(body)).toBe(body.replace('a/b', 'b'))
  })

  test('a cap is lowered, never raised', () => {
    const body = JSON.stringify(base)
    expect(JSON.parse(writeBody(body, { cap: 7 }))).toMatchObject({ max_tokens: 7 })
    expect(JSON.parse(writeBody(body, { cap: 11 }))).toMatchObject({ max_tokens: 10 })
  })

  test('a thinking budget stays below the cap', () => {
    const thinking = { type: 'enabled', budget_tokens: 5000 }
    const body = JSON.stringify({ ...base, max_tokens: 9000, thinking })
    expect(JSON.parse(writeBody(body, { cap: 6000 }))).toMatchObject({ max_tokens: 6000, thinking })
    expect(JSON.parse(writeBody(body, { cap: 4000 })).thinking).toEqual({ type: 'enabled', budget_tokens: 2000 })
    expect(JSON.parse(writeBody(body, { cap: 1024 })).thinking).toEqual({ type: 'disabled' })
  })

  const foreign = packReasoningState({ origin: 'o', form: 'encrypted', value: 'v' })
  const call = { type: 'tool_use', id: 'x', name: 'f', input: {} }
  const result = { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'x', content: 'y' }] }

  test('P33: reasoning state of another provider is removed', () => {
    const cited = { type: 'text', text: 't', citations: [{ encrypted_index: foreign }, { encrypted_index: 'own' }] }
    const messages = [
      { role: 'assistant', content: [{ type: 'thinking', thinking: 'x', signature: foreign }] },
      {
        role: 'assistant',
        content: [
          { type: 'thinking', thinking: 'x', signature: 'own' },
          { type: 'redacted_thinking', data: foreign },
          cited,
          call,
        ],
      },
      result,
    ]
    const body = JSON.stringify({ ...base, top_k: 5, messages })
    expect(JSON.parse(writeBody(body))).toEqual({
      ...base,
      model: 'b',
      top_k: 5,
      messages: [
        {
          role: 'assistant',
          content: [
            { type: 'thinking', thinking: 'x', signature: 'own' },
            { ...cited, citations: [{ encrypted_index: 'own' }] },
            call,
          ],
        },
        result,
      ],
    })
  })

  test("thinking is disabled if the thinking before the last calls was another provider's", () => {
    const content = [{ type: 'redacted_thinking', data: foreign }, call]
    const messages = [...greeting, { role: 'assistant', content }, result]
    const body = JSON.stringify({ ...base, messages, thinking: { type: 'enabled', budget_tokens: 2000 } })
    expect(JSON.parse(writeBody(body)).thinking).toEqual({ type: 'disabled' })
  })

  test('its own reasoning state is sent back unchanged', () => {
    const [signed, hidden] = [
      packReasoningState({ origin: 'o', form: 'signature', value: 'sig' }),
      packReasoningState({ origin: 'o', form: 'redacted', value: 'data' }),
    ]
    const content = [
      { type: 'thinking', thinking: 'x', signature: signed },
      { type: 'redacted_thinking', data: hidden },
      call,
    ]
    const body = JSON.stringify({ ...base, messages: [{ role: 'assistant', content }] })
    const sent = (origin: string) => (JSON.parse(writeBody(body, { origin })) as typeof base).messages[0]!.content
    expect(sent('o') as unknown).toEqual([
      { type: 'thinking', thinking: 'x', signature: 'sig' },
      { type: 'redacted_thinking', data: 'data' },
      call,
    ])
    expect(sent('other') as unknown).toEqual([call])
  })

  test('text that only looks like packed state is not changed', () => {
    const body = JSON.stringify({ ...base, messages: [{ role: 'user', content: `what is ${foreign}?` }] })
    expect(writeBody(body)).toBe(body.replace('a/b', 'b'))
  })
})

describe('a token count', () => {
  test('P23: needs no cap', () => {
    const body = Buffer.from(JSON.stringify({ model: 'a/b', messages: greeting, tools: [] }))
    const call = readCountCall(body, requestHead())
    expect(call).toMatchObject({ model: 'a/b', stream: false, choices: 1 })
    expect(call.outputTokensMax).toBeUndefined()
    expect(Buffer.from(writeCall(call, target)).toString()).toBe(body.toString().replace('a/b', 'b'))
  })

  test('is written and read', () => {
    expect(writeCount(5)).toBe('{"input_tokens":5}')
    expect(readCount({ input_tokens: 5, context_management: null })).toBe(5)
    for (const invalid of [undefined, null, 5, {}, { input_tokens: -1 }, { input_tokens: '5' }]) {
      expect(readCount(invalid)).toBeUndefined()
    }
  })
})
