import { expect, test } from 'bun:test'
import { readEvents } from './event-stream.ts'

test('events are read whole, comments are left out, and the rest is kept', () => {
  const { events, rest } = readEvents(
    ':\n\nid: 7\nevent: call\ndata: {"a": "b: c"}\n\nevent: state\ndata: {}\n\nevent: ca',
  )
  expect(events).toEqual([
    { name: 'call', data: { a: 'b: c' }, id: '7' },
    { name: 'state', data: {}, id: undefined },
  ])
  expect(rest).toBe('event: ca')
})
