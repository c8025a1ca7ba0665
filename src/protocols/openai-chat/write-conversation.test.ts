// Tests writing conversations as chat requests, and their losses.

import { describe, expect, test } from 'bun:test'
import { ORIGIN, targetOf } from '../../../test/support/translation.ts'
import type { ChatField } from '../../base/chat-fields.ts'
import { CHAT_FIELDS } from '../../base/chat-fields.ts'
import { Refusal } from '../../base/errors.ts'
import type { ModelTraits } from '../../base/money/model-traits.ts'
import { efforts } from '../../base/money/model-traits.ts'
import { arkChat } from '../ark/dialect.ts'
import type {
  Conversation,
  ConversationMessage,
  ConversationPart,
  GenerationSettings,
  MediaPart,
  Tool,
} from '../neutral/conversation.ts'
import type { ConversationTarget } from '../protocol.ts'
import type { ChatFlavour } from './flavour.ts'
import { openaiChatFlavour } from './flavour.ts'
import { writeConversation } from './write-conversation.ts'

interface WrittenRequest {
  readonly body: Record<string, unknown> & { readonly messages: readonly Record<string, unknown>[] }
  readonly losses: readonly string[]
  readonly target: ConversationTarget
}

const user = (...parts: readonly ConversationPart[]): ConversationMessage => ({ role: 'user', parts })
const text = (content: string): ConversationPart => ({ kind: 'text', text: content })
const greeting = user(text('hello'))

function write(
  conversation: Partial<Conversation>,
  fields?: Partial<ConversationTarget>,
  flavour = openaiChatFlavour,
): WrittenRequest {
  const target = targetOf({ chatFields: CHAT_FIELDS, ...fields })
  const complete: Conversation = {
    messages: [greeting],
    tools: [],
    settings: { stream: false },
    lostFields: [],
    ...conversation,
  }
  const body = JSON.parse(writeConversation(complete, target, flavour)) as WrittenRequest['body']
  return { body, losses: target.notes.losses.codes, target }
}

const MARKS: readonly ChatField[] = ['prompt_cache_breakpoint']

const writeSettings = (
  settings: Partial<GenerationSettings>,
  fields?: Partial<ConversationTarget>,
  flavour?: ChatFlavour,
): WrittenRequest => write({ settings: { stream: false, ...settings } }, fields, flavour)
const messagesOf = (messages: readonly ConversationMessage[], traits: ModelTraits = {}, flavour?: ChatFlavour) =>
  write({ messages }, { traits }, flavour).body.messages

