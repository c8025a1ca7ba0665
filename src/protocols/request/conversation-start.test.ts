// Tests that all turns of a conversation have the same start in each dialect, and that other conversations have another.

import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import type { Protocol } from '../protocol.ts'
import { protocols } from '../protocols.ts'

interface Conversation {
  readonly system: string
  readonly tools: readonly string[]
  readonly image: string
  /** Messages of the user and the model in turn, starting with the user. */
  readonly texts: readonly string[]
}

type Json = Readonly<Record<string, unknown>>
/**
 * Writes the request of a conversation. `marked`: with the cache breakpoints that clients move to the last message of each
 * turn, and with parts as content.
 */
type RequestWriter = (conversation: Conversation, marked: boolean) => Json

const roleAt = (index: number, model = 'assistant'): string => (index % 2 === 0 ? 'user' : model)
const isLast = ({ texts }: Conversation, index: number): boolean => index === texts.length - 1

const chat: RequestWriter = (conversation, marked) => ({
  model: 'a/b',
  stream: marked,
  tools: conversation.tools.map(name => ({ type: 'function', function: { name, parameters: {} } })),
  messages: [
    { role: 'system', content: conversation.system },
    ...conversation.texts.map((text, index) => {
      const mark = marked && isLast(conversation, index) && { cache_control: { type: 'ephemeral' } }
      const image =
        index === 0 && conversation.image !== '' ? [{ type: 'image_url', image_url: { url: conversation.image } }] : []
      const content = marked || image.length > 0 ? [...image, { type: 'text', text, ...mark }] : text
      return { role: roleAt(index), content }
    }),
  ],
})

const responses: RequestWriter = (conversation, marked) => {
  const instructions = conversation.system
  const tools = conversation.tools.map(name => ({ type: 'function', name }))
  if (conversation.texts.length === 1 && conversation.image === '')
    return { instructions, tools, input: conversation.texts[0]! }
  const input = conversation.texts.map((text, index) => {
    const image =
      index === 0 && conversation.image !== '' ? [{ type: 'input_image', image_url: conversation.image }] : []
    if (index % 2 === 1) {
      const content = [{ type: 'output_text', text, annotations: [] }]
      return { type: 'message', id: `msg_${index}`, role: 'assistant', status: 'completed', content }
    }
    const content = marked || image.length > 0 ? [...image, { type: 'input_text', text }] : text
    const stored = marked && { type: 'message', id: `in_${index}`, status: 'completed' }
    return { role: 'user', content, ...stored }
  })
  return { instructions, tools, input }
}

const messages: RequestWriter = (conversation, marked) => ({
  system: marked
    ? [{ type: 'text', text: conversation.system, cache_control: { type: 'ephemeral' } }]
    : conversation.system,
  tools: conversation.tools.map(name => ({ name, input_schema: { type: 'object' } })),
  messages: conversation.texts.map((text, index) => {
    const mark = marked && isLast(conversation, index) && { cache_control: { type: 'ephemeral', ttl: '1h' } }
    const source = { type: 'base64', media_type: 'image/png', data: conversation.image }
    const image = index === 0 && conversation.image !== '' ? [{ type: 'image', source }] : []
    const content = marked || image.length > 0 ? [...image, { type: 'text', text, ...mark }] : text
    return { role: roleAt(index), content }
  }),
})

const gemini: RequestWriter = (conversation, marked) => ({
  [marked ? 'systemInstruction' : 'system_instruction']: { parts: [{ text: conversation.system }] },
  tools: [{ functionDeclarations: conversation.tools.map(name => ({ name })) }, { googleSearch: {} }],
  contents: conversation.texts.map((text, index) => {
    const image =
      index === 0 && conversation.image !== ''
        ? [{ inlineData: { mimeType: 'image/png', data: conversation.image } }]
        : []
    return { role: roleAt(index, 'model'), parts: [...image, { text }] }
  }),
})

const requestWriters: Readonly<Record<keyof typeof protocols, RequestWriter>> = {
  'openai-chat': chat,
  'openai-responses': responses,
  'anthropic-messages': messages,
  'gemini': gemini,
  'ark': chat,
  'ark-responses': responses,
}

