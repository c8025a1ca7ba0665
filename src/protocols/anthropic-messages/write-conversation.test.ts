// Tests the request for an upstream of this dialect, depending on the conversation and the model.

import { describe, expect, test } from 'bun:test'
import { call, hi, model, result, targetOf, text, tool, user, write } from '../../../test/support/anthropic-writing.ts'
import type { ModelTraits } from '../../base/money/model-traits.ts'
import type { Conversation } from '../neutral/conversation.ts'
import type { ConversationTarget } from '../protocol.ts'
import type { Json } from '../request/json-type.ts'
import { writeCountConversation } from './write-conversation.ts'

const f = { kind: 'function', name: 'f', schema: { type: 'object' } } as const
type SettingFields = Omit<Conversation['settings'], 'stream'>
const withSettings = (settings: SettingFields) => ({ settings: { ...settings, stream: false } })

describe('thinking is written', () => {
  const adaptive = { type: 'adaptive', display: 'summarized' }
  const enabled = (tokens: number) => ({ type: 'enabled', budget_tokens: tokens, display: 'summarized' })
  const off = { type: 'disabled' }
  test.each<readonly [string, Conversation['reasoning'] & object, ModelTraits, object | undefined, string | undefined]>(
    [
      ['as an effort', { effort: 'high' }, { thinking: 'adaptive' }, adaptive, 'high'],
      ['as the lowest effort', { effort: 'minimal' }, { thinking: 'either' }, adaptive, 'low'],
      [
        'as the highest effort of the model',
        { effort: 'max' },
        { thinking: 'adaptive', efforts: ['low', 'high'] },
        adaptive,
        'high',
      ],
      [
        'as the lowest effort of the model',
        { effort: 'low' },
        { thinking: 'adaptive', efforts: ['high'] },
        adaptive,
        'high',
      ],
      ['as an effort for a budget', { budget: 5000 }, { thinking: 'adaptive' }, adaptive, 'medium'],
      ['as a budget', { budget: 5000 }, { thinking: 'either' }, enabled(5000), undefined],
      ['as a budget for a model without traits', { budget: 5000 }, {}, enabled(5000), undefined],
      ['as an effort for a model without traits', { effort: 'low' }, {}, adaptive, 'low'],
      ['as a budget for an effort', { effort: 'medium' }, { thinking: 'budget' }, enabled(2400), undefined],
      ['as the smallest budget', { budget: 5 }, { thinking: 'budget' }, enabled(1024), undefined],
      ['as a budget below the cap', { budget: 50_000 }, { thinking: 'budget' }, enabled(7999), undefined],
      [
        'as the largest budget of the model',
        { budget: 5000 },
        { thinking: 'budget', budgetMax: 3000 },
        enabled(3000),
        undefined,
      ],
      ['as a budget for adaptive thinking', { adaptive: true }, { thinking: 'budget' }, enabled(4800), undefined],
      ['as hidden', { adaptive: true, show: 'none' }, {}, { type: 'adaptive', display: 'omitted' }, undefined],
      ['as off', { effort: 'none' }, { thinking: 'either' }, off, undefined],
      ['as off for a budget of 0', { budget: 0 }, {}, off, undefined],
      [
        'not at all if it is off and the model has none',
        { effort: 'none' },
        { thinking: 'none' },
        undefined,
        undefined,
      ],
      ['as an effort alone', { effort: 'low' }, { thinking: 'effort' }, undefined, 'low'],
    ],
  )('%s', (...row) => {
    const [, reasoning, traits, thinking, effort] = row
    const { body, losses } = write({ reasoning }, { traits })
    expect(body.thinking as object | undefined).toEqual(thinking)
    expect((body.output_config as { effort?: string } | undefined)?.effort).toBe(effort)
    expect(losses).toEqual([])
  })

  test.each<readonly [string, Partial<Conversation>, ModelTraits]>([
    ['the model has none', { reasoning: { effort: 'high' } }, { thinking: 'none' }],
    ['the model cannot stop it', { reasoning: { effort: 'none' } }, { thinking: 'adaptive', stopsThinking: false }],
    [
      'the cap leaves no room',
      { reasoning: { budget: 2000 }, ...withSettings({ outputTokensMax: 1024 }) },
      { thinking: 'budget' },
    ],
    ['P28: a tool call is forced', { reasoning: { effort: 'high' }, tools: [f], toolChoice: { mode: 'required' } }, {}],
    [
      'the caller has begun the answer',
      { reasoning: { effort: 'high' }, messages: [hi, model(text('So:'))] },
      { thinking: 'budget' },
    ],
  ])('as a loss if %s', (_name, conversation, traits) => {
    const { body, losses } = write(conversation, { traits })
    expect(body.thinking).toBeUndefined()
    expect(losses).toEqual(['reasoning'])
  })
})

