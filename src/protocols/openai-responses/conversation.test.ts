// Requests read into neutral conversations, and written from them.

import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import type { ResponseCreateParams } from 'openai/resources/responses/responses'
import type { Wire } from '../../../test/support/responses-wire.ts'
import { target } from '../../../test/support/responses-wire.ts'
import { Refusal } from '../../base/errors.ts'
import type { Conversation, Part, Turn } from '../conversation.ts'
import { protocols } from '../list.ts'
import type { ConversationTarget } from '../protocol.ts'
import { packSealed } from '../sealed.ts'

type Name = 'openai-responses' | 'ark-responses'
const asked = { path: '/v1/responses', query: () => null, header: () => undefined }

function read(fields: Wire, name: Name = 'openai-responses'): Conversation {
  const protocol = protocols[name]
  const body = Buffer.from(JSON.stringify({ model: 'p/m', input: 'hi', ...fields }))
  return protocol.codec.readConversation(protocol.readCall(body, asked))
}

const readItems = (...input: readonly unknown[]): readonly Turn[] => read({ input }).turns
const readPart = (part: unknown): Part => readItems({ role: 'user', content: [part] })[0]!.parts[0]!

function write(conversation: Conversation, to: Partial<ConversationTarget> = {}, name: Name = 'openai-responses') {
  const at = target(to)
  const json = JSON.parse(protocols[name].codec.writeConversation(conversation, at)) as Wire
  return { json, losses: at.notes.losses.codes, notes: at.notes }
}

const again = (fields: Wire, to: Partial<ConversationTarget> = {}) => write(read(fields), to)
const say = (given: Partial<Conversation>): Conversation => ({
  turns: [{ role: 'user', parts: [{ kind: 'text', text: 'hi' }] }],
  tools: [],
  settings: { stream: false },
  unread: [],
  ...given,
})

function refusedParam(run: () => unknown): string | undefined {
  try {
    run()
  } catch (error) {
    if (error instanceof Refusal) return error.extras.param
    throw error
  }
  throw new Error('nothing was refused')
}

