// The hold of a call is the most that it can cost, in every dialect. Fields that make its input larger than its bytes are
// recognised, fields that make its bill larger than its usage are refused, and ambiguous fields are refused.

import { describe, expect, test } from 'bun:test'
import { Refusal } from '../../src/base/errors.ts'
import { sizeOf } from '../../src/pipeline/route/call-size.ts'
import type { Call } from '../../src/protocols/neutral/call.ts'
import { passthroughProtocols } from '../../src/protocols/passthrough-protocols.ts'
import type { Protocol, RequestHead } from '../../src/protocols/protocol.ts'
import { findProtocol } from '../../src/protocols/protocols.ts'
import { requestIn } from './money-calls.ts'
import type { Dialect } from './upstreams.ts'
import { dialects } from './upstreams.ts'

const headOf = (path: string): RequestHead => ({ path, query: () => null, header: () => undefined })

/** Reads a call as the gateway does; a string is inserted verbatim before the first field. */
function read(dialect: Dialect, more: object | string = {}): Call {
  const fields = typeof more === 'string' ? {} : more
  const { path, body } = requestIn(dialect, { model: 'p/m', more: fields })
  const text = typeof more === 'string' ? `{${more},${body.slice(1)}` : body
  return findProtocol(dialect)!.readCall(Buffer.from(text), headOf(path.split('?')[0]!))
}

function refusedFor(run: () => unknown): string {
  try {
    run()
  } catch (fault) {
    if (fault instanceof Refusal) return fault.code
    throw fault
  }
  return 'not refused'
}

const user = (content: unknown): object => ({ messages: [{ role: 'user', content }] })
const item = (content: object): object => ({ input: [{ role: 'user', content: [content] }] })
const part = (one: object): object => ({ contents: [{ role: 'user', parts: [one] }] })

/** Calls whose input is not in the body, or is not bounded by its bytes. */
const unboundedCalls: readonly (readonly [Dialect, string, object])[] = [
  ['openai-chat', 'an address', user([{ type: 'image_url', image_url: { url: 'https://x/y.png' } }])],
  ['openai-chat', 'a file', user([{ type: 'file', file: { file_id: 'file-1' } }])],
  ['openai-chat', 'a part of an unknown type', user([{ type: 'x_new' }])],
  ['openai-chat', 'a search', { web_search_options: {} }],
  ['openai-chat', 'a plug-in', { plugins: [{ id: 'web' }] }],
  ['openai-chat', 'a tool of the provider', { tools: [{ type: 'browser_search' }] }],
  ['openai-chat', 'earlier audio by its id', { messages: [{ role: 'assistant', audio: { id: 'a' } }] }],
  ['openai-chat', 'a cache of Google', { extra_body: { google: { cached_content: 'c' } } }],
  ['openai-chat', 'a cache by its name', { cached_content: 'c' }],
  ['ark', 'a video', user([{ type: 'video_url', video_url: { url: 'https://x/y.mp4' } }])],
  ['ark', 'an extra body', { extra_body: {} }],
  ['openai-responses', 'a previous response', { previous_response_id: 'resp_1' }],
  ['openai-responses', 'a conversation', { conversation: 'conv_1' }],
  ['openai-responses', 'a prompt', { prompt: { id: 'pmpt_1' } }],
  ['openai-responses', 'compaction', { context_management: [{ type: 'compaction' }] }],
  ['openai-responses', 'an address', item({ type: 'input_image', image_url: 'https://x/y.png' })],
  ['openai-responses', 'a file', item({ type: 'input_file', file_url: 'https://x/y.pdf' })],
  ['openai-responses', 'an item by its id', { input: [{ type: 'item_reference', id: 'msg_1' }] }],
  ['openai-responses', 'a search', { tools: [{ type: 'web_search' }] }],
  [
    'openai-responses',
    'a search that an item adds',
    { input: [{ type: 'additional_tools', role: 'developer', tools: [{ type: 'web_search' }] }] },
  ],
  ['openai-responses', 'an MCP server', { tools: [{ type: 'mcp', server_label: 'x', server_url: 'https://x' }] }],
  ['anthropic-messages', 'an address', user([{ type: 'image', source: { type: 'url', url: 'https://x/y.png' } }])],
  ['anthropic-messages', 'a file', user([{ type: 'document', source: { type: 'file', file_id: 'f' } }])],
  ['anthropic-messages', 'a picture in a result', user([{ type: 'tool_result', content: [{ type: 'image' }] }])],
  ['anthropic-messages', 'an upload', user([{ type: 'container_upload', file_id: 'f' }])],
  ['anthropic-messages', 'an MCP server', { mcp_servers: [{ type: 'url', url: 'https://x', name: 'x' }] }],
  ['anthropic-messages', 'a container', { container: 'c' }],
  ['anthropic-messages', 'a thread', { thread: { id: 't' } }],
  ['anthropic-messages', 'a web fetch', { tools: [{ type: 'web_fetch_20250910', name: 'web_fetch' }] }],
  ['anthropic-messages', 'code execution', { tools: [{ type: 'code_execution_20250825', name: 'code' }] }],
  ['anthropic-messages', 'compaction', { context_management: { edits: [{ type: 'compact_20260112' }] } }],
  ['gemini', 'an address', part({ fileData: { fileUri: 'https://x/y.mp4' } })],
  ['gemini', 'an address in the other spelling', part({ file_data: { file_uri: 'https://x/y.mp4' } })],
  ['gemini', 'a picture beside a text', part({ text: 'x', inline_data: { mime_type: 'image/png', data: 'AA' } })],
  ['gemini', 'a picture in a result', part({ functionResponse: { parts: [{ fileData: {} }] } })],
  ['gemini', 'a video as the instruction', { system_instruction: { parts: [{ fileData: {} }] } }],
  ['gemini', 'a cache', { cached_content: 'cachedContents/1' }],
  ['gemini', 'a search', { tools: [{ google_search: {} }] }],
  ['gemini', 'a tool that is not in a list', { tools: { googleMaps: {} } }],
]

