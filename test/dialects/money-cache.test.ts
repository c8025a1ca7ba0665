// A prompt that is kept in a cache for an hour costs more to write than for five minutes, also where the report only says
// how much was written.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { jsonAnswer } from '../../tools/fake-upstream/answers.ts'
import { script } from '../../tools/fake-upstream/script.ts'
import { sendsEvents } from '../passthrough/upstream.ts'
import type { Harness } from '../support/gateway.ts'
import { startHarness } from '../support/gateway.ts'
import { requestIn, send } from './money-calls.ts'

const MODEL = 'openrouter/anthropic/claude-haiku-4.5'
const price = { input: '1', output: '1', cacheWrite: '2', cacheWrite1h: '4' }
const [FIVE_MINUTES, HOUR] = [2_000, 4_000]

let harness: Harness
let key: string
beforeAll(async () => {
  const upstreamEnv = (url: string) => ({ OPENROUTER_BASE_URL: `${url}/v1`, OPENROUTER_API_KEY: 'sk-o' })
  harness = await startHarness({ upstreamEnv })
  key = await harness.key({ qpm: 100_000 })
  await harness.weir('prices set', { model: MODEL, price: JSON.stringify(price) })
})
afterAll(() => harness.stop())

/** Reports 50 tokens that were written to the cache, and 50 others. */
const usageOf = (details: object): object => ({
  prompt_tokens: 90,
  completion_tokens: 10,
  total_tokens: 100,
  prompt_tokens_details: { cached_tokens: 0, cache_write_tokens: 50, ...details },
})
const head = { id: 'c', created: 1, model: 'm' }

function answers(details: object, stream: boolean) {
  const usage = usageOf(details)
  if (!stream) {
    const choices = [{ index: 0, message: { role: 'assistant', content: 'Hi' }, finish_reason: 'stop' }]
    return script(...jsonAnswer(200, JSON.stringify({ ...head, object: 'chat.completion', choices, usage })))
  }
  const choices = [{ index: 0, delta: { role: 'assistant', content: 'Hi' }, finish_reason: 'stop' }]
  const chunk = { ...head, object: 'chat.completion.chunk' }
  return sendsEvents(
    [
      { ...chunk, choices },
      { ...chunk, choices: [], usage },
    ],
    'data: [DONE]\n\n',
  )
}

const text = (mark: object): object => ({ type: 'text', text: 'x', cache_control: { type: 'ephemeral', ...mark } })
const user = (...content: readonly object[]): object => ({ messages: [{ role: 'user', content }] })
const hour = { ttl: '1h' }
const tool = {
  type: 'function',
  function: { name: 'f', parameters: {} },
  cache_control: { type: 'ephemeral', ...hour },
}
const timed = (fiveMinutes: number, anHour: number): object => ({
  cache_creation: { ephemeral_5m_input_tokens: fiveMinutes, ephemeral_1h_input_tokens: anHour },
})

const rows: readonly (readonly [name: string, asked: object, details: object, writes: number])[] = [
  ['for five minutes', user(text({})), {}, 50 * FIVE_MINUTES],
  ['for an hour', user(text(hour)), {}, 50 * HOUR],
  ['for an hour in one of several places', user(text({}), text(hour), text({ ttl: '5m' })), {}, 50 * HOUR],
  ['for an hour with a tool', { tools: [tool] }, {}, 50 * HOUR],
  ['for an hour everywhere', { cache_control: { type: 'ephemeral', ttl: '1h' } }, {}, 50 * HOUR],
  ['for an hour, as the text of a caller', user({ type: 'text', text: '{"ttl":"1h"}' }), {}, 50 * FIVE_MINUTES],
  ['for as long as the report says', user(text(hour)), timed(30, 20), 30 * FIVE_MINUTES + 20 * HOUR],
  ['for five minutes, as the report says', user(text(hour)), timed(50, 0), 50 * FIVE_MINUTES],
]

async function costOf(body: string, details: object, stream: boolean): Promise<number> {
  harness.upstream.plan(answers(details, stream))
  const response = await send(harness, key, { path: '/v1/chat/completions', body })
  expect([response.status, await response.text()]).toEqual([200, expect.stringContaining('Hi')])
  await harness.idle()
  const record = harness.lastRecord() as Record<string, number>
  expect(record).toMatchObject({ usage_source: 'reported', cache_write_tokens: 50 })
  return record.cost! - 50 * 1_000
}

test.each(rows)('%s', async (_name, more, details, writes) => {
  for (const stream of [false, true]) {
    const { body } = requestIn('openai-chat', { model: MODEL, more: { ...more, stream } })
    expect(await costOf(body, details, stream)).toBe(writes)
    // JSON has other spellings for the same word.
    expect(await costOf(body.replaceAll('"1h"', '"\\u0031\\u0068"'), details, stream)).toBe(writes)
  }
})