describe('messages', () => {
  const instructed: readonly ConversationMessage[] = [
    { role: 'system', parts: [text('s')] },
    { role: 'developer', parts: [text('d'), text('e')] },
    { ...greeting, name: 'Ada' },
    { role: 'assistant', parts: [text('a'), text('b')] },
    { role: 'system', parts: [text('t')] },
  ]

  test('have all roles, with instructions in their positions', () => {
    expect(write({ messages: instructed }, { systemAnywhere: true }).body.messages).toEqual([
      { role: 'system', content: 's' },
      {
        role: 'system',
        content: [
          { type: 'text', text: 'd' },
          { type: 'text', text: 'e' },
        ],
      },
      { role: 'user', content: 'hello', name: 'Ada' },
      { role: 'assistant', content: 'ab' },
      { role: 'system', content: 't' },
    ])
    const marked = messagesOf(instructed, { system: false })
    expect(marked.map(message => message.role)).not.toContain('system')
    expect(marked.map(message => message.content).filter(content => String(content).includes('<system>'))).toEqual([
      '<system>\ns\n</system>',
      '<system>\nt\n</system>',
    ])
    expect(marked[1]!.content).toEqual([
      { type: 'text', text: '<system>\nd\n</system>' },
      { type: 'text', text: '<system>\ne\n</system>' },
    ])
  })

  test('have one system message, at the beginning, unless the upstream accepts others', () => {
    const { body, losses } = write({ messages: instructed }, { chatFields: [] })
    expect(body.messages).toEqual([
      { role: 'system', content: 's\n\nd\n\ne' },
      { role: 'user', content: 'hello', name: 'Ada' },
      { role: 'assistant', content: 'ab' },
      { role: 'user', content: '<system>\nt\n</system>' },
    ])
    expect(losses).toEqual([])
    expect(messagesOf([greeting, instructed[0]!])).toEqual([
      { role: 'user', content: 'hello' },
      { role: 'user', content: '<system>\ns\n</system>' },
    ])
    expect(messagesOf(instructed.slice(0, 2)).map(({ role }) => role)).toEqual(['system'])
  })

  test('have the cache breakpoints of all instructions at the beginning, and a name only if there is one instruction', () => {
    const first: ConversationMessage = {
      role: 'system',
      name: 'Rules',
      parts: [{ kind: 'text', text: 's', cache: {} }],
    }
    const named = write({ messages: [first, greeting] })
    expect([named.body.messages[0]!.name, named.losses]).toEqual(['Rules', []])
    const { body, losses } = write({ messages: [first, instructed[1]!, greeting] })
    const [s, d, e] = ['s', 'd', 'e'].map(letter => ({ type: 'text', text: letter }))
    const content = [{ ...s, prompt_cache_breakpoint: { mode: 'explicit' } }, d, e]
    expect(body.messages[0]).toEqual({ role: 'system', content })
    expect(losses).toEqual(['name'])
  })

  test('P26: have tool results directly after their calls, and media of results after all of them', () => {
    const image: MediaPart = { kind: 'image', source: { at: 'inline', base64: 'AAAA', mime: 'image/png' } }
    const call = (id: string): ConversationPart => ({ kind: 'call', id, name: 'f', arguments: '{"a": 1.0}' })
    const long = 'x'.repeat(60)
    const messages = messagesOf([
      greeting,
      { role: 'assistant', parts: [text('before'), call('a'), call(long)] },
      {
        role: 'tool',
        parts: [
          { kind: 'result', callId: 'a', name: 'f', parts: [{ kind: 'text', text: 'A' }, image], failed: true },
          { kind: 'result', callId: long, parts: [image] },
        ],
      },
      greeting,
    ])
    expect(messages.map(message => message.role)).toEqual(['user', 'assistant', 'tool', 'tool', 'user', 'user'])
    const calls = messages[1]!.tool_calls as { id: string; function: { arguments: string } }[]
    expect(calls[0]).toEqual({ id: 'a', type: 'function', function: { name: 'f', arguments: '{"a": 1.0}' } } as never)
    expect(calls[1]!.id.length).toBeLessThanOrEqual(40)
    expect(messages[2]).toEqual({ role: 'tool', tool_call_id: 'a', content: 'Error: A' })
    expect(messages[3]).toMatchObject({ tool_call_id: calls[1]!.id })
    expect(messages[3]!.content).not.toBe('')
    const url = { url: 'data:image/png;base64,AAAA' }
    const images = (messages[4]!.content as Record<string, unknown>[]).filter(part => part.type === 'image_url')
    expect(images).toEqual([
      { type: 'image_url', image_url: url },
      { type: 'image_url', image_url: url },
    ])
  })

  test('have an answer between results and a message of the user, if the upstream needs one', () => {
    const image: MediaPart = { kind: 'image', source: { at: 'inline', base64: 'AAAA', mime: 'image/png' } }
    const turnsOf = (id: string, ...parts: MediaPart[]): ConversationMessage[] => [
      { role: 'assistant', parts: [{ kind: 'call', id, name: 'f', arguments: '{}' }] },
      { role: 'tool', parts: [{ kind: 'result', callId: id, parts: [{ kind: 'text', text: 'A' }, ...parts] }] },
    ]
    const late: ConversationMessage = { role: 'developer', parts: [text('d')] }
    const messages = [greeting, ...turnsOf('a'), greeting, ...turnsOf('b'), late, ...turnsOf('c', image)]
    const shown = (target: Partial<ConversationTarget>): readonly string[] =>
      write({ messages }, target).body.messages.map(({ role, content }) => {
        return `${String(role)} ${Array.isArray(content) ? 'parts' : String(content)}`
      })
    const shownWith = (...answer: readonly string[]): readonly string[] => {
      const results = ['assistant null', 'tool A', ...answer]
      return [
        'user hello',
        ...results,
        'user hello',
        ...results,
        'user <system>\nd\n</system>',
        ...results,
        'user parts',
      ]
    }
    expect(shown({ userAfterTool: false })).toEqual(shownWith('assistant Done.'))
    expect(shown({})).toEqual(shownWith())
    const open = write({ messages: [greeting, ...turnsOf('a')] }, { userAfterTool: false }).body.messages
    expect(open.map(({ role }) => role)).toEqual(['user', 'assistant', 'tool'])
  })

  test('have text documents of a tool result as text of the result', () => {
    const source = { at: 'text', text: 'It rains.', mime: 'text/plain' } as const
    const parts = [{ kind: 'file', name: 'Weather', source }] as const
    const messages = messagesOf([
      greeting,
      { role: 'assistant', parts: [{ kind: 'call', id: 'a', name: 'f', arguments: '{}' }] },
      { role: 'tool', parts: [{ kind: 'result', callId: 'a', name: 'f', parts }] },
    ])
    expect(messages.slice(2)).toEqual([{ role: 'tool', tool_call_id: 'a', content: 'Weather\n\nIt rains.' }])
  })

  test('have media of all kinds', () => {
    const media = new Map([['http://x/a.mp3', { mime: 'audio/mpeg', base64: 'AAAA' }]])
    const parts: MediaPart[] = [
      { kind: 'image', source: { at: 'url', url: 'http://x/' }, detail: 'original' },
      { kind: 'audio', source: { at: 'inline', base64: 'AAAA', mime: 'audio/x-wav' } },
      { kind: 'audio', source: { at: 'url', url: 'http://x/a.mp3' } },
      { kind: 'video', source: { at: 'url', url: 'http://x/v' } },
      { kind: 'file', source: { at: 'inline', base64: 'AAAA', mime: 'application/pdf' } },
      { kind: 'file', source: { at: 'text', text: 'words', mime: 'text/plain' }, name: 'title' },
    ]
    const { body, losses } = write({ messages: [user(...parts)] }, { media })
    expect(body.messages[0]?.content).toEqual([
      { type: 'image_url', image_url: { url: 'http://x/', detail: 'original' } },
      { type: 'input_audio', input_audio: { data: 'AAAA', format: 'wav' } },
      { type: 'input_audio', input_audio: { data: 'AAAA', format: 'mp3' } },
      { type: 'video_url', video_url: { url: 'http://x/v' } },
      { type: 'file', file: { filename: 'document.pdf', file_data: 'data:application/pdf;base64,AAAA' } },
      { type: 'text', text: 'title\n\nwords' },
    ])
    expect(losses).toEqual([])
    const file: MediaPart = { kind: 'file', source: { at: 'url', url: 'http://x/f' } }
    expect(() => write({ messages: [user(file)] })).toThrow(Refusal)
    expect(messagesOf([user(file, parts[0]!)], {}, arkChat)[0]?.content).toEqual([
      { type: 'file', file: { file_url: 'http://x/f' } },
      { type: 'image_url', image_url: { url: 'http://x/', detail: 'xhigh' } },
    ])
    const inline = { at: 'inline', base64: 'AAAA', mime: 'application/pdf' } as const
    const coarse: MediaPart = { kind: 'file', source: inline, detail: 'low' }
    expect(write({ messages: [user(coarse)] }).losses).toEqual(['file.detail'])
    expect(write({ messages: [user({ ...coarse, detail: 'auto' })] }).losses).toEqual([])
    const stored: MediaPart = { kind: 'image', source: { at: 'provider', id: 'file-1' } }
    expect(() => write({ messages: [user(stored)] })).toThrow(Refusal)
  })

  test('keep a refusal beside a text with a cache breakpoint', () => {
    const parts: ConversationPart[] = [
      { kind: 'text', text: 'a', cache: {} },
      { kind: 'refusal', text: 'no' },
    ]
    const { body } = write({ messages: [greeting, { role: 'assistant', parts }, greeting] }, { chatFields: MARKS })
    expect(body.messages[1]!.content).toEqual([
      { type: 'text', text: 'a', prompt_cache_breakpoint: { mode: 'explicit' } },
      { type: 'text', text: 'no' },
    ])
  })

  test('have cache breakpoints if the upstream accepts them', () => {
    const marked: ConversationPart = { kind: 'text', text: 'm', cache: { ttl: '1h' } }
    const result: ConversationPart = { kind: 'result', callId: 'a', parts: [{ kind: 'text', text: 'r' }], cache: {} }
    const call: ConversationPart = { kind: 'call', id: 'a', name: 'f', arguments: '' }
    const toolMessage: ConversationMessage = { role: 'tool', parts: [result] }
    const conversation: ConversationMessage[] = [
      user(marked),
      { role: 'assistant', parts: [marked, call] },
      toolMessage,
    ]
    const mark = { prompt_cache_breakpoint: { mode: 'explicit', ttl: '12h' } }
    const { body, losses } = write({ messages: conversation })
    expect(body.messages.map(message => message.content)).toEqual([
      [{ type: 'text', text: 'm', ...mark }],
      [{ type: 'text', text: 'm', ...mark }],
      [{ type: 'text', text: 'r', prompt_cache_breakpoint: { mode: 'explicit' } }],
    ])
    expect(losses).toEqual([])
    const without = write({ messages: conversation }, { traits: { cacheMarks: false } })
    expect(without.body.messages.map(message => message.content)).toEqual(['m', 'm', 'r'])
    expect(without.losses).toEqual(['cache_control'])
    expect(write({ messages: conversation }, {}, arkChat).losses).toEqual(['cache_control'])
    const undeclared = write({ messages: conversation }, { chatFields: ['user'] })
    expect(undeclared.body.messages.map(message => message.content)).toEqual(['m', 'm', 'r'])
    expect(undeclared.losses).toEqual(['cache_control'])
  })

  test('have texts in lists only for upstreams with cache breakpoints', () => {
    const image: ConversationPart = { kind: 'image', source: { at: 'url', url: 'https://a/b' } }
    const messages = [{ role: 'system', parts: [text('a'), text('b')] } as const, user(text('c'), text('d'))]
    const contents = (chatFields: readonly ChatField[], given: readonly ConversationMessage[] = messages) =>
      write({ messages: given }, { chatFields }).body.messages.map(({ content }) => content)
    const list = (...texts: readonly string[]) => texts.map(one => ({ type: 'text', text: one }))
    expect(contents(CHAT_FIELDS)).toEqual([list('a', 'b'), list('c', 'd')])
    expect(contents([])).toEqual(['a\n\nb', 'c\n\nd'])
    const shown = { type: 'image_url', image_url: { url: 'https://a/b' } }
    expect(contents([], [user(text('c'), text('d'), image)])).toEqual([[...list('c', 'd'), shown]])
  })

  test('have a refusal in its own field or as text', () => {
    const conversation: ConversationMessage[] = [
      greeting,
      { role: 'assistant', parts: [{ kind: 'refusal', text: 'no' }] },
    ]
    expect(messagesOf(conversation)[1]).toEqual({ role: 'assistant', content: null, refusal: 'no' })
    expect(messagesOf(conversation, {}, arkChat)[1]).toEqual({ role: 'assistant', content: 'no' })
    const undeclared = write({ messages: conversation }, { chatFields: [] })
    expect(undeclared.body.messages[1]).toEqual({ role: 'assistant', content: 'no' })
  })
})