test.each(unboundedCalls)('%s: a call with %s is held for the whole context', (dialect, _name, more) => {
  const call = read(dialect, more)
  expect(call.textOnly).toBe(false)
  const size = sizeOf(call, { id: 'm', contextTokens: 70_000 }, { capsThought: true })
  expect(size.inputTokensMax).toBe(70_000)
})

test('anthropic-messages: a longer context that the caller asks for is held as well', () => {
  const image = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'AA' } }
  const text = { type: 'text', text: 'x'.repeat(300_000) }
  const inputMax = (content: unknown, beta?: string): number => {
    const body = JSON.stringify({ model: 'p/m', max_tokens: 1, messages: [{ role: 'user', content }] })
    const head = { ...headOf('/v1/messages'), header: (name: string) => (name === 'anthropic-beta' ? beta : undefined) }
    const call = findProtocol('anthropic-messages')!.readCall(Buffer.from(body), head)
    return sizeOf(call, { id: 'm', contextTokens: 200_000 }, { capsThought: true }).inputTokensMax
  }
  const long = 'fine-grained-tool-streaming-2025-05-14, context-1m-2025-08-07'
  expect([inputMax([text]), inputMax([text, image])]).toEqual([200_000, 200_000])
  expect(inputMax([text], long)).toBeGreaterThan(300_000)
  expect(inputMax([text, image], long)).toBe(1_000_000)
  expect(inputMax('Hello', long)).toBeLessThan(1_000)
})

test.each(dialects)('%s: a call with text only is held for its bytes', dialect => {
  const call = read(dialect)
  expect([call.textOnly, call.searchesMax, call.services]).toEqual([true, 0, undefined])
  const size = sizeOf(call, { id: 'm', contextTokens: 70_000 }, { capsThought: true })
  expect(size.inputTokensMax).toBe(call.bodyBytes)
})

const addition = (definition: object): object => ({
  messages: [
    { role: 'user', content: 'x' },
    { role: 'system', content: [{ type: 'tool_addition', tool: { type: 'tool_definition', definition } }] },
  ],
})
const search = { type: 'web_search_20250305', name: 'web_search', max_uses: 3 }

test.each([
  ['openai-chat', { web_search_options: {} }, 10],
  ['openai-responses', { tools: [{ type: 'web_search' }] }, 10],
  ['openai-responses', { tools: [{ type: 'web_search' }], max_tool_calls: 4 }, 4],
  ['openai-responses', { input: [{ type: 'additional_tools', tools: [{ type: 'web_search_preview' }] }] }, 10],
  ['anthropic-messages', { tools: [search] }, 3],
  ['anthropic-messages', addition(search), 3],
  ['anthropic-messages', { ...addition(search), tools: [search] }, 6],
  ['gemini', { tools: [{ googleSearch: {} }] }, 10],
] as const)('%s: the hold includes searches: %j', (dialect, more, searchesMax) => {
  expect(read(dialect, more).searchesMax).toBe(searchesMax)
})

