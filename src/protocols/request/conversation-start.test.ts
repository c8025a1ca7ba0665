// Tests that all turns of a conversation have the same start in each dialect, and other conversations another one.

import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import type { Protocol } from '../protocol.ts'
import { protocols } from '../protocols.ts'

interface Talk {
  readonly system: string
  readonly tools: readonly string[]
  readonly image: string
  /** Messages of the user and the model in turn, starting with the user. */
  readonly said: readonly string[]
}

type Json = Readonly<Record<string, unknown>>
/**
 * `marked`: with the cache breakpoints that clients move to the last message of each turn, and with parts as content.
 */
type Speak = (talk: Talk, marked: boolean) => Json

const roleAt = (at: number, model = 'assistant'): string => (at % 2 === 0 ? 'user' : model)
const isLast = ({ said }: Talk, at: number): boolean => at === said.length - 1

const chat: Speak = (talk, marked) => ({
  model: 'a/b',
  stream: marked,
  tools: talk.tools.map(name => ({ type: 'function', function: { name, parameters: {} } })),
  messages: [
    { role: 'system', content: talk.system },
    ...talk.said.map((text, at) => {
      const mark = marked && isLast(talk, at) && { cache_control: { type: 'ephemeral' } }
      const image = at === 0 && talk.image !== '' ? [{ type: 'image_url', image_url: { url: talk.image } }] : []
      const content = marked || image.length > 0 ? [...image, { type: 'text', text, ...mark }] : text
      return { role: roleAt(at), content }
    }),
  ],
})

const responses: Speak = (talk, marked) => {
  const instructions = talk.system
  const tools = talk.tools.map(name => ({ type: 'function', name }))
  if (talk.said.length === 1 && talk.image === '') return { instructions, tools, input: talk.said[0]! }
  const input = talk.said.map((text, at) => {
    const image = at === 0 && talk.image !== '' ? [{ type: 'input_image', image_url: talk.image }] : []
    if (at % 2 === 1) {
      const content = [{ type: 'output_text', text, annotations: [] }]
      return { type: 'message', id: `msg_${at}`, role: 'assistant', status: 'completed', content }
    }
    const content = marked || image.length > 0 ? [...image, { type: 'input_text', text }] : text
    const kept = marked && { type: 'message', id: `in_${at}`, status: 'completed' }
    return { role: 'user', content, ...kept }
  })
  return { instructions, tools, input }
}

const messages: Speak = (talk, marked) => ({
  system: marked ? [{ type: 'text', text: talk.system, cache_control: { type: 'ephemeral' } }] : talk.system,
  tools: talk.tools.map(name => ({ name, input_schema: { type: 'object' } })),
  messages: talk.said.map((text, at) => {
    const mark = marked && isLast(talk, at) && { cache_control: { type: 'ephemeral', ttl: '1h' } }
    const source = { type: 'base64', media_type: 'image/png', data: talk.image }
    const image = at === 0 && talk.image !== '' ? [{ type: 'image', source }] : []
    const content = marked || image.length > 0 ? [...image, { type: 'text', text, ...mark }] : text
    return { role: roleAt(at), content }
  }),
})

const gemini: Speak = (talk, marked) => ({
  [marked ? 'systemInstruction' : 'system_instruction']: { parts: [{ text: talk.system }] },
  tools: [{ functionDeclarations: talk.tools.map(name => ({ name })) }, { googleSearch: {} }],
  contents: talk.said.map((text, at) => {
    const image = at === 0 && talk.image !== '' ? [{ inlineData: { mimeType: 'image/png', data: talk.image } }] : []
    return { role: roleAt(at, 'model'), parts: [...image, { text }] }
  }),
})

const speakers: Readonly<Record<keyof typeof protocols, Speak>> = {
  'openai-chat': chat,
  'openai-responses': responses,
  'anthropic-messages': messages,
  'gemini': gemini,
  'ark': chat,
  'ark-responses': responses,
}

