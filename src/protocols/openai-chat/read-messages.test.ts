// Tests reading the messages of a chat request, and which messages are refused.

import { describe, expect, test } from 'bun:test'
import { hello, readChat, refusedParam } from '../../../test/support/chat-requests.ts'
import { expectCheap } from '../../../test/support/cpu.ts'
import { arkChat } from '../ark/dialect.ts'
import type { Call } from '../neutral/call.ts'
import type { ReasoningState } from '../neutral/reasoning-state.ts'
import { packReasoningState } from '../neutral/reasoning-state.ts'
import type { ChatFlavour } from './flavour.ts'

const messagesOf = (...messages: readonly object[]) => readChat({ messages }).messages
const partsOf = (...content: readonly object[]) => messagesOf({ role: 'user', content })[0]?.parts

describe('messages', () => {
  test('keep their roles and their order', () => {
    const messages = messagesOf(
      { role: 'developer', content: 'd' },
      { role: 'user', content: 'u', name: 'Ada' },
      {
        role: 'assistant',
        content: [
          { type: 'text', text: 'a' },
          { type: 'refusal', refusal: 'r' },
        ],
      },
      { role: 'system', content: [{ type: 'text', text: 's' }] },
      { role: 'assistant', content: '' },
      { role: 'user', content: 'v' },
    )
    expect(messages).toEqual([
      { role: 'developer', parts: [{ kind: 'text', text: 'd' }] },
      { role: 'user', name: 'Ada', parts: [{ kind: 'text', text: 'u' }] },
      {
        role: 'assistant',
        parts: [
          { kind: 'text', text: 'a' },
          { kind: 'refusal', text: 'r' },
        ],
      },
      { role: 'system', parts: [{ kind: 'text', text: 's' }] },
      { role: 'user', parts: [{ kind: 'text', text: 'v' }] },
    ])
  })

  test('may be only instructions, also with an empty message of the user', () => {
    const instructions = { role: 'system', content: 'Say hi' }
    const expected = [{ role: 'system', parts: [{ kind: 'text', text: 'Say hi' }] }]
    expect(messagesOf(instructions) as object[]).toEqual(expected)
    for (const content of ['', [], [{ type: 'text', text: '' }]]) {
      expect(messagesOf(instructions, { role: 'user', content }) as object[]).toEqual(expected)
    }
    const roles = messagesOf(hello, { role: 'user', content: '' }, { role: 'assistant', content: 'x' }, hello)
    expect(roles.map(({ role }) => role)).toEqual(['user', 'assistant', 'user'])
  })

  test('P26: results of several calls become one message, in their order', () => {
    const call = (id: string, name: string) => ({ id, type: 'function', function: { name, arguments: '{"a":1.0}' } })
    const custom = { id: 'c', type: 'custom', custom: { name: 'h', input: 'free' } }
    const messages = messagesOf(
      hello,
      { role: 'assistant', content: null, tool_calls: [call('a', 'f'), call('b', 'g'), custom] },
      { role: 'tool', tool_call_id: 'b', content: 'B' },
      { role: 'tool', tool_call_id: 'a', content: [{ type: 'text', text: 'A' }] },
      { role: 'tool', tool_call_id: 'c', content: '' },
      hello,
    )
    expect(messages[1]?.parts).toEqual([
      { kind: 'call', id: 'a', name: 'f', arguments: '{"a":1.0}' },
      { kind: 'call', id: 'b', name: 'g', arguments: '{"a":1.0}' },
      { kind: 'call', id: 'c', name: 'h', arguments: 'free', custom: true },
    ])
    expect(messages[2]).toEqual({
      role: 'tool',
      parts: [
        { kind: 'result', callId: 'b', name: 'g', parts: [{ kind: 'text', text: 'B' }] },
        { kind: 'result', callId: 'a', name: 'f', parts: [{ kind: 'text', text: 'A' }] },
        { kind: 'result', callId: 'c', name: 'h', parts: [], custom: true },
      ],
    })
    expect(messages).toHaveLength(4)
  })

  test('with ids that repeat in each message get unique ids', () => {
    const step = [
      { role: 'assistant', tool_calls: [{ id: 'call_0', function: { name: 'f', arguments: '' } }] },
      { role: 'tool', tool_call_id: 'call_0', content: 'x' },
    ]
    const messages = messagesOf(hello, ...step, ...step, ...step)
    const calls = messages.flatMap(message => message.parts.flatMap(part => (part.kind === 'call' ? part.id : [])))
    const results = messages.flatMap(message =>
      message.parts.flatMap(part => (part.kind === 'result' ? part.callId : [])),
    )
    expect(new Set(calls).size).toBe(3)
    expect(results).toEqual(calls)
  })

  test('with function calls in the legacy form are read', () => {
    const messages = messagesOf(
      hello,
      { role: 'assistant', content: null, function_call: { name: 'f', arguments: '{}' } },
      { role: 'function', name: 'f', content: 'x' },
    )
    const [call, result] = [messages[1]?.parts[0], messages[2]?.parts[0]]
    expect(call).toMatchObject({ kind: 'call', name: 'f', arguments: '{}' })
    expect(result).toMatchObject({ kind: 'result', name: 'f', callId: (call as { id: string }).id })
  })

  const calling = { role: 'assistant', tool_calls: [{ id: 'a', function: { name: 'f', arguments: '{}' } }] }
  const result = { role: 'tool', tool_call_id: 'a', content: 'x' }
  const invalid: readonly (readonly [string, readonly object[], string])[] = [
    ['a result without its call', [hello, result], 'messages[1].tool_call_id'],
    ['two results of one call', [hello, calling, result, result], 'messages[3].tool_call_id'],
    ['a result after the next message of the user', [hello, calling, hello, result], 'messages[2]'],
    ['a call without its result', [hello, calling], 'messages'],
    ['a function message without its call', [hello, { role: 'function', name: 'f', content: 'x' }], 'messages[1]'],
    ['a result without an id', [hello, calling, { role: 'tool', content: 'x' }], 'messages[2].tool_call_id'],
    ['an unknown role', [{ role: 'robot', content: 'x' }], 'messages[0].role'],
    ['the name of an object property as a role', [{ role: 'constructor', content: 'x' }], 'messages[0].role'],
    ['an empty text', [{ role: 'user', content: '' }], 'messages[0].content'],
    ['an empty list', [{ role: 'user', content: [] }], 'messages[0].content'],
    ['no content', [{ role: 'user' }], 'messages[0].content'],
    ['content of another type', [{ role: 'user', content: 5 }], 'messages[0].content'],
    ['nothing but empty instructions', [{ role: 'system', content: '' }], 'messages'],
    ['no content after instructions', [{ role: 'system', content: 'x' }, { role: 'user' }], 'messages[1].content'],
    [
      'an empty text after a message of the assistant',
      [hello, { role: 'assistant', content: 'x' }, { role: 'user', content: '' }],
      'messages[2].content',
    ],
    [
      'a call without a name',
      [{ role: 'assistant', tool_calls: [{ id: 'a', function: {} }] }],
      'messages[0].tool_calls[0].function.name',
    ],
    [
      'two calls with one id',
      [{ role: 'assistant', tool_calls: [calling.tool_calls[0], calling.tool_calls[0]] }],
      'messages[0].tool_calls[1].id',
    ],
    ['an unknown part', [{ role: 'user', content: [{ type: 'smell' }] }], 'messages[0].content[0].type'],
    ['a part that is null', [{ role: 'user', content: [null] }], 'messages[0].content[0]'],
  ]

  test.each(invalid)('are refused: %s', (_name, messages, param) => {
    expect(refusedParam({ messages })).toBe(param)
  })

  test('with many calls of one id are read fast enough', async () => {
    const step = [
      { role: 'assistant', tool_calls: [{ id: 'x', function: { name: 'f', arguments: '' } }] },
      { role: 'tool', tool_call_id: 'x', content: 'x' },
    ]
    const steps = Array.from({ length: 5_000 }, () => step).flat()
    await expectCheap(2_000, () => expect(messagesOf(hello, ...steps)).toHaveLength(10_001))
  })
})