describe('thoughts', () => {
  const thinkingPart = (
    origin: string,
    form: 'shown' | 'encrypted' | 'signature',
    content = 'hm',
  ): ConversationPart => ({
    kind: 'reasoning',
    text: content,
    sealed: { form, value: form === 'shown' ? '' : 'v', origin },
  })
  const withAssistant = (...parts: readonly ConversationPart[]): ConversationMessage[] => [
    greeting,
    { role: 'assistant', parts: [...parts, text('a')] },
  ]

  test('are sent back only to their origin', () => {
    const ownWrite = write({ messages: withAssistant(thinkingPart(ORIGIN, 'shown')) })
    expect(ownWrite.body.messages[1]).toEqual({ role: 'assistant', content: 'a', reasoning_content: 'hm' })
    const foreign: ConversationPart[] = [thinkingPart('other', 'signature'), { kind: 'reasoning', text: 'of nobody' }]
    const foreignWrite = write({ messages: withAssistant(...foreign) })
    expect(foreignWrite.body.messages[1]).toEqual({ role: 'assistant', content: 'a' })
    expect([ownWrite.losses, foreignWrite.losses]).toEqual([[], ['reasoning_state']])
  })

  test('have reasoning state only in messages of Ark', () => {
    const messages = withAssistant(thinkingPart(ORIGIN, 'encrypted'))
    expect(write({ messages }, {}, arkChat).body.messages[1]).toMatchObject({
      reasoning_content: 'hm',
      encrypted_content: 'v',
    })
    expect(write({ messages }).losses).toEqual(['reasoning_state'])
    expect(
      write({ messages: withAssistant(thinkingPart('other', 'encrypted')) }, {}, arkChat).body.messages[1],
    ).toEqual({
      role: 'assistant',
      content: 'a',
    })
  })

  test('have the signature of a tool call only for its origin', () => {
    const call = (origin: string): ConversationMessage => ({
      role: 'assistant',
      parts: [{ kind: 'call', id: 'a', name: 'f', arguments: '{}', sealed: { form: 'thought', value: 'sig', origin } }],
    })
    const writtenCall = (origin: string) => (messagesOf([greeting, call(origin)])[1]!.tool_calls as object[])[0]
    expect(writtenCall(ORIGIN)).toHaveProperty('extra_content.google.thought_signature', 'sig')
    expect(writtenCall('other')).not.toHaveProperty('extra_content')
  })
})