describe('tools', () => {
  test('of each kind are written', () => {
    const grammar = { syntax: 'lark', definition: 'start: "x"' }
    const location = { city: 'Paris', zone: 'Europe/Paris' }
    const { body, losses, notes } = write({
      tools: [
        { kind: 'function', name: 'f', description: 'd', cache: { ttl: '12h' } },
        { kind: 'custom', name: 'c', grammar },
        { kind: 'search', domains: ['x.org'], usesMax: 2, location, contextSize: 'low' },
        { kind: 'native', dialect: 'openai-responses', what: 'tools.file_search', value: {} },
      ],
    })
    expect(body.tools).toEqual([
      {
        name: 'f',
        description: 'd',
        input_schema: { type: 'object', properties: {} },
        cache_control: { type: 'ephemeral', ttl: '1h' },
      },
      {
        name: 'c',
        description: 'The input must fit this grammar (lark):\nstart: "x"',
        input_schema: { type: 'object', properties: { input: { type: 'string' } }, required: ['input'] },
      },
      {
        type: 'web_search_20250305',
        name: 'web_search',
        allowed_domains: ['x.org'],
        max_uses: 2,
        user_location: { type: 'approximate', city: 'Paris', timezone: 'Europe/Paris' },
      },
    ])
    expect(losses).toEqual(['tools.grammar', 'tools.web_search.context_size', 'tools.file_search'])
    expect([...notes.wrapped!]).toEqual(['c'])
  })

  test('have valid names instead of invalid ones, and the original names in the answer', () => {
    const named = (name: string) => ({ ...f, name })
    const tools = [named('a.b'), named('a_b'), named('a:b'), named('x'.repeat(200))]
    const { body, notes } = write({
      tools,
      toolChoice: { mode: 'required', names: ['a:b'] },
      messages: [hi, model(call('1', 'a.b'))],
    })
    const names = (body.tools as { name: string }[]).map(({ name }) => name)
    expect(names).toEqual(['a_b_2', 'a_b', 'a_b_3', 'x'.repeat(120)])
    expect(body.tool_choice).toEqual({ type: 'tool', name: 'a_b_3' })
    expect((body.messages[1]!.content as Json[])[0]!.name).toBe('a_b_2')
    expect([...notes.renamed]).toEqual([
      ['a_b_2', 'a.b'],
      ['a_b_3', 'a:b'],
      ['x'.repeat(120), 'x'.repeat(200)],
    ])
  })

  test.each<readonly [string, Partial<Conversation>, object | undefined]>([
    ['no choice', {}, undefined],
    ['auto', { toolChoice: { mode: 'auto' } }, { type: 'auto' }],
    ['none', { toolChoice: { mode: 'none' } }, { type: 'none' }],
    ['any', { toolChoice: { mode: 'required' } }, { type: 'any' }],
    ['one tool', { toolChoice: { mode: 'required', names: ['f'] } }, { type: 'tool', name: 'f' }],
    ['one call at a time', { parallelCalls: false }, { type: 'auto', disable_parallel_tool_use: true }],
    [
      'any tool, one call at a time',
      { toolChoice: { mode: 'required' }, parallelCalls: false },
      {
        type: 'any',
        disable_parallel_tool_use: true,
      },
    ],
  ])('are chosen: %s', (_name, conversation, choice) => {
    expect(write({ tools: [f, { ...f, name: 'g' }], ...conversation }).body.tool_choice as object | undefined).toEqual(
      choice,
    )
  })

  test('that a choice does not name are left out', () => {
    const tools = ['f', 'g', 'h'].map(name => ({ ...f, name }))
    const { body } = write({ tools, toolChoice: { mode: 'required', names: ['f', 'h'] } })
    expect((body.tools as Json[]).map(({ name }) => name)).toEqual(['f', 'h'])
    expect(body.tool_choice).toEqual({ type: 'any' })
    const one = { mode: 'required', names: ['f'] } as const
    const unforced = write({ tools, toolChoice: one }, { traits: { forcedTool: false } }).body
    expect([(unforced.tools as Json[]).map(({ name }) => name), unforced.tool_choice]).toEqual([
      ['f'],
      { type: 'auto' },
    ])
  })

  test('cannot be forced if the model does not support that, which is a loss', () => {
    const conversation = { tools: [f], toolChoice: { mode: 'required' } } as const
    const { body, losses } = write(conversation, { traits: { forcedTool: false } })
    expect(body.tool_choice).toEqual({ type: 'auto' })
    expect(losses).toEqual(['tool_choice'])
  })

  test('that were called before and are no longer offered are declared', () => {
    const { body } = write({ messages: [hi, model(call('a')), tool(result('a'))] })
    expect(body.tools).toEqual([{ name: 'f', input_schema: { type: 'object', properties: {} } }])
    expect(body.tool_choice).toEqual({ type: 'none' })
  })

  test('are strict if the model supports that', () => {
    const schema = { type: 'object', properties: { a: { type: 'integer', minimum: 1 } } }
    const strict = { ...f, strict: true, schema }
    const { body, losses } = write({ tools: [strict] })
    expect(body.tools).toEqual([
      {
        name: 'f',
        strict: true,
        input_schema: {
          type: 'object',
          additionalProperties: false,
          properties: { a: { type: 'integer', description: '{minimum: 1}' } },
        },
      },
    ])
    expect(losses).toEqual(['tools.schema'])
    expect(write({ tools: [strict] }, { traits: { schema: false } }).losses).toEqual(['tools.strict'])
  })
})