/** Each field that the SDK knows, with a value that is no default, and what becomes of it. */
type Fate = 'read' | 'moot' | string
const every: Record<keyof ResponseCreateParams, readonly [value: unknown, fate: Fate]> = {
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

describe('every field of the SDK', () => {
  const plain = read({})

  test.each(Object.entries(every))('%s', (field, [value, fate]) => {
    const { unread, ...carried } = read({ [field]: value })
    const { unread: _unread, ...before } = plain
    expect(unread).toEqual(fate === 'read' || fate === 'moot' ? [] : [fate])
    if (fate === 'read') expect(carried).not.toEqual(before)
    else expect(carried).toEqual(before)
  })

  test('and one that nobody knows', () => {
    expect(read({ brand_new: 1, nothing: null }).unread).toEqual(['brand_new'])
    expect(read({ metadata: { a: 'b' } }, 'ark-responses').unread).toEqual(['metadata'])
    expect(read({ caching: { type: 'enabled' }, session: { id: 's' } }, 'ark-responses').unread).toEqual(['caching', 'session'])
  })

  test.each([
    [{ reasoning: { context: 'auto', mode: 'pro' } }, ['reasoning.context', 'reasoning.mode']],
    [{ text: { novel: 1 } }, ['text.novel']],
    [{ prompt_cache_options: { prewarm: true } }, ['prompt_cache_options.prewarm']],
    [{ tools: [{ type: 'function', name: 'f', async: true, output_schema: {} }] }, ['tools.function.async', 'tools.function.output_schema']],
    [{ tools: [{ type: 'web_search', external_web_access: false }] }, ['tools.search.external_web_access']],
    [{ tool_choice: { type: 'file_search' } }, ['tool_choice.file_search']],
    [{ input: [{ role: 'assistant', content: 'x', phase: 'commentary' }] }, ['message.phase']],
    [{ input: [{ type: 'function_call', call_id: 'c', name: 'f', arguments: '{}', namespace: 'n' }] }, ['function_call.namespace']],
    [{ input: [{ role: 'user', content: [{ type: 'input_text', text: 'x', novel: 1 }] }] }, ['input_text.novel']],
    [{ include: ['reasoning.encrypted_content', 'message.output_text.logprobs'] }, []],
  ])('inside others: %j', (fields, unread) => {
    expect(read(fields).unread).toEqual(unread)
  })
})

describe('items', () => {
  test('become turns: what the model said, thought and called is one, and so are results', () => {
    const turns = readItems(
      { role: 'developer', content: 'rules' },
      { role: 'user', content: [{ type: 'input_text', text: 'hi' }] },
      { type: 'reasoning', id: 'rs_1', summary: [{ type: 'summary_text', text: 'hm' }], encrypted_content: 'gA' },
      { type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'ok' }, { type: 'refusal', refusal: 'no' }] },
      { type: 'function_call', call_id: 'a', name: 'f', arguments: '{}' },
      { type: 'custom_tool_call', call_id: 'b', name: 'g', input: 'free' },
      { type: 'function_call_output', call_id: 'a', output: 'done' },
      { type: 'custom_tool_call_output', call_id: 'b', output: [{ type: 'input_text', text: 'also' }] },
      { type: 'item_reference', id: 'msg_9' },
    )
    expect(turns).toEqual([
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
          { kind: 'native', dialect: 'openai-responses', what: 'item_reference', value: { type: 'item_reference', id: 'msg_9' } },
        ],
      },
    ])
  })

  test.each([
    [{ type: 'input_text', text: 'x', prompt_cache_breakpoint: { mode: 'explicit', ttl: '12h' } }, { cache: { ttl: '12h' } }],
    [{ type: 'input_text', text: 'x', prompt_cache_breakpoint: { mode: 'explicit' } }, { cache: {} }],
    [{ type: 'input_image', image_url: 'https://a.example/i.png', detail: 'low' },
      { kind: 'image', source: { at: 'url', url: 'https://a.example/i.png' }, detail: 'low' }],
    [{ type: 'input_image', image_url: 'data:image/png;base64,AAAA' },
      { source: { at: 'inline', base64: 'AAAA', mime: 'image/png' } }],
    [{ type: 'input_image', file_id: 'file_1' }, { source: { at: 'provider', id: 'file_1' } }],
    [{ type: 'input_file', file_data: 'data:application/pdf;base64,AAAA', filename: 'a.pdf' },
      { kind: 'file', source: { at: 'inline', base64: 'AAAA', mime: 'application/pdf' }, name: 'a.pdf' }],
    [{ type: 'input_file', file_url: 'https://a.example/a.pdf' }, { source: { at: 'url', url: 'https://a.example/a.pdf' } }],
    [{ type: 'input_audio', input_audio: { data: 'AAAA', format: 'mp3' } },
      { kind: 'audio', source: { at: 'inline', base64: 'AAAA', mime: 'audio/mpeg' } }],
    [{ type: 'input_video', video_url: 'https://a.example/v' }, { kind: 'video', source: { at: 'url', url: 'https://a.example/v' } }],
    [{ type: 'input_smell', smell: 1 }, { kind: 'native', what: 'input_smell' }],
  ])('have parts: %j', (part, expected) => {
    expect(readPart(part)).toMatchObject(expected)
  })

  test.each([
    [{ role: 'wizard', content: 'x' }, 'input[0].role'],
    [{ role: 'user' }, 'input[0].content'],
    [{ role: 'user', content: 5 }, 'input[0].content'],
    [{ role: 'user', content: [{ type: 'input_image' }] }, 'input[0].content[0].image_url'],
    [{ role: 'user', content: [{ type: 'input_image', image_url: 'data:image/png;base64,***' }] }, 'input[0].content[0].image_url'],
    [{ role: 'user', content: [{ type: 'input_image', image_url: 'data:image/png,AAAA' }] }, 'input[0].content[0].image_url'],
    [{ role: 'user', content: [{ type: 'input_text' }] }, 'input[0].content[0].text'],
    [{ type: 'function_call', call_id: 'c', name: 'f' }, 'input[0].arguments'],
    [{ type: 'function_call', name: 'f', arguments: '' }, 'input[0].call_id'],
    [{ type: 'function_call_output', call_id: 'nobody', output: 'x' }, 'input[0].call_id'],
    [{ type: 'reasoning', summary: [], encrypted_content: 5 }, 'input[0].encrypted_content'],
  ])('are refused: %j', (item, param) => {
    expect(refusedParam(() => readItems(item))).toBe(param)
  })

  test('a result may belong to a call that is kept elsewhere', () => {
    const input = [{ type: 'function_call_output', call_id: 'kept', output: 'x' }]
    expect(read({ input, previous_response_id: 'resp_1' }).turns).toHaveLength(1)
    expect(readItems({ type: 'item_reference', id: 'fc_1' }, ...input)).toHaveLength(2)
  })
})

