// Tests the contents that are written for Google: their order, results, signatures and media.

import { describe, expect, test } from 'bun:test'
import { targetOf } from '../../../test/support/translation.ts'
import { Refusal } from '../../base/errors.ts'
import type { ModelTraits } from '../../base/money/model-traits.ts'
import type { Conversation, ConversationMessage, ConversationPart } from '../neutral/conversation.ts'
import type { ConversationTarget } from '../protocol.ts'
import { needsInline } from './media.ts'
import { writeConversation } from './write-conversation.ts'

type Body = Readonly<Record<string, unknown>>

const greeting: ConversationMessage = { role: 'user', parts: [{ kind: 'text', text: 'hi' }] }
const conversationWith = (more: Partial<Conversation>): Conversation => ({
  messages: [greeting],
  tools: [],
  settings: { stream: false },
  lostFields: [],
  ...more,
})
const targetFor = (traits: ModelTraits = {}, more: Partial<ConversationTarget> = {}): ConversationTarget =>
  targetOf({ model: 'up', origin: 'here', traits, ...more })

function writeWith(more: Partial<Conversation>, target = targetFor()): { body: Body; losses: readonly string[] } {
  const body = JSON.parse(writeConversation(conversationWith(more), target)) as Body
  return { body, losses: target.notes.losses.codes }
}
const contentsOf = (messages: readonly ConversationMessage[], target = targetFor()) => {
  const { body, losses } = writeWith({ messages }, target)
  return { contents: body.contents as object[], systemInstruction: body.systemInstruction, losses }
}
const user = (...parts: readonly ConversationPart[]): ConversationMessage => ({ role: 'user', parts })
const model = (...parts: readonly ConversationPart[]): ConversationMessage => ({ role: 'assistant', parts })
const text = (content: string): ConversationPart => ({ kind: 'text', text: content })
const call = (id: string, name = 'f', more: object = {}): ConversationPart => ({
  kind: 'call',
  id,
  name,
  arguments: '{"a":1}',
  ...more,
})
const result = (callId: string, content = 'ok', more: object = {}): ConversationPart => ({
  kind: 'result',
  callId,
  parts: [{ kind: 'text', text: content }],
  ...more,
})
const tool = (...parts: readonly ConversationPart[]): ConversationMessage => ({ role: 'tool', parts })
const skip = 'skip_thought_signature_validator'
const ownState = { sealed: { form: 'thought', value: 'AbCd', origin: 'here' } } as const

