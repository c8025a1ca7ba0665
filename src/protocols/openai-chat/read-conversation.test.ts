// Tests reading a chat request besides its messages, and that no request breaks the reader.

import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { readChat, refusedParam } from '../../../test/support/chat-requests.ts'
import { Readings } from '../../../test/support/readings.ts'
import { arkChat } from '../ark/dialect.ts'
import type { Conversation } from '../neutral/conversation.ts'

describe('tools', () => {
  test('of all kinds are read', () => {
    const grammar = { syntax: 'lark', definition: 'start: "x"' }
    const conversation = readChat({
      tools: [
        { type: 'function', function: { name: 'f', description: 'd', parameters: { type: 'object' }, strict: true } },
        { type: 'custom', custom: { name: 'g', format: { type: 'grammar', grammar } } },
        { type: 'web_thing', x: 1 },
        { type: 'function', function: { name: 'h' }, cache_control: { type: 'ephemeral' } },
      ],
      functions: [{ name: 'old' }],
      web_search_options: {
        search_context_size: 'low',
        user_location: { type: 'approximate', approximate: { city: 'Rome', timezone: 'Europe/Rome' } },
      },
    })
    expect(conversation.tools).toEqual([
      { kind: 'function', name: 'f', description: 'd', schema: { type: 'object' }, strict: true },
      { kind: 'custom', name: 'g', grammar },
      { kind: 'native', dialect: 'openai-chat', what: 'tools.web_thing', value: { type: 'web_thing', x: 1 } },
      { kind: 'function', name: 'h', cache: {} },
      { kind: 'function', name: 'old' },
      { kind: 'search', contextSize: 'low', location: { city: 'Rome', zone: 'Europe/Rome' } },
    ])
  })

  const choices: readonly (readonly [unknown, unknown])[] = [
    ['auto', { mode: 'auto' }],
    [
      { type: 'function', function: { name: 'f' } },
      { mode: 'required', names: ['f'] },
    ],
    [
      { type: 'custom', custom: { name: 'g' } },
      { mode: 'required', names: ['g'] },
    ],
    [
      { type: 'allowed_tools', allowed_tools: { mode: 'auto', tools: [{ function: { name: 'f' } }] } },
      { mode: 'auto', names: ['f'] },
    ],
  ]

  test.each(choices)('have a choice: %p', (choice, expected) => {
    expect(readChat({ tool_choice: choice }).toolChoice).toEqual(expected as Conversation['toolChoice'])
  })

  test.each(['any', 5, {}, { type: 'function' }, { type: 'allowed_tools' }])(
    'are refused with the invalid choice %p',
    choice => {
      expect(refusedParam({ tool_choice: choice })).toStartWith('tool_choice')
    },
  )
})

describe('thinking', () => {
  const rows: readonly (readonly [object, unknown])[] = [
    [{ reasoning_effort: 'xhigh' }, { effort: 'xhigh', show: 'auto' }],
    [{ thinking: { type: 'enabled', budget_tokens: 2048 } }, { budget: 2048, show: 'auto' }],
    [{ thinking: { type: 'auto' } }, { adaptive: true, show: 'auto' }],
    [{ thinking: { type: 'disabled' }, thinking_budget: 5 }, { effort: 'none' }],
    [
      { enable_thinking: true, thinking_budget: 50 },
      { budget: 50, show: 'auto' },
    ],
    [{ enable_thinking: false }, { effort: 'none' }],
    [{ reasoning: { max_tokens: 100, exclude: true } }, { budget: 100, show: 'none' }],
    [
      { extra_body: { google: { thinking_config: { thinking_level: 'LOW', include_thoughts: true } } } },
      { effort: 'low', show: 'auto' },
    ],
    [{ extra_body: { google: { thinking_config: { thinking_budget: -1 } } } }, { adaptive: true, show: 'auto' }],
    [{}, undefined],
  ]

  test.each(rows)('is read from %p', (fields, expected) => {
    expect(readChat(fields).reasoning).toEqual(expected as Conversation['reasoning'])
  })

  test('is shown in the Ark dialect', () => {
    expect(readChat({ reasoning_effort: 'high' }, arkChat).reasoning).toEqual({ effort: 'high', show: 'auto' })
    expect(readChat({ reasoning_effort: 'none' }, arkChat).reasoning).toEqual({ effort: 'none' })
  })

  test.each([{ reasoning_effort: 'lots' }, { thinking: { type: 'odd' } }, { thinking: 5 }, { thinking_budget: 'x' }])(
    'is refused with %p',
    fields => {
      expect(refusedParam(fields)).toBeDefined()
    },
  )
})