describe('written again', () => {
  const tools = [
    { type: 'function', name: 'f', description: 'd', parameters: { type: 'object' }, strict: true },
    { type: 'function', name: 'loose' },
    { type: 'custom', name: 'g', format: { type: 'grammar', syntax: 'lark', definition: 'x' } },
    { type: 'web_search', filters: { allowed_domains: ['a.example'] }, search_context_size: 'low', user_location: { city: 'X' } },
    { type: 'code_interpreter', container: 'c' },
  ]

  test('a request says the same, statelessly', () => {
    const input = [
      { type: 'message', role: 'user', content: [{ type: 'input_text', text: 'hi', prompt_cache_breakpoint: { mode: 'explicit' } }] },
      { type: 'function_call', call_id: 'a', name: 'f', arguments: '{"x":1}' },
      { type: 'custom_tool_call', call_id: 'b', name: 'g', input: 'free' },
      { type: 'function_call_output', call_id: 'a', output: 'done' },
      {
        ...{ type: 'custom_tool_call_output', call_id: 'b' },
        output: [{ type: 'input_text', text: 'see' }, { type: 'input_image', image_url: 'https://a.example/i', detail: 'auto' }],
      },
      { type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'ok', annotations: [] }] },
      { type: 'message', role: 'user', content: [{ type: 'input_file', file_url: 'https://a.example/f.pdf' }] },
    ]
    const fields = {
      ...{ input, instructions: 'be', tools, temperature: 0.5, top_p: 0.5, max_output_tokens: 99, service_tier: 'flex' },
      ...{ metadata: { a: 'b' }, safety_identifier: 'u', prompt_cache_key: 'k', top_logprobs: 2, parallel_tool_calls: false },
      text: { format: { type: 'json_schema', name: 'n', schema: { type: 'object' }, strict: true }, verbosity: 'low' },
      tool_choice: { type: 'allowed_tools', mode: 'auto', tools: [{ type: 'function', name: 'f' }, { type: 'custom', name: 'g' }] },
      reasoning: { effort: 'low', summary: 'auto' },
    }
    const { json, losses } = again(fields)
    expect(losses).toEqual([])
    expect(json).toEqual({
      ...fields,
      model: 'm',
      store: false,
      stream: false,
      include: ['reasoning.encrypted_content', 'message.output_text.logprobs'],
      tools: [
        tools[0]!,
        { type: 'function', name: 'loose', parameters: { type: 'object', properties: {} }, strict: false },
        tools[2]!,
        { ...tools[3], user_location: { type: 'approximate', city: 'X' } },
        tools[4]!,
      ],
    })
  })

  test.each([
    [{ stop: ['x'] }, 'stop'],
    [{ seed: 1 }, 'seed'],
    [{ topK: 1 }, 'top_k'],
    [{ frequencyPenalty: 1 }, 'frequency_penalty'],
    [{ presencePenalty: 1 }, 'presence_penalty'],
    [{ logitBias: { 1: 1 } }, 'logit_bias'],
    [{ serviceClass: 'nobody_knows' }, 'service_tier'],
  ])('%j is said to be lost', (settings, code) => {
    expect(write(say({ settings: { stream: false, ...settings } })).losses).toEqual([code])
  })

  test('several answers are refused, naming n', () => {
    expect(refusedParam(() => write(say({ settings: { stream: false, choices: 2 } })))).toBe('n')
  })

  test('the cap is the least of the caller’s and ours', () => {
    const capped = (own: number | undefined, cap: number | undefined) =>
      write(say({ settings: { stream: false, ...(own !== undefined && { outputTokensMax: own }) } }), { cap }).json.max_output_tokens
    expect([capped(9, 7), capped(5, 7), capped(undefined, 7), capped(9, undefined)]).toEqual([7, 5, 7, 9])
    expect(capped(undefined, undefined)).toBeUndefined()
  })

  test('a long name of a user becomes a hash', () => {
    const { safety_identifier: id } = write(say({ settings: { stream: false, endUser: 'u'.repeat(200) } })).json
    expect(id).toMatch(/^[0-9a-f]{64}$/)
  })

  test('usual service has its own word', () => {
    expect(write(say({ settings: { stream: false, serviceClass: 'standard_only' } })).json.service_tier).toBe('default')
  })

  test('names of tools that are not allowed are changed, everywhere, and noted', () => {
    const turns: readonly Turn[] = [
      { role: 'user', parts: [{ kind: 'text', text: 'hi' }] },
      { role: 'assistant', parts: [{ kind: 'call', id: 'c', name: 'a.b', arguments: '' }] },
    ]
    const { json, notes } = write(
      say({
        turns,
        tools: [{ kind: 'function', name: 'a.b' }, { kind: 'function', name: 'a_b' }],
        toolChoice: { mode: 'required', names: ['a.b'] },
      }),
    )
    expect(json).toMatchObject({
      tools: [{ name: 'a_b_2' }, { name: 'a_b' }],
      tool_choice: { type: 'function', name: 'a_b_2' },
    })
    expect((json.input as Wire[])[1]).toMatchObject({ name: 'a_b_2', arguments: '{}' })
    expect([...notes.renamed]).toEqual([['a_b_2', 'a.b']])
  })

  test('P30: a result that failed says so in words', () => {
    const result = { kind: 'result', callId: 'c', parts: [{ kind: 'text', text: 'boom' }], failed: true } as const
    const items = write(say({ turns: [{ role: 'tool', parts: [result] }] })).json.input
    expect(items).toEqual([{ type: 'function_call_output', call_id: 'c', output: 'The tool failed:\nboom' }])
  })

  test('JSON without a schema is asked for in words as well, unless somebody did', () => {
    const plain = write(say({ format: { kind: 'json' } })).json
    expect(plain.text).toEqual({ format: { type: 'json_object' } })
    expect((plain.input as Wire[]).at(-1)).toMatchObject({ role: 'developer' })
    const turns: readonly Turn[] = [{ role: 'user', parts: [{ kind: 'text', text: 'give me json' }] }]
    expect(write(say({ turns, format: { kind: 'json' } })).json.input).toHaveLength(1)
  })

  test('marks of the cache stand on results, and are lost where the model takes none', () => {
    const result = { kind: 'result', callId: 'c', parts: [{ kind: 'text', text: 'x' }], cache: { ttl: '1h' } } as const
    const conversation = say({ turns: [{ role: 'tool', parts: [result] }] })
    expect(write(conversation).json.input).toEqual([
      {
        ...{ type: 'function_call_output', call_id: 'c' },
        output: [{ type: 'input_text', text: 'x', prompt_cache_breakpoint: { mode: 'explicit', ttl: '12h' } }],
      },
    ])
    const { json, losses } = write(conversation, { traits: { cacheMarks: false } })
    expect(json.input).toEqual([{ type: 'function_call_output', call_id: 'c', output: 'x' }])
    expect(losses).toEqual(['cache'])
  })
})

