// Tests what is read from whole chat answers and from events of a stream.

import { describe, expect, test } from 'bun:test'
import type { AnswerReading } from '../neutral/call.ts'
import { readAnswer } from './response.ts'
import { readFrame } from './stream.ts'

const readingOf = (json: unknown) => readAnswer(Buffer.from(JSON.stringify(json)))
const answerOf = (json: unknown): AnswerReading | undefined => {
  const { json: _json, ...reading } = readingOf(json) ?? { outputBytes: -1 }
  return reading
}
const frameOf = (json: unknown) => readFrame(JSON.stringify(json))
const delta = (fields: unknown, finish: string | null = null) =>
  frameOf({ choices: [{ index: 0, delta: fields, finish_reason: finish }] })

describe('an answer', () => {
  test('reports the size of the output and the usage', () => {
    const message = { role: 'assistant', content: 'four' }
    expect(answerOf({ choices: [{ message }], usage: { prompt_tokens: 7, completion_tokens: 5 } })).toEqual({
      outputBytes: 4,
      usage: { input: 7, output: 5 },
    })
    expect(answerOf({ choices: [] })).toEqual({ outputBytes: 0 })
    expect(answerOf({ choices: [], usage: null, service_tier: null })).toEqual({ outputBytes: 0 })
  })

  test('is parsed once, and returns the parsed JSON for the translation', () => {
    expect(readingOf({ choices: [], more: 1 })?.json).toEqual({ choices: [], more: 1 })
  })

  test('reports its service tier', () => {
    expect(answerOf({ choices: [], service_tier: 'default' })?.serviceClass).toBe('default')
    expect(frameOf({ choices: [], service_tier: 'flex' }).serviceClass).toBe('flex')
    expect(frameOf({ choices: [], service_tier: 5 }).serviceClass).toBeUndefined()
  })

  test('has output bytes that are estimated from its characters', () => {
    expect(answerOf({ choices: [{ message: { content: '江河 é' } }] })?.outputBytes).toBe(11)
    expect(delta({ content: '江河' }).outputBytes).toBe(8)
  })

  test.each(['hello', '{"choices":[', '', 'null', '5', '{"a":1}', '{"choices":{}}'])('is not recognized: %p', body => {
    expect(readAnswer(Buffer.from(body))).toBeUndefined()
  })

  test('may be an error with the status 200', () => {
    expect(answerOf({ error: { message: 'm', type: 't', code: 'c', param: 'p' } })?.error).toEqual({
      status: 502,
      message: 'm',
      type: 't',
      code: 'c',
      param: 'p',
    })
    expect(answerOf({ error: 'words' })?.error?.message).toBe('words')
    expect(answerOf({ error: { code: 5 } })?.error).toEqual({ status: 502, message: 'The upstream gave no reason.' })
    expect(answerOf({ message: 'top', code: 'c' })?.error).toMatchObject({ message: 'top', code: 'c' })
    expect(answerOf({ error: null, choices: [] })?.error).toBeUndefined()
  })

  test('may be an error in a list', () => {
    const wrapped = [{ error: { code: 400, message: 'No.', status: 'INVALID_ARGUMENT' } }]
    expect(answerOf(wrapped)?.error).toEqual({ status: 400, message: 'No.' })
    expect(frameOf(wrapped)).toMatchObject({ kind: 'error', error: { status: 400, message: 'No.' } })
    // The caller would get the list.
    expect(readingOf([{ choices: [] }])).toBeUndefined()
  })

  test('counts all output', () => {
    const call = { function: { name: 'four', arguments: '{}' } }
    const message = { content: 'ab', refusal: 'cd', reasoning_content: 'efgh', tool_calls: [call] }
    expect(answerOf({ choices: [{ message }, { message: { content: 'ij' } }] })?.outputBytes).toBe(17)
    const invalid = [null, 5, {}, { message: null }, { message: { content: null, tool_calls: 5 } }]
    expect(answerOf({ choices: invalid })).toEqual({ outputBytes: 0 })
  })
})

