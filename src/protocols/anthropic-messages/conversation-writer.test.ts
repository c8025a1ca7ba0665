// What an upstream of this dialect is asked, by what the caller means and what the model takes.

import { describe, expect, test } from 'bun:test'
import type { Traits } from '../../base/traits.ts'
import type { Json } from '../checks.ts'
import type { CallPart, Conversation, Part, ResultPart, Turn } from '../conversation.ts'
import { Losses } from '../losses.ts'
import type { ConversationTarget, TranslationNotes } from '../protocol.ts'
import { writeConversation } from './conversation-writer.ts'

const text = (words: string) => ({ kind: 'text', text: words }) as const
const user = (...parts: Part[]): Turn => ({ role: 'user', parts })
const model = (...parts: Part[]): Turn => ({ role: 'assistant', parts })
const tool = (...parts: Part[]): Turn => ({ role: 'tool', parts })
const call = (id: string, name = 'f', args = '{}'): CallPart => ({ kind: 'call', id, name, arguments: args })
const result = (callId: string, words = 'done'): ResultPart => ({ kind: 'result', callId, parts: [text(words)] })
const hi = user(text('hi'))

interface Over {
  readonly traits?: Traits
  readonly target?: Partial<ConversationTarget>
}

interface Written {
  readonly body: Json & { readonly messages: readonly Json[] }
  readonly losses: readonly string[]
  readonly notes: TranslationNotes
}

function write(said: Partial<Conversation>, { traits = {}, target = {} }: Over = {}): Written {
  const notes: TranslationNotes = { losses: new Losses(), renamed: new Map() }
  const conversation = { turns: [hi], tools: [], settings: { stream: false }, unread: [], ...said }
  const body = writeConversation(conversation, {
    ...{ model: 'claude', traits, outputTokensMax: 8000, cap: undefined, capField: 'max_tokens', askUsage: true },
    ...{ origin: 'here', media: new Map(), notes },
    ...target,
  })
  return { body: JSON.parse(body) as Written['body'], losses: notes.losses.codes, notes }
}

const messagesOf = (...turns: Turn[]) => write({ turns }).body.messages
const f = { kind: 'function', name: 'f', schema: { type: 'object' } } as const
const wants = (settings: Omit<Conversation['settings'], 'stream'>) => ({ settings: { ...settings, stream: false } })

describe('turns', () => {
  test('plain', () => {
    expect(write({}).body).toEqual({
      model: 'claude',
      max_tokens: 8000,
      messages: [{ role: 'user', content: [{ type: 'text', text: 'hi' }] }],
    })
  })

  test('instructions lead, or stand where they stood', () => {
    const turns: Turn[] = [
      { role: 'system', parts: [{ ...text('a'), cache: {} }] },
      { role: 'developer', parts: [text('b')] },
      hi,
      { role: 'system', parts: [text('c')] },
    ]
    const { body } = write({ turns })
    expect(body.system).toEqual([
      { type: 'text', text: 'a', cache_control: { type: 'ephemeral' } },
      { type: 'text', text: 'b' },
    ])
    const late = { type: 'text', text: '<system>\nc\n</system>' }
    expect(body.messages).toEqual([{ role: 'user', content: [{ type: 'text', text: 'hi' }, late] }])
    expect(write({ turns: turns.slice(0, 2) }).body.messages).toEqual([{ role: 'user', content: body.system }])
    const placeless = write({ turns }, { traits: { system: false } }).body
    expect(placeless.system).toBeUndefined()
    expect((placeless.messages[0]!.content as Json[]).length).toBe(4)
  })

  test('of the same role are one, and empty ones are none', () => {
    expect(messagesOf(hi, user(text(' ')), user(text('x')), model(text('')), user(text('y')))).toEqual([
      { role: 'user', content: ['hi', 'x', 'y'].map(words => ({ type: 'text', text: words })) },
    ])
  })

  test('the user has the first word, and what is to be gone on from ends in no space', () => {
    const messages = messagesOf(model(text('So: ')))
    expect(messages.map(({ role }) => role)).toEqual(['user', 'assistant'])
    expect(messages[1]!.content).toEqual([{ type: 'text', text: 'So:' }])
  })

  test('what has no place is said to be lost', () => {
    const cited = { ...text('x'), citations: [{ url: 'u' }] }
    const foreign = { kind: 'native', dialect: 'gemini', what: 'executable_code', value: {} } as const
    const image = { kind: 'image', source: { at: 'url', url: 'https://x' }, detail: 'high' } as const
    const { losses, body } = write({ turns: [{ ...user(cited, foreign, image), name: 'bob' }] })
    expect(losses).toEqual(['messages.name', 'citations', 'executable_code', 'image.detail'])
    expect(body.messages[0]!.content).toEqual([
      { type: 'text', text: 'x' },
      { type: 'image', source: { type: 'url', url: 'https://x' } },
    ])
  })
})