describe('content', () => {
  test('is read: media by URL and inline', () => {
    expect(
      partsOf(
        { type: 'image_url', image_url: { url: 'https://x/y.png', detail: 'low' } },
        { type: 'image_url', image_url: { url: 'data:image/PNG;charset=x;base64,AAAA' } },
        { type: 'input_audio', input_audio: { data: 'AAAA', format: 'mp3' } },
        { type: 'file', file: { file_data: 'data:application/pdf;base64,AAAA', filename: 'a.pdf' } },
        { type: 'file', file: { file_data: 'AAAA', filename: 'a.txt' } },
        { type: 'file', file: { file_id: 'file-1' } },
        { type: 'video_url', video_url: { url: 'http://x/y.mp4' } },
      ),
    ).toEqual([
      { kind: 'image', source: { at: 'url', url: 'https://x/y.png' }, detail: 'low' },
      { kind: 'image', source: { at: 'inline', mime: 'image/png', base64: 'AAAA' } },
      { kind: 'audio', source: { at: 'inline', mime: 'audio/mpeg', base64: 'AAAA' } },
      { kind: 'file', name: 'a.pdf', source: { at: 'inline', mime: 'application/pdf', base64: 'AAAA' } },
      { kind: 'file', name: 'a.txt', source: { at: 'inline', mime: 'text/plain', base64: 'AAAA' } },
      { kind: 'file', source: { at: 'provider', id: 'file-1' } },
      { kind: 'video', source: { at: 'url', url: 'http://x/y.mp4' } },
    ])
  })

  const withContent = (content: readonly object[]) => ({ messages: [{ role: 'user', content }] })
  const image = (url: unknown) => withContent([{ type: 'image_url', image_url: { url } }])
  const broken = ['data:image/png;base64,A', 'data:image/png;base64,AA A', 'data:image/png,AAAA', 'data:;base64,']

  test.each([...broken, 'ftp://x/', 'file:///etc/passwd', 'x', '', 5, null, 'http://'])(
    'is refused with the image URL %p',
    url => {
      expect(refusedParam(image(url))).toBe('messages[0].content[0].image_url.url')
    },
  )

  test('with a long invalid image is refused fast enough', async () => {
    const long = image(`data:image/png;base64,${'A'.repeat(10_000_003)}!`)
    await expectCheap(2_000, () => expect(refusedParam(long)).toBeDefined())
  })

  test('keeps its cache breakpoints', () => {
    expect(
      partsOf(
        { type: 'text', text: 'a', cache_control: { type: 'ephemeral', ttl: '1h' } },
        { type: 'text', text: 'b', prompt_cache_breakpoint: { mode: 'explicit', ttl: '30m' } },
        { type: 'text', text: 'c', cache_control: { type: 'ephemeral' } },
      ),
    ).toEqual([
      { kind: 'text', text: 'a', cache: { ttl: '1h' } },
      { kind: 'text', text: 'b', cache: { ttl: '30m' } },
      { kind: 'text', text: 'c', cache: {} },
    ])
    expect(messagesOf({ ...hello, cache_control: { type: 'ephemeral' } })[0]?.parts).toEqual([
      { kind: 'text', text: 'hello', cache: {} },
    ])
  })
})