const text = fc.oneof(fc.string({ maxLength: 40 }), fc.string({ minLength: 300, maxLength: 3_000 }))
const talks: fc.Arbitrary<Talk> = fc.record({
  system: text,
  tools: fc.array(fc.string({ minLength: 1, maxLength: 80 }), { maxLength: 40 }),
  image: fc.oneof(fc.constant(''), fc.base64String({ minLength: 4, maxLength: 2_000 })),
  said: fc.array(text, { minLength: 1, maxLength: 9 }),
})

describe.each(Object.keys(speakers) as (keyof typeof protocols)[])('in %s', dialect => {
  const speak = speakers[dialect]
  const begins = (json: Json): string => protocols[dialect].begins!(json)

  test('all turns have the same start, in any form', () => {
    fc.assert(
      fc.property(talks, fc.array(fc.boolean(), { minLength: 9, maxLength: 9 }), (talk, marked) => {
        const turns = talk.said.map((_text, at) => ({ ...talk, said: talk.said.slice(0, at + 1) }))
        const names = new Set(turns.map((turn, at) => begins(speak(turn, marked[at]!))))
        expect(names.size).toBe(1)
      }),
    )
  })

  test('another first message, system prompt, tool or image is another conversation', () => {
    fc.assert(
      fc.property(talks, fc.string({ minLength: 1, maxLength: 20 }), (talk, other) => {
        const own = begins(speak(talk, false))
        const [first = '', ...rest] = talk.said
        for (const different of [
          { ...talk, said: [`${other}.${first}`, ...rest] },
          { ...talk, said: [`${first}.${other}`, ...rest] },
          { ...talk, system: `${other}.${talk.system}` },
          { ...talk, tools: [...talk.tools, 'one_more'] },
          { ...talk, image: `${talk.image}AAAA` },
        ]) {
          expect(begins(speak(different, false))).not.toBe(own)
        }
      }),
    )
  })

  test('the text is short for any request', () => {
    const long = 'x'.repeat(100_000)
    const tools = Array.from({ length: 1_000 }, (_none, at) => `${at}${long}`)
    const talk: Talk = { system: long, tools, image: long, said: Array.from({ length: 99 }, () => long) }
    expect(begins(speak(talk, true)).length).toBeLessThan(4_096)
  })

  test('invalid requests do not throw', () => {
    fc.assert(fc.property(fc.dictionary(fc.constantFrom(...strange), fc.jsonValue()), json => void begins(json)))
    fc.assert(
      fc.property(fc.dictionary(fc.constantFrom(...strange), fc.jsonValue()), json => {
        expect(protocols[dialect].cacheMs!(json) ?? 0).toBeNumber()
      }),
    )
  })
})

const strange = [
  ...['messages', 'contents', 'input', 'system', 'tools', 'metadata', 'conversation', 'prompt', 'instructions'],
  ...['cache_control', 'prompt_cache_options', 'prompt_cache_retention', 'cachedContent'],
]

test('the caller can set a key in dialects that have one', () => {
  const alike = (dialect: keyof typeof protocols, one: Json, other: Json): boolean =>
    protocols[dialect].begins!(one) === protocols[dialect].begins!(other)
  const [hi, ho] = [{ messages: [{ role: 'user', content: 'hi' }] }, { messages: [{ role: 'user', content: 'ho' }] }]

  expect(alike('openai-chat', { ...hi, prompt_cache_key: 'k' }, { ...ho, prompt_cache_key: 'k' })).toBe(true)
  expect(alike('openai-chat', { ...hi, prompt_cache_key: 'k' }, { ...hi, prompt_cache_key: 'l' })).toBe(false)
  const [c, d] = [
    { input: 'a', conversation: 'c' },
    { input: 'b', conversation: { id: 'c' } },
  ]
  expect(alike('openai-responses', c, d)).toBe(true)
  expect(alike('gemini', { cachedContent: 'cachedContents/1' }, { cached_content: 'cachedContents/1' })).toBe(true)

  const session = (id: string): Json => ({ metadata: { user_id: `user_0abc_account_1_session_${id}` } })
  const [a, b] = ['11111111-2222-3333-4444-555555555555', '11111111-2222-3333-4444-666666666666']
  expect(alike('anthropic-messages', { ...hi, ...session(a) }, { ...ho, ...session(a) })).toBe(true)
  expect(alike('anthropic-messages', { ...hi, ...session(a) }, { ...hi, ...session(b) })).toBe(false)
  const asJson: Json = { metadata: { user_id: JSON.stringify({ device_id: 'd', session_id: a }) } }
  expect(alike('anthropic-messages', { ...hi, ...asJson }, { ...ho, ...session(a) })).toBe(true)
})

