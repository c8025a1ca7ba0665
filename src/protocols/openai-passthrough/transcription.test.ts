// Tests the events of a streamed transcript, of OpenAI and of Mistral.

import { expect, test } from 'bun:test'
import { transcription } from './transcription.ts'

const read = (event: object) => transcription.readFrame(JSON.stringify(event))
const usage = { prompt_audio_seconds: 12, prompt_tokens: 3, completion_tokens: 41, total_tokens: 419 }
const reported = { input: 3, inputAudio: 375, output: 41, seconds: 12 }

const rows: readonly (readonly [object, object])[] = [
  [
    { type: 'transcript.text.delta', delta: 'river' },
    { kind: 'content', outputBytes: 5 },
  ],
  [
    { type: 'transcript.text.segment', text: 'river' },
    { kind: 'content', outputBytes: 5 },
  ],
  [
    { type: 'transcript.text.done', text: 'river' },
    { kind: 'terminal', finishes: 1, items: { textBytes: 5 } },
  ],
  [
    { object: 'transcription.chunk', choices: [{ index: 0, delta: { content: 'river' } }] },
    { kind: 'content', outputBytes: 5, finishes: 0 },
  ],
  [
    { object: 'transcription.chunk', choices: [{ index: 0, delta: { content: '' }, finish_reason: 'stop' }] },
    { kind: 'content', finishes: 1 },
  ],
  [
    { type: 'transcription.language', audio_language: 'en' },
    { kind: 'opening', outputBytes: 0 },
  ],
  [
    { type: 'transcription.text.delta', text: 'river' },
    { kind: 'content', outputBytes: 5 },
  ],
  [
    { type: 'transcription.segment', text: 'river' },
    { kind: 'content', outputBytes: 0, items: { textBytes: 5 } },
  ],
  [
    { type: 'transcription.done', text: 'river', usage },
    { kind: 'terminal', finishes: 1, usage: reported },
  ],
  [
    { type: 'transcription.done', usage: { ...usage, total_tokens: 4 } },
    { kind: 'terminal', usage: 'nonsense' },
  ],
  [{ type: 'transcription.else' }, { kind: 'garbage' }],
]

test.each(rows)('an event is read: %j', (event, expected) => {
  expect(read(event)).toMatchObject(expected)
})

test('an error may be in a list', () => {
  const body = Buffer.from('[{"error":{"code":400,"message":"No."}}]')
  expect(transcription.readAnswer(body)?.error).toEqual({ status: 400, message: 'No.' })
})

test('an error in XML is no transcript', () => {
  expect(transcription.readAnswer(Buffer.from('<?xml version="1.0"?><Error/>'))).toBeUndefined()
})

test.each(['{laughs} The river.', '[music]', '{ 1 }', '<i>River</i>'])('a transcript may begin like %s', text => {
  expect(transcription.readAnswer(Buffer.from(text))).toMatchObject({ outputBytes: text.length })
})

test.each(['{"text":"The ri', '{\n  "text": "The ri', '<!DOCTYPE html><p>', '<?xml version="1.0"?>'])(
  'what begins like %j is no transcript',
  text => {
    expect(transcription.readAnswer(Buffer.from(text))).toBeUndefined()
  },
)