describe('reasoning state', () => {
  const callState: ReasoningState = { form: 'thought', value: 'sig', origin: 'here' }
  const call = (id: string, extra = {}) => ({ id, function: { name: 'f', arguments: '{}' }, ...extra })
  const step = (fields: object, ...ids: readonly string[]) => [
    hello,
    { role: 'assistant', ...fields },
    ...ids.map(id => ({ role: 'tool', tool_call_id: id, content: 'x' })),
  ]
  const assistantParts = (messages: readonly object[], flavour?: ChatFlavour, recall?: Call['recall']) =>
    readChat({ messages }, flavour, recall).messages[1]?.parts

  test('is read from a tool call, packed by the gateway or in the form of its provider', () => {
    const signed = (value: string) => call('a', { extra_content: { google: { thought_signature: value } } })
    expect(assistantParts(step({ tool_calls: [signed(packReasoningState(callState))] }, 'a'))).toMatchObject([
      { sealed: callState },
    ])
    const raw: ReasoningState = { form: 'thought', value: 'raw' }
    expect(assistantParts(step({ tool_calls: [signed('raw')] }, 'a'))).toMatchObject([{ sealed: raw }])
    expect(assistantParts(step({ tool_calls: [signed('d2VpcjF7broken')] }, 'a'))?.[0]).not.toHaveProperty('sealed')
  })

  test('is loaded from the vault for a tool call, and comes before the content', () => {
    const beforeText: ReasoningState = { form: 'encrypted', value: 'e', origin: 'here', id: 'rs_1' }
    const beforeCall: ReasoningState = { form: 'encrypted', value: 'f', origin: 'here' }
    const stored: Record<string, readonly ReasoningState[]> = { a: [beforeText, callState], b: [beforeCall] }
    const recall = (id: string) => stored[id] ?? []
    expect(
      assistantParts(step({ content: 'text', tool_calls: [call('a'), call('b')] }, 'a', 'b'), undefined, recall),
    ).toEqual([
      { kind: 'reasoning', text: '', sealed: beforeText },
      { kind: 'text', text: 'text' },
      { kind: 'call', id: 'a', name: 'f', arguments: '{}', sealed: callState },
      { kind: 'reasoning', text: '', sealed: beforeCall },
      { kind: 'call', id: 'b', name: 'f', arguments: '{}' },
    ])
  })

  test('belongs to the thoughts that a caller sends back', () => {
    const signed: ReasoningState = { form: 'signature', value: 's', origin: 'here' }
    const messages = step({ reasoning_content: 'hm', tool_calls: [call('a')] }, 'a')
    expect(assistantParts(messages, undefined, () => [signed])?.[0]).toEqual({
      kind: 'reasoning',
      text: 'hm',
      sealed: signed,
    })
    const redacted: ReasoningState = { form: 'redacted', value: 's', origin: 'here' }
    expect(assistantParts(messages, undefined, () => [redacted])?.slice(0, 2)).toEqual([
      { kind: 'reasoning', text: 'hm' },
      { kind: 'reasoning', text: '', sealed: redacted },
    ])
  })

  test("is read from Ark's messages, and not twice if it is also stored", () => {
    const first: ReasoningState = { form: 'encrypted', value: 'e', origin: 'here' }
    const second: ReasoningState = { form: 'redacted', value: 'r', origin: 'here' }
    const fields = {
      encrypted_content: `${packReasoningState(first)}.${packReasoningState(second)}`,
      tool_calls: [call('a')],
    }
    const parts = assistantParts(step(fields, 'a'), arkChat, () => [first, second])
    expect(parts?.map(part => (part.kind === 'reasoning' || part.kind === 'call' ? part.sealed : undefined))).toEqual([
      first,
      second,
      undefined,
    ])
    expect(assistantParts(step({ content: 'x', encrypted_content: 'raw' }), arkChat)?.[0]).toMatchObject({
      sealed: { form: 'encrypted', value: 'raw' },
    })
  })
})