test('conversations of one user differ, and so do those of two users', () => {
  const chat: Protocol = protocols['openai-chat']
  const chatStart = (json: Json): string => chat.begins!(json)
  const said = (content: string, user: string): Json => ({ user, messages: [{ role: 'user', content }] })
  expect(chatStart(said('hi', 'ann'))).not.toBe(chatStart(said('ho', 'ann')))
  expect(chatStart(said('hi', 'ann'))).not.toBe(chatStart(said('hi', 'bob')))
  const messages: Protocol = protocols['anthropic-messages']
  const messagesStart = (json: Json): string => messages.begins!(json)
  const told = (content: string): Json => ({ metadata: { user_id: 'ann' }, messages: [{ role: 'user', content }] })
  expect(messagesStart(told('hi'))).not.toBe(messagesStart(told('ho')))
})

describe('the TTL of the prompt cache is read from the request', () => {
  const minuteMs = 60_000
  const marked = (ttl: string): Json => ({ type: 'text', text: 'x', cache_control: { type: 'ephemeral', ttl } })
  const later = Array.from({ length: 200 }, () => ({ role: 'user', content: 'x' }))

  for (const [what, dialect, json, minutes] of [
    ['unsaid', 'anthropic-messages', { system: 'x', messages: later }, undefined],
    ['on the system', 'anthropic-messages', { system: [marked('1h')] }, 60],
    ['on all of it', 'anthropic-messages', { cache_control: { type: 'ephemeral', ttl: '1h' } }, 60],
    ['on a tool', 'anthropic-messages', { tools: [{ name: 'a' }, marked('1h')] }, 60],
    ['on the last message', 'anthropic-messages', { messages: [...later, { content: [marked('1h')] }] }, 60],
    ['the longest', 'anthropic-messages', { system: [marked('1h')], messages: [{ content: [marked('5m')] }] }, 60],
    ['without a time', 'anthropic-messages', { cache_control: { type: 'ephemeral' } }, undefined],
    ['nonsense', 'anthropic-messages', { cache_control: { type: 'ephemeral', ttl: '9y' } }, undefined],
    ['for a day', 'openai-chat', { prompt_cache_retention: '24h' }, 24 * 60],
    ['in memory', 'openai-chat', { prompt_cache_retention: 'in_memory' }, undefined],
    ['by an option', 'openai-responses', { prompt_cache_options: { ttl: '30m' } }, 30],
    ['at a part', 'openai-responses', { input: [{ content: [{ prompt_cache_breakpoint: { ttl: '12h' } }] }] }, 12 * 60],
    ['as some write it', 'openai-chat', { messages: [{ role: 'system', content: [marked('1h')] }] }, 60],
    ['made by hand', 'gemini', { cachedContent: 'cachedContents/1' }, 60],
    ['by nobody', 'gemini', {}, undefined],
  ] as const satisfies readonly [string, keyof typeof protocols, Json, number | undefined][]) {
    test(what, () => {
      expect(protocols[dialect].cacheMs!(json)).toBe(minutes === undefined ? undefined : minutes * minuteMs)
    })
  }
})