describe('services that an upstream bills without reporting them', () => {
  const serviceNames = (dialect: Dialect, more: object): readonly string[] =>
    (read(dialect, more).services ?? []).map(({ name }) => name)

  test.each([
    ['image_generation', 'image_generation'],
    ['code_interpreter', 'code_interpreter:container'],
    ['file_search', 'file_search'],
    ['shell', 'shell:container'],
    ['mcp', 'mcp'],
    ['x_of_a_later_day', 'x_of_a_later_day'],
    ['x_of_a_later_day_20270101', 'x_of_a_later_day'],
  ])('include a tool of the provider, at any depth: %s', (type, name) => {
    const tools = [{ type }]
    const inside = (depth: number): object =>
      depth === 0 ? { type } : { type: 'namespace', tools: [inside(depth - 1)] }
    for (const more of [
      { tools },
      { input: [{ type: 'additional_tools', tools }] },
      { tools: [{ type: 'function', name: 'f' }, inside(1)] },
      { tools: [inside(4)] },
    ]) {
      expect(serviceNames('openai-responses', more)).toEqual([name])
    }
    // Tools that are nested too deeply are one unknown service.
    expect(serviceNames('openai-responses', { tools: [inside(6)] })).toEqual(['nested_tools'])
  })

  test.each(['function', 'custom', 'local_shell', 'apply_patch', 'web_search', 'namespace', 'computer'])(
    'do not include tools that the caller runs, or searches: %s',
    type => expect(serviceNames('openai-responses', { tools: [{ type }] })).toEqual([]),
  )

  test('do not include a local shell of the caller', () => {
    const tools = [{ type: 'shell', environment: { type: 'local' } }]
    expect(read('openai-responses', { tools })).toMatchObject({ textOnly: true, searchesMax: 0 })
  })

  const natives: readonly Dialect[] = ['openai-chat', 'ark', 'openai-responses', 'anthropic-messages']
  const dearModels = ['dear/one']
  const others = [
    ['models', dearModels],
    ['fallbacks', dearModels],
    ['preset', 'p'],
    ['route', 'fallback'],
  ] as const
  const both = natives.flatMap(dialect => others.map(([field, value]) => [dialect, field, value] as const))
  test.each(both)('%s: a field that may select another model is refused: %s', (dialect, field, value) => {
    expect(refusedFor(() => read(dialect, { [field]: value }))).toBe('field_invalid')
    expect(refusedFor(() => read(dialect, { [field.toUpperCase()]: value }))).toBe('field_duplicate')
  })
  test.each(natives)('%s: a field that may select a dearer host is refused', dialect => {
    expect(refusedFor(() => read(dialect, { provider: { only: ['dear'] } }))).toBe('field_invalid')
  })

  test('anthropic-messages: an advisor tool and plugins are refused', () => {
    const adviser = { type: 'advisor_20260301', name: 'advisor', model: 'dear' }
    expect(refusedFor(() => read('anthropic-messages', { tools: [adviser] }))).toBe('field_invalid')
    expect(refusedFor(() => read('anthropic-messages', addition(adviser)))).toBe('field_invalid')
    expect(refusedFor(() => read('anthropic-messages', { plugins: [{ id: 'web' }] }))).toBe('field_invalid')
  })

  test('a service class with another price is recognised', () => {
    expect(read('anthropic-messages', { speed: 'fast' }).serviceClass).toBe('fast')
    expect(read('anthropic-messages', { speed: 'fast', inference_geo: 'us' }).serviceClass).toBe('fast+geo_us')
    expect(read('openai-chat', { service_tier: 'priority' }).serviceClass).toBe('priority')
    expect(read('openai-responses', { service_tier: 'priority' }).serviceClass).toBe('priority')
    expect(read('gemini', { service_tier: 'priority' }).serviceClass).toBe('priority')
    expect(refusedFor(() => read('gemini', { serviceTier: 3 }))).toBe('field_invalid')
  })
})