describe('tools', () => {
  const tools: Tool[] = [
    { kind: 'function', name: 'f', schema: { type: 'object' }, strict: true },
    { kind: 'function', name: 'with.dots' },
    { kind: 'function', name: 'with_dots' },
    { kind: 'custom', name: 'free', grammar: { syntax: 'lark', definition: 'x' } },
    { kind: 'search', contextSize: 'low', domains: ['x.org'] },
    { kind: 'native', dialect: 'gemini', what: 'code_execution', value: {} },
  ]

  test('have valid names, which are converted back in the answer', () => {
    const { body, losses, target } = write({ tools })
    const names = (body.tools as { type: string; function?: { name: string }; custom?: { name: string } }[]).map(
      tool => tool.function?.name ?? tool.custom?.name ?? '',
    )
    expect(new Set(names).size).toBe(4)
    for (const name of names) expect(name).toMatch(/^[a-zA-Z0-9_-]{1,64}$/)
    expect(target.notes.renamed.get(names[1]!)).toBe('with.dots')
    expect(losses).toEqual(['code_execution', 'web_search'])
    expect(body).not.toHaveProperty('web_search_options')
  })

  test('include a web search if the model has one', () => {
    const { body, losses } = write({ tools }, { traits: { searches: true } })
    expect(body.web_search_options).toEqual({ search_context_size: 'low' })
    expect(losses).toEqual(['code_execution', 'web_search.domains'])
  })

  test('that are custom become functions if the flavour or the provider has no custom tools', () => {
    const call: ConversationPart = { kind: 'call', id: 'a', name: 'free', arguments: 'x "y"', custom: true }
    const messages: ConversationMessage[] = [greeting, { role: 'assistant', parts: [call] }]
    const custom = { tools: tools.slice(3, 4), messages, toolChoice: { mode: 'required', names: ['free'] } } as const
    for (const written of [write(custom, {}, arkChat), write(custom, { chatFields: ['user'] })]) {
      const { body, target } = written
      expect(body.tools).toMatchObject([{ type: 'function', function: { name: 'free' } }])
      expect(body.tool_choice).toEqual({ type: 'function', function: { name: 'free' } })
      expect(body.messages[1]).toMatchObject({ tool_calls: [{ function: { arguments: '{"input":"x \\"y\\""}' } }] })
      expect(target.notes.wrapped).toEqual(new Set(['free']))
    }
    const [customCall] = write({ messages }).body.messages[1]!.tool_calls as object[]
    expect(customCall).toMatchObject({ type: 'custom', custom: { input: 'x "y"' } })
  })

  test('are limited and forced by the tool choice', () => {
    const functions = tools.slice(0, 4)
    const chosen = (toolChoice: NonNullable<Conversation['toolChoice']>, traits: ModelTraits = {}) =>
      write({ tools: functions, toolChoice }, { traits })
    expect(chosen({ mode: 'none' }).body.tool_choice).toBe('none')
    expect(chosen({ mode: 'required', names: ['f'] }).body).toMatchObject({
      tools: [{ function: { name: 'f' } }, {}, {}, {}],
      tool_choice: { type: 'function', function: { name: 'f' } },
    })
    expect(chosen({ mode: 'required', names: ['free'] }).body.tool_choice).toEqual({
      type: 'custom',
      custom: { name: 'free' },
    })
    expect(chosen({ mode: 'auto', names: ['f', 'with_dots'] }).body).toMatchObject({
      tools: [{ function: { name: 'f' } }, { function: { name: 'with_dots' } }],
      tool_choice: 'auto',
    })
    const unforced = chosen({ mode: 'required' }, { forcedTool: false })
    expect([unforced.body.tool_choice, unforced.losses]).toEqual(['auto', ['tool_choice']])
    expect(write({ toolChoice: { mode: 'auto' }, parallelCalls: false }).body).not.toHaveProperty('tool_choice')
    expect(write({ tools: functions, parallelCalls: false }).body.parallel_tool_calls).toBe(false)
  })
})