describe('P26: tool results', () => {
  const ids = (messages: readonly Json[]) =>
    messages.map(({ role, content }) => {
      const blocks = content as { type: string; id?: string; tool_use_id?: string; text?: string; is_error?: boolean }[]
      return `${role as string}: ${blocks.map(each => each.id ?? each.tool_use_id ?? each.text).join(' ')}`
    })

  test.each<readonly [string, readonly Turn[], readonly string[]]>([
    [
      'of several turns are one message, in the order of the calls',
      [hi, model(text('t'), call('a'), call('b')), tool(result('b')), tool(result('a')), user(text('and?'))],
      ['user: hi', 'assistant: t a b', 'user: a b and?'],
    ],
    [
      'come before what was said before them',
      [hi, model(call('a')), user(text('wait')), tool(result('a'))],
      ['user: hi', 'assistant: a', 'user: a wait'],
    ],
    ['that are missing are made up', [hi, model(call('a'), call('b')), tool(result('b'))], [
      ...['user: hi', 'assistant: a b', 'user: a b'],
    ]],
    ['that are missing at the end, too', [hi, model(call('a'))], ['user: hi', 'assistant: a', 'user: a']],
    ['without a call are dropped', [hi, tool(result('x')), model(text('t')), tool(result('y')), user(text('z'))], [
      ...['user: hi', 'assistant: t', 'user: z'],
    ]],
    ['of calls in turns that follow each other', [hi, model(call('a')), model(call('b')), tool(result('a'), result('b'))], [
      ...['user: hi', 'assistant: a b', 'user: a b'],
    ]],
    [
      'of calls that have the same name find their own',
      [hi, model(call('a'), call('a')), tool(result('a'), result('a')), model(call('a')), tool(result('a'))],
      ['user: hi', 'assistant: a a_2', 'user: a a_2', 'assistant: a_3', 'user: a_3'],
    ],
    ['under names that this dialect takes', [hi, model(call('call:1/é')), tool(result('call:1/é'))], [
      ...['user: hi', 'assistant: call_1__', 'user: call_1__'],
    ]],
  ])('%s', (_name, turns, messages) => {
    expect(ids(messagesOf(...turns))).toEqual([...messages])
  })

  test('say what is lost and what failed', () => {
    const failed = { ...result('a', 'no'), failed: true }
    const { body, losses } = write({ turns: [hi, model(call('a'), call('b')), tool(failed, result('x'))] })
    expect(losses).toEqual(['tool_result'])
    expect(body.messages[2]!.content).toEqual([
      { type: 'tool_result', tool_use_id: 'a', content: 'no', is_error: true },
      { type: 'tool_result', tool_use_id: 'b', content: 'No result was given.', is_error: true },
    ])
  })

  test('may hold images, or have them behind', () => {
    const image = { kind: 'image', source: { at: 'inline', base64: 'AAAA', mime: 'image/png' } } as const
    const turns = [hi, model(call('a')), tool({ ...result('a'), parts: [text('x'), image], cache: { ttl: '1h' } })]
    const source = { type: 'base64', media_type: 'image/png', data: 'AAAA' }
    const mark = { cache_control: { type: 'ephemeral', ttl: '1h' } }
    const [inside] = write({ turns }).body.messages[2]!.content as Json[]
    expect(inside).toEqual({
      ...{ type: 'tool_result', tool_use_id: 'a', ...mark },
      content: [{ type: 'text', text: 'x' }, { type: 'image', source }],
    })
    expect(write({ turns }, { traits: { richResults: false } }).body.messages[2]!.content).toEqual([
      { type: 'tool_result', tool_use_id: 'a', content: 'x', ...mark },
      { type: 'image', source },
    ])
  })

  test.each<readonly [string, object]>([
    ['{"a":1}', { a: 1 }],
    ['', {}],
    ['null', {}],
    ['[1]', { arguments: [1] }],
    ['{"a":', { arguments: '{"a":' }],
  ])('arguments are an object: %p', (args, input) => {
    const content = messagesOf(hi, model(call('a', 'f', args)))[1]!.content as Json[]
    expect(content[0]!.input).toEqual(input)
  })

  test('a thousand calls of one name are written in time', () => {
    const turns = [hi, model(...Array.from({ length: 20_000 }, () => call('same')))]
    const began = performance.now()
    expect((messagesOf(...turns)[2]!.content as Json[]).length).toBe(20_000)
    expect(performance.now() - began).toBeLessThan(1_000)
  })
})

