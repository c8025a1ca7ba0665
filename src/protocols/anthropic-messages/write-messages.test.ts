// Tests that neutral messages become messages which an upstream of this dialect accepts.

import { describe, expect, test } from 'bun:test'
import type { Over } from '../../../test/support/anthropic-writing.ts'
import { call, hi, model, result, text, tool, user, write } from '../../../test/support/anthropic-writing.ts'
import { expectCheap } from '../../../test/support/cpu.ts'
import type { ModelTraits } from '../../base/money/model-traits.ts'
import type { ConversationMessage, ConversationPart, MediaPart, TextPart } from '../neutral/conversation.ts'
import type { Json } from '../request/json-type.ts'
import { codec } from './codec.ts'

const messagesOf = (...messages: ConversationMessage[]) => write({ messages }).body.messages

describe('messages', () => {
  test('of plain text are written', () => {
    expect(write({}).body).toEqual({
      model: 'claude',
      max_tokens: 8000,
      messages: [{ role: 'user', content: [{ type: 'text', text: 'hi' }] }],
    })
  })

  test('with instructions: the first go into the system prompt, later ones keep their position', () => {
    const neutral: ConversationMessage[] = [
      { role: 'system', parts: [{ ...text('a'), cache: {} }] },
      { role: 'developer', parts: [text('b')] },
      hi,
      { role: 'system', parts: [text('c')] },
    ]
    const { body } = write({ messages: neutral })
    expect(body.system).toEqual([
      { type: 'text', text: 'a', cache_control: { type: 'ephemeral' } },
      { type: 'text', text: 'b' },
    ])
    const late = { type: 'text', text: '<system>\nc\n</system>' }
    expect(body.messages).toEqual([{ role: 'user', content: [{ type: 'text', text: 'hi' }, late] }])
    expect(write({ messages: neutral.slice(0, 2) }).body.messages).toEqual([{ role: 'user', content: body.system }])
    const withoutSystem = write({ messages: neutral }, { traits: { system: false } }).body
    expect(withoutSystem.system).toBeUndefined()
    expect((withoutSystem.messages[0]!.content as Json[]).length).toBe(4)
  })

  test('of the same role are merged, and empty ones are left out', () => {
    expect(messagesOf(hi, user(text(' ')), user(text('x')), model(text('')), user(text('y')))).toEqual([
      { role: 'user', content: ['hi', 'x', 'y'].map(value => ({ type: 'text', text: value })) },
    ])
  })

  test('begin with the user, and a last assistant message does not end with white space', () => {
    const messages = messagesOf(model(text('So: ')))
    expect(messages.map(({ role }) => role)).toEqual(['user', 'assistant'])
    expect(messages[1]!.content).toEqual([{ type: 'text', text: 'So:' }])
  })

  test('end with the user for a model that does not go on with a message of its own, which is a loss', () => {
    const ends = (...messages: ConversationMessage[]) => {
      const { body, losses } = write({ messages }, { traits: { prefill: false } })
      return [body.messages.map(({ role }) => role), losses]
    }
    expect(ends(hi, model(text('So: ')))).toEqual([['user', 'assistant', 'user'], ['messages.prefill']])
    expect(ends(hi)).toEqual([['user'], []])
    expect(ends(hi, model(text(' ')))).toEqual([['user'], []])
    expect(ends(hi, model(call('a')))).toEqual([['user', 'assistant', 'user'], []])
  })

  test('record a loss for the name of instructions and for the detail of a file', () => {
    for (const role of ['system', 'developer'] as const) {
      expect(write({ messages: [{ role, name: 'bob', parts: [text('be brief')] }, hi] }).losses).toEqual([
        'messages.name',
      ])
    }
    const source = { at: 'inline', base64: 'AAAA', mime: 'application/pdf' } as const
    expect(write({ messages: [user({ kind: 'file', source, detail: 'low' })] }).losses).toEqual(['file.detail'])
  })

  test('record a loss for each part that they cannot carry', () => {
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
      'of several messages become one message, in the order of the calls',
      [hi, model(text('t'), call('a'), call('b')), tool(result('b')), tool(result('a')), user(text('and?'))],
      ['user: hi', 'assistant: t a b', 'user: a b and?'],
    ],
    [
      'come before the text that preceded them',
      [hi, model(call('a')), user(text('wait')), tool(result('a'))],
      ['user: hi', 'assistant: a', 'user: a wait'],
    ],
    [
      'that are missing are added',
      [hi, model(call('a'), call('b')), tool(result('b'))],
      ['user: hi', 'assistant: a b', 'user: a b'],
    ],
    ['that are missing at the end are added', [hi, model(call('a'))], ['user: hi', 'assistant: a', 'user: a']],
    [
      'without a call are dropped',
      [hi, tool(result('x')), model(text('t')), tool(result('y')), user(text('z'))],
      ['user: hi', 'assistant: t', 'user: z'],
    ],
    [
      'of calls in consecutive messages become one message',
      [hi, model(call('a')), model(call('b')), tool(result('a'), result('b'))],
      ['user: hi', 'assistant: a b', 'user: a b'],
    ],
    [
      'of calls with the same id get unique ids',
      [hi, model(call('a'), call('a')), tool(result('a'), result('a')), model(call('a')), tool(result('a'))],
      ['user: hi', 'assistant: a a_2', 'user: a a_2', 'assistant: a_3', 'user: a_3'],
    ],
    [
      'get ids that this dialect accepts',
      [hi, model(call('call:1/é')), tool(result('call:1/é'))],
      ['user: hi', 'assistant: call_1__', 'user: call_1__'],
    ],
  ])('%s', (_name, neutral, messages) => {
    expect(ids(messagesOf(...neutral))).toEqual([...messages])
  })

  test('that failed have text and nothing else: media follow, and a text stands for none', () => {
    const image = { kind: 'image', source: { at: 'inline', base64: 'AAAA', mime: 'image/png' } } as const
    const failed = { ...result('a', 'no'), failed: true }
    const contentOf = (...parts: readonly (TextPart | MediaPart)[]) =>
      write({ messages: [hi, model(call('a')), tool({ ...failed, parts })] }).body.messages[2]!.content
    const head = { type: 'tool_result', tool_use_id: 'a', is_error: true }
    expect(contentOf(text('no'), image)).toMatchObject([{ ...head, content: 'no' }, { type: 'image' }])
    expect(contentOf(image)).toMatchObject([{ ...head, content: 'The tool failed.' }, { type: 'image' }])
    expect(contentOf(text(''))).toMatchObject([{ ...head, content: 'The tool failed.' }])
  })

  test('that failed or are missing are marked as failed, and one without a call is a loss', () => {
    const failed = { ...result('a', 'no'), failed: true }
    const { body, losses } = write({ messages: [hi, model(call('a'), call('b')), tool(failed, result('x'))] })
    expect(losses).toEqual(['tool_result'])
    expect(body.messages[2]!.content).toEqual([
      { type: 'tool_result', tool_use_id: 'a', content: 'no', is_error: true },
      { type: 'tool_result', tool_use_id: 'b', content: 'No result was given.', is_error: true },
    ])
  })

  test('contain images, or are followed by them if the model cannot read them there', () => {
    const image = { kind: 'image', source: { at: 'inline', base64: 'AAAA', mime: 'image/png' } } as const
    const neutral = [hi, model(call('a')), tool({ ...result('a'), parts: [text('x'), image], cache: { ttl: '1h' } })]
    const source = { type: 'base64', media_type: 'image/png', data: 'AAAA' }
    const mark = { cache_control: { type: 'ephemeral', ttl: '1h' } }
    const [blockWithImage] = write({ messages: neutral }).body.messages[2]!.content as Json[]
    expect(blockWithImage).toEqual({
      type: 'tool_result',
      tool_use_id: 'a',
      ...mark,
      content: [
        { type: 'text', text: 'x' },
        { type: 'image', source },
      ],
    })
    expect(write({ messages: neutral }, { traits: { richResults: false } }).body.messages[2]!.content).toEqual([
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
  ])('follow calls whose arguments are an object: %p', (args, input) => {
    const content = messagesOf(hi, model(call('a', 'f', args)))[1]!.content as Json[]
    expect(content[0]!.input).toEqual(input)
  })

  test('of twenty thousand calls with one id are written quickly', async () => {
    const neutral = [hi, model(...Array.from({ length: 20_000 }, () => call('same')))]
    const writeAll = () => expect((messagesOf(...neutral)[2]!.content as Json[]).length).toBe(20_000)
    await expectCheap(2_000, writeAll)
  })
})

describe('media', () => {
  const file = (mime: string, base64 = 'AAAA') =>
    ({ kind: 'file', name: 'n', source: { at: 'inline', base64, mime } }) as const
  const blockOf = (part: ConversationPart, over: Over = {}) => {
    const { body } = write({ messages: [user(part)] }, over)
    return (body.messages[0]!.content as Json[])[0]
  }

  test('documents are written', () => {
    const pdf = { type: 'base64', media_type: 'application/pdf', data: 'AAAA' }
    expect(blockOf(file('application/pdf'))).toEqual({ type: 'document', source: pdf, title: 'n' })
    const plain = { type: 'text', media_type: 'text/plain', data: 'héllo' }
    const encoded = Buffer.from('héllo').toString('base64')
    expect(blockOf(file('text/markdown', encoded))).toEqual({ type: 'document', source: plain, title: 'n' })
    const textFile = { kind: 'file', source: { at: 'text', text: 'héllo', mime: 'text/plain' } } as const
    expect(blockOf(textFile, { traits: { reads: ['text'] } })).toEqual({ type: 'document', source: plain })
  })

  test('fetched media are sent inline', () => {
    const media = new Map([['http://x', { mime: 'image/gif', base64: 'BBBB' }]])
    const part = { kind: 'image', source: { at: 'url', url: 'http://x' } } as const
    const source = { type: 'base64', media_type: 'image/gif', data: 'BBBB' }
    expect(blockOf(part, { target: { media } })).toEqual({ type: 'image', source })
  })

  test.each<readonly [string, ConversationPart, ModelTraits]>([
    ['audio', { kind: 'audio', source: { at: 'inline', base64: 'AAAA', mime: 'audio/wav' } }, {}],
    ['a video', { kind: 'video', source: { at: 'url', url: 'https://x' } }, {}],
    ['a spreadsheet', file('application/vnd.ms-excel'), {}],
    ['a file of another provider', { kind: 'file', source: { at: 'provider', id: 'x' } }, {}],
    [
      'an image for a model that reads text only',
      { kind: 'image', source: { at: 'url', url: 'https://x' } },
      { reads: ['text'] },
    ],
  ])('that the model cannot read is refused: %s', (_name, part, traits) => {
    expect(() => blockOf(part, { traits })).toThrow('field_invalid')
  })
})

describe('reasoning state', () => {
  const thinkingPart = (form: 'signature' | 'redacted' | 'encrypted', origin?: string): ConversationPart => ({
    kind: 'reasoning',
    text: form === 'signature' ? 't' : '',
    sealed: { form, value: 'v', ...(origin !== undefined && { origin }) },
  })

  test('P24: is sent back to its origin unchanged', () => {
    const message = model(thinkingPart('signature', 'here'), thinkingPart('redacted', 'here'), text('x'))
    const { body, losses } = write({ messages: [hi, message] })
    expect(body.messages[1]!.content).toEqual([
      { type: 'thinking', thinking: 't', signature: 'v' },
      { type: 'redacted_thinking', data: 'v' },
      { type: 'text', text: 'x' },
    ])
    expect(losses).toEqual([])
  })

  test.each<readonly [string, ConversationPart]>([
    ['another origin', thinkingPart('signature', 'there')],
    ['no origin', thinkingPart('signature')],
    ['another form', thinkingPart('encrypted', 'here')],
    ['unsigned thinking', { kind: 'reasoning', text: 't' }],
    ['a tool call', { ...call('a'), sealed: { origin: 'here', form: 'thought', value: 'v' } }],
  ])('is not sent: of %s', (_name, part) => {
    const { body, losses } = write({ messages: [hi, model(part, text('x'))] })
    expect(JSON.stringify(body)).not.toContain('thinking')
    expect(JSON.stringify(body)).not.toContain('"v"')
    expect(losses).toEqual(['reasoning_state'])
  })

  test('that is lost before the last calls makes a thinking budget dropped', () => {
    const budget = { reasoning: { budget: 2000 } }
    const own = [hi, model(thinkingPart('signature', 'here'), call('a')), tool(result('a'))]
    const other = [hi, model(thinkingPart('signature', 'there'), call('a')), tool(result('a'))]
    expect(write({ messages: own, ...budget }).body.thinking).toMatchObject({ type: 'enabled' })
    expect(write({ messages: other, ...budget }).body.thinking).toBeUndefined()
    expect(write({ messages: other, ...budget }).losses).toEqual(['reasoning_state', 'reasoning'])
    expect(write({ messages: other, reasoning: { effort: 'high' } }).body.thinking).toMatchObject({ type: 'adaptive' })
  })
})

test('a file at a URL is fetched unless it may be a PDF, which the provider fetches', () => {
  const fileAt = (url: string) => ({ kind: 'file', source: { at: 'url', url } }) as const
  const isFetched = (url: string) => codec.mustInline!(fileAt(url).source, 'file')
  const [pdf, notes] = ['https://a.example/a.pdf', 'https://a.example/notes.txt'] as const
  expect([isFetched(pdf), isFetched('https://a.example/a'), isFetched(notes)]).toEqual([false, false, true])
  const base64 = Buffer.from('the notes').toString('base64')
  const media = new Map([[notes, { mime: 'text/plain; charset=utf-8', base64 }]])
  const { body } = write({ messages: [user(fileAt(pdf), fileAt(notes))] }, { target: { media } })
  expect(body.messages[0]!.content).toEqual([
    { type: 'document', source: { type: 'url', url: pdf } },
    { type: 'document', source: { type: 'text', media_type: 'text/plain', data: 'the notes' } },
  ])
})
