// Tests which chat requests are limited by their size, the estimate of other input, and the paid services.

import { describe, expect, test } from 'bun:test'
import type { Call } from '../neutral/call.ts'
import { readCall } from './request.ts'

const read = (more: object): Call =>
  readCall(Buffer.from(JSON.stringify({ model: 'a/b', messages: [{ role: 'user', content: 'hi' }], ...more })))
const withPart = (...parts: readonly unknown[]): Call => read({ messages: [{ role: 'user', content: parts }] })
const text = { type: 'text', text: 'hi' }
const image = (url: string) => ({ type: 'image_url', image_url: { url } })

describe('all input of a request is text in the body:', () => {
  const rows: readonly (readonly [string, object])[] = [
    ['strings and text parts', { messages: [{ role: 'user', content: [text, text] }, { role: 'assistant' }] }],
    ['a refusal', { messages: [{ role: 'assistant', content: [{ type: 'refusal', refusal: 'no' }] }] }],
    [
      'functions',
      {
        tools: [
          { type: 'function', function: { name: 'f' } },
          { type: 'custom', custom: {} },
        ],
      },
    ],
    ['no search', { web_search_options: null, enable_search: false, tools: [] }],
  ]

  test.each(rows)('%s', (_name, more) => {
    const { textOnly, searchesMax, inputBytes, bodyBytes } = read(more)
    expect({ textOnly, searchesMax, inputBytes }).toEqual({ textOnly: true, searchesMax: 0, inputBytes: bodyBytes })
  })
})