describe('media', () => {
  const file = (mime: string, base64 = 'AAAA') => ({ kind: 'file', name: 'n', source: { at: 'inline', base64, mime } }) as const
  const blockOf = (part: Part, over: Over = {}) => (write({ turns: [user(part)] }, over).body.messages[0]!.content as Json[])[0]

  test('a document', () => {
    const pdf = { type: 'base64', media_type: 'application/pdf', data: 'AAAA' }
    expect(blockOf(file('application/pdf'))).toEqual({ type: 'document', source: pdf, title: 'n' })
    const plain = { type: 'text', media_type: 'text/plain', data: 'héllo' }
    const encoded = Buffer.from('héllo').toString('base64')
    expect(blockOf(file('text/markdown', encoded))).toEqual({ type: 'document', source: plain, title: 'n' })
    const words = { kind: 'file', source: { at: 'text', text: 'héllo', mime: 'text/plain' } } as const
    expect(blockOf(words, { traits: { reads: ['text'] } })).toEqual({ type: 'document', source: plain })
  })

  test('what was fetched is inside', () => {
    const media = new Map([['http://x', { mime: 'image/gif', base64: 'BBBB' }]])
    const part = { kind: 'image', source: { at: 'url', url: 'http://x' } } as const
    const source = { type: 'base64', media_type: 'image/gif', data: 'BBBB' }
    expect(blockOf(part, { target: { media } })).toEqual({ type: 'image', source })
  })

  test.each<readonly [string, Part, Traits]>([
    ['sound', { kind: 'audio', source: { at: 'inline', base64: 'AAAA', mime: 'audio/wav' } }, {}],
    ['a film', { kind: 'video', source: { at: 'url', url: 'https://x' } }, {}],
    ['a spreadsheet', file('application/vnd.ms-excel'), {}],
    ['a file of another provider', { kind: 'file', source: { at: 'provider', id: 'x' } }, {}],
    ['an image for a model that reads none', { kind: 'image', source: { at: 'url', url: 'https://x' } }, { reads: ['text'] }],
  ])('is refused: %s', (_name, part, traits) => {
    expect(() => blockOf(part, { traits })).toThrow('field_invalid')
  })
})