describe('contents:', () => {
  test('leading instructions go into systemInstruction, later ones become marked text of the user', () => {
    const system = (content: string): ConversationMessage => ({ role: 'system', parts: [text(content)] })
    const { contents, systemInstruction } = contentsOf([
      system('one'),
      { role: 'developer', parts: [text('two')] },
      greeting,
      model(text('yes')),
      system('three'),
      { role: 'developer', parts: [text('four'), text('')] },
      user(text('five')),
    ])
    expect(systemInstruction).toEqual({ parts: [{ text: 'one' }, { text: 'two' }] })
    expect(contents).toEqual([
      { role: 'user', parts: [{ text: 'hi' }] },
      { role: 'model', parts: [{ text: 'yes' }] },
      {
        role: 'user',
        parts: [{ text: '<system>\nthree\n</system>' }, { text: '<system>\nfour\n</system>' }, { text: 'five' }],
      },
    ])
  })

  test('instructions become the first text of the user if the model takes none or there is no other text', () => {
    const system: ConversationMessage = { role: 'system', parts: [text('be')] }
    expect(contentsOf([system, greeting], targetFor({ system: false }))).toMatchObject({
      contents: [{ role: 'user', parts: [{ text: '<system>\nbe\n</system>' }, { text: 'hi' }] }],
      systemInstruction: undefined,
    })
    expect(contentsOf([system]).contents).toEqual([{ role: 'user', parts: [{ text: 'be' }] }])
  })

  test('a conversation begins with the user, and an empty one is refused', () => {
    expect(contentsOf([model(text('yes'))]).contents).toHaveLength(2)
    expect(() => contentsOf([])).toThrow(Refusal)
    expect(() => contentsOf([user(text(''))])).toThrow(Refusal)
  })

  test('tool results are in the order of the calls and in a content of their own, and text follows', () => {
    const messages = [greeting, model(call('x'), call('y', 'g')), user(text('well'), result('y'), result('x'))]
    const { contents, losses } = contentsOf(messages, targetFor({ thinking: 'budget' }))
    expect(contents.slice(1)).toEqual([
      {
        role: 'model',
        parts: [
          { functionCall: { id: 'x', name: 'f', args: { a: 1 } } },
          { functionCall: { id: 'y', name: 'g', args: { a: 1 } } },
        ],
      },
      {
        role: 'user',
        parts: [
          { functionResponse: { id: 'x', name: 'f', response: { output: 'ok' } } },
          { functionResponse: { id: 'y', name: 'g', response: { output: 'ok' } } },
        ],
      },
      { role: 'user', parts: [{ text: 'well' }] },
    ])
    expect(losses).toEqual([])
  })

  test('a call without a result gets one, a result without a call is dropped, and both are losses', () => {
    const unanswered = contentsOf([greeting, model(call('x')), user(text('well'))], targetFor({ thinking: 'budget' }))
    expect(unanswered.contents[2]).toMatchObject({ parts: [{ functionResponse: { id: 'x', response: {} } }] })
    expect(JSON.stringify(unanswered.contents[2])).toContain('"error"')
    expect(unanswered.losses).toEqual(['tool_result'])
    const orphan = contentsOf([greeting, tool(result('nobody'))])
    expect(orphan).toMatchObject({ contents: [{ parts: [{ text: 'hi' }] }], losses: ['tool_result'] })
    const last = contentsOf([greeting, model(call('x'))], targetFor({ thinking: 'budget' }))
    expect(last.contents).toHaveLength(3)
  })

  test('cache marks and citations are losses', () => {
    const marked: ConversationPart = { kind: 'text', text: 'x', cache: {}, citations: [{ url: 'https://x.example' }] }
    expect(contentsOf([user(marked)]).losses).toEqual(['cache_control', 'citations'])
    const named: ConversationPart = {
      kind: 'file',
      name: 'a.txt',
      source: { at: 'text', text: 'x', mime: 'text/plain' },
    }
    expect(contentsOf([user(named)])).toMatchObject({ contents: [{ parts: [{ text: 'x' }] }], losses: ['file.name'] })
  })

  test('tool results are objects', () => {
    const rows: readonly (readonly [ConversationPart, object])[] = [
      [result('x', 'plain'), { output: 'plain' }],
      [result('x', ''), { output: '' }],
      [result('x', '{"a":12345678901234567890}'), { a: 12345678901234567890 }],
      [result('x', '[1]'), { output: '[1]' }],
      [result('x', 'no', { failed: true }), { error: 'no' }],
    ]
    for (const [part, response] of rows) {
      const { contents } = contentsOf([greeting, model(call('x')), tool(part)])
      expect(contents[2]).toMatchObject({ parts: [{ functionResponse: { response } }] })
    }
  })

  test('numbers beyond a double keep their digits', () => {
    const messages = [greeting, model(call('x', 'f', { arguments: '{"id":12345678901234567890}' })), tool(result('x'))]
    expect(writeConversation(conversationWith({ messages }), targetFor())).toContain(
      '"args":{"id":12345678901234567890}',
    )
  })

  test('arguments that are not an object are lost, and those of a custom tool become its input', () => {
    const broken = contentsOf([greeting, model(call('x', 'f', { arguments: '{"a":' }))])
    expect(broken.contents[1]).toMatchObject({ parts: [{ functionCall: { args: {} } }] })
    expect(broken.losses).toContain('tool_arguments')
    const custom = contentsOf([greeting, model(call('x', 'f', { arguments: 'free', custom: true }))])
    expect(custom.contents[1]).toMatchObject({ parts: [{ functionCall: { args: { input: 'free' } } }] })
  })
})