describe('some input of a request is not text in the body:', () => {
  const parts: readonly (readonly [string, unknown])[] = [
    ['an image at a URL', image('https://x.example/cat.png')],
    ['an inline image', image('data:image/png;base64,AAAA')],
    ['audio', { type: 'input_audio', input_audio: { data: 'AAAA', format: 'wav' } }],
    ['a file by its id', { type: 'file', file: { file_id: 'file-1' } }],
    ['a part of an unknown type', { type: 'text2', text: 'x' }],
    ['a part without a type', { text: 'x' }],
    ['a part that is null', null],
  ]

  test.each(parts)('%s', (_name, part) => {
    expect(withPart(text, part)).toMatchObject({ textOnly: false, searchesMax: 0 })
  })

  test('an earlier audio answer', () => {
    expect(read({ messages: [{ role: 'assistant', audio: { id: 'audio_1' } }] }).textOnly).toBe(false)
  })

  const searches: readonly object[] = [
    { web_search_options: {} },
    { search_parameters: { mode: 'on' } },
    { enable_search: true },
    { tools: [{ type: 'function' }, { type: 'web_search' }] },
    { tools: [{ type: 'namespace', tools: [{ type: 'web_search_preview_2025_03_11' }] }] },
  ]

  test.each(searches)('a search: %j', more => {
    const { textOnly, searchesMax } = read(more)
    expect([textOnly, searchesMax > 0]).toEqual([false, true])
  })

  const paidServices: readonly (readonly [object, ...string[]])[] = [
    [{ plugins: [{ id: 'web' }, { id: 'file-parser' }] }, 'plugin:web', 'plugin:file-parser'],
    [{ plugins: { web: {} } }, 'plugins'],
    [{ tools: [{ type: 'web_search_of_a_later_day' }] }, 'web_search_of_a_later_day'],
    [{ tools: [{ type: 'namespace', tools: [{ google_search: {} }] }] }, 'tools'],
    [{ tools: [{ type: 'builtin_function', function: { name: '$web_search' } }] }, 'builtin_function:$web_search'],
    [{ tools: [{ type: 'openrouter:web_fetch' }] }, 'openrouter:web_fetch'],
    [{ tools: [{ type: 'namespace', tools: [{ type: 'code_interpreter' }] }] }, 'code_interpreter'],
    [{ tools: [{ type: 'function', function: { name: 'f' }, googleSearch: {} }] }, 'googleSearch'],
    [{ search_settings: { country: 'fr' } }, 'search_settings'],
    [{ enableCodeInterpreter: true }, 'enableCodeInterpreter'],
    [{ enable_batch: 1, fast_mode: 'on' }, 'enable_batch', 'fast_mode'],
    [{ extra_body: { google: { tools: [{ google_search: {} }] } } }, 'extra_body.google.tools'],
    [{ extra_body: { plugins: [{ id: 'web' }] } }, 'extra_body.plugins'],
    [{ extra_body: { a: { b: [{ c: { web_search: true } }] } } }, 'extra_body.a.b.c.web_search'],
    [{ extra_body: { model: 'dear', models: ['dear'] } }, 'extra_body.model', 'extra_body.models'],
    [{ enablewebsearch: true, x: { websearch: 1 } }, 'enablewebsearch', 'x.websearch'],
    [{ options: { webSearch: { depth: 1 } } }, 'options.webSearch'],
    [{ features: ['streaming', 'web_search'] }, 'features.web_search'],
    [{ x: [{ type: 'code-interpreter' }] }, 'x.type.code-interpreter'],
    [{ parameters: { enable_search: true, top_k: 3 } }, 'parameters.enable_search'],
  ]

  test.each(paidServices)('%j uses a paid service', (more, ...names) => {
    const { textOnly, searchesMax, services } = read(more)
    expect([textOnly, searchesMax]).toEqual([false, 0])
    expect(services?.map(({ name }) => name)).toEqual(names)
  })

  const freeFields: readonly object[] = [
    { tools: [{ type: 'function', function: { name: 'web_search', parameters: { tools: [{ type: 'x' }] } } }] },
    { tools: [{ function: { name: 'f' } }], tool_choice: 'auto', parallel_tool_calls: true },
    { search_settings: null, enable_batch: false, plugins: [], fast_mode: 'off', deferred: false },
    { options: { web_search: false, plugins: [], top_k: 3 }, x: { deep: [1, { er: null }] }, y: ['middle-out'] },
    { extra_body: { google: { thinking_config: { thinking_budget: 5, include_thoughts: true } } } },
    { extra_body: { top_k: 4, repetition_penalty: 1.1, guided_json: { properties: { web_search: {} } } } },
    { guided_choice: ['search', 'buy'], structured_outputs: { choice: ['web'] }, stop: ['search'] },
    { response_format: { type: 'json_schema', json_schema: { name: 'search', schema: { properties: { web: {} } } } } },
    { metadata: { agent: 'search' }, prediction: { type: 'content', content: 'search' }, mode: 'search' },
    { stream_options: { include_usage: true }, usage: { include: true }, safety_settings: [{ category: 'A' }] },
    { temperature: 1, chat_template_kwargs: { enable_thinking: true }, cache_prompt: true, service_tier: 'flex' },
  ]
  test.each(freeFields)('%j uses no paid service', more => expect(read(more).services).toBeUndefined())

  test('a field with too many names to search counts as a service, and one with many numbers does not', () => {
    const numbers = Array.from({ length: 3_000 }, (_none, index) => index)
    expect(read({ x: numbers }).services).toBeUndefined()
    const names = Object.fromEntries(numbers.map(index => [`f${index}`, 1]))
    expect(read({ x: names }).services).toEqual([{ name: 'x', param: 'x' }])
  })

  test.each(['deferred', 'background'])('a deferred answer is refused: %s', field => {
    expect(() => read({ [field]: true })).toThrow('field_invalid')
    expect(() => read({ [field]: 'yes' })).toThrow('field_invalid')
    expect(() => read({ [field.toUpperCase()]: true })).toThrow('field_duplicate')
  })
})

describe('the estimate of the input', () => {
  test('counts an image as a fixed amount of text, whatever its size', () => {
    const small = withPart(text, image('data:image/png;base64,AAAA'))
    const large = withPart(text, image(`data:image/png;base64,${'A'.repeat(1_000_000)}`))
    expect(large.bodyBytes).toBeGreaterThan(1_000_000)
    expect(large.inputBytes).toBe(small.inputBytes)
    expect(small.inputBytes).toBeWithin(4_000, 4_200)
  })

  test('counts each image, and the text beside them', () => {
    const oneImage = withPart(image('x'), { type: 'text', text: 'a'.repeat(10_000) })
    const twoImages = withPart(image('x'), image('y'), { type: 'text', text: 'a'.repeat(10_000) })
    expect(oneImage.inputBytes).toBeWithin(14_000, 14_300)
    expect(twoImages.inputBytes - oneImage.inputBytes).toBeWithin(4_000, 4_100)
  })

  test('handles a deeply nested part', () => {
    let part: unknown = 'x'
    for (let depth = 0; depth < 200; depth++) part = { deeper: part }
    expect(withPart(part).inputBytes).toBeGreaterThan(0)
  })
})
