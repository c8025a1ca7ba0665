// A recorder keeps an answer, and forgets it when the recording begins again.

import { expect, test } from 'bun:test'
import { BodyRecorder } from './body-recorder.ts'

test('a recording that begins again forgets an earlier overflow', () => {
  const recorder = new BodyRecorder({ bytes: Buffer.from('request'), truncated: false }, 4)
  recorder.begin('text/plain')
  recorder.take(Buffer.from('too long'))
  expect([recorder.answer.toString(), recorder.overflowed]).toEqual(['too ', true])
  recorder.begin('application/json')
  recorder.take(Buffer.from('{}'))
  expect([recorder.answer.toString(), recorder.overflowed]).toEqual(['{}', false])
  expect(recorder.contentType).toBe('application/json')
})
