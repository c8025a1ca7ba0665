// Tests what is read from a request, and what is replaced in its bytes.

import { describe, expect, test } from 'bun:test'
import type { CallTarget } from '../neutral/call.ts'
import { packReasoningState } from '../neutral/reasoning-state.ts'
import type { RequestHead } from '../protocol.ts'
import { readCall, readCount, readCountCall, writeCall, writeCount } from './request.ts'

const asked = (headers: Record<string, string> = {}): RequestHead => ({
  path: '/v1/messages',
  query: () => null,
  header: name => headers[name],
})
const later = asked({ 'anthropic-version': '2026-10-21' })
const hi = [{ role: 'user', content: 'hi' }]
const base = { model: 'a/b', max_tokens: 10, messages: hi }
const read = (fields: object, from = asked()) => readCall(Buffer.from(JSON.stringify({ ...base, ...fields })), from)
const target: CallTarget = { model: 'b', askUsage: true, capField: 'max_tokens' }
const written = (body: string, over: Partial<CallTarget> = {}) =>
  Buffer.from(writeCall(readCall(Buffer.from(body), asked()), { ...target, ...over })).toString()

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
    ['nothing', {}, undefined],
    ['a tier', { service_tier: 'standard_only' }, 'standard_only'],
    ['standard speed', { speed: 'standard', service_tier: 'auto' }, 'auto'],
    ['fast', { speed: 'fast', service_tier: 'auto' }, 'fast'],
    ['a place', { inference_geo: 'us' }, 'geo_us'],
    ['any place', { inference_geo: 'global' }, undefined],
    ['both', { speed: 'fast', inference_geo: 'us' }, 'fast+geo_us'],
  ])('is of a class: %s', (_name, fields, serviceClass) => {
    expect(read(fields).serviceClass).toBe(serviceClass)
  })

  test.each<readonly [string, object, string]>([
    ['no model', { model: undefined }, 'model'],
    ['a model that is no text', { model: 5 }, 'model'],
    ['no messages', { messages: undefined }, 'messages'],
    ['an empty list', { messages: [] }, 'messages'],
    ['a message that is none', { messages: [null] }, 'messages[0]'],
    ['no cap', { max_tokens: undefined }, 'max_tokens'],
    ['a null cap', { max_tokens: null }, 'max_tokens'],
    ...[-1, 1.5, '10', 1e10].map(cap => [`a cap of ${cap}`, { max_tokens: cap }, 'max_tokens'] as const),
    ['a flag that is a text', { stream: 'true' }, 'stream'],
    ['other models', { fallbacks: [{ model: 'x' }] }, 'fallbacks'],
    ['other models by default', { fallbacks: 'default' }, 'fallbacks'],
    ['an adviser', { tools: [{ type: 'advisor_20260301', name: 'advisor', model: 'x' }] }, 'tools[0]'],
    ['metadata that is a text', { metadata: 'x' }, 'metadata'],
  ])('is refused: %s', (_name, fields, param) => {
    expect(() => read(fields)).toThrow(expect.objectContaining({ extras: expect.objectContaining({ param }) }))
  })

  test.each(['model', 'messages', 'stream', 'max_tokens', 'tools', 'fallbacks', 'speed', 'thinking'])(
    'may not say %s twice',
    field => {
      const twice = `{"${field}":1,"${field}":2,"model":"a/b","max_tokens":1,"messages":[]}`
      expect(() => readCall(Buffer.from(twice), asked())).toThrow('field_duplicate')
    },
  )
})

describe('its version', () => {
  const document = { type: 'document', source: { type: 'text', media_type: 'text/plain', data: 'x' } }
  const cited = { type: 'text', text: 'x', citations: [{ type: 'char_location' }] }
  const found = { type: 'search_result', source: 's', title: 't', content: [cited] }
  const said = (role: string, block: object) => ({ messages: [{ role, content: [block] }] })

  test.each<readonly [string, object]>([
    ['P29: temperature, even at its default', { temperature: 1 }],
    ['top_p', { top_p: 0.9 }],
    ['top_k', { top_k: 5 }],
    ['a document of the assistant', said('assistant', document)],
    ['citations of the user', said('user', cited)],
    ['citations in a search result', said('user', found)],
  ])('decides about %s', (_name, fields) => {
    expect(() => read(fields, later)).toThrow('field_invalid')
    expect(read(fields).model).toBe('a/b')
    expect(read(fields, asked({ 'anthropic-version': '2023-06-01' })).model).toBe('a/b')
  })

  test('accepts everything else', () => {
    const fields = { temperature: null, ...said('assistant', cited) }
    expect(read(fields, later).model).toBe('a/b')
    expect(read(said('user', document), later).model).toBe('a/b')
  })
})

