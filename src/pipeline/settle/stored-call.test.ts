import { expect, test } from 'bun:test'
import { StoredCall } from './stored-call.ts'

test('the answer is found in the last event, whatever its text contains', () => {
  const response = { id: 'resp_1', output_text: 'a line\ndata: {"id":"other"}' }
  const event = `event: response.completed\ndata: ${JSON.stringify({ type: 'response.completed', response })}\n\n`
  for (const bytes of [event, `${event}data: [DONE]\n\n`, JSON.stringify(response)]) {
    const stored = new StoredCall([], undefined)
    stored.takeLast(Buffer.from(bytes))
    expect(stored.answer()).toEqual(response)
  }
})