describe('thinking', () => {
  test.each([
    [undefined, {}, undefined, false],
    [undefined, { thinking: 'effort' }, undefined, true],
    [{ effort: 'high', show: 'auto' }, {}, { effort: 'high', summary: 'auto' }, true],
    [{ effort: 'none', show: 'auto' }, {}, { effort: 'none' }, false],
    [{ effort: 'high', show: 'none' }, {}, { effort: 'high' }, true],
    [{ budget: 0 }, {}, { effort: 'none' }, false],
    [{ budget: 1_024 }, {}, { effort: 'low' }, true],
    [{ budget: 30_000 }, {}, { effort: 'xhigh' }, true],
    [{ adaptive: true, show: 'detailed' }, {}, { summary: 'detailed' }, true],
    [{ effort: 'max' }, { efforts: ['low', 'high'] }, { effort: 'high' }, true],
    [{ effort: 'none' }, { efforts: ['low', 'high'], stopsThinking: false }, { effort: 'low' }, true],
    [{ effort: 'high' }, { thinking: 'none' }, undefined, false],
  ] as const)('%j for a model with %j is %j', (reasoning, traits, expected, sealed) => {
    const { json } = write(say(reasoning === undefined ? {} : { reasoning }), { traits })
    expect(json.reasoning as unknown).toEqual(expected)
    expect(json.include !== undefined).toBe(sealed)
  })

  test('goes without sampling where the model wants that', () => {
    const settings = { stream: false, temperature: 1 }
    expect(write(say({ settings }), { traits: { sampling: false } })).toMatchObject({ losses: ['temperature'] })
    const traits = { thinking: 'effort', samplingWithoutThinking: true } as const
    expect(write(say({ settings }), { traits }).json.temperature).toBeUndefined()
    expect(write(say({ settings, reasoning: { effort: 'none' } }), { traits }).json.temperature).toBe(1)
  })

  const sealed = (origin: string, form: 'encrypted' | 'signature' = 'encrypted') =>
    ({ origin, form, value: 'gA+/=', id: 'rs_1' }) as const

  test('P33: only state of the same origin goes back, byte for byte', () => {
    const carried = (state: string): readonly Wire[] => {
      const item = { id: 'rs_ours', type: 'reasoning', summary: [{ type: 'summary_text', text: 'hm' }], encrypted_content: state }
      const { json, losses } = again({ input: [{ role: 'user', content: 'hi' }, item] })
      expect(losses).toEqual((json.input as Wire[]).length > 1 ? [] : ['reasoning_state'])
      return (json.input as Wire[]).slice(1)
    }
    expect(carried(packSealed(sealed('here')))).toEqual([
      { type: 'reasoning', id: 'rs_1', summary: [{ type: 'summary_text', text: 'hm' }], encrypted_content: 'gA+/=' },
    ])
    expect(carried(packSealed(sealed('there')))).toEqual([])
    expect(carried(packSealed(sealed('here', 'signature')))).toEqual([])
    expect(carried('gRaw')).toEqual([])
  })

  test('what signs a call comes back to it', () => {
    const thought = { origin: 'o', form: 'thought', value: 'sig' } as const
    const answer = { choices: [{ parts: [{ kind: 'call', id: 'c', name: 'f', arguments: '{}', sealed: thought }], finish: 'calls' }] } as const
    const whole = protocols['openai-responses'].codec.writeWhole(answer, {
      ...{ requestId: 'req_1', model: 'p/m', createdS: 1, wantsUsage: true, choices: 1, json: {} },
      losses: target().notes.losses,
    })
    const { output } = JSON.parse(whole) as { output: Wire[] }
    expect(readItems(...output)).toEqual([
      { role: 'assistant', parts: [{ kind: 'call', id: 'c', name: 'f', arguments: '{}', sealed: { ...thought, id: 'c' } }] },
    ])
  })
})