describe('reasoning state', () => {
  const thought = (form: 'signature' | 'redacted' | 'encrypted', origin?: string): Part => ({
    ...{ kind: 'reasoning', text: form === 'signature' ? 't' : '' },
    sealed: { form, value: 'v', ...(origin !== undefined && { origin }) },
  })

  test('P24: comes back to its origin as it was', () => {
    const { body, losses } = write({ turns: [hi, model(thought('signature', 'here'), thought('redacted', 'here'), text('x'))] })
    expect(body.messages[1]!.content).toEqual([
      { type: 'thinking', thinking: 't', signature: 'v' },
      { type: 'redacted_thinking', data: 'v' },
      { type: 'text', text: 'x' },
    ])
    expect(losses).toEqual([])
  })

  test.each<readonly [string, Part]>([
    ['another origin', thought('signature', 'there')],
    ['no origin', thought('signature')],
    ['another form', thought('encrypted', 'here')],
    ['thoughts that nobody signed', { kind: 'reasoning', text: 't' }],
    ['a call', { ...call('a'), sealed: { origin: 'here', form: 'thought', value: 'v' } }],
  ])('is not sent: of %s', (_name, part) => {
    const { body, losses } = write({ turns: [hi, model(part, text('x'))] })
    expect(JSON.stringify(body)).not.toContain('thinking')
    expect(JSON.stringify(body)).not.toContain('"v"')
    expect(losses).toEqual(['reasoning_state'])
  })

  test('calls under way whose thoughts are lost turn a budget off', () => {
    const budget = { reasoning: { budget: 2000 } }
    const own = [hi, model(thought('signature', 'here'), call('a')), tool(result('a'))]
    const other = [hi, model(thought('signature', 'there'), call('a')), tool(result('a'))]
    expect(write({ turns: own, ...budget }).body.thinking).toMatchObject({ type: 'enabled' })
    expect(write({ turns: other, ...budget }).body.thinking).toBeUndefined()
    expect(write({ turns: other, ...budget }).losses).toEqual(['reasoning_state', 'reasoning'])
    expect(write({ turns: other, reasoning: { effort: 'high' } }).body.thinking).toMatchObject({ type: 'adaptive' })
  })
})

describe('thinking', () => {
  const adaptive = { type: 'adaptive', display: 'summarized' }
  const enabled = (tokens: number) => ({ type: 'enabled', budget_tokens: tokens, display: 'summarized' })
  const off = { type: 'disabled' }
  test.each<readonly [string, Conversation['reasoning'] & object, Traits, object | undefined, string | undefined]>([
    ['an effort', { effort: 'high' }, { thinking: 'adaptive' }, adaptive, 'high'],
    ['the least', { effort: 'minimal' }, { thinking: 'either' }, adaptive, 'low'],
    ['an effort too high', { effort: 'max' }, { thinking: 'adaptive', efforts: ['low', 'medium', 'high'] }, adaptive, 'high'],
    ['an effort too low', { effort: 'low' }, { thinking: 'adaptive', efforts: ['high'] }, adaptive, 'high'],
    ['a budget as an effort', { budget: 5000 }, { thinking: 'adaptive' }, adaptive, 'medium'],
    ['a budget', { budget: 5000 }, { thinking: 'either' }, enabled(5000), undefined],
    ['a budget for an unknown model', { budget: 5000 }, {}, enabled(5000), undefined],
    ['an effort for an unknown model', { effort: 'low' }, {}, adaptive, 'low'],
    ['an effort as a budget', { effort: 'medium' }, { thinking: 'budget' }, enabled(2400), undefined],
    ['a small budget', { budget: 5 }, { thinking: 'budget' }, enabled(1024), undefined],
    ['a budget beyond the cap', { budget: 50_000 }, { thinking: 'budget' }, enabled(7999), undefined],
    ['a budget beyond the model', { budget: 5000 }, { thinking: 'budget', budgetMax: 3000 }, enabled(3000), undefined],
    ['its own', { adaptive: true }, { thinking: 'budget' }, enabled(4800), undefined],
    ['hidden', { adaptive: true, show: 'none' }, { thinking: 'adaptive' }, { type: 'adaptive', display: 'omitted' }, undefined],
    ['off', { effort: 'none' }, { thinking: 'either' }, off, undefined],
    ['off by a budget', { budget: 0 }, {}, off, undefined],
    ['off where it is never on', { effort: 'none' }, { thinking: 'none' }, undefined, undefined],
    ['by a word alone', { effort: 'low' }, { thinking: 'effort' }, undefined, 'low'],
  ])('%s', (_name, reasoning, traits, thinking, effort) => {
    const { body, losses } = write({ reasoning }, { traits })
    expect(body.thinking as object | undefined).toEqual(thinking)
    expect((body.output_config as { effort?: string } | undefined)?.effort).toBe(effort)
    expect(losses).toEqual([])
  })

  test.each<readonly [string, Partial<Conversation>, Traits]>([
    ['not offered', { reasoning: { effort: 'high' } }, { thinking: 'none' }],
    ['never off', { reasoning: { effort: 'none' } }, { thinking: 'adaptive', stopsThinking: false }],
    ['no room', { reasoning: { budget: 2000 }, ...wants({ outputTokensMax: 1024 }) }, { thinking: 'budget' }],
    ['P28: a tool must be called', { reasoning: { effort: 'high' }, tools: [f], toolChoice: { mode: 'required' } }, {}],
  ])('is lost: %s', (_name, said, traits) => {
    const { body, losses } = write(said, { traits })
    expect(body.thinking).toBeUndefined()
    expect(losses).toEqual(['reasoning'])
  })
})