describe('a response format', () => {
  const schema = { type: 'object', properties: { a: { type: 'string', format: 'color', maxLength: 3 } } }
  const format = { kind: 'schema', schema } as const

  test('is native if the model supports that', () => {
    const { body, losses } = write({ format })
    expect(body.output_config).toEqual({
      format: {
        type: 'json_schema',
        schema: {
          type: 'object',
          additionalProperties: false,
          properties: { a: { type: 'string', description: '{maxLength: 3, format: "color"}' } },
        },
      },
    })
    expect(losses).toEqual(['response_format.schema'])
    expect(write({ format: { ...format, schema: { type: 'object', properties: {} } } }).losses).toEqual([])
  })

  test.each<readonly [string, object, ModelTraits, string]>([
    ['the schema', {}, {}, '"description":"a map"'],
    ['a schema with one of its own', { description: 'own' }, {}, JSON.stringify('a map\n\nown')],
    ['the schema of the tool', {}, { schema: false }, '"description":"a map"'],
    ['words', {}, { schema: false, forcedTool: false }, JSON.stringify('"description":"a map"').slice(1, -1)],
  ])('has its description in %s', (_name, more, traits, expected) => {
    const described = {
      kind: 'schema',
      description: 'a map',
      schema: { type: 'object', properties: {}, ...more },
    } as const
    expect(JSON.stringify(write({ format: described }, { traits }).body)).toContain(expected)
  })

  test('is a forced tool call otherwise', () => {
    const { body, notes, losses } = write({ format }, { traits: { schema: false } })
    expect(body.tools).toMatchObject([{ name: 'json_answer', input_schema: schema }])
    expect(body.tool_choice).toEqual({ type: 'tool', name: 'json_answer', disable_parallel_tool_use: true })
    expect(notes.schemaTool).toBe('json_answer')
    expect(losses).toEqual([])
    const named = write({ format, tools: [{ ...f, name: 'json_answer' }] }, { traits: { schema: false } })
    expect(named.notes.schemaTool).toBe('json_answer_2')
    expect(named.body.tool_choice).toEqual({ type: 'any', disable_parallel_tool_use: true })
  })

  test.each<readonly [string, Partial<Conversation>, ModelTraits]>([
    ['P28: the model thinks', { format, reasoning: { effort: 'low' } }, { schema: false, thinking: 'either' }],
    ['P28: no tool call can be forced', { format }, { schema: false, forcedTool: false }],
    ['there is no schema', { format: { kind: 'json' } }, {}],
  ])('is described in the system prompt if %s', (_name, conversation, traits) => {
    const { body, losses, notes } = write(conversation, { traits })
    expect(JSON.stringify(body.system)).toContain('Answer with JSON and nothing else')
    expect(body.tool_choice).toBeUndefined()
    expect(notes.schemaTool).toBeUndefined()
    expect(losses).toEqual(['response_format'])
  })
})

