// The response object that is stored, found in the last bytes that the caller got.

import { expect, test } from 'bun:test'
import { StoredCall } from './stored-call.ts'

const response = { id: 'resp_1', output: [{ text: 'a line with data: {"id":"resp_2"}\ndata: {"id":"resp_3"}' }] }
const event = `data: ${JSON.stringify({ type: 'response.completed', response })}\n\n`
const done = 'data: [DONE]\n\n'

test.each([
  ['a whole answer', JSON.stringify(response)],
  ['one event', event],
  ['an event with its name', `event: response.completed\n${event}`],
  ['the last of several events', `event: a\ndata: {"id":"resp_0"}\n\nevent: b\n${event}`],
  ['the event before the marker of the end', `data: {"id":"resp_0"}\n\n${event}${done}`],
])('is read from %s, whatever its text contains', (_name, text) => {
  const call = new StoredCall([], undefined)
  call.takeLast(Buffer.from(text))
  expect(call.answer()).toEqual(response)
})

test.each(['', done, 'data: {"id":', ': comment\n\n'])('is missing in %p', text => {
  const call = new StoredCall([], undefined)
  call.takeLast(Buffer.from(text))
  expect(call.answer()).toBeUndefined()
})