describe('thinking', () => {
  const writeThinking = (
    reasoning: NonNullable<Conversation['reasoning']>,
    traits: ModelTraits = {},
    flavour?: ChatFlavour,
  ) => {
    const { body, losses } = write({ reasoning }, { traits }, flavour)
    return [body.reasoning_effort, body.thinking, losses]
  }
  type Reasoning = NonNullable<Conversation['reasoning']>
  const rows: readonly (readonly [Reasoning, ModelTraits, string | undefined, readonly string[]])[] = [
    [{ effort: 'high' }, {}, 'high', []],
    [{ budget: 0 }, {}, undefined, ['reasoning_effort.none']],
    [{ budget: 0 }, { thinking: 'effort' }, 'none', []],
    [{ budget: 0 }, { efforts: ['none', 'low'] }, 'none', []],
    [{ budget: 0 }, { efforts: ['low', 'high'] }, 'low', ['reasoning_effort.none']],
    [{ budget: 1024 }, {}, 'low', []],
    [{ budget: 4096 }, {}, 'medium', []],
    [{ budget: 16_000 }, {}, 'high', []],
    [{ budget: 60_000 }, {}, 'high', []],
    [{ budget: 60_000 }, { efforts }, 'xhigh', []],
    [{ effort: 'max' }, {}, 'high', []],
    [{ effort: 'minimal' }, {}, 'low', []],
    [{ effort: 'minimal' }, { efforts }, 'minimal', []],
    [{ adaptive: true, show: 'auto' }, {}, undefined, []],
    [{ effort: 'max' }, { efforts: ['low', 'high'] }, 'high', []],
    [{ effort: 'minimal' }, { efforts: ['low', 'high'] }, 'low', []],
    [{ effort: 'none' }, { stopsThinking: false, efforts: ['none', 'low'] }, 'low', ['reasoning_effort.none']],
    [{ effort: 'high' }, { efforts: ['none'] }, undefined, ['reasoning_effort']],
    [{ effort: 'high' }, { efforts: [] }, undefined, ['reasoning_effort']],
    [{ effort: 'none' }, { efforts: [] }, undefined, ['reasoning_effort.none']],
    [{ effort: 'high' }, { thinking: 'none' }, undefined, ['reasoning_effort']],
    [{ effort: 'none' }, { thinking: 'none' }, undefined, []],
  ]

  test.each(rows)('is written for %p and the traits %p', (...[reasoning, traits, effort, losses]) => {
    expect(writeThinking(reasoning, traits)).toEqual([effort, undefined, losses])
  })

  test('is written as a switch and an effort for Ark', () => {
    expect(writeThinking({ effort: 'high' }, {}, arkChat)).toEqual(['high', { type: 'enabled' }, []])
    expect(writeThinking({ budget: 0 }, {}, arkChat)).toEqual([undefined, { type: 'disabled' }, []])
    expect(writeThinking({ adaptive: true }, {}, arkChat)).toEqual([undefined, undefined, []])
  })
})

