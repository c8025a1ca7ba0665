// Tests what is read from whole messages and from events of a stream as they pass.

import { describe, expect, test } from 'bun:test'
import { readAnswer } from './response.ts'
import { readFrame } from './stream.ts'

const answerOf = (json: unknown) => readAnswer(Buffer.from(JSON.stringify(json)))
const frameOf = (json: unknown) => readFrame(JSON.stringify(json))
const deltaOf = (delta: unknown) => frameOf({ type: 'content_block_delta', index: 0, delta })
const startOf = (block: unknown) => frameOf({ type: 'content_block_start', index: 0, content_block: block })

describe('a message', () => {
  test('is read into its output bytes, usage and service class', () => {
    const content = [
      { type: 'thinking', thinking: '江河', signature: 'xxxx' },
      { type: 'redacted_thinking', data: 'xxxx' },
      { type: 'text', text: 'four', citations: null },
      { type: 'tool_use', id: 'x', name: 'ab', input: { a: 1 } },
      { type: 'web_search_tool_result', content: [{ text: 'not counted' }] },
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

  test('with fields of unexpected types does not throw', () => {
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
  test('without content is skipped', () => {
    expect(readFrame(undefined).kind).toBe('aside')
    expect(frameOf({ type: 'ping' })).toMatchObject({ kind: 'aside', json: { type: 'ping' } })
    expect(frameOf({ type: 'event_of_a_later_day' }).kind).toBe('aside')
  })

  test('P11: the end marker of another dialect does not end the stream', () => {
    expect(readFrame('[DONE]').kind).toBe('aside')
  })

  test('that opens the message or a block is read, with its usage', () => {
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
    ['thinking', { type: 'thinking_delta', thinking: '江河' }, 8],
    ['arguments', { type: 'input_json_delta', partial_json: 'four' }, 4],
    ['a summary of the conversation', { type: 'compaction_delta', content: 'four' }, 4],
  ])('of content is counted: %s', (_name, delta, bytes) => {
    expect(deltaOf(delta)).toMatchObject({ kind: 'content', outputBytes: bytes, finishes: 0 })
  })

  test('of content in one piece is counted', () => {
    expect(startOf({ type: 'tool_use', id: 'x', name: 'four', input: {} })).toMatchObject({ outputBytes: 4 })
    expect(startOf({ type: 'redacted_thinking', data: 'x' })).toMatchObject({ kind: 'content', outputBytes: 0 })
    expect(startOf({ type: 'web_search_tool_result', content: [] }).kind).toBe('content')
  })

  test('with a stop reason reports the usage of the whole stream', () => {
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

  test('that ends the stream is recognized', () => {
    expect(frameOf({ type: 'message_stop' })).toMatchObject({ kind: 'terminal', json: { type: 'message_stop' } })
  })

  test('of an error is read', () => {
    const error = { type: 'overloaded_error', message: 'Overloaded' }
    expect(frameOf({ type: 'error', error })).toMatchObject({ kind: 'error', error })
    expect(frameOf({ error: { message: 'm' } })).toMatchObject({ kind: 'error', error: { message: 'm' } })
  })

  test.each(['', '{', 'null', '5', '"x"', '[]', '{}', '{"choices":[]}', '{"type":5}'])(
    'that is invalid is recognized as garbage: %p',
    data => {
      expect(readFrame(data).kind).toBe('garbage')
    },
  )

  test('with fields of unexpected types does not throw', () => {
    for (const value of [undefined, null, 5, [], { type: 'text_delta', text: 5 }]) {
      expect(deltaOf(value)).toMatchObject({ kind: 'opening', outputBytes: 0 })
      expect(startOf(value)).toMatchObject({ kind: 'opening', outputBytes: 0 })
      expect(frameOf({ type: 'message_delta', delta: value, usage: value }).finishes).toBe(0)
    }
  })
})
