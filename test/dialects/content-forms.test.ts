// Content in a form that its dialect does not have, or that the caller's dialect cannot have twice: it is carried, or it
// is a loss.

import { describe, expect, test } from 'bun:test'
import type { Answer, AnswerPart } from '../../src/protocols/neutral/answer.ts'
import { toEvents } from '../../src/protocols/neutral/answer-collector.ts'
import { protocols } from '../../src/protocols/protocols.ts'
import { openTranslation } from './test-translation.ts'
import type { Dialect } from './upstreams.ts'

function read(dialect: Dialect, json: object): { parts: readonly AnswerPart[] | undefined; losses: readonly string[] } {
  const { source } = openTranslation(dialect, dialect).translation
  const reading = protocols[dialect].readAnswer(Buffer.from(JSON.stringify(json)))
  expect(reading?.error).toBeUndefined()
  const answer = protocols[dialect].codec.readWholeAnswer(reading?.json, source)
  return { parts: answer.choices[0]?.parts, losses: source.notes.losses.codes }
}

const hi = [{ kind: 'text', text: 'Hi' }] as readonly AnswerPart[]

test('a message of Anthropic has its content as a text, or none', () => {
  const message = { type: 'message', role: 'assistant', stop_reason: 'end_turn' }
  expect(read('anthropic-messages', { ...message, content: 'Hi' }).parts).toEqual(hi)
  expect(read('anthropic-messages', { ...message, content: null }).parts).toEqual([])
  expect(protocols['anthropic-messages'].readAnswer(Buffer.from('{"content":null}'))).toBeUndefined()
})

test('a candidate of Gemini has one part instead of a list, or a text', () => {
  const answerOf = (content: unknown) => ({ candidates: [{ content, finishReason: 'STOP' }] })
  expect(read('gemini', answerOf({ parts: { text: 'Hi' } }))).toEqual({ parts: hi, losses: [] })
  expect(read('gemini', answerOf('Hi'))).toEqual({ parts: [], losses: ['answer.candidates.content'] })
})

test('an image in the thoughts of Gemini is no image of the answer, and a signed image loses its signature', () => {
  const [draft, final] = ['AAAA', 'BBBB'].map(data => ({ inlineData: { mimeType: 'image/png', data } }))
  const parts = [
    { ...draft, thought: true },
    { ...final, thoughtSignature: 'c2ln' },
  ]
  const answer = { candidates: [{ content: { parts }, finishReason: 'STOP' }] }
  const { source, target, callerCodec } = openTranslation('gemini', 'openai-chat').translation
  const read = protocols.gemini.codec.readWholeAnswer(answer, source)
  expect(source.notes.losses.codes).toEqual(['reasoning_state'])
  const text = callerCodec.writeWholeAnswer(read, target)
  expect(text).toContain('BBBB')
  expect(text).not.toContain('AAAA')
  expect(target.losses.codes).toContain('thought.inlinedata')
})

const answerOf = (...parts: readonly AnswerPart[]): Answer => ({ choices: [{ parts, finish: 'stop' }] })

test.each([
  ['audio/L16;codec=pcm;rate=24000', 'AAE=', []],
  ['audio/wav', 'AA==', ['audio']],
])('two audio parts of the type %s become one in a chat message', (mime, data, losses) => {
  const sound = (base64: string): AnswerPart => ({ kind: 'audio', source: { at: 'inline', mime, base64 } })
  const { target, callerCodec } = openTranslation('gemini', 'openai-chat').translation
  const text = callerCodec.writeWholeAnswer(answerOf(sound('AA=='), ...hi, sound('AQ==')), target)
  expect((JSON.parse(text) as { choices: { message: object }[] }).choices[0]?.message).toMatchObject({
    content: 'Hi',
    audio: { data },
  })
  expect([...target.losses.codes]).toEqual(losses)
})

describe('a citation of an empty text is a loss in a response', () => {
  const answer = answerOf({ kind: 'text', text: '', citations: [{ url: 'https://a.example/' }] })

  test('that is plain', () => {
    const { target, callerCodec } = openTranslation('anthropic-messages', 'openai-responses').translation
    callerCodec.writeWholeAnswer(answer, target)
    expect(target.losses.codes).toEqual(['citations'])
  })

  test('that is streamed', () => {
    const { target, callerCodec } = openTranslation('anthropic-messages', 'openai-responses').translation
    const writer = callerCodec.openEventWriter(target)
    for (const event of toEvents(answer)) writer.write(event)
    writer.end()
    expect(target.losses.codes).toEqual(['citations'])
  })
})