describe('caching', () => {
  const rows: readonly (readonly [object, unknown])[] = [
    [{ mode: 'explicit' }, 'breakpoints'],
    [{ mode: 'explicit', ttl: '30m' }, 'breakpoints'],
    [{ mode: 'implicit' }, {}],
    [{ mode: 'implicit', ttl: '30m' }, { ttl: '30m' }],
    [{ ttl: '12h' }, { ttl: '12h' }],
    [{}, undefined],
  ]

  test.each(rows)('with the options %j', (options, expected) => {
    expect<unknown>(readChat({ prompt_cache_options: options }).settings.cache).toEqual(expected)
  })

  test('has a TTL that breakpoints of OpenAI inherit', () => {
    const own = { type: 'text', text: 'a', prompt_cache_breakpoint: { mode: 'explicit', ttl: '30m' } }
    const inherited = { type: 'text', text: 'b', prompt_cache_breakpoint: { mode: 'explicit' } }
    const foreign = { type: 'text', text: 'c', cache_control: { type: 'ephemeral' } }
    const messages = [{ role: 'user', content: [own, inherited, foreign] }]
    const { messages: turns } = readChat({ messages, prompt_cache_options: { mode: 'explicit', ttl: '12h' } })
    const marks = turns[0]!.parts.map(part => 'cache' in part && part.cache)
    expect<unknown>(marks).toEqual([{ ttl: '30m' }, { ttl: '12h' }, {}])
  })

  test('with an unknown option is a loss, and with options that are no object is refused', () => {
    expect(readChat({ prompt_cache_options: { novel: 1 } }).lostFields).toEqual(['prompt_cache_options.novel'])
    expect(refusedParam({ prompt_cache_options: 'explicit' })).toBe('prompt_cache_options')
  })
})

test('any request is read, or throws a Refusal', () => {
  const names = ['model', 'messages', 'role', 'content', 'tool_calls', 'tools', 'type', 'function', 'tool_choice']
  const more = ['response_format', 'thinking', 'extra_body', 'stop', 'image_url', 'url', 'file', 'user', 'assistant']
  const key = fc.oneof(fc.constantFrom(...names, ...more), fc.string({ maxLength: 3 }))
  const value = fc.letrec(tie => ({
    any: fc.oneof({ maxDepth: 4 }, fc.constantFrom(...names, ...more, null, 0, true, ''), tie('list'), tie('object')),
    list: fc.array(tie('any'), { maxLength: 3 }),
    object: fc.dictionary(key, tie('any'), { maxKeys: 4 }),
  }))
  const part = fc.record({ type: fc.constantFrom('text', 'image_url', 'file', 'function'), image_url: value.any })
  const message = fc.record({
    role: fc.constantFrom('user', 'assistant', 'tool', 'system', 'function', 'x'),
    content: fc.oneof(value.any, fc.array(fc.oneof(part, value.any), { maxLength: 3 })),
    tool_calls: value.any,
  })
  const plain = fc.record({
    role: fc.constantFrom('user', 'assistant', 'system'),
    content: fc.string({ minLength: 1 }),
  })
  const readings = new Readings()
  fc.assert(
    fc.property(
      fc.oneof(fc.constant({}), value.object),
      fc.array(fc.oneof(plain, message), { minLength: 1, maxLength: 3 }),
      (fields, messages) => {
        readings.take(() => readChat({ ...fields, model: 'a/b', messages }))
      },
    ),
    { numRuns: 500 },
  )
  expect(readings.read).toBeGreaterThan(0)
})

describe('settings', () => {
  test.each([
    [-1, undefined],
    [0, undefined],
    [40, 40],
  ])('have top_k only if it leaves out tokens: %d', (given, topK) => {
    expect(readChat({ top_k: given }).settings.topK).toBe(topK)
  })

  test.each([
    [{ user: 'u' }, 'u', []],
    [{ user: 'u', safety_identifier: 'u' }, 'u', []],
    [{ user: 'u', safety_identifier: 's' }, 's', ['user']],
  ])('have one end user: %j', (fields, endUser, losses) => {
    const { settings, lostFields } = readChat(fields)
    expect<unknown>([settings.endUser, lostFields]).toEqual([endUser, losses])
  })
})