describe('Ark', () => {
  test('has its own words', () => {
    const { json, losses, notes } = write(
      say({
        turns: [
          { role: 'developer', parts: [{ kind: 'text', text: 'rules' }] },
          { role: 'user', parts: [{ kind: 'video', source: { at: 'url', url: 'https://a.example/v' } }] },
        ],
        tools: [{ kind: 'custom', name: 'shell' }, { kind: 'function', name: 'f' }, { kind: 'search', domains: ['x'] }],
        toolChoice: { mode: 'auto', names: ['shell'] },
        reasoning: { effort: 'none' },
        settings: { stream: true, metadata: { a: 'b' }, endUser: 'u' },
      }),
      {},
      'ark-responses',
    )
    expect(json).toEqual({
      model: 'm',
      input: [
        { type: 'message', role: 'system', content: [{ type: 'input_text', text: 'rules' }] },
        { type: 'message', role: 'user', content: [{ type: 'input_video', video_url: 'https://a.example/v' }] },
      ],
      tools: [
        {
          ...{ type: 'function', name: 'shell', strict: false },
          parameters: { type: 'object', properties: { input: { type: 'string' } }, required: ['input'] },
        },
        { type: 'web_search' },
      ],
      tool_choice: 'auto',
      thinking: { type: 'disabled' },
      safety_identifier: 'u',
      store: false,
      stream: true,
    })
    expect([...losses].sort()).toEqual(['metadata', 'tools.search.domains'])
    expect([...notes.wrapped!]).toEqual(['shell'])
  })

  test('is read as it means it', () => {
    expect(read({ thinking: { type: 'disabled' } }, 'ark-responses').reasoning).toEqual({ effort: 'none' })
    expect(read({ thinking: { type: 'auto' } }, 'ark-responses').reasoning).toEqual({ adaptive: true, show: 'auto' })
    expect(read({ reasoning: { effort: 'low' } }, 'ark-responses').reasoning).toEqual({ effort: 'low', show: 'auto' })
  })
})