const text = fc.oneof(fc.string({ maxLength: 40 }), fc.string({ minLength: 300, maxLength: 3_000 }))
const conversations: fc.Arbitrary<Conversation> = fc.record({
  system: text,
  tools: fc.array(fc.string({ minLength: 1, maxLength: 80 }), { maxLength: 40 }),
  image: fc.oneof(fc.constant(''), fc.base64String({ minLength: 4, maxLength: 2_000 })),
  texts: fc.array(text, { minLength: 1, maxLength: 9 }),
})

describe.each(Object.keys(requestWriters) as (keyof typeof protocols)[])('in %s,', dialect => {
  const writeRequest = requestWriters[dialect]
  const startOf = (json: Json): string => protocols[dialect].begins!(json)

  test('all turns of a conversation have the same start, in any form', () => {
    fc.assert(
      fc.property(conversations, fc.array(fc.boolean(), { minLength: 9, maxLength: 9 }), (conversation, marked) => {
        const turns = conversation.texts.map((_text, index) => ({
          ...conversation,
          texts: conversation.texts.slice(0, index + 1),
        }))
        const names = new Set(turns.map((turnOf, index) => startOf(writeRequest(turnOf, marked[index]!))))
        expect(names.size).toBe(1)
      }),
    )
  })

  test('another first message, system prompt, tool or image is another conversation', () => {
    fc.assert(
      fc.property(conversations, fc.string({ minLength: 1, maxLength: 20 }), (conversation, other) => {
        const ownStart = startOf(writeRequest(conversation, false))
        const [first = '', ...rest] = conversation.texts
        for (const different of [
          { ...conversation, texts: [`${other}.${first}`, ...rest] },
          { ...conversation, texts: [`${first}.${other}`, ...rest] },
          { ...conversation, system: `${other}.${conversation.system}` },
          { ...conversation, tools: [...conversation.tools, 'one_more'] },
          { ...conversation, image: `${conversation.image}AAAA` },
        ]) {
          expect(startOf(writeRequest(different, false))).not.toBe(ownStart)
        }
      }),
    )
  })

  test('the start is short for any request', () => {
    const long = 'x'.repeat(100_000)
    const tools = Array.from({ length: 1_000 }, (_none, index) => `${index}${long}`)
    const conversation: Conversation = {
      system: long,
      tools,
      image: long,
      texts: Array.from({ length: 99 }, () => long),
    }
    expect(startOf(writeRequest(conversation, true)).length).toBeLessThan(4_096)
  })

  test('invalid requests do not throw', () => {
    fc.assert(fc.property(fc.dictionary(fc.constantFrom(...fieldNames), fc.jsonValue()), json => void startOf(json)))
    fc.assert(
      fc.property(fc.dictionary(fc.constantFrom(...fieldNames), fc.jsonValue()), json => {
        expect(protocols[dialect].cacheMs!(json) ?? 0).toBeNumber()
      }),
    )
  })
})

const fieldNames = [
  ...['messages', 'contents', 'input', 'system', 'tools', 'metadata', 'conversation', 'prompt', 'instructions'],
  ...['cache_control', 'prompt_cache_options', 'prompt_cache_retention', 'cachedContent'],
]

test('the start is the key of the caller in dialects that have one', () => {
  const haveSameStart = (dialect: keyof typeof protocols, one: Json, other: Json): boolean =>
    protocols[dialect].begins!(one) === protocols[dialect].begins!(other)
  const [greeting, otherGreeting] = [
    { messages: [{ role: 'user', content: 'hi' }] },
    { messages: [{ role: 'user', content: 'ho' }] },
  ]

  expect(
    haveSameStart('openai-chat', { ...greeting, prompt_cache_key: 'k' }, { ...otherGreeting, prompt_cache_key: 'k' }),
  ).toBe(true)
  expect(
    haveSameStart('openai-chat', { ...greeting, prompt_cache_key: 'k' }, { ...greeting, prompt_cache_key: 'l' }),
  ).toBe(false)
  const [c, d] = [
    { input: 'a', conversation: 'c' },
    { input: 'b', conversation: { id: 'c' } },
  ]
  expect(haveSameStart('openai-responses', c, d)).toBe(true)
  expect(haveSameStart('gemini', { cachedContent: 'cachedContents/1' }, { cached_content: 'cachedContents/1' })).toBe(
    true,
  )

  const session = (id: string): Json => ({ metadata: { user_id: `user_0abc_account_1_session_${id}` } })
  const [a, b] = ['11111111-2222-3333-4444-555555555555', '11111111-2222-3333-4444-666666666666']
  expect(haveSameStart('anthropic-messages', { ...greeting, ...session(a) }, { ...otherGreeting, ...session(a) })).toBe(
    true,
  )
  expect(haveSameStart('anthropic-messages', { ...greeting, ...session(a) }, { ...greeting, ...session(b) })).toBe(
    false,
  )
  const asJson: Json = { metadata: { user_id: JSON.stringify({ device_id: 'd', session_id: a }) } }
  expect(haveSameStart('anthropic-messages', { ...greeting, ...asJson }, { ...otherGreeting, ...session(a) })).toBe(
    true,
  )
})