describe('a field that two parsers could read differently is refused', () => {
  const duplicates: readonly (readonly [Dialect, string])[] = [
    ['openai-chat', '"max_tokens":9,"max_tokens":9999'],
    ['openai-chat', '"Max_Tokens":9999'],
    ['openai-chat', '"N":128'],
    ['openai-chat', '"model":"p/dear"'],
    ['openai-chat', '"Extra_Body":{}'],
    ['ark', '"max_completion_token\\u017f":9999'],
    ['openai-responses', '"max_output_tokens":1,"MAX_output_tokens":9999'],
    ['openai-responses', '"Tools":[{"type":"web_search"}]'],
    ['anthropic-messages', '"max_tokens":9'],
    ['anthropic-messages', '"Speed":"fast"'],
    ['anthropic-messages', '"Tools":[]'],
    ['gemini', '"generation_config":{},"generationConfig":{}'],
    ['gemini', '"GenerationConfig":{"maxOutputTokens":9999}'],
    ['gemini', '"generationConfig":{"maxOutputTokens":1,"max_output_tokens":9999}'],
    ['gemini', '"generationConfig":{"candidateCount":1,"candidateCount":8}'],
    ['gemini', '"generationConfig":{"MaxOutputTokens":9999}'],
    ['gemini', '"Cached_Content":"c"'],
    ['gemini', '"service_tier":"a","serviceTier":"b"'],
    // Google ignores a field that is null: the first one would count.
    ['gemini', '"tools":[{"urlContext":{},"urlContext":null}]'],
    ['gemini', '"tools":[{"googleSearch":{},"googleSearch":null}]'],
    ['gemini', '"tools":[{"someNewTool":{},"someNewTool":null}]'],
    ['gemini', '"contents":[{"parts":[{"inlineData":{"mimeType":"image/png","data":"AAAA"},"inlineData":null}]}]'],
    ['gemini', '"systemInstruction":{"parts":[{"text":"a"}],"parts":[]}'],
    [
      'gemini',
      '"tools":[{"urlContext":{},"urlContext":null,"functionDeclarations":[{"parameters":{"urlContext":1}}]}]',
    ],
    ['gemini', '"unknown":{"urlContext":{}},"unknown":{}'],
    ['openai-chat', '"web_search_options":{"a":1},"stream_options":{"include_usage":true,"include_usage":false}'],
    ['anthropic-messages', '"thinking":{"budget_tokens":1024,"budget_tokens":9999}'],
  ]
  test.each(duplicates)('%s: %s', (dialect, more) => {
    expect(refusedFor(() => read(dialect, more))).toBe('field_duplicate')
  })

  const inCallerData: readonly (readonly [Dialect, string])[] = [
    ['openai-chat', '"metadata":{"a":"1","a":"2"}'],
    ['openai-chat', '"tools":[{"type":"function","function":{"name":"f","parameters":{"colour":{},"colour":{}}}}]'],
    [
      'anthropic-messages',
      '"tools":[{"name":"f","input_schema":{"type":"object","properties":{"colour":{},"colour":{}}}}]',
    ],
    ['gemini', '"labels":{"a":"1","a":"2"}'],
  ]
  test.each(inCallerData)('but not in the own data of a caller: %s: %s', (dialect, more) => {
    expect(read(dialect, more).model).toBeString()
  })

  const odd: readonly (readonly [Dialect, object])[] = [
    ['openai-chat', { n: '128' }],
    ['openai-chat', { max_tokens: '5' }],
    ['openai-chat', { max_tokens: 5.5 }],
    ['openai-chat', { n: 0 }],
    ['openai-chat', { stream: 'true' }],
    ['ark', { max_completion_tokens: -1 }],
    ['openai-responses', { max_output_tokens: '5' }],
    ['openai-responses', { stream: 1 }],
    ['openai-responses', { tools: { type: 'web_search' } }],
    ['anthropic-messages', { max_tokens: '5' }],
    ['anthropic-messages', { max_tokens: -5 }],
    ['anthropic-messages', { speed: ['fast'] }],
    ['gemini', { generationConfig: { maxOutputTokens: '5' } }],
    ['gemini', { generationConfig: { candidateCount: '8' } }],
    ['gemini', { generationConfig: [] }],
  ]
  test.each(odd)('%s: %j', (dialect, more) => {
    expect(refusedFor(() => read(dialect, more))).toBe('field_invalid')
  })
})

describe('the output cap of a hold', () => {
  const size = (dialect: Dialect, more: object, capsThought = true) =>
    sizeOf(read(dialect, more), { id: 'm', contextTokens: 70_000, outputTokensMax: 9_000 }, { capsThought })

  test('is the larger of two caps, for each choice', () => {
    const more = { max_tokens: 5, max_completion_tokens: 70, n: 3 }
    expect(size('openai-chat', more)).toMatchObject({ outputTokensMax: 70, choices: 3 })
    expect(size('gemini', { generationConfig: { maxOutputTokens: 70, candidateCount: 3 } })).toMatchObject({
      outputTokensMax: 70,
      choices: 3,
    })
  })

  test('is the maximum of the model if there is none, plus thoughts that no cap includes', () => {
    for (const dialect of ['openai-chat', 'ark', 'openai-responses', 'gemini'] as const) {
      expect(size(dialect, {}, false)).toMatchObject({ outputTokensMax: 9_000, thoughtTokensMax: 61_000 })
    }
    expect(size('ark', { max_tokens: 5 }, false)).toMatchObject({ outputTokensMax: 9_000 })
    expect(size('ark', { max_completion_tokens: 5 }, false)).toMatchObject({ outputTokensMax: 5 })
  })
})