describe('tools', () => {
  test('each kind', () => {
    const grammar = { syntax: 'lark', definition: 'start: "x"' }
    const place = { city: 'Paris', zone: 'Europe/Paris' }
    const { body, losses, notes } = write({
      tools: [
        { kind: 'function', name: 'f', description: 'd', cache: { ttl: '12h' } },
        { kind: 'custom', name: 'c', grammar },
        { kind: 'search', domains: ['x.org'], usesMax: 2, place, contextSize: 'low' },
        { kind: 'native', dialect: 'openai-responses', what: 'tools.file_search', value: {} },
      ],
    })
    expect(body.tools).toEqual([
      {
        ...{ name: 'f', description: 'd', input_schema: { type: 'object', properties: {} } },
        cache_control: { type: 'ephemeral', ttl: '1h' },
      },
      {
        ...{ name: 'c', description: 'The input must fit this grammar (lark):\nstart: "x"' },
        input_schema: { type: 'object', properties: { input: { type: 'string' } }, required: ['input'] },
      },
      {
        ...{ type: 'web_search_20250305', name: 'web_search', allowed_domains: ['x.org'], max_uses: 2 },
        user_location: { type: 'approximate', city: 'Paris', timezone: 'Europe/Paris' },
      },
    ])
    expect(losses).toEqual(['tools.grammar', 'tools.web_search.context_size', 'tools.file_search'])
    expect([...notes.wrapped!]).toEqual(['c'])
  })

  test('names that are not taken are changed, and known again', () => {
    const named = (name: string) => ({ ...f, name })
    const tools = [named('a.b'), named('a_b'), named('a:b'), named('x'.repeat(200))]
    const { body, notes } = write({
      ...{ tools, toolChoice: { mode: 'required', names: ['a:b'] } },
      turns: [hi, model(call('1', 'a.b'))],
    })
    const names = (body.tools as { name: string }[]).map(({ name }) => name)
    expect(names).toEqual(['a_b_3'])
    expect(body.tool_choice).toEqual({ type: 'tool', name: 'a_b_3' })
    expect((body.messages[1]!.content as Json[])[0]!.name).toBe('a_b_2')
    expect([...notes.renamed]).toEqual([['a_b_2', 'a.b'], ['a_b_3', 'a:b']])
  })

  test.each<readonly [string, Partial<Conversation>, object | undefined]>([
    ['nothing', {}, undefined],
    ['auto', { toolChoice: { mode: 'auto' } }, { type: 'auto' }],
    ['none', { toolChoice: { mode: 'none' } }, { type: 'none' }],
    ['any', { toolChoice: { mode: 'required' } }, { type: 'any' }],
    ['one', { toolChoice: { mode: 'required', names: ['f'] } }, { type: 'tool', name: 'f' }],
    ['one at a time', { parallelCalls: false }, { type: 'auto', disable_parallel_tool_use: true }],
    ['any, one at a time', { toolChoice: { mode: 'required' }, parallelCalls: false }, {
      ...{ type: 'any', disable_parallel_tool_use: true },
    }],
  ])('are chosen: %s', (_name, said, choice) => {
    expect(write({ tools: [f, { ...f, name: 'g' }], ...said }).body.tool_choice as object | undefined).toEqual(choice)
  })

  test('a choice among some leaves the others out', () => {
    const tools = ['f', 'g', 'h'].map(name => ({ ...f, name }))
    const { body } = write({ tools, toolChoice: { mode: 'required', names: ['f', 'h'] } })
    expect((body.tools as Json[]).map(({ name }) => name)).toEqual(['f', 'h'])
    expect(body.tool_choice).toEqual({ type: 'any' })
  })

  test('a choice that the model cannot be held to is lost', () => {
    const said = { tools: [f], toolChoice: { mode: 'required' } } as const
    const { body, losses } = write(said, { traits: { forcedTool: false } })
    expect(body.tool_choice).toEqual({ type: 'auto' })
    expect(losses).toEqual(['tool_choice'])
  })

  test('that were called and are offered no more are declared', () => {
    const { body } = write({ turns: [hi, model(call('a')), tool(result('a'))] })
    expect(body.tools).toEqual([{ name: 'f', input_schema: { type: 'object', properties: {} } }])
    expect(body.tool_choice).toEqual({ type: 'none' })
  })

  test('are strict where the model is', () => {
    const strict = { ...f, strict: true, schema: { type: 'object', properties: { a: { type: 'integer', minimum: 1 } } } }
    const { body, losses } = write({ tools: [strict] })
    expect(body.tools).toEqual([
      {
        ...{ name: 'f', strict: true },
        input_schema: {
          ...{ type: 'object', additionalProperties: false },
          properties: { a: { type: 'integer', description: '{minimum: 1}' } },
        },
      },
    ])
    expect(losses).toEqual(['tools.schema'])
    expect(write({ tools: [strict] }, { traits: { schema: false } }).losses).toEqual(['tools.strict'])
  })
})

