// Tests what is read from whole messages and from events of a stream as they pass.

import { describe, expect, test } from 'bun:test'
import { readAnswer } from './response.ts'
import { readFrame } from './stream.ts'

const answerOf = (json: unknown) => readAnswer(Buffer.from(JSON.stringify(json)))
const frameOf = (json: unknown) => readFrame(JSON.stringify(json))
const deltaOf = (delta: unknown) => frameOf({ type: 'content_block_delta', index: 0, delta })
const startOf = (block: unknown) => frameOf({ type: 'content_block_start', index: 0, content_block: block })

describe('a message', () => {
  test('is read: output, usage and service class', () => {
    const content = [
      { type: 'thinking', thinking: '江河', signature: 'xxxx' },
      { type: 'redacted_thinking', data: 'xxxx' },
      { type: 'text', text: 'four', citations: null },
      { type: 'tool_use', id: 'x', name: 'ab', input: { a: 1 } },
      { type: 'web_search_tool_result', content: [{ text: 'not its work' }] },
    ]
    const usage = { input_tokens: 7, output_tokens: 5, service_tier: 'priority' }
    const json = { type: 'message', content, usage }
    expect(answerOf(json)).toEqual({
      json,
      outputBytes: 8 + 4 + 2 + 13,
      usage: { input: 7, output: 5 },
      serviceClass: 'priority',
    })
  })

  test.each(['hello', '{"content":[', '', 'null', '5', '{"a":1}', '{"content":{}}', '[]'])(
    'is not a message: %p',
    body => {
      expect(readAnswer(Buffer.from(body))).toBeUndefined()
    },
  )

  test('of odd shapes does no harm', () => {
    const content = [null, 5, {}, { type: 'text' }, { type: 'tool_use', input: 5 }, { type: 'text', text: [] }]
    expect(answerOf({ content })).toMatchObject({ outputBytes: 0 })
  })

  test('may be an error with status 200', () => {
    const error = { type: 'overloaded_error', message: 'Overloaded' }
    expect(answerOf({ type: 'error', error })?.error).toEqual({ status: 502, ...error })
    expect(answerOf({ error: 'words' })?.error?.message).toBe('words')
    expect(answerOf({ type: 'error' })?.error?.message).toBe('The upstream gave no reason.')
  })
})

describe('an event', () => {
  test('without meaning', () => {
    expect(readFrame(undefined).kind).toBe('aside')
    expect(frameOf({ type: 'ping' })).toMatchObject({ kind: 'aside', json: { type: 'ping' } })
    expect(frameOf({ type: 'event_of_a_later_day' }).kind).toBe('aside')
  })

  test('P11: the end marker of another dialect does not end the stream', () => {
    expect(readFrame('[DONE]').kind).toBe('aside')
  })

  test('that opens, with usage', () => {
    const message = { usage: { input_tokens: 40, output_tokens: 1, service_tier: 'standard' } }
    expect(frameOf({ type: 'message_start', message })).toMatchObject({
      kind: 'opening',
      usage: { input: 40, output: 1 },
      serviceClass: 'standard',
      finishes: 0,
    })
    expect(frameOf({ type: 'message_start' })).toMatchObject({ kind: 'opening' })
    expect(startOf({ type: 'text', text: '' }).kind).toBe('opening')
    expect(startOf({ type: 'thinking', thinking: '', signature: '' }).kind).toBe('opening')
    expect(deltaOf({ type: 'signature_delta', signature: 'x' })).toMatchObject({ kind: 'opening', outputBytes: 0 })
    expect(frameOf({ type: 'content_block_stop', index: 0 }).kind).toBe('opening')
  })

  test.each<readonly [string, unknown, number]>([
    ['text', { type: 'text_delta', text: 'four' }, 4],
    ['thoughts', { type: 'thinking_delta', thinking: '江河' }, 8],
    ['arguments', { type: 'input_json_delta', partial_json: 'four' }, 4],
    ['a summary', { type: 'compaction_delta', content: 'four' }, 4],
  ])('of content: %s', (_name, delta, bytes) => {
    expect(deltaOf(delta)).toMatchObject({ kind: 'content', outputBytes: bytes, finishes: 0 })
  })

  test('of content in one piece', () => {
    expect(startOf({ type: 'tool_use', id: 'x', name: 'four', input: {} })).toMatchObject({ outputBytes: 4 })
    expect(startOf({ type: 'redacted_thinking', data: 'x' })).toMatchObject({ kind: 'content', outputBytes: 0 })
    expect(startOf({ type: 'web_search_tool_result', content: [] }).kind).toBe('content')
  })

  test('with a stop reason has the usage of the whole stream', () => {
    const usage = { output_tokens: 9 }
    const frame = JSON.stringify({ type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage })
    const earlier = { input: 40, cacheWrite1h: 3, output: 1 }
    expect(readFrame(frame, earlier)).toMatchObject({
      kind: 'content',
      finishes: 1,
      usage: { input: 40, cacheWrite1h: 3, output: 9 },
    })
    expect(readFrame(frame)).toMatchObject({ finishes: 1, usage: 'nonsense' })
    expect(frameOf({ type: 'message_delta', delta: { stop_reason: null } })).toMatchObject({ finishes: 0 })
  })

  test('that ends the stream', () => {
    expect(frameOf({ type: 'message_stop' })).toMatchObject({ kind: 'terminal', json: { type: 'message_stop' } })
  })

  test('of an error', () => {
    const error = { type: 'overloaded_error', message: 'Overloaded' }
    expect(frameOf({ type: 'error', error })).toMatchObject({ kind: 'error', error })
    expect(frameOf({ error: { message: 'm' } })).toMatchObject({ kind: 'error', error: { message: 'm' } })
  })

  test.each(['', '{', 'null', '5', '"x"', '[]', '{}', '{"choices":[]}', '{"type":5}'])('that is invalid: %p', data => {
    expect(readFrame(data).kind).toBe('garbage')
  })

  test('of odd shapes does no harm', () => {
    for (const odd of [undefined, null, 5, [], { type: 'text_delta', text: 5 }]) {
      expect(deltaOf(odd)).toMatchObject({ kind: 'opening', outputBytes: 0 })
      expect(startOf(odd)).toMatchObject({ kind: 'opening', outputBytes: 0 })
      expect(frameOf({ type: 'message_delta', delta: odd, usage: odd }).finishes).toBe(0)
    }
  })
})