describe('settings', () => {
  test('P36: are all carried if chat has them', () => {
    const { body, losses } = writeSettings({
      stream: true,
      outputTokensMax: 100,
      temperature: 0.5,
      topP: 0.9,
      stop: ['x'],
      seed: 5,
      frequencyPenalty: 1,
      presencePenalty: -1,
      choices: 2,
      logprobs: 3,
      logitBias: { 5: 1 },
      verbosity: 'low',
      serviceClass: 'standard_only',
      endUser: 'u',
      cacheKey: 'k',
    })
    const { messages: _messages, ...rest } = body
    expect(rest).toEqual({
      model: 'm',
      stream: true,
      stream_options: { include_usage: true },
      max_tokens: 100,
      temperature: 0.5,
      top_p: 0.9,
      stop: ['x'],
      seed: 5,
      frequency_penalty: 1,
      presence_penalty: -1,
      n: 2,
      logprobs: true,
      top_logprobs: 3,
      logit_bias: { 5: 1 },
      verbosity: 'low',
      service_tier: 'default',
      user: 'u',
      prompt_cache_key: 'k',
    })
    expect(losses).toEqual([])
  })

  test('are losses if chat or the model does not have them', () => {
    const { losses } = writeSettings({ topK: 5, metadata: { a: 'b' }, serviceClass: 'ultrafast' })
    expect(losses.toSorted()).toEqual(['metadata', 'service_tier', 'top_k'])
    const withoutSampling = writeSettings({ temperature: 0.5, topP: 0.5 }, { traits: { sampling: false } })
    const atDefaults = writeSettings({ temperature: 1, topP: 1 }, { traits: { sampling: false } })
    expect([atDefaults.losses, atDefaults.body.temperature]).toEqual([[], undefined])
    expect(withoutSampling.losses).toEqual(['temperature', 'top_p'])
    expect(withoutSampling.body).not.toHaveProperty('temperature')
    const onlyWithoutThinking = { traits: { samplingWithoutThinking: true } }
    const settings = { stream: false, temperature: 0.5 }
    expect(write({ settings }, onlyWithoutThinking).losses).toEqual(['temperature'])
    expect(write({ settings, reasoning: { budget: 0 } }, onlyWithoutThinking).body.temperature).toBe(0.5)
    const ark = writeSettings({ cacheKey: 'k', verbosity: 'low', serviceClass: 'flex' }, {}, arkChat)
    expect(ark.losses).toEqual(['prompt_cache_key', 'verbosity', 'service_tier'])
  })

  test('cap the output at the lowest of the caller’s, the gateway’s and the model’s caps, in the field that the upstream reads', () => {
    const capField = 'max_completion_tokens'
    expect(writeSettings({ outputTokensMax: 100 }, { cap: 50, capField }).body).toMatchObject({
      max_completion_tokens: 50,
    })
    expect(writeSettings({ outputTokensMax: 10 }, { cap: 50 }).body).toMatchObject({ max_tokens: 10 })
    expect(writeSettings({}, { cap: 50 }).body).toMatchObject({ max_tokens: 50 })
    const limited = [openaiChatFlavour, arkChat].map(flavour =>
      writeSettings({ outputTokensMax: 100 }, { outputTokensMax: 60 }, flavour),
    )
    for (const { body, losses } of limited) expect([body.max_tokens, losses]).toEqual([60, []])
    expect(writeSettings({}, { outputTokensMax: 60 }).body).not.toHaveProperty('max_tokens')
    expect(writeSettings({ stream: true }, { askUsage: false }).body).not.toHaveProperty('stream_options')
    expect(() => writeSettings({ choices: 6 }, {}, arkChat)).toThrow(Refusal)
  })

  test('are written only if the provider accepts their field', () => {
    const settings = { cacheKey: 'k', verbosity: 'low', endUser: 'u' } as const
    const fieldsFor = (...chatFields: readonly ChatField[]) => {
      const { body, losses } = writeSettings(settings, { chatFields })
      const { model: _model, messages: _messages, ...fields } = body
      return [fields, losses]
    }
    expect(fieldsFor('prompt_cache_key')).toEqual([{ prompt_cache_key: 'k' }, ['verbosity', 'user']])
    expect(fieldsFor('verbosity', 'user')).toEqual([{ verbosity: 'low', user: 'u' }, ['prompt_cache_key']])
    expect(fieldsFor()).toEqual([{}, ['prompt_cache_key', 'verbosity', 'user']])
  })

  type CacheRow = readonly [NonNullable<GenerationSettings['cache']>, object | undefined, lost: string[], other: string]
  const cacheRows: readonly CacheRow[] = [
    ['breakpoints', { mode: 'explicit' }, [], 'prompt_cache_options'],
    [{}, undefined, [], 'cache_control'],
    [{ ttl: '5m' }, undefined, [], 'cache_control'],
    [{ ttl: '30m' }, undefined, [], 'cache_control'],
    [{ ttl: '1h' }, undefined, ['cache_control'], 'cache_control'],
    [{ ttl: '12h' }, undefined, ['cache_control'], 'cache_control'],
  ]
  test.each(cacheRows)('for caching are written or lost: %j', (cache, options, ...[lost, lostElsewhere]) => {
    const { body, losses } = writeSettings({ cache })
    expect([body.prompt_cache_options, losses]).toEqual([options, lost])
    const others = [
      writeSettings({ cache }, { traits: { cacheMarks: false } }),
      writeSettings({ cache }, { chatFields: ['user'] }),
      writeSettings({ cache }, {}, arkChat),
    ]
    for (const other of others)
      expect([other.body.prompt_cache_options, other.losses]).toEqual([undefined, [lostElsewhere]])
  })

  test('have names and stop sequences within the limits of OpenAI', () => {
    const long = 'x'.repeat(65)
    const { body } = writeSettings({ endUser: long, cacheKey: long })
    expect(body.user).toMatch(/^[0-9a-f]{64}$/)
    expect(body.prompt_cache_key).toBe(body.user)
    expect(writeSettings({ endUser: long.slice(1) }).body.user).toBe(long.slice(1))
    const stopped = writeSettings({ stop: ['a', 'b', 'c', 'd', 'e'] })
    expect([stopped.body.stop, stopped.losses]).toEqual([['a', 'b', 'c', 'd'], ['stop']])
    expect(writeSettings({ stop: ['a', 'b', 'c', 'd'] }).losses).toEqual([])
  })

  test('request a schema, or describe it in a message', () => {
    const schema = { type: 'object', properties: { a: {} } }
    const format = { kind: 'schema', name: 'a b', schema, strict: true } as const
    expect(write({ format, followsStrictRules: true }).body.response_format).toEqual({
      type: 'json_schema',
      json_schema: { name: 'a_b', schema, strict: true },
    })
    const weaker = write({ format })
    expect(weaker.body.response_format).toEqual({ type: 'json_schema', json_schema: { name: 'a_b', schema } })
    expect(weaker.losses).toEqual(['response_format.schema'])
    const withoutSchema = write({ format }, { traits: { schema: false } })
    expect(withoutSchema.body.response_format).toEqual({ type: 'json_object' })
    expect(withoutSchema.body.messages[0]).toMatchObject({ role: 'system' })
    expect(withoutSchema.body.messages[0]?.content).toContain(JSON.stringify(schema))
    expect(withoutSchema.losses).toEqual(['response_format.json_schema'])
    expect(write({ format: { kind: 'json' } }).body.response_format).toEqual({ type: 'json_object' })
  })

  test('mention JSON in the only system message, where upstreams want the word', () => {
    const textOf = (role: 'system' | 'user', text: string): ConversationMessage => ({
      role,
      parts: [{ kind: 'text', text }],
    })
    const sent = (messages: readonly ConversationMessage[]) =>
      write({ messages, format: { kind: 'json' } }, { chatFields: [] }).body.messages.map(({ role, content }) => [
        role,
        content,
      ])
    const words = 'Answer with a JSON object.'
    expect(sent([textOf('user', 'Hi')])).toEqual([
      ['system', words],
      ['user', 'Hi'],
    ])
    expect(sent([textOf('system', 'Be brief.'), textOf('user', 'Hi')])).toEqual([
      ['system', `Be brief.\n\n${words}`],
      ['user', 'Hi'],
    ])
    expect(sent([textOf('user', 'Give me Json')])).toEqual([['user', 'Give me Json']])
  })
})
