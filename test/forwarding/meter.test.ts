// Usage is read from the passing bytes, wherever it stands and however the bytes are cut; and how the stream ended
// decides who pays.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { jsonAnswer, streamHead } from '../../tools/fake-upstream/answers.ts'
import type { Step } from '../../tools/fake-upstream/script.ts'
import { chunk, close, end, gate, reset, script } from '../../tools/fake-upstream/script.ts'
import type { Harness } from '../support/gateway.ts'
import { hello, until } from '../support/gateway.ts'
import { errorOf, eventsOf, model, openCall, startHasty } from './caller.ts'
import { counts, done, errorEvent, event, finish, piece, role, sends, usageOnly } from './wire.ts'

let harness: Harness
let key: string

beforeAll(async () => {
  harness = await startHasty()
  key = await harness.key({ qpm: 100_000 })
})
afterAll(() => harness.stop())

const body = JSON.stringify({ model, messages: hello, stream: true })
const estimatedInput = Math.ceil(body.length / 4)

type Expected = readonly [input: number, cached: number, output: number, source: string]

async function lastRecord(): Promise<Record<string, unknown>> {
  await harness.idle()
  expect(harness.openHolds()).toBe(0)
  return harness.lastRecord()!
}

function reading(record: Record<string, unknown>): Expected {
  const uncached = (record.input_tokens as number) - (record.cache_read_tokens as number)
  return [uncached, record.cache_read_tokens, record.output_tokens, record.usage_source] as never
}

const cost = ([input, cached, output]: Expected): number => input * 150 + cached * 75 + output * 600

const eightLetters = role() + piece('four') + piece('more')