describe('P25: signatures', () => {
  const partsOf = (message: ConversationMessage, traits: ModelTraits = {}) => {
    const { contents, losses } = contentsOf([greeting, message], targetFor(traits))
    return { parts: (contents[1] as { parts: object[] }).parts, losses: losses.filter(code => code !== 'tool_result') }
  }

  test('are sent back with the part that had them', () => {
    const message = model({ kind: 'reasoning', text: 'hm', ...ownState }, call('x', 'f', ownState), call('y'))
    expect(partsOf(message)).toEqual({
      parts: [
        { text: 'hm', thought: true, thoughtSignature: 'AbCd' },
        { functionCall: { id: 'x', name: 'f', args: { a: 1 } }, thoughtSignature: 'AbCd' },
        { functionCall: { id: 'y', name: 'f', args: { a: 1 } } },
      ],
      losses: [],
    })
  })

  test('of another origin are dropped, and the first call of a turn gets a placeholder', () => {
    const foreign = { sealed: { form: 'thought', value: 'AbCd', origin: 'there' } } as const
    const message = model(
      { kind: 'reasoning', text: 'hm', ...foreign },
      call('x', 'f', foreign),
      call('y', 'f', foreign),
    )
    const { parts, losses } = partsOf(message)
    expect(parts).toMatchObject([{ thoughtSignature: skip }, { functionCall: { id: 'y' } }])
    expect(parts[1]).not.toHaveProperty('thoughtSignature')
    expect(losses).toEqual(['reasoning_state'])
  })

  test('are not required by models with a thinking budget', () => {
    const { parts, losses } = partsOf(model(call('x')), { thinking: 'budget' })
    expect(parts[0]).not.toHaveProperty('thoughtSignature')
    expect(losses).toEqual([])
  })

  test('are not needed for thoughts, which are sent as thoughts', () => {
    expect(partsOf(model({ kind: 'reasoning', text: 'hm' })).parts).toEqual([{ text: 'hm', thought: true }])
    const shown = model({ kind: 'reasoning', text: 'hm', sealed: { form: 'shown', value: '', origin: 'there' } })
    expect(partsOf(shown)).toEqual({ parts: [{ text: 'hm', thought: true }], losses: [] })
  })
})

