// Tests that turns become messages which an upstream of this dialect accepts.

import { describe, expect, test } from 'bun:test'
import type { Over } from '../../../test/support/anthropic-writing.ts'
import { call, hi, model, result, text, tool, user, write } from '../../../test/support/anthropic-writing.ts'
import { leastCpuMs } from '../../../test/support/cpu.ts'
import type { ModelTraits } from '../../base/money/model-traits.ts'
import type { ConversationMessage, ConversationPart } from '../neutral/conversation.ts'
import type { Json } from '../request/json-type.ts'

const messagesOf = (...turns: ConversationMessage[]) => write({ messages: turns }).body.messages

describe('turns', () => {
  test('plain', () => {
    expect(write({}).body).toEqual({
      model: 'claude',
      max_tokens: 8000,
      messages: [{ role: 'user', content: [{ type: 'text', text: 'hi' }] }],
    })
  })

  test('instructions come first, or keep their position', () => {
    const turns: ConversationMessage[] = [
      { role: 'system', parts: [{ ...text('a'), cache: {} }] },
      { role: 'developer', parts: [text('b')] },
      hi,
      { role: 'system', parts: [text('c')] },
    ]
    const { body } = write({ messages: turns })
    expect(body.system).toEqual([
      { type: 'text', text: 'a', cache_control: { type: 'ephemeral' } },
      { type: 'text', text: 'b' },
    ])
    const late = { type: 'text', text: '<system>\nc\n</system>' }
    expect(body.messages).toEqual([{ role: 'user', content: [{ type: 'text', text: 'hi' }, late] }])
    expect(write({ messages: turns.slice(0, 2) }).body.messages).toEqual([{ role: 'user', content: body.system }])
    const placeless = write({ messages: turns }, { traits: { system: false } }).body
    expect(placeless.system).toBeUndefined()
    expect((placeless.messages[0]!.content as Json[]).length).toBe(4)
  })

  test('of the same role are merged, and empty ones are left out', () => {
    expect(messagesOf(hi, user(text(' ')), user(text('x')), model(text('')), user(text('y')))).toEqual([
      { role: 'user', content: ['hi', 'x', 'y'].map(words => ({ type: 'text', text: words })) },
    ])
  })

  test('the user comes first, and a last assistant message does not end with white space', () => {
    const messages = messagesOf(model(text('So: ')))
    expect(messages.map(({ role }) => role)).toEqual(['user', 'assistant'])
    expect(messages[1]!.content).toEqual([{ type: 'text', text: 'So:' }])
  })

  test('what messages cannot carry is a loss', () => {
    const cited = { ...text('x'), citations: [{ url: 'u' }] }
    const foreign = { kind: 'native', dialect: 'gemini', what: 'executable_code', value: {} } as const
    const image = { kind: 'image', source: { at: 'url', url: 'https://x' }, detail: 'high' } as const
    const { losses, body } = write({ messages: [{ ...user(cited, foreign, image), name: 'bob' }] })
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

  test.each<readonly [string, readonly ConversationMessage[], readonly string[]]>([
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
    [
      'that are missing are made up',
      [hi, model(call('a'), call('b')), tool(result('b'))],
      ['user: hi', 'assistant: a b', 'user: a b'],
    ],
    ['that are missing at the end, too', [hi, model(call('a'))], ['user: hi', 'assistant: a', 'user: a']],
    [
      'without a call are dropped',
      [hi, tool(result('x')), model(text('t')), tool(result('y')), user(text('z'))],
      ['user: hi', 'assistant: t', 'user: z'],
    ],
    [
      'of calls in turns that follow each other',
      [hi, model(call('a')), model(call('b')), tool(result('a'), result('b'))],
      ['user: hi', 'assistant: a b', 'user: a b'],
    ],
    [
      'of calls that have the same name find their own',
      [hi, model(call('a'), call('a')), tool(result('a'), result('a')), model(call('a')), tool(result('a'))],
      ['user: hi', 'assistant: a a_2', 'user: a a_2', 'assistant: a_3', 'user: a_3'],
    ],
    [
      'under names that this dialect takes',
      [hi, model(call('call:1/é')), tool(result('call:1/é'))],
      ['user: hi', 'assistant: call_1__', 'user: call_1__'],
    ],
  ])('%s', (_name, turns, messages) => {
    expect(ids(messagesOf(...turns))).toEqual([...messages])
  })

  test('are marked as failed, and record losses', () => {
    const failed = { ...result('a', 'no'), failed: true }
    const { body, losses } = write({ messages: [hi, model(call('a'), call('b')), tool(failed, result('x'))] })
    expect(losses).toEqual(['tool_result'])
    expect(body.messages[2]!.content).toEqual([
      { type: 'tool_result', tool_use_id: 'a', content: 'no', is_error: true },
      { type: 'tool_result', tool_use_id: 'b', content: 'No result was given.', is_error: true },
    ])
  })

  test('hold images, or are followed by them', () => {
    const image = { kind: 'image', source: { at: 'inline', base64: 'AAAA', mime: 'image/png' } } as const
    const turns = [hi, model(call('a')), tool({ ...result('a'), parts: [text('x'), image], cache: { ttl: '1h' } })]
    const source = { type: 'base64', media_type: 'image/png', data: 'AAAA' }
    const mark = { cache_control: { type: 'ephemeral', ttl: '1h' } }
    const [inside] = write({ messages: turns }).body.messages[2]!.content as Json[]
    expect(inside).toEqual({
      type: 'tool_result',
      tool_use_id: 'a',
      ...mark,
      content: [
        { type: 'text', text: 'x' },
        { type: 'image', source },
      ],
    })
    expect(write({ messages: turns }, { traits: { richResults: false } }).body.messages[2]!.content).toEqual([
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

  test('twenty thousand calls with one id are written quickly', () => {
    const turns = [hi, model(...Array.from({ length: 20_000 }, () => call('same')))]
    const writeAll = () => expect((messagesOf(...turns)[2]!.content as Json[]).length).toBe(20_000)
    expect(leastCpuMs(writeAll)).toBeLessThan(1_000)
  })
})

describe('media', () => {
  const file = (mime: string, base64 = 'AAAA') =>
    ({ kind: 'file', name: 'n', source: { at: 'inline', base64, mime } }) as const
  const blockOf = (part: ConversationPart, over: Over = {}) => {
    const { body } = write({ messages: [user(part)] }, over)
    return (body.messages[0]!.content as Json[])[0]
  }

  test('a document', () => {
    const pdf = { type: 'base64', media_type: 'application/pdf', data: 'AAAA' }
    expect(blockOf(file('application/pdf'))).toEqual({ type: 'document', source: pdf, title: 'n' })
    const plain = { type: 'text', media_type: 'text/plain', data: 'héllo' }
    const encoded = Buffer.from('héllo').toString('base64')
    expect(blockOf(file('text/markdown', encoded))).toEqual({ type: 'document', source: plain, title: 'n' })
    const words = { kind: 'file', source: { at: 'text', text: 'héllo', mime: 'text/plain' } } as const
    expect(blockOf(words, { traits: { reads: ['text'] } })).toEqual({ type: 'document', source: plain })
  })

  test('fetched media are sent inline', () => {
    const media = new Map([['http://x', { mime: 'image/gif', base64: 'BBBB' }]])
    const part = { kind: 'image', source: { at: 'url', url: 'http://x' } } as const
    const source = { type: 'base64', media_type: 'image/gif', data: 'BBBB' }
    expect(blockOf(part, { target: { media } })).toEqual({ type: 'image', source })
  })

  test.each<readonly [string, ConversationPart, ModelTraits]>([
    ['sound', { kind: 'audio', source: { at: 'inline', base64: 'AAAA', mime: 'audio/wav' } }, {}],
    ['a film', { kind: 'video', source: { at: 'url', url: 'https://x' } }, {}],
    ['a spreadsheet', file('application/vnd.ms-excel'), {}],
    ['a file of another provider', { kind: 'file', source: { at: 'provider', id: 'x' } }, {}],
    ['an image that is not read', { kind: 'image', source: { at: 'url', url: 'https://x' } }, { reads: ['text'] }],
  ])('is refused: %s', (_name, part, traits) => {
    expect(() => blockOf(part, { traits })).toThrow('field_invalid')
  })
})

describe('reasoning state', () => {
  const thought = (form: 'signature' | 'redacted' | 'encrypted', origin?: string): ConversationPart => ({
    kind: 'reasoning',
    text: form === 'signature' ? 't' : '',
    sealed: { form, value: 'v', ...(origin !== undefined && { origin }) },
  })

  test('P24: comes back to its origin unchanged', () => {
    const said = model(thought('signature', 'here'), thought('redacted', 'here'), text('x'))
    const { body, losses } = write({ messages: [hi, said] })
    expect(body.messages[1]!.content).toEqual([
      { type: 'thinking', thinking: 't', signature: 'v' },
      { type: 'redacted_thinking', data: 'v' },
      { type: 'text', text: 'x' },
    ])
    expect(losses).toEqual([])
  })

  test.each<readonly [string, ConversationPart]>([
    ['another origin', thought('signature', 'there')],
    ['no origin', thought('signature')],
    ['another form', thought('encrypted', 'here')],
    ['thoughts that nobody signed', { kind: 'reasoning', text: 't' }],
    ['a call', { ...call('a'), sealed: { origin: 'here', form: 'thought', value: 'v' } }],
  ])('is not sent: of %s', (_name, part) => {
    const { body, losses } = write({ messages: [hi, model(part, text('x'))] })
    expect(JSON.stringify(body)).not.toContain('thinking')
    expect(JSON.stringify(body)).not.toContain('"v"')
    expect(losses).toEqual(['reasoning_state'])
  })

  test('a thinking budget is dropped if the thinking before the last calls is lost', () => {
    const budget = { reasoning: { budget: 2000 } }
    const own = [hi, model(thought('signature', 'here'), call('a')), tool(result('a'))]
    const other = [hi, model(thought('signature', 'there'), call('a')), tool(result('a'))]
    expect(write({ messages: own, ...budget }).body.thinking).toMatchObject({ type: 'enabled' })
    expect(write({ messages: other, ...budget }).body.thinking).toBeUndefined()
    expect(write({ messages: other, ...budget }).losses).toEqual(['reasoning_state', 'reasoning'])
    expect(write({ messages: other, reasoning: { effort: 'high' } }).body.thinking).toMatchObject({ type: 'adaptive' })
  })
})
