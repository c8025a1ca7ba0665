// Tests reading requests into neutral conversations.

import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import type { ResponseCreateParams } from 'openai/resources/responses/responses'
import { expectCheap } from '../../../test/support/cpu.ts'
import { Readings } from '../../../test/support/readings.ts'
import { read, readItems, readPart, refusedParam, write } from '../../../test/support/responses-wire.ts'

/**
 * Each field of the SDK with a value other than the default, and what happens to it: `read` carries it, `moot` ignores it,
 * and any other text is the path of the loss.
 */
type Handling = 'read' | 'moot' | string
const sdkFields: Record<keyof ResponseCreateParams, readonly [value: unknown, handling: Handling]> = {
  access_programs: [{ cyber: 'standard' }, 'access_programs'],
  background: [true, 'moot'],
  context_management: [[{ type: 'compaction' }], 'context_management'],
  conversation: ['conv_1', 'conversation'],
  image: [{ context_compression: 'enabled' }, 'image'],
  include: [['file_search_call.results'], 'include.file_search_call.results'],
  input: ['other words', 'read'],
  instructions: ['be brief', 'read'],
  max_output_tokens: [77, 'read'],
  max_tool_calls: [3, 'max_tool_calls'],
  metadata: [{ a: 'b' }, 'read'],
  model: ['p/other', 'moot'],
  moderation: [{ model: 'x' }, 'moderation'],
  parallel_tool_calls: [false, 'read'],
  previous_response_id: ['resp_1', 'previous_response_id'],
  prompt: [{ id: 'pmpt_1' }, 'prompt'],
  prompt_cache_key: ['key', 'read'],
  prompt_cache_options: [{ ttl: '12h' }, 'read'],
  prompt_cache_retention: ['24h', 'prompt_cache_retention'],
  reasoning: [{ effort: 'high' }, 'read'],
  safety_identifier: ['user', 'read'],
  service_tier: ['flex', 'read'],
  store: [false, 'moot'],
  stream: [true, 'read'],
  stream_options: [{ include_obfuscation: false }, 'moot'],
  temperature: [0.3, 'read'],
  text: [{ verbosity: 'low' }, 'read'],
  tool_choice: ['required', 'read'],
  tools: [[{ type: 'function', name: 'f', parameters: null, strict: false }], 'read'],
  top_logprobs: [3, 'read'],
  top_p: [0.4, 'read'],
  truncation: ['auto', 'truncation'],
  user: ['someone', 'read'],
}

describe('a field of a request', () => {
  const plain = read({})

  test.each(Object.entries(sdkFields))('of the SDK is carried or lost: %s', (field, [value, handling]) => {
    const { lostFields, ...carried } = read({ [field]: value })
    const { lostFields: _lost, ...before } = plain
    expect(lostFields).toEqual(handling === 'read' || handling === 'moot' ? [] : [handling])
    if (handling === 'read') expect(carried).not.toEqual(before)
    else expect(carried).toEqual(before)
  })

  test('that is unknown is lost', () => {
    expect(read({ brand_new: 1, nothing: null }).lostFields).toEqual(['brand_new'])
    expect(read({ metadata: { a: 'b' } }, 'ark-responses').lostFields).toEqual(['metadata'])
    expect(read({ caching: { type: 'enabled' }, session: { id: 's' } }, 'ark-responses').lostFields).toEqual([
      'caching',
      'session',
    ])
  })

  test.each([
    [{ mode: 'explicit' }, 'breakpoints'],
    [{ mode: 'explicit', ttl: '12h' }, 'breakpoints'],
    [{ mode: 'implicit' }, {}],
    [{ mode: 'implicit', ttl: '12h' }, { ttl: '12h' }],
    [{}, undefined],
  ])('for caching is read: %j', (options, expected) => {
    expect<unknown>(read({ prompt_cache_options: options }).settings.cache).toEqual(expected)
  })

  test('for the TTL of the cache counts for breakpoints without a TTL', () => {
    const parts = [
      { type: 'input_text', text: 'a', prompt_cache_breakpoint: { mode: 'explicit', ttl: '30m' } },
      { type: 'input_text', text: 'b', prompt_cache_breakpoint: { mode: 'explicit' } },
    ]
    const input = [{ role: 'user', content: parts }]
    const { messages } = read({ input, prompt_cache_options: { mode: 'explicit', ttl: '12h' } })
    expect(messages[0]!.parts).toMatchObject([{ cache: { ttl: '30m' } }, { cache: { ttl: '12h' } }])
  })

  test.each([
    [{ reasoning: { context: 'auto', mode: 'pro' } }, ['reasoning.context', 'reasoning.mode']],
    [{ text: { novel: 1 } }, ['text.novel']],
    [{ prompt_cache_options: { prewarm: true } }, ['prompt_cache_options.prewarm']],
    [
      { tools: [{ type: 'function', name: 'f', async: true, output_schema: {} }] },
      ['tools.function.async', 'tools.function.output_schema'],
    ],
    [{ tools: [{ type: 'web_search', external_web_access: false }] }, ['tools.search.external_web_access']],
    [{ tool_choice: { type: 'file_search' } }, ['tool_choice.file_search']],
    [{ input: [{ role: 'assistant', content: 'x', phase: 'commentary' }] }, ['message.phase']],
    [
      { input: [{ type: 'function_call', call_id: 'c', name: 'f', arguments: '{}', async: true }] },
      ['function_call.async'],
    ],
    [{ input: [{ role: 'user', content: [{ type: 'input_text', text: 'x', novel: 1 }] }] }, ['input_text.novel']],
    [{ include: ['reasoning.encrypted_content', 'message.output_text.logprobs'] }, []],
  ])('inside another field is lost: %j', (fields, lost) => {
    expect(read(fields).lostFields).toEqual(lost)
  })
})