describe('its input', () => {
  const image = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'A'.repeat(100_000) } }
  const result = (content: unknown) => ({ type: 'tool_result', tool_use_id: 'x', content })
  const said = (...content: unknown[]) => ({ messages: [{ role: 'user', content }] })

  test.each<readonly [string, object, boolean]>([
    ['text', said({ type: 'text', text: 'x' }), true],
    ['the result of a tool', said(result('x')), true],
    ['the result of a tool in blocks', said(result([{ type: 'text', text: 'x' }])), true],
    ['a document of text', said({ type: 'document', source: { type: 'text', data: 'x' } }), true],
    [
      'own tools',
      {
        tools: [
          { name: 'f', input_schema: {} },
          { type: 'custom', name: 'g' },
        ],
      },
      true,
    ],
    ['an image', said(image), false],
    ['an image in a result', said(result([image])), false],
    ['a document elsewhere', said({ type: 'document', source: { type: 'url', url: 'x' } }), false],
    ['a block of a later day', said({ type: 'hologram' }), false],
    ['a tool of the provider', { tools: [{ type: 'code_execution_20260521', name: 'code_execution' }] }, false],
    ['servers of tools', { mcp_servers: [{ type: 'url', url: 'x', name: 'y' }] }, false],
    ['a conversation kept elsewhere', { thread: { type: 'continue', previous_message_id: 'x' } }, false],
  ])('is text, or not: %s', (_name, fields, textOnly) => {
    expect(read(fields).textOnly).toBe(textOnly)
  })

  test('counts an image as a fixed amount of text', () => {
    const call = read(said(image, result([image])))
    expect(call.inputBytes).toBeLessThan(10_000)
    expect(call.bodyBytes).toBeGreaterThan(200_000)
  })

  test.each<readonly [string, readonly unknown[], number]>([
    ['no search', [{ name: 'web_search', input_schema: {} }], 0],
    ['searches without a bound', [{ type: 'web_search_20250305', name: 'web_search' }], 10],
    ['searches with one', [{ type: 'web_search_20260318', name: 'web_search', max_uses: 3 }], 3],
    ['a bound that is none', [{ type: 'web_search_20260318', max_uses: -3 }], 10],
    ['fetches, which cost nothing', [{ type: 'web_fetch_20250910', name: 'web_fetch' }], 0],
  ])('may be searched for: %s', (_name, tools, searchesMax) => {
    expect(read({ tools }).searchesMax).toBe(searchesMax)
  })
})

describe('for an upstream of the same dialect', () => {
  test('every byte but the model stays the same', () => {
    const body = '{ "x":1e2, "model" : "a/b",\n"max_tokens":10,"messages":[{"role":"user","content":"\\u0041 7"}] }'
    expect(written(body)).toBe(body.replace('a/b', 'b'))
  })

  test('a cap is lowered, never raised', () => {
    const body = JSON.stringify(base)
    expect(JSON.parse(written(body, { cap: 7 }))).toMatchObject({ max_tokens: 7 })
    expect(JSON.parse(written(body, { cap: 11 }))).toMatchObject({ max_tokens: 10 })
  })

  test('a thinking budget stays below the cap', () => {
    const thinking = { type: 'enabled', budget_tokens: 5000 }
    const body = JSON.stringify({ ...base, max_tokens: 9000, thinking })
    expect(JSON.parse(written(body, { cap: 6000 }))).toMatchObject({ max_tokens: 6000, thinking })
    expect(JSON.parse(written(body, { cap: 4000 })).thinking).toEqual({ type: 'enabled', budget_tokens: 2000 })
    expect(JSON.parse(written(body, { cap: 1024 })).thinking).toEqual({ type: 'disabled' })
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
    expect(JSON.parse(written(body))).toEqual({
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
    const messages = [...hi, { role: 'assistant', content }, result]
    const body = JSON.stringify({ ...base, messages, thinking: { type: 'enabled', budget_tokens: 2000 } })
    expect(JSON.parse(written(body)).thinking).toEqual({ type: 'disabled' })
  })

  test('reasoning state of this upstream comes back to it unchanged', () => {
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
    const sent = (origin: string) => (JSON.parse(written(body, { origin })) as typeof base).messages[0]!.content
    expect(sent('o') as unknown).toEqual([
      { type: 'thinking', thinking: 'x', signature: 'sig' },
      { type: 'redacted_thinking', data: 'data' },
      call,
    ])
    expect(sent('other') as unknown).toEqual([call])
  })

  test('text that only looks like packed state is not changed', () => {
    const body = JSON.stringify({ ...base, messages: [{ role: 'user', content: `what is ${foreign}?` }] })
    expect(written(body)).toBe(body.replace('a/b', 'b'))
  })
})

describe('a count', () => {
  test('P23: needs no cap', () => {
    const body = Buffer.from(JSON.stringify({ model: 'a/b', messages: hi, tools: [] }))
    const call = readCountCall(body, asked())
    expect(call).toMatchObject({ model: 'a/b', stream: false, choices: 1 })
    expect(call.outputTokensMax).toBeUndefined()
    expect(Buffer.from(writeCall(call, target)).toString()).toBe(body.toString().replace('a/b', 'b'))
  })

  test('is written and read', () => {
    expect(writeCount(5)).toBe('{"input_tokens":5}')
    expect(readCount({ input_tokens: 5, context_management: null })).toBe(5)
    for (const odd of [undefined, null, 5, {}, { input_tokens: -1 }, { input_tokens: '5' }]) {
      expect(readCount(odd)).toBeUndefined()
    }
  })
})