describe('an event', () => {
  test('without data is skipped', () => {
    expect(readFrame(undefined).kind).toBe('aside')
  })

  test('that ends the stream is recognized', () => {
    expect(readFrame('[DONE]')).toMatchObject({ kind: 'terminal' })
  })

  test('that opens the stream has no output', () => {
    expect(delta({ role: 'assistant', content: '' })).toMatchObject({ kind: 'opening', finishes: 0, outputBytes: 0 })
    expect(delta({ role: 'assistant', content: null })).toMatchObject({ kind: 'opening' })
    expect(delta({ tool_calls: [] })).toMatchObject({ kind: 'opening' })
    expect(frameOf({ choices: [] })).toMatchObject({ kind: 'opening' })
    expect(frameOf({ choices: [], usage: null })).toMatchObject({ kind: 'opening' })
  })

  const tool = { index: 0, type: 'function', function: { name: 'four', arguments: '' } }
  test.each<readonly [string, unknown, number]>([
    ['text', { content: 'four' }, 4],
    ['a refusal', { refusal: 'four' }, 4],
    ['reasoning', { reasoning_content: 'four' }, 4],
    ['reasoning under another name', { reasoning: 'four' }, 4],
    ['reasoning under both names, counted once', { reasoning_content: 'four', reasoning: 'four' }, 4],
    ['reasoning in details', { reasoning_details: [{ text: 'fo' }, { summary: 'ur' }, { data: 'sealed' }] }, 4],
    ['reasoning repeated in details, counted once', { reasoning: 'four', reasoning_details: [{ text: 'four' }] }, 4],
    ['a tool call', { tool_calls: [tool] }, 4],
    ['the arguments of a tool call', { tool_calls: [{ index: 0, function: { arguments: 'four' } }] }, 4],
    ['a custom tool call', { tool_calls: [{ index: 0, type: 'custom', custom: { name: 'four', input: '' } }] }, 4],
    ['a tool call in the legacy form', { function_call: { name: 'fo', arguments: 'ur' } }, 4],
    ['audio with a transcript', { audio: { id: 'a', data: 'AAAA', transcript: 'four' } }, 5],
    ['text in parts', { content: [{ type: 'text', text: 'four' }] }, 4],
    ['reasoning in parts', { content: [{ type: 'thinking', thinking: [{ type: 'text', text: 'four' }] }] }, 4],
  ])('of content is counted: %s', (_name, fields, bytes) => {
    expect(delta(fields)).toMatchObject({ kind: 'content', outputBytes: bytes, finishes: 0 })
  })

  test('counts thoughts in details as thoughts, in a plain answer too', () => {
    const message = { content: null, reasoning: null, reasoning_details: [{ type: 'reasoning.text', text: 'four' }] }
    expect(delta(message)).toMatchObject({ outputBytes: 4, thoughtBytes: 4 })
    expect(answerOf({ choices: [{ message }] })?.outputBytes).toBe(4)
    expect(delta({ reasoning_details: [null, 5, { text: null }] }).kind).toBe('opening')
  })

  test('with a finish reason finishes a choice', () => {
    for (const reason of ['stop', 'length', 'tool_calls', 'content_filter', 'eos']) {
      expect(delta({}, reason)).toMatchObject({ kind: 'content', finishes: 1 })
    }
    expect(delta({}, null).finishes).toBe(0)
    expect(delta({ role: 'assistant' }, '')).toMatchObject({ kind: 'opening', finishes: 0 })
  })

  test('with usage reports the usage', () => {
    const usage = { prompt_tokens: 7, completion_tokens: 5 }
    const read = { input: 7, output: 5 }
    expect(frameOf({ choices: [], usage })).toMatchObject({ kind: 'usage', usage: read })
    expect(frameOf({ usage })).toMatchObject({ kind: 'usage' })
    expect(frameOf({ choices: [{ delta: { content: 'x' } }], usage })).toMatchObject({ kind: 'content', usage: read })
    expect(frameOf({ choices: [], usage: { prompt_tokens: -1 } })).toMatchObject({ kind: 'usage', usage: 'nonsense' })
  })

  test('with an error is read', () => {
    const error = { message: 'm', type: 't' }
    expect(frameOf({ error })).toMatchObject({ kind: 'error', error })
    expect(frameOf({ error: 'words' })).toMatchObject({ kind: 'error', error: { message: 'words' } })
    expect(frameOf({ error: null, choices: [] }).kind).toBe('opening')
  })

  test.each(['', '{', 'null', '5', '"x"', 'hello', '{"choices":[', '[DONE'])(
    'that is invalid is recognized as garbage: %p',
    data => {
      expect(readFrame(data).kind).toBe('garbage')
    },
  )

  test('with fields of unexpected types does not throw', () => {
    const deltas = [5, { tool_calls: [null] }, { tool_calls: [{ function: 5 }] }, { content: 5 }, { refusal: [] }]
    const choices = [null, 5, ...deltas.map(fields => ({ delta: fields }))]
    expect(frameOf({ choices })).toMatchObject({ kind: 'opening', outputBytes: 0 })
    expect(frameOf({ choices: {} })).toMatchObject({ kind: 'opening', outputBytes: 0 })
  })
})