describe('usage', () => {
  const cached = { prompt_tokens: 10, completion_tokens: 2, prompt_tokens_details: { cached_tokens: 6 } }
  const beside = { ...cached, prompt_tokens_details: { cached_tokens: 50 } }
  const reported = (input: number, output: number): Expected => [input, 0, output, 'reported']
  const estimated: Expected = [estimatedInput, 0, 2, 'estimated']
  const odd = (usage: unknown): string => eightLetters + finish() + event({ choices: [], usage }) + done
  const raw = (usage: string): string => eightLetters + finish() + event(`{"choices":[],"usage":${usage}}`) + done
  const pieces = piece('four', counts(7, 1)) + piece('more', counts(7, 2))
  const growing = role(counts(7, 0)) + pieces + finish() + done
  const rows: readonly (readonly [string, string, Expected])[] = [
    ['in a frame of its own', eightLetters + finish() + usageOnly(7, 5) + done, reported(7, 5)],
    ['with the finish', eightLetters + finish(counts(7, 5)) + done, reported(7, 5)],
    ['with each piece, growing', growing, reported(7, 2)],
    ['before the text', usageOnly(7, 5) + eightLetters + finish() + done, reported(7, 5)],
    ['between the text', role() + piece('four') + usageOnly(7, 5) + piece('more') + finish() + done, reported(7, 5)],
    [
      'reported twice, the last counts',
      eightLetters + usageOnly(1, 1) + finish() + usageOnly(7, 5) + done,
      reported(7, 5),
    ],
    ['with a cached part', odd(cached), [4, 6, 2, 'reported']],
    ['with more cached than input, which stands beside it', odd(beside), [10, 50, 2, 'reported']],
    ['with the same in its total', odd({ ...beside, total_tokens: 62 }), [10, 50, 2, 'reported']],
    ['with the same and a total of anything else', odd({ ...beside, total_tokens: 61 }), estimated],
    ['with details of null', odd({ ...cached, prompt_tokens_details: null }), reported(10, 2)],
    ['without choices beside it', eightLetters + finish() + event(counts(7, 5)) + done, reported(7, 5)],
    ['of zero', odd({ prompt_tokens: 0, completion_tokens: 0 }), estimated],
    ['of no output', odd({ prompt_tokens: 7, completion_tokens: 0 }), [7, 0, 2, 'estimated']],
    ['before the text, and less than it', usageOnly(7, 1) + eightLetters + finish() + done, [7, 0, 2, 'estimated']],
    ['missing', eightLetters + finish() + done, estimated],
    ['null', odd(null), estimated],
    ['of an empty object', odd({}), estimated],
    ['of a list', odd([1, 2]), estimated],
    ['negative', odd({ prompt_tokens: -7, completion_tokens: -5 }), estimated],
    ['half negative', odd({ prompt_tokens: 7, completion_tokens: -5 }), estimated],
    ['as text', odd({ prompt_tokens: '7', completion_tokens: '5' }), estimated],
    ['not whole', odd({ prompt_tokens: 7.5, completion_tokens: 5 }), estimated],
    ['beyond any number', raw('{"prompt_tokens":1e400,"completion_tokens":1e400}'), estimated],
    ['beyond 2^53', raw('{"prompt_tokens":9007199254740993,"completion_tokens":1}'), estimated],
    ['absurd, after a good one', usageOnly(7, 5) + raw('{"prompt_tokens":-1}'), estimated],
    ['good, after an absurd one', event({ choices: [], usage: {} }) + odd(counts(7, 5).usage), reported(7, 5)],
    ['shrinking', eightLetters + usageOnly(7, 5) + finish() + usageOnly(7, 4) + done, estimated],
    ['shrinking, and back again', usageOnly(7, 5) + usageOnly(7, 4) + odd(counts(7, 5).usage), reported(7, 5)],
    ['as deltas', role() + piece('four', counts(7, 1)) + piece('more', counts(0, 1)) + finish() + done, estimated],
    ['with a total that is less', odd({ prompt_tokens: 7, completion_tokens: 5, total_tokens: 11 }), estimated],
  ]

  test.each(rows)('%s', async (_name, stream, expected) => {
    for (const size of [1_000_000, 1, 7]) {
      harness.upstream.plan(sends(stream, size))
      const caller = await openCall(harness, key, body).whole()
      expect(caller.text).toEndWith(done)
      const record = await lastRecord()
      expect(reading(record)).toEqual(expected)
      expect(record).toMatchObject({ outcome: 'completed', status: 200, cost: cost(expected) })
    }
  })

  test('of tool calls, reasoning and refusals is counted if nobody reports it', async () => {
    const delta = (fields: object): string => event({ choices: [{ index: 0, delta: fields, finish_reason: null }] })
    const tool = { index: 0, id: 'c', type: 'function', function: { name: 'four', arguments: 'more' } }
    const stream = delta({ tool_calls: [tool] }) + delta({ reasoning_content: 'thoughts' }) + delta({ refusal: 'none' })
    harness.upstream.plan(sends(stream + finish() + done))
    await openCall(harness, key, body).whole()
    expect(reading(await lastRecord())).toEqual([estimatedInput, 0, 5, 'estimated'])
  })

  test('after the last event does not count, however the bytes are cut', async () => {
    const stream = eightLetters + finish() + usageOnly(7, 5) + done
    for (const size of [1_000_000, 1]) {
      harness.upstream.plan(sends(stream + usageOnly(700, 500) + piece('x'.repeat(400)), size))
      await openCall(harness, key, body).whole()
      expect(reading(await lastRecord())).toEqual(reported(7, 5))
    }
  })
})