test('different conversations of one user have different starts, and so have those of two users', () => {
  const chat: Protocol = protocols['openai-chat']
  const chatStart = (json: Json): string => chat.begins!(json)
  const chatRequest = (content: string, user: string): Json => ({ user, messages: [{ role: 'user', content }] })
  expect(chatStart(chatRequest('hi', 'ann'))).not.toBe(chatStart(chatRequest('ho', 'ann')))
  expect(chatStart(chatRequest('hi', 'ann'))).not.toBe(chatStart(chatRequest('hi', 'bob')))
  const messages: Protocol = protocols['anthropic-messages']
  const messagesStart = (json: Json): string => messages.begins!(json)
  const messagesRequest = (content: string): Json => ({
    metadata: { user_id: 'ann' },
    messages: [{ role: 'user', content }],
  })
  expect(messagesStart(messagesRequest('hi'))).not.toBe(messagesStart(messagesRequest('ho')))
})

describe('the TTL of the prompt cache is read:', () => {
  const minuteMs = 60_000
  const marked = (ttl: string): Json => ({ type: 'text', text: 'x', cache_control: { type: 'ephemeral', ttl } })
  const manyMessages = Array.from({ length: 200 }, () => ({ role: 'user', content: 'x' }))

  for (const [label, dialect, json, minutes] of [
    ['no TTL in the request', 'anthropic-messages', { system: 'x', messages: manyMessages }, undefined],
    ['at the system prompt', 'anthropic-messages', { system: [marked('1h')] }, 60],
    ['at the top level', 'anthropic-messages', { cache_control: { type: 'ephemeral', ttl: '1h' } }, 60],
    ['at a tool', 'anthropic-messages', { tools: [{ name: 'a' }, marked('1h')] }, 60],
    ['at the last message', 'anthropic-messages', { messages: [...manyMessages, { content: [marked('1h')] }] }, 60],
    [
      'the longest of several',
      'anthropic-messages',
      { system: [marked('1h')], messages: [{ content: [marked('5m')] }] },
      60,
    ],
    ['a cache mark without a TTL', 'anthropic-messages', { cache_control: { type: 'ephemeral' } }, undefined],
    ['an invalid TTL', 'anthropic-messages', { cache_control: { type: 'ephemeral', ttl: '9y' } }, undefined],
    ['a retention of a day', 'openai-chat', { prompt_cache_retention: '24h' }, 24 * 60],
    ['a retention in memory', 'openai-chat', { prompt_cache_retention: 'in_memory' }, undefined],
    ['by an option', 'openai-responses', { prompt_cache_options: { ttl: '30m' } }, 30],
    ['at a part', 'openai-responses', { input: [{ content: [{ prompt_cache_breakpoint: { ttl: '12h' } }] }] }, 12 * 60],
    [
      'a cache mark of Anthropic in chat',
      'openai-chat',
      { messages: [{ role: 'system', content: [marked('1h')] }] },
      60,
    ],
    ['a cached content of the caller', 'gemini', { cachedContent: 'cachedContents/1' }, 60],
    ['no cached content', 'gemini', {}, undefined],
  ] as const satisfies readonly [string, keyof typeof protocols, Json, number | undefined][]) {
    test(label, () => {
      expect(protocols[dialect].cacheMs!(json)).toBe(minutes === undefined ? undefined : minutes * minuteMs)
    })
  }
})