describe('settings are written or lost:', () => {
  test.each<readonly [string, SettingFields, object, readonly string[]]>([
    ['stops', { stop: ['x', ' '] }, { stop_sequences: ['x'] }, ['stop']],
    ['the end user', { endUser: 'u' }, { metadata: { user_id: 'u' } }, []],
    ['the 5 digits of an end user', { endUser: '12345' }, { metadata: { user_id: '12345' } }, []],
    ['the service class', { serviceClass: 'default' }, { service_tier: 'standard_only' }, []],
    ['speed', { serviceClass: 'fast' }, { speed: 'fast' }, []],
    ['a service class of other providers', { serviceClass: 'flex' }, {}, ['service_tier']],
    ['the cache', { cache: { ttl: '30m' } }, { cache_control: { type: 'ephemeral' } }, []],
    ['the cache of only the breakpoints', { cache: 'breakpoints' }, {}, []],
    ['temperature', { temperature: 0.5 }, { temperature: 0.5 }, []],
    ['a temperature above the maximum', { temperature: 1.5 }, { temperature: 1 }, ['temperature']],
    ['temperature and top p together', { temperature: 0.5, topP: 0.5 }, { temperature: 0.5 }, ['top_p']],
    ['top p at the default temperature', { temperature: 1, topP: 0.5 }, { top_p: 0.5 }, []],
    ['temperature and top p at their defaults', { temperature: 1, topP: 1 }, { temperature: 1 }, []],
    ['top p', { topP: 0.5, topK: 4 }, { top_p: 0.5, top_k: 4 }, []],
    [
      'settings that this dialect does not have',
      { seed: 1, verbosity: 'low', metadata: { a: 'b' }, logprobs: 2, logitBias: { 1: 2 } },
      {},
      ['seed', 'logprobs', 'logit_bias', 'verbosity', 'metadata'],
    ],
    ['penalties', { frequencyPenalty: 1, presencePenalty: 0 }, {}, ['frequency_penalty']],
  ])('%s', (...row) => {
    const [, settings, fields, losses] = row
    const written = write(withSettings(settings))
    const { model: _model, max_tokens: _cap, messages: _messages, ...rest } = written.body
    expect(rest as object).toEqual(fields)
    expect(written.losses).toEqual([...losses])
  })

  test.each(['ann@example.com', 'mail:ann@example.com', '+49 (170) 123-4567', 'u'.repeat(257)])(
    'an end user whose id the provider refuses becomes a hash, the same one each time: %s',
    endUser => {
      const written = [1, 2].map(() => write(withSettings({ endUser })).body.metadata as { readonly user_id: string })
      expect(written[0]!.user_id).toMatch(/^[0-9a-f]{64}$/)
      expect(written[1]).toEqual(written[0]!)
    },
  )

  test('P29: sampling settings are left out for a model that refuses them', () => {
    const settings = withSettings({ temperature: 0.5, topP: 0.5, topK: 4 })
    const none = write(settings, { traits: { sampling: false } })
    expect(none.losses).toEqual(['temperature', 'top_p', 'top_k'])
    expect(none.body).not.toContainAnyKeys(['temperature', 'top_p', 'top_k'])
    const plain = write(withSettings({ temperature: 1, topP: 1 }), { traits: { sampling: false } })
    expect(plain.losses).toEqual([])
    expect(plain.body).not.toContainAnyKeys(['temperature', 'top_p'])
    const thinking = write({ ...settings, reasoning: { effort: 'high' } })
    expect(thinking.losses).toEqual(['temperature', 'top_p', 'top_k'])
  })

  test.each<readonly [string, number | undefined, Partial<ConversationTarget>, number]>([
    ["the caller's cap", 100, {}, 100],
    ["the model's maximum", undefined, {}, 8000],
    ["the model's maximum for a higher cap of the caller", 9000, {}, 8000],
    ['what the funds cover', 100, { cap: 50 }, 50],
    ['a default without any of them', undefined, { outputTokensMax: undefined }, 8192],
  ])('the cap of the output is %s', (...row) => {
    const [, outputTokensMax, target, cap] = row
    const settings = { stream: true, ...(outputTokensMax !== undefined && { outputTokensMax }) }
    expect(write({ settings }, { target }).body).toMatchObject({ max_tokens: cap, stream: true })
  })

  test('P23: a count request has no fields that only an answer needs', () => {
    const { body } = write({
      ...withSettings({ temperature: 0.5, stop: ['x'] }),
      tools: [f],
      reasoning: { effort: 'low' },
    })
    const { max_tokens: _cap, temperature: _heat, stop_sequences: _stop, ...rest } = body
    const reasoning = { effort: 'low' } as const
    const conversation = { messages: [hi], tools: [f], settings: { stream: true }, lostFields: [], reasoning }
    expect(JSON.parse(writeCountConversation(conversation, targetOf()))).toEqual(rest)
  })

  test('several choices are refused', () => {
    expect(() => write(withSettings({ choices: 2 }))).toThrow('field_invalid')
    expect(write(withSettings({ choices: 1 })).losses).toEqual([])
  })

  test('cache marks, as many as the provider accepts', () => {
    const marked = Array.from({ length: 6 }, (_, index) => ({ ...text(`t${index}`), cache: {} }))
    const { body, losses } = write({ messages: [user(...marked)] })
    const marks = (body.messages[0]!.content as Json[]).map(block => block.cache_control !== undefined)
    expect(marks).toEqual([false, false, true, true, true, true])
    expect(losses).toEqual(['cache_control'])
  })

  test.each<readonly [readonly ('30m' | '12h')[], '12h' | '30m' | undefined, readonly unknown[], readonly string[]]>([
    [['12h', '30m'], '30m', ['1h', undefined, undefined], []],
    [['12h', '12h'], '12h', ['1h', '1h', '1h'], []],
    [['30m', '12h'], undefined, [undefined, undefined], ['cache_control.ttl']],
    [['12h', '30m'], '12h', ['1h', undefined, undefined], ['cache_control.ttl']],
  ])('cache marks of %j, and of the request %s, with no hour after five minutes', (ttls, ttl, written, losses) => {
    const [first, second] = ttls.map(each => ({ ttl: each }))
    const messages = [
      { role: 'system', parts: [{ ...text('s'), cache: first! }] } as const,
      user({ ...text('u'), cache: second! }),
    ]
    const sent = write({ messages, ...(ttl && withSettings({ cache: { ttl } })) })
    const blocks = [...(sent.body.system as Json[]), ...(sent.body.messages[0]!.content as Json[]), sent.body]
    const marks = blocks.flatMap((block): readonly Json[] => (block.cache_control ? [block.cache_control as Json] : []))
    expect<unknown>([marks.map(mark => mark.ttl), sent.losses]).toEqual([written, losses])
  })
})
