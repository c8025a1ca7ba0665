// Tests what is read from whole responses, from events of a stream, and from their usage.

import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { expectCheap } from '../../../test/support/cpu.ts'
import { inputTokens, outputTokens } from '../../base/money/usage.ts'
import { readAnswer } from './response.ts'
import { readFrame } from './stream.ts'
import { readUsage, writeUsage } from './usage.ts'

const answerOf = (json: unknown) => readAnswer(Buffer.from(JSON.stringify(json)))
const frameOf = (json: unknown) => readFrame(JSON.stringify(json))
const usage = { input_tokens: 100, output_tokens: 40, total_tokens: 140 }

describe('an answer', () => {
  test('reports the size of the output and the usage', () => {
    const output = [
      { type: 'reasoning', summary: [{ type: 'summary_text', text: 'four' }] },
      {
        type: 'message',
        content: [
          { type: 'output_text', text: 'é' },
          { type: 'refusal', refusal: 'no' },
        ],
      },
      { type: 'function_call', name: 'ff', arguments: '{}' },
      { type: 'custom_tool_call', name: 'gg', input: 'in' },
      ...[null, 5, { type: 'web_search_call' }, { type: 'message', content: 5 }],
    ]
    const reading = answerOf({ object: 'response', status: 'completed', output, usage, service_tier: 'flex' })
    expect(reading).toMatchObject({
      outputBytes: 4 + 2 + 2 + 2 + 3 + 2 + 2,
      usage: { input: 100, output: 40, searches: 1 },
      serviceClass: 'flex',
      json: { status: 'completed' },
    })
  })

  test.each(['hello', '{"output":[', '', 'null', '[]', '{"a":1}', '{"output":{}}'])('is not recognized: %p', body => {
    expect(readAnswer(Buffer.from(body))).toBeUndefined()
  })

  test.each([
    [
      { error: { message: 'm', type: 't', code: 'c', param: 'p' } },
      { status: 502, message: 'm', code: 'c', param: 'p' },
    ],
    [
      { status: 'failed', output: [], error: { code: 'server_error', message: 'm' } },
      { status: 502, message: 'm' },
    ],
    [{ status: 'failed', output: [], error: { code: 'rate_limit_exceeded', message: 'm' } }, { status: 429 }],
    [{ status: 'failed', output: [], error: { code: 'invalid_prompt', message: 'm' } }, { status: 400 }],
    [
      { status: 'failed', output: [], error: null },
      { status: 502, message: 'The upstream gave no reason.' },
    ],
    [
      { message: 'top', code: 'c' },
      { status: 502, message: 'top', code: 'c' },
    ],
  ])('P8: is an error with the status 200: %j', (json, error) => {
    expect(answerOf({ ...json, usage })).toMatchObject({ error, usage: { input: 100, output: 40 } })
  })
})

describe('an event', () => {
  test.each([
    ['response.created', 'opening'],
    ['response.in_progress', 'opening'],
    ['response.queued', 'opening'],
    ['response.output_item.added', 'opening'],
    ['response.content_part.added', 'opening'],
    ['response.output_text.done', 'opening'],
    ['response.never_heard_of', 'opening'],
    ['keepalive', 'aside'],
  ])('%s is of the kind %s', (type, kind) => {
    const event = { type, sequence_number: 0, response: { usage: null }, text: 'again' }
    expect(frameOf(event)).toMatchObject({ kind, outputBytes: 0, finishes: 0, json: event })
  })

  test.each([
    'response.output_text.delta',
    'response.refusal.delta',
    'response.reasoning_summary_text.delta',
    'response.reasoning_text.delta',
    'response.function_call_arguments.delta',
    'response.custom_tool_call_input.delta',
    'response.never_heard_of.delta',
  ])('%s is content', type => {
    expect(frameOf({ type, delta: '江' })).toMatchObject({ kind: 'content', outputBytes: 4 })
    expect(frameOf({ type, delta: '' }).kind).toBe('opening')
  })

  test.each(['completed', 'incomplete', 'cancelled'])('P17: response.%s is the last one, with usage', status => {
    const type = `response.${status}`
    const response = { status, output: [], usage, service_tier: 'default', error: null }
    expect(frameOf({ type, response })).toMatchObject({
      kind: 'terminal',
      finishes: 1,
      usage: { input: 100, output: 40 },
      serviceClass: 'default',
      json: { type },
    })
    expect(frameOf({ type }).kind).toBe('garbage')
  })

  test('P8: of a failed response is an error with usage', () => {
    const response = { status: 'failed', error: { code: 'server_error', message: 'm' }, usage }
    const reading = frameOf({ type: 'response.failed', response })
    expect(reading).toMatchObject({
      kind: 'error',
      error: { message: 'm', code: 'server_error' },
      usage: { input: 100 },
    })
    expect(frameOf({ type: 'response.completed', response }).kind).toBe('error')
  })

  test.each([
    { type: 'error', code: 'rate_limit_exceeded', message: 'm', param: null, sequence_number: 3 },
    { type: 'error', error: { type: 'tokens', code: 'rate_limit_exceeded', message: 'm', param: null } },
    { error: { code: 'rate_limit_exceeded', message: 'm' } },
  ])('P7: is an error, at the top level or nested: %j', event => {
    expect(frameOf(event)).toMatchObject({
      kind: 'error',
      error: { status: 429, code: 'rate_limit_exceeded', message: 'm' },
    })
    expect(frameOf({ ...event, error: undefined }).error?.type).toBeUndefined()
  })

  test.each(['', 'hello', 'null', '[]', '5', '{}', '{"type":5}', '{"choices":[]}'])(
    'that is invalid is recognized as garbage: %p',
    data => {
      expect(readFrame(data).kind).toBe('garbage')
    },
  )

  test('without content is skipped', () => {
    expect(readFrame(undefined).kind).toBe('aside')
    expect(readFrame('[DONE]').kind).toBe('aside')
  })

  test('with random content is read fast enough', async () => {
    const noise = [`{"type":"${'{["'.repeat(20_000)}`, '['.repeat(64 * 1024), `"${'\\u0000'.repeat(10_000)}"`]
    const readAll = () => {
      for (const data of noise) readFrame(data)
    }
    await expectCheap(1_000, readAll)
  })
})