describe('a format', () => {
  const schema = { type: 'object', properties: { a: { type: 'string', format: 'color', maxLength: 3 } } }
  const format = { kind: 'schema', schema } as const

  test('is native where it can be', () => {
    const { body, losses } = write({ format })
    expect(body.output_config).toEqual({
      format: {
        type: 'json_schema',
        schema: {
          ...{ type: 'object', additionalProperties: false },
          properties: { a: { type: 'string', description: '{maxLength: 3, format: "color"}' } },
        },
      },
    })
    expect(losses).toEqual(['response_format.schema'])
    expect(write({ format: { ...format, schema: { type: 'object' } } }).losses).toEqual([])
  })

  test('is a tool that must be called where it is not', () => {
    const { body, notes, losses } = write({ format }, { traits: { schema: false } })
    expect(body.tools).toMatchObject([{ name: 'json_answer', input_schema: schema }])
    expect(body.tool_choice).toEqual({ type: 'tool', name: 'json_answer', disable_parallel_tool_use: true })
    expect(notes.schemaTool).toBe('json_answer')
    expect(losses).toEqual([])
    const named = write({ format, tools: [{ ...f, name: 'json_answer' }] }, { traits: { schema: false } })
    expect(named.notes.schemaTool).toBe('json_answer_2')
    expect(named.body.tool_choice).toEqual({ type: 'any', disable_parallel_tool_use: true })
  })

  test.each<readonly [string, Partial<Conversation>, Traits]>([
    ['P28: the model thinks', { format, reasoning: { effort: 'low' } }, { schema: false, thinking: 'either' }],
    ['P28: no tool can be forced', { format }, { schema: false, forcedTool: false }],
    ['there is no schema', { format: { kind: 'json' } }, {}],
  ])('is asked for in words where %s', (_name, said, traits) => {
    const { body, losses, notes } = write(said, { traits })
    expect(JSON.stringify(body.system)).toContain('Answer with JSON and nothing else')
    expect(body.tool_choice).toBeUndefined()
    expect(notes.schemaTool).toBeUndefined()
    expect(losses).toEqual(['response_format'])
  })
})