describe('media:', () => {
  const url = 'https://x.example/cat.png'
  const image: ConversationPart = { kind: 'image', source: { at: 'url', url } }
  const fetched = targetFor({}, { media: new Map([[url, { mime: 'image/png', base64: 'AAAA' }]]) })
  const inline = { inlineData: { mimeType: 'image/png', data: 'AAAA' } }

  test('a URL is replaced by its fetched content, or refused', () => {
    expect(contentsOf([user(image)], fetched).contents[0]).toMatchObject({ parts: [inline] })
    expect(() => contentsOf([user(image)])).toThrow('media_unreachable')
    // A video would have more tokens than were reserved for an image.
    const video = targetFor({}, { media: new Map([[url, { mime: 'video/mp4', base64: 'AAAA' }]]) })
    expect(() => contentsOf([user(image)], video)).toThrow('media_refused')
  })

  const urls: readonly (readonly [string, boolean])[] = [
    [url, true],
    ['http://x.example/a', true],
    ['HTTPS://generativelanguage.googleapis.com.evil.example/', true],
    ['https://generativelanguage.googleapis.com/v1beta/files/x', false],
    ['gs://bucket/x', false],
    ['https://youtu.be/x', false],
  ]
  test.each(urls)('%s must be fetched: %p', (address, expected) => {
    expect(needsInline({ at: 'url', url: address })).toBe(expected)
    expect(needsInline({ at: 'provider', id: address })).toBe(false)
  })

  test('Google files are sent by their URI, files of others are refused', () => {
    const file = (id: string): ConversationMessage =>
      user({ kind: 'file', source: { at: 'provider', id, mime: 'a/b' } })
    expect(contentsOf([file('gs://b/x')]).contents[0]).toMatchObject({ parts: [{ fileData: { fileUri: 'gs://b/x' } }] })
    expect(() => contentsOf([file('file-123')])).toThrow(Refusal)
  })

  test('media that the model cannot read are refused', () => {
    expect(() => contentsOf([user(image)], { ...fetched, traits: { reads: ['text'] } })).toThrow('field_invalid')
  })

  test('images of a tool result are in the result, or after it if the model cannot read them there', () => {
    const withImage = result('x', 'see', { parts: [{ kind: 'text', text: 'see' }, image] })
    const contentsInside = contentsOf([greeting, model(call('x')), tool(withImage)], fetched).contents
    expect(contentsInside[2]).toMatchObject({
      parts: [{ functionResponse: { response: { output: 'see' }, parts: [inline] } }],
    })
    const contentsAfter = contentsOf([greeting, model(call('x')), tool(withImage)], {
      ...fetched,
      traits: { richResults: false },
    }).contents
    expect(contentsAfter.slice(2)).toMatchObject([
      { parts: [{ functionResponse: { response: { output: 'see' } } }] },
      { parts: [{ text: 'The result of f (x):' }, inline] },
    ])
    const onlyImage = [greeting, model(call('x')), tool(result('x', '', { parts: [image] }))]
    expect(contentsOf(onlyImage, { ...fetched, traits: { richResults: false } }).contents[2]).toMatchObject({
      parts: [{ functionResponse: { response: { output: 'The result of f (x) is in the next message.' } } }],
    })
  })

  test('a text document in a tool result is text of the result', () => {
    const source = { at: 'text', text: 'It rains.', mime: 'text/plain' } as const
    const parts = [{ kind: 'text', text: 'Found:' }, { kind: 'file', name: 'Weather', source }, image]
    const messages = [greeting, model(call('x')), tool(result('x', '', { parts }))]
    const { contents, losses } = contentsOf(messages, fetched)
    const response = { output: 'Found:\nWeather\n\nIt rains.' }
    expect(contents[2]).toMatchObject({ parts: [{ functionResponse: { response, parts: [inline] } }] })
    expect(contents).toHaveLength(3)
    expect(losses).not.toContain('file.name')
  })

  test('all images have one resolution, and different ones are a loss', () => {
    const imageWith = (detail: 'low' | 'high'): ConversationPart => ({ ...image, detail })
    expect(writeWith({ messages: [user(imageWith('low'))] }, fetched).body.generationConfig).toEqual({
      mediaResolution: 'MEDIA_RESOLUTION_LOW',
    })
    expect(writeWith({ messages: [user(imageWith('low'), imageWith('high'))] }, fetched).losses).toContain(
      'image.detail',
    )
  })

  test('the resolution is also that of files with a detail, and of media in tool results', () => {
    const pdf = { kind: 'file', source: { at: 'inline', base64: 'AAAA', mime: 'application/pdf' } } as const
    const resultWith = (part: object) => [greeting, model(call('x')), tool(result('x', '', { parts: [part] }))]
    const resolutionOf = (...messages: ConversationMessage[]) => {
      const { body, losses } = writeWith({ messages }, targetFor({ thinking: 'none' }, { media: fetched.media }))
      return [(body.generationConfig as { mediaResolution?: string } | undefined)?.mediaResolution, losses]
    }
    const low = 'MEDIA_RESOLUTION_LOW'
    expect(resolutionOf(...resultWith({ ...image, detail: 'low' }))).toEqual([low, []])
    expect(resolutionOf(...resultWith({ ...image, detail: 'low' }), user(image))).toEqual([undefined, ['image.detail']])
    expect(resolutionOf(user({ ...pdf, detail: 'low' }))).toEqual([low, []])
    expect(resolutionOf(user(pdf, { ...image, detail: 'low' }))).toEqual([low, []])
    expect(resolutionOf(user({ ...pdf, detail: 'low' }, image))).toEqual([undefined, ['file.detail']])
  })
})