describe('usage', () => {
  const details = (input: unknown, output: unknown = undefined) => ({
    usage: { ...usage, input_tokens_details: input, output_tokens_details: output },
  })

  test.each([
    [{ usage }, { input: 100, output: 40 }],
    [details({ cached_tokens: 60, cache_write_tokens: 10 }), { input: 30, cacheRead: 60, cacheWrite: 10, output: 40 }],
    [
      details({ cache_write_tokens: 10, cache_write_tokens_details: { ttl_30m_tokens: 4, ttl_12h_tokens: 6 } }),
      { input: 90, cacheWrite: 4, cacheWrite1h: 6, output: 40 },
    ],
    [
      details({ audio_tokens: 30, audio_cached_tokens: 10, cached_tokens: 20 }),
      { input: 60, cacheRead: 10, inputAudio: 20, cacheReadAudio: 10, output: 40 },
    ],
    [details({}, { reasoning_tokens: 15 }), { input: 100, output: 25, reasoning: 15 }],
    [{ usage: { ...usage, total_tokens: 150 } }, { input: 100, output: 50 }],
    [details({ cached_tokens: 101 }), { input: 100, cacheRead: 101, output: 40 }],
    [details({ cached_tokens: 60, cache_write_tokens: 60 }), { input: 40, cacheRead: 60, cacheWrite: 60, output: 40 }],
    [details({}, { reasoning_tokens: 41 }), { input: 100, output: 40, reasoning: 41 }],
    [
      { usage, tool_usage: { web_search: { num_requests: 2 } }, output: [] },
      { input: 100, output: 40, searches: 2 },
    ],
    [{ usage: { ...usage, tool_usage: { web_search: 3 } } }, { input: 100, output: 40, searches: 3 }],
  ])('is read: %j', (response, expected) => {
    expect(readUsage(response) as unknown).toEqual(expected)
  })

  test.each([
    { usage: {} },
    { usage: 'x' },
    { usage: { input_tokens: 1 } },
    { usage: { input_tokens: -1, output_tokens: 1 } },
    { usage: { input_tokens: 1.5, output_tokens: 1 } },
    { usage: { ...usage, total_tokens: 100 } },
    details({ cached_tokens: '5' }),
    details({ cache_write_tokens: 1, cache_write_tokens_details: { ttl_12h_tokens: 2 } }),
  ])('is not used: %j', response => {
    expect(readUsage(response)).toBe('nonsense')
  })

  const zeroUsage = { usage: { input_tokens: 0, output_tokens: 0 } }
  test.each([{}, null, 5, { usage: null }, zeroUsage])('is missing: %j', response => {
    expect(readUsage(response)).toBeUndefined()
  })

  test('has buckets whose sum is the provider’s total, and is read again as it was written', () => {
    const count = fc.nat(1e6)
    const buckets = fc.record({
      input: fc.integer({ min: 1, max: 1e6 }),
      output: count,
      cacheRead: count,
      reasoning: count,
    })
    fc.assert(
      fc.property(
        fc.record({ counts: buckets, cacheWrite: count, cacheWrite1h: count }),
        ({ counts, ...cacheWrites }) => {
          const report = writeUsage({ ...counts, ...cacheWrites }) as Record<string, number>
          const readBack = readUsage({ usage: report })
          if (readBack === undefined || readBack === 'nonsense') throw new Error('no usage')
          expect(inputTokens(readBack)).toBe(report.input_tokens!)
          expect(outputTokens(readBack)).toBe(report.output_tokens!)
          expect({ cacheWrite: 0, cacheWrite1h: 0, cacheRead: 0, reasoning: 0, ...readBack }).toEqual({
            ...counts,
            ...cacheWrites,
          })
        },
      ),
    )
  })
})