describe('a stream that ends', () => {
  /** Sends the start, waits until the caller has it, and sends the rest. */
  async function endingIn(start: string, ...rest: readonly Step[]) {
    const { promise, resolve } = Promise.withResolvers<void>()
    harness.upstream.plan(script(streamHead, chunk(start), gate(promise), ...rest))
    const caller = openCall(harness, key, body)
    await caller.until(({ text }) => text.includes('more'), 'content has arrived')
    resolve()
    await caller.whole()
    return { caller, record: await lastRecord(), events: eventsOf(caller.body) }
  }

  const withoutUsage = eightLetters.replace('"choices"', '"usage":null,"choices"')
  const withUsage = role() + piece('more', counts(7, 2))
  type Row = readonly [name: string, rest: readonly Step[], code: string | null]
  const broken: readonly Row[] = [
    ['with FIN', [close], 'upstream_failed'],
    ['with RST', [reset], 'upstream_failed'],
    ['well, but before it was finished', [end], 'upstream_failed'],
    ['with an error event', [chunk(errorEvent()), end], null],
    ['with an error event and the terminal one', [chunk(errorEvent() + done), end], null],
    ['with nonsense', [chunk('data: {"choices":[\n\n'), end], 'upstream_failed'],
    ['with something that is no chunk', [chunk('data: "hello"\n\n'), end], 'upstream_failed'],
    ['in the middle of an event', [chunk(piece('late').slice(0, 30)), close], 'upstream_failed'],
  ]

  test.each(broken)('%s, unfinished: gets an error event, and nothing is charged', async (_name, rest, code) => {
    const { record, events } = await endingIn(withoutUsage, ...rest)
    expect(errorOf(events.at(-2)!)).toMatchObject({ type: 'server_error', code })
    expect(events.at(-1)).toBe('[DONE]')
    expect(events.filter(data => data === '[DONE]')).toHaveLength(1)
    expect(record).toMatchObject({ outcome: 'upstream_failed', status: 502, cost: 0, usage_source: 'none' })
  })

  test.each(broken)('%s after its usage was reported: is charged by the report', async (_name, rest) => {
    const { record, events } = await endingIn(withUsage, ...rest)
    expect(events.at(-1)).toBe('[DONE]')
    expect(record).toMatchObject({ outcome: 'upstream_failed', usage_source: 'reported', cost: 7 * 150 + 2 * 600 })
  })

  const whole: readonly (readonly [string, readonly Step[]])[] = [
    ['finished, without the terminal event', [chunk(finish()), end]],
    ['finished, in the middle of the terminal event', [chunk(finish() + done.slice(0, 9)), end]],
  ]

  test.each(whole)('%s: gets its terminal event, and is charged', async (_name, rest) => {
    const { caller, record, events } = await endingIn(withoutUsage, ...rest)
    expect(events.filter(data => data === '[DONE]')).toHaveLength(1)
    expect(events.some(data => data.includes('"error"'))).toBe(false)
    expect(caller.text).toEndWith(done)
    expect(record).toMatchObject({ outcome: 'completed', usage_source: 'estimated', output_tokens: 2 })
  })

  test("with an error event passes the upstream's message and type", async () => {
    const { events } = await endingIn(withoutUsage, chunk(errorEvent('The engine melted.')), end)
    expect(errorOf(events.at(-2)!)).toMatchObject({ message: 'The engine melted.', type: 'server_error' })
  })
})

test('a plain answer is metered in the same way', async () => {
  const answer = (usage: string): string =>
    `{"choices":[{"index":0,"message":{"role":"assistant","content":"flow down"},"finish_reason":"stop"}]${usage}}`
  const request = JSON.stringify({ model, messages: hello })
  const counted = Math.ceil(request.length / 4)
  const rows: readonly (readonly [string, Expected])[] = [
    [',"usage":{"prompt_tokens":7,"completion_tokens":5}', [7, 0, 5, 'reported']],
    ['', [counted, 0, 3, 'estimated']],
    [',"usage":{"prompt_tokens":1e400,"completion_tokens":5}', [counted, 0, 3, 'estimated']],
  ]
  for (const [usage, expected] of rows) {
    harness.upstream.plan(script(...jsonAnswer(200, answer(usage))))
    await openCall(harness, key, request).whole()
    await until(() => harness.openHolds() === 0, 'the call is settled')
    const record = await lastRecord()
    expect(reading(record)).toEqual(expected)
    expect(record.cost).toBe(cost(expected))
  }
})