describe('items', () => {
  test('become messages: consecutive texts, thoughts and calls of the model become one message, and so do results', () => {
    const messages = readItems(
      { role: 'developer', content: 'rules' },
      { role: 'user', content: [{ type: 'input_text', text: 'hi' }] },
      { type: 'reasoning', id: 'rs_1', summary: [{ type: 'summary_text', text: 'hm' }], encrypted_content: 'gA' },
      {
        type: 'message',
        role: 'assistant',
        content: [
          { type: 'output_text', text: 'ok' },
          { type: 'refusal', refusal: 'no' },
        ],
      },
      { type: 'function_call', call_id: 'a', name: 'f', arguments: '{}' },
      { type: 'custom_tool_call', call_id: 'b', name: 'g', input: 'free' },
      { type: 'function_call_output', call_id: 'a', output: 'done' },
      { type: 'custom_tool_call_output', call_id: 'b', output: [{ type: 'input_text', text: 'also' }] },
      { type: 'item_reference', id: 'msg_9' },
    )
    expect(messages).toEqual([
      { role: 'developer', parts: [{ kind: 'text', text: 'rules' }] },
      { role: 'user', parts: [{ kind: 'text', text: 'hi' }] },
      {
        role: 'assistant',
        parts: [
          { kind: 'reasoning', text: 'hm', sealed: { form: 'encrypted', value: 'gA', id: 'rs_1' } },
          { kind: 'text', text: 'ok' },
          { kind: 'refusal', text: 'no' },
          { kind: 'call', id: 'a', name: 'f', arguments: '{}' },
          { kind: 'call', id: 'b', name: 'g', arguments: 'free', custom: true },
        ],
      },
      {
        role: 'tool',
        parts: [
          { kind: 'result', callId: 'a', name: 'f', parts: [{ kind: 'text', text: 'done' }] },
          { kind: 'result', callId: 'b', name: 'g', parts: [{ kind: 'text', text: 'also' }], custom: true },
        ],
      },
      {
        role: 'assistant',
        parts: [
          {
            kind: 'native',
            dialect: 'openai-responses',
            what: 'item_reference',
            value: { type: 'item_reference', id: 'msg_9' },
          },
        ],
      },
    ])
  })

  test.each([
    [
      { type: 'input_text', text: 'x', prompt_cache_breakpoint: { mode: 'explicit', ttl: '12h' } },
      { cache: { ttl: '12h' } },
    ],
    [{ type: 'input_text', text: 'x', prompt_cache_breakpoint: { mode: 'explicit' } }, { cache: {} }],
    [
      { type: 'input_image', image_url: 'https://a.example/i.png', detail: 'low' },
      { kind: 'image', source: { at: 'url', url: 'https://a.example/i.png' }, detail: 'low' },
    ],
    [{ type: 'input_image', image_url: 'https://a.example/i.png', detail: 'xhigh' }, { detail: 'original' }],
    [
      { type: 'input_image', image_url: 'data:image/png;base64,AAAA' },
      { source: { at: 'inline', base64: 'AAAA', mime: 'image/png' } },
    ],
    [{ type: 'input_image', file_id: 'file_1' }, { source: { at: 'provider', id: 'file_1' } }],
    [
      { type: 'input_file', file_url: 'https://a.example/a.pdf', detail: 'low' },
      { kind: 'file', source: { at: 'url', url: 'https://a.example/a.pdf' }, detail: 'low' },
    ],
    [
      { type: 'input_file', file_data: 'data:application/pdf;base64,AAAA', filename: 'a.pdf' },
      { kind: 'file', source: { at: 'inline', base64: 'AAAA', mime: 'application/pdf' }, name: 'a.pdf' },
    ],
    [
      { type: 'input_file', file_url: 'https://a.example/a.pdf' },
      { source: { at: 'url', url: 'https://a.example/a.pdf' } },
    ],
    [
      { type: 'input_audio', input_audio: { data: 'AAAA', format: 'mp3' } },
      { kind: 'audio', source: { at: 'inline', base64: 'AAAA', mime: 'audio/mpeg' } },
    ],
    [
      { type: 'input_video', video_url: 'https://a.example/v' },
      { kind: 'video', source: { at: 'url', url: 'https://a.example/v' } },
    ],
    [
      { type: 'input_smell', smell: 1 },
      { kind: 'native', what: 'input_smell' },
    ],
  ])('have their parts read: %j', (part, expected) => {
    expect(readPart(part)).toMatchObject(expected)
  })

  test.each([
    { type: 'input_image', image_url: 'https://a.example/i.png', detail: 'sharp' },
    { type: 'input_file', file_url: 'https://a.example/a.pdf', detail: 3 },
  ])('lose an unknown detail, which is reported: %j', part => {
    const { lostFields } = read({ input: [{ role: 'user', content: [part] }] })
    expect(lostFields).toEqual([`${part.type}.detail`])
  })

  test.each([
    [{ role: 'wizard', content: 'x' }, 'input[0].role'],
    [{ role: 'user' }, 'input[0].content'],
    [{ role: 'user', content: 5 }, 'input[0].content'],
    [{ role: 'user', content: [{ type: 'input_image' }] }, 'input[0].content[0].image_url'],
    [
      { role: 'user', content: [{ type: 'input_image', image_url: 'data:image/png;base64,***' }] },
      'input[0].content[0].image_url',
    ],
    [
      { role: 'user', content: [{ type: 'input_image', image_url: 'data:image/png,AAAA' }] },
      'input[0].content[0].image_url',
    ],
    [{ role: 'user', content: [{ type: 'input_text' }] }, 'input[0].content[0].text'],
    [{ type: 'function_call', call_id: 'c', name: 'f' }, 'input[0].arguments'],
    [{ type: 'function_call', name: 'f', arguments: '' }, 'input[0].call_id'],
    [{ type: 'function_call_output', call_id: 'nobody', output: 'x' }, 'input[0].call_id'],
    [{ type: 'reasoning', summary: [], encrypted_content: 5 }, 'input[0].encrypted_content'],
  ])('are refused: %j', (item, param) => {
    expect(refusedParam(() => readItems(item))).toBe(param)
  })

  const callOf = (id: string) => ({ type: 'function_call', call_id: id, name: 'f', arguments: '{}' })
  const outputOf = (id: string) => ({ type: 'function_call_output', call_id: id, output: id })
  const userItem = { role: 'user', content: 'hurry' }
  const said = { role: 'assistant', content: 'still at it' }
  test.each<readonly [string, readonly object[], readonly string[]]>([
    ['a message of the user', [callOf('a'), userItem, outputOf('a')], ['call a', 'result a', 'user']],
    [
      'an answer of the model',
      [callOf('a'), callOf('b'), outputOf('a'), said, outputOf('b')],
      ['call a, call b', 'result a, result b', 'assistant'],
    ],
    [
      'another call',
      [callOf('a'), userItem, callOf('b'), outputOf('b'), outputOf('a'), said],
      ['call a', 'result a', 'user', 'call b', 'result b', 'assistant'],
    ],
    ['nothing', [callOf('a'), outputOf('a'), callOf('b'), outputOf('b')], ['call a', 'result a', 'call b', 'result b']],
  ])('that are results follow the message with their calls, also if they come after %s', (_name, items, expected) => {
    const turns = readItems(...items).map(({ role, parts }) =>
      parts
        .map(part =>
          part.kind === 'call' ? `call ${part.id}` : part.kind === 'result' ? `result ${part.callId}` : role,
        )
        .join(', '),
    )
    expect(turns).toEqual([...expected])
  })

  test('that are results may belong to a call that is stored elsewhere', () => {
    const input = [{ type: 'function_call_output', call_id: 'kept', output: 'x' }]
    expect(read({ input, previous_response_id: 'resp_1' }).messages).toHaveLength(1)
    expect(readItems({ type: 'item_reference', id: 'fc_1' }, ...input)).toHaveLength(2)
  })
})