describe('the hold of passthrough calls', () => {
  const readPassthrough = (name: keyof typeof passthroughProtocols, json: object): Call =>
    (passthroughProtocols[name] as Protocol).readCall(
      Buffer.from(JSON.stringify({ model: 'p/m', ...json })),
      headOf('/'),
    )
  const model = { id: 'm', contextTokens: 8_192, outputTokensMax: 4_096 }
  const sizeFor = (call: Call) => sizeOf(call, model, { capsThought: true })

  test('includes completions that are generated and not returned', () => {
    const outputMax = (json: object): number => {
      const { outputTokensMax, choices } = sizeFor(readPassthrough('openai-completions', json))
      return outputTokensMax * choices
    }
    expect(outputMax({ prompt: 'x', max_tokens: 4_096, best_of: 20 })).toBe(20 * 4_096)
    expect(outputMax({ prompt: 'x', best_of: 20, n: 2 })).toBe(20 * 4_096)
    expect(outputMax({ prompt: ['x', 'y'], max_tokens: 10, n: 3 })).toBe(60)
    expect(outputMax({ prompt: [1, 2, 3], max_tokens: 10 })).toBe(10)
    expect(outputMax({ prompt: [1, [2], 'y'], max_tokens: 10 })).toBe(30)
  })

  const imagePart = { type: 'image_url', image_url: { url: 'https://x/y.png' } }
  test.each([
    ['openai-embeddings', { input: [imagePart] }],
    ['openai-embeddings', { input: [{ content: [imagePart] }] }],
    ['openai-moderations', { input: [{ type: 'text', text: 'x' }, imagePart] }],
    ['openai-rerank', { query: 'x', documents: [{ image: 'https://x/y.png' }] }],
    ['ark-multimodal-embeddings', { input: [imagePart] }],
    ['ark-bots', { messages: [{ role: 'user', content: [imagePart] }] }],
    // A bot has instructions of its own, and reads what its plug-ins find.
    ['ark-bots', { messages: [{ role: 'user', content: 'x' }] }],
  ] as const)('covers more than the request shows: %s %j', (name, json) => {
    const call = readPassthrough(name, json)
    expect(call.textOnly).toBe(false)
    expect(sizeFor(call).inputTokensMax).toBeGreaterThanOrEqual(8_192)
  })

  test('is bounded by the bytes of texts, however many', () => {
    const call = readPassthrough('openai-embeddings', { input: Array.from({ length: 20_000 }, () => 'x') })
    expect(sizeFor(call).inputTokensMax).toBe(call.bodyBytes)
    const parts = readPassthrough('openai-rerank', { query: 'four', documents: [{ text: 'y' }, 'z'] })
    expect([parts.textOnly, sizeFor(parts).inputTokensMax]).toEqual([true, parts.bodyBytes + 2 * 4])
  })

  test.each([
    ['openai-images', { prompt: 'x', n: '10' }],
    ['openai-images', { prompt: 'x', n: 1_000 }],
    ['openai-images', { prompt: 'x', svg: {} }],
    ['openai-images', { prompt: 'x', models: ['p/dear'] }],
    ['openai-completions', { prompt: 'x', models: ['p/dear'] }],
    ['openai-completions', { prompt: 'x', best_of: '20' }],
    ['openai-speech', { input: 'x', speed: 0.01 }],
    [
      'ark-images',
      {
        prompt: 'x',
        sequential_image_generation: 'auto',
        sequential_image_generation_options: { max_images: 99 },
      },
    ],
  ] as const)('is not needed for %s: %j is refused', (name, json) => {
    expect(refusedFor(() => readPassthrough(name, json))).toBe('field_invalid')
  })

  test('counts images by their number', () => {
    expect(readPassthrough('openai-images', { prompt: 'x', n: 10 }).units).toEqual({ images: 10 })
    expect(readPassthrough('ark-images', { prompt: 'x', sequential_image_generation: 'auto' }).units).toEqual({
      images: 15,
    })
  })
})
