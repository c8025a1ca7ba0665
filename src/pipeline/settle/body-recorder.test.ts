// What a recorder remembers of an answer, and what it forgets when the answer begins anew.

import { expect, test } from 'bun:test'
import { Recorder } from './body-recorder.ts'

test('one that begins anew knows nothing of what did not fit before', () => {
  const recorder = new Recorder({ bytes: Buffer.from('asked'), truncated: false }, 4)
  recorder.begin('text/plain')
  recorder.take(Buffer.from('too long'))
  expect([recorder.answer.toString(), recorder.overflowed]).toEqual(['too ', true])
  recorder.begin('application/json')
  recorder.take(Buffer.from('{}'))
  expect([recorder.answer.toString(), recorder.overflowed]).toEqual(['{}', false])
  expect(recorder.contentType).toBe('application/json')
})
