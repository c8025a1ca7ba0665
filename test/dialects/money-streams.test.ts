// What a call costs however it ends, for every caller's dialect on every upstream's: metered by what the upstream says,
// never by what it was made into.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import {
  answer,
  errorMidStream,
  fail,
  pausedStream,
  resetMidStream,
  truncatedStream,
} from '../../tools/fake-upstream/answers.ts'
import type { Script } from '../../tools/fake-upstream/script.ts'
import { openRaw } from '../forwarding/caller.ts'
import type { Harness } from '../support/gateway.ts'
import { post } from '../support/raw.ts'
import { headersFor, lastAsked, pairs, requestIn, send } from './money-calls.ts'
import { dialects, modelOf, modelsWithoutThinking, startDialects } from './upstreams.ts'

let harness: Harness
let key: string
const never = Promise.withResolvers<void>()

beforeAll(async () => {
  harness = await startDialects({ models: modelsWithoutThinking })
  key = await harness.key({ qpm: 100_000 })
})
afterAll(() => harness.stop())

async function settled(): Promise<Record<string, unknown>> {
  await harness.idle()
  expect(harness.openHolds()).toBe(0)
  return harness.records().at(-1)!
}

/** A dollar and two for a million tokens, half a dollar for those that were cached. */
const usage = { input: 100, cached: 60, output: 40, reasoning: 10 }
const cost = 40 * 1_000 + 60 * 500 + 40 * 2_000
const metered = { input_tokens: 100, cache_read_tokens: 60, output_tokens: 40, reasoning_tokens: 10 }

const forms = [
  ['plain', false],
  ['streamed', true],
] as const

describe.each(pairs)('%s on %s', (caller, upstream) => {
  const model = modelOf(upstream)
  const ask = (stream: boolean, script: Script) => {
    harness.upstream.plan(script)
    return send(harness, key, requestIn(caller, { model, stream }))
  }

  test.each(forms)('usage that is told is what is paid: %s', async (_way, stream) => {
    const response = await ask(stream, answer('Hello', { usage }))
    expect(response.status).toBe(200)
    await response.text()
    expect(await settled()).toMatchObject({ ...metered, cost, usage_source: 'reported', outcome: 'completed' })
  })

  test.each(forms)('an answer is never free: %s', async (_way, stream) => {
    const nonsense = { json: '{"prompt_tokens":-5,"input_tokens":"3","promptTokenCount":1e400,"output_tokens":-1}' }
    for (const said of ['missing', nonsense] as const) {
      const response = await ask(stream, answer('Hello, dear river', { usage: said }))
      expect(response.status).toBe(200)
      await response.text()
      const record = await settled()
      expect(record).toMatchObject({ usage_source: 'estimated', output_tokens: 5 })
      expect(record.cost).toBeGreaterThan(0)
    }
  })

  test.each(forms)('half a call of a tool is paid for: %s', async (_way, stream) => {
    const toolCall = { name: 'map', arguments: '{"city":"Pa' }
    const response = await ask(stream, answer('', { usage, toolCall, finish: 'length' }))
    const said = await response.text()
    const isTold = upstream === 'gemini' || upstream === 'anthropic-messages' // whose plain calls cannot be half
    if (isTold) return
    expect([response.status, said.includes('error')]).toEqual([200, said.includes('"error":null')])
    expect(await settled()).toMatchObject({ ...metered, cost, outcome: 'completed' })
  })

  test('what is cut off or fails is free, unless its provider says what it came to', async () => {
    const endings: readonly Script[] = [truncatedStream(), resetMidStream(), errorMidStream()]
    for (const script of endings) {
      const response = await ask(true, script)
      await response.text().catch(() => '')
      const record = await settled()
      expect(record).toMatchObject({ outcome: 'upstream_failed' })
      // Only messages tell some of it at the start.
      if (upstream !== 'anthropic-messages') expect(record).toMatchObject({ cost: 0, usage_source: 'none' })
    }
    for (const status of [400, 500]) {
      const response = await ask(true, fail(status))
      expect(response.status).toBeGreaterThanOrEqual(400)
      await response.text()
      expect(await settled()).toMatchObject({ cost: 0, output_tokens: 0 })
    }
  })

  test('who leaves in the midst of an answer pays for what came', async () => {
    const words = 'words '.repeat(20)
    harness.upstream.plan(pausedStream([words, 'never'], never.promise))
    const { path, body } = requestIn(caller, { model, stream: true })
    const left = openRaw(harness.url, post(path, headersFor(key), body))
    await left.until(({ text }) => text.includes('words'), 'content is here')
    left.leave()
    const record = await settled()
    expect(record).toMatchObject({ outcome: 'client_left', rule: 'left_reading', output_tokens: 30 })
    expect(record.cost).toBeGreaterThanOrEqual(60_000)
  })

  test('the cap that was held for is the cap that is sent', async () => {
    harness.upstream.plan(answer('Hello', { usage }))
    expect((await send(harness, key, requestIn(caller, { model, cap: 300 }))).status).toBe(200)
    expect(lastAsked(harness).outputMax).toBe(300)
    await settled()
  })
})

test.each(dialects)('%s: a cap that an upstream must be told is what the model was held for', async caller => {
  harness.upstream.plan(answer('Hello', { usage }))
  expect((await send(harness, key, requestIn(caller, { model: modelOf('anthropic-messages') }))).status).toBe(200)
  expect(lastAsked(harness).outputMax).toBe(4_096)
  expect((await settled()).held).toBeGreaterThanOrEqual(4_096 * 2_000)
})

test.each([
  ['openai-chat', 'openai-chat', { n: 3 }],
  ['openai-chat', 'gemini', { n: 3 }],
  ['gemini', 'openai-chat', { generationConfig: { candidateCount: 3, maxOutputTokens: 300 } }],
] as const)('%s on %s: every choice is held for', async (caller, upstream, more) => {
  harness.upstream.plan(answer('Hello', { usage, choices: 3 }))
  const wanted = requestIn(caller, { model: modelOf(upstream), cap: 300, more })
  expect((await send(harness, key, wanted)).status).toBe(200)
  expect(lastAsked(harness)).toMatchObject({ choices: 3, outputMax: 300 })
  expect((await settled()).held).toBeGreaterThanOrEqual(3 * 300 * 2_000)
})