describe('any JSON at all', () => {
  const part = fc.record(
    {
      type: fc.oneof(fc.constantFrom('input_text', 'output_text', 'refusal', 'input_image', 'input_file', 'input_audio'), fc.string()),
      ...{ text: fc.jsonValue(), image_url: fc.oneof(fc.string(), fc.jsonValue()), input_audio: fc.jsonValue() },
      ...{ file_data: fc.jsonValue(), prompt_cache_breakpoint: fc.jsonValue(), annotations: fc.jsonValue() },
    },
    { requiredKeys: ['type'] },
  )
  const item = fc.record(
    {
      type: fc.oneof(fc.constantFrom('message', 'reasoning', 'function_call', 'function_call_output'), fc.string()),
      ...{ role: fc.oneof(fc.constantFrom('user', 'assistant', 'system'), fc.jsonValue()), call_id: fc.constant('c') },
      ...{ content: fc.oneof(fc.array(part), fc.jsonValue()), output: fc.oneof(fc.array(part), fc.jsonValue()) },
      ...{ name: fc.jsonValue(), arguments: fc.jsonValue(), summary: fc.jsonValue(), encrypted_content: fc.jsonValue() },
    },
    { requiredKeys: [] },
  )
  const body = fc.record(
    {
      ...{ input: fc.oneof(fc.array(item), fc.jsonValue()), tools: fc.oneof(fc.jsonValue(), fc.array(fc.jsonValue())) },
      ...{ tool_choice: fc.jsonValue(), text: fc.jsonValue(), reasoning: fc.jsonValue(), include: fc.jsonValue() },
      ...{ metadata: fc.jsonValue(), instructions: fc.jsonValue(), top_logprobs: fc.jsonValue(), thinking: fc.jsonValue() },
    },
    { requiredKeys: ['input'] },
  )

  test.each(['openai-responses', 'ark-responses'] as const)('is read, and written again, or refused: %s', name => {
    fc.assert(
      fc.property(body, fields => {
        try {
          write(read(fields, name), {}, name)
        } catch (error) {
          if (!(error instanceof Refusal)) throw error
        }
      }),
      { numRuns: 500 },
    )
  })

  test('a long picture is read in time', () => {
    const url = `data:image/png;base64,${'A'.repeat(10 * 1024 * 1024)}`
    const began = performance.now()
    expect(readPart({ type: 'input_image', image_url: url })).toMatchObject({ kind: 'image' })
    expect(performance.now() - began).toBeLessThan(1_500)
  })
})