describe('settings', () => {
  test.each<readonly [string, Omit<Conversation['settings'], 'stream'>, object, readonly string[]]>([
    ['stops', { stop: ['x', ' '] }, { stop_sequences: ['x'] }, ['stop']],
    ['whom it is for', { endUser: 'u' }, { metadata: { user_id: 'u' } }, []],
    ['classes', { serviceClass: 'default' }, { service_tier: 'standard_only' }, []],
    ['speed', { serviceClass: 'fast' }, { speed: 'fast' }, []],
    ['a class of others', { serviceClass: 'flex' }, {}, ['service_tier']],
    ['the cache', { cache: { ttl: '30m' } }, { cache_control: { type: 'ephemeral' } }, []],
    ['temperature', { temperature: 0.5 }, { temperature: 0.5 }, []],
    ['too hot', { temperature: 1.5 }, { temperature: 1 }, ['temperature']],
    ['only one of two', { temperature: 0.5, topP: 0.5 }, { temperature: 0.5 }, ['top_p']],
    ['top p', { topP: 0.5, topK: 4 }, { top_p: 0.5, top_k: 4 }, []],
    ['what others have', { seed: 1, verbosity: 'low', metadata: { a: 'b' }, logprobs: 2, logitBias: { 1: 2 } }, {}, [
      ...['seed', 'logprobs', 'logit_bias', 'verbosity', 'metadata'],
    ]],
    ['penalties', { frequencyPenalty: 1, presencePenalty: 0 }, {}, ['frequency_penalty']],
  ])('%s', (_name, settings, fields, losses) => {
    const written = write(wants(settings))
    const { model: _model, max_tokens: _cap, messages: _messages, ...rest } = written.body
    expect(rest as object).toEqual(fields)
    expect(written.losses).toEqual([...losses])
  })

  test('P29: sampling is left out where a model refuses it', () => {
    const settings = wants({ temperature: 0.5, topP: 0.5, topK: 4 })
    const none = write(settings, { traits: { sampling: false } })
    expect(none.losses).toEqual(['temperature', 'top_p', 'top_k'])
    expect(none.body).not.toContainAnyKeys(['temperature', 'top_p', 'top_k'])
    const plain = write(wants({ temperature: 1, topP: 1 }), { traits: { sampling: false } })
    expect(plain.losses).toEqual([])
    expect(plain.body).not.toContainAnyKeys(['temperature', 'top_p'])
    const thinking = write({ ...settings, reasoning: { effort: 'high' } })
    expect(thinking.losses).toEqual(['temperature', 'top_p', 'top_k'])
  })

  test.each<readonly [string, number | undefined, Partial<ConversationTarget>, number]>([
    ['the caller\'s', 100, {}, 100],
    ['the model\'s', undefined, {}, 8000],
    ['beyond the model\'s', 9000, {}, 8000],
    ['what can be paid', 100, { cap: 50 }, 50],
    ['nobody\'s', undefined, { outputTokensMax: undefined }, 8192],
  ])('the cap is %s', (_name, asked, target, cap) => {
    const settings = { stream: true, ...(asked !== undefined && { outputTokensMax: asked }) }
    expect(write({ settings }, { target }).body).toMatchObject({ max_tokens: cap, stream: true })
  })

  test('several answers are refused', () => {
    expect(() => write(wants({ choices: 2 }))).toThrow('field_invalid')
    expect(write(wants({ choices: 1 })).losses).toEqual([])
  })

  test('no more marks than are taken', () => {
    const marked = Array.from({ length: 6 }, (_, at) => ({ ...text(`t${at}`), cache: {} }))
    const { body, losses } = write({ turns: [user(...marked)] })
    const marks = (body.messages[0]!.content as Json[]).map(block => block.cache_control !== undefined)
    expect(marks).toEqual([false, false, true, true, true, true])
    expect(losses).toEqual(['cache_control'])
  })
})