describe('any JSON', () => {
  const part = fc.record(
    {
      type: fc.oneof(
        fc.constantFrom('input_text', 'output_text', 'refusal', 'input_image', 'input_file', 'input_audio'),
        fc.string(),
      ),
      text: fc.jsonValue(),
      image_url: fc.oneof(fc.string(), fc.jsonValue()),
      input_audio: fc.jsonValue(),
      file_data: fc.jsonValue(),
      prompt_cache_breakpoint: fc.jsonValue(),
      annotations: fc.jsonValue(),
    },
    { requiredKeys: ['type'] },
  )
  const item = fc.record(
    {
      type: fc.oneof(fc.constantFrom('message', 'reasoning', 'function_call', 'function_call_output'), fc.string()),
      role: fc.oneof(fc.constantFrom('user', 'assistant', 'system'), fc.jsonValue()),
      call_id: fc.constant('c'),
      content: fc.oneof(fc.array(part), fc.jsonValue()),
      output: fc.oneof(fc.array(part), fc.jsonValue()),
      name: fc.jsonValue(),
      arguments: fc.jsonValue(),
      summary: fc.jsonValue(),
      encrypted_content: fc.jsonValue(),
    },
    { requiredKeys: [] },
  )
  // One invalid field is enough for a refusal. Most requests have few fields, so that many are read.
  const field = fc.constantFrom(
    ...['tools', 'tool_choice', 'text', 'reasoning', 'include', 'metadata', 'instructions', 'top_logprobs', 'thinking'],
  )
  const value = fc.oneof(fc.jsonValue(), fc.array(fc.jsonValue()), fc.dictionary(fc.string(), fc.jsonValue()))
  const body = fc
    .tuple(
      fc.oneof(fc.constant('hi'), fc.array(item, { maxLength: 2 }), fc.jsonValue()),
      fc.dictionary(field, value, { maxKeys: 3 }),
    )
    .map(([input, fields]) => ({ input, ...fields }))

  test.each(['openai-responses', 'ark-responses'] as const)('is read, and written again, or refused: %s', name => {
    const readings = new Readings()
    fc.assert(
      fc.property(body, fields => readings.take(() => write(read(fields, name), {}, name))),
      { numRuns: 500 },
    )
    expect(readings.read).toBeGreaterThan(0)
  })

  test('with a large image is read fast enough', async () => {
    const url = `data:image/png;base64,${'A'.repeat(10 * 1024 * 1024)}`
    const readUrl = () => expect(readPart({ type: 'input_image', image_url: url })).toMatchObject({ kind: 'image' })
    await expectCheap(1_500, readUrl)
  })
})

test('of two different end users, the older field is lost', () => {
  const { settings, lostFields } = read({ input: 'hi', user: 'u', safety_identifier: 's' })
  expect([settings.endUser, lostFields]).toEqual(['s', ['user']])
  expect(read({ input: 'hi', user: 'u', safety_identifier: 'u' }).lostFields).toEqual([])
})
