// The cost of a call for every outcome and every pair of dialects: metered by the answer of the upstream, never by its
// translation.

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
import { gate } from '../../tools/fake-upstream/script.ts'
import { openRaw } from '../forwarding/caller.ts'
import { says, sendsBytes, sendsEvents } from '../passthrough/upstream.ts'
import type { Harness } from '../support/gateway.ts'
import { post } from '../support/raw.ts'
import { headersFor, lastUpstreamRequest, pairs, requestIn, send } from './money-calls.ts'
import { dialects, modelOf, modelsWithoutThinking, startDialects } from './upstreams.ts'

let harness: Harness
let key: string
const never = Promise.withResolvers<void>()

beforeAll(async () => {
  harness = await startDialects({ models: modelsWithoutThinking })
  key = await harness.key({ qpm: 100_000 })
})
afterAll(() => harness.stop())

async function settledRecord(): Promise<Record<string, unknown>> {
  await harness.idle()
  expect(harness.openHolds()).toBe(0)
  return harness.lastRecord()!
}

/** A million tokens cost one dollar (input), two dollars (output) and half a dollar (cached). */
const usage = { input: 100, cached: 60, output: 40, reasoning: 10 }
const cost = 40 * 1_000 + 60 * 500 + 40 * 2_000
const meteredTokens = { input_tokens: 100, cache_read_tokens: 60, output_tokens: 40, reasoning_tokens: 10 }

const forms = [
  ['plain', false],
  ['streamed', true],
] as const

describe.each(pairs)('a call of %s on %s', (caller, upstream) => {
  const model = modelOf(upstream)
  const ask = (stream: boolean, script: Script) => {
    harness.upstream.plan(script)
    return send(harness, key, requestIn(caller, { model, stream }))
  }

  test.each(forms)('is charged by the reported usage: %s', async (_way, stream) => {
    const response = await ask(stream, answer('Hello', { usage }))
    expect(response.status).toBe(200)
    await response.text()
    expect(await settledRecord()).toMatchObject({
      ...meteredTokens,
      cost,
      usage_source: 'reported',
      outcome: 'completed',
    })
  })

  test.each(forms)('is charged by an estimate if the usage is missing or invalid: %s', async (_way, stream) => {
    const nonsense = { json: '{"prompt_tokens":-5,"input_tokens":"3","promptTokenCount":1e400,"output_tokens":-1}' }
    for (const usageKind of ['missing', nonsense] as const) {
      const response = await ask(stream, answer('Hello, dear river', { usage: usageKind }))
      expect(response.status).toBe(200)
      await response.text()
      const record = await settledRecord()
      expect(record).toMatchObject({ usage_source: 'estimated', output_tokens: 5 })
      expect(record.cost).toBeGreaterThan(0)
    }
  })

  test.each(forms)('that ends in an incomplete tool call is charged: %s', async (_way, stream) => {
    const toolCall = { name: 'map', arguments: '{"city":"Pa' }
    const response = await ask(stream, answer('', { usage, toolCall, finish: 'length' }))
    const text = await response.text()
    expect(response.status).toBe(200)
    expect(text.replaceAll('"error":null', '')).not.toContain('error')
    expect(await settledRecord()).toMatchObject({ ...meteredTokens, cost, outcome: 'completed' })
  })

  test('that fails or is cut off is free, unless its provider reported usage', async () => {
    const free = { cost: 0, usage_source: 'none' }
    // Only anthropic-messages reports usage at the start: three tokens of input, one of output.
    const reported = { cost: 3 * 1_000 + 2_000, usage_source: 'reported' }
    const cutOff = upstream === 'anthropic-messages' ? reported : free
    const endings: readonly (readonly [Script, object])[] = [
      [truncatedStream(), { rule: 'upstream_broke_off', ...cutOff }],
      [resetMidStream(), { rule: 'upstream_broke_off', ...cutOff }],
      [errorMidStream(), { rule: 'upstream_failed', ...free }],
    ]
    for (const [script, charged] of endings) {
      const response = await ask(true, script)
      await response.text().catch(() => '')
      expect(await settledRecord()).toMatchObject({ outcome: 'upstream_failed', ...charged })
    }
    for (const status of [400, 500]) {
      const response = await ask(true, fail(status))
      expect(response.status).toBeGreaterThanOrEqual(400)
      await response.text()
      expect(await settledRecord()).toMatchObject({ cost: 0, output_tokens: 0 })
    }
  })

  test('whose caller disconnects in the middle is charged for what was received', async () => {
    const words = 'words '.repeat(20)
    harness.upstream.plan(pausedStream([words, 'never'], never.promise))
    const { path, body } = requestIn(caller, { model, stream: true })
    const left = openRaw(harness.url, post(path, headersFor(key), body))
    await left.until(({ text }) => text.includes('words'), 'the caller has content')
    left.leave()
    const record = await settledRecord()
    expect(record).toMatchObject({ outcome: 'client_left', rule: 'left_reading', output_tokens: 30 })
    expect(record.cost).toBeGreaterThanOrEqual(60_000)
  })

  test('is sent with the output cap for which it was held', async () => {
    harness.upstream.plan(answer('Hello', { usage }))
    expect((await send(harness, key, requestIn(caller, { model, cap: 300 }))).status).toBe(200)
    expect(lastUpstreamRequest(harness).outputMax).toBe(300)
    await settledRecord()
  })
})

test.each(dialects)('%s: the cap that an upstream requires is the cap of the hold', async caller => {
  harness.upstream.plan(answer('Hello', { usage }))
  expect((await send(harness, key, requestIn(caller, { model: modelOf('anthropic-messages') }))).status).toBe(200)
  expect(lastUpstreamRequest(harness).outputMax).toBe(4_096)
  expect((await settledRecord()).held).toBeGreaterThanOrEqual(4_096 * 2_000)
})

test.each([
  ['openai-chat', 'openai-chat', { n: 3 }],
  ['openai-chat', 'gemini', { n: 3 }],
  ['gemini', 'openai-chat', { generationConfig: { candidateCount: 3, maxOutputTokens: 300 } }],
] as const)('%s on %s: the hold covers every choice', async (caller, upstream, more) => {
  harness.upstream.plan(answer('Hello', { usage, choices: 3 }))
  const wanted = requestIn(caller, { model: modelOf(upstream), cap: 300, more })
  expect((await send(harness, key, wanted)).status).toBe(200)
  expect(lastUpstreamRequest(harness)).toMatchObject({ choices: 3, outputMax: 300 })
  expect((await settledRecord()).held).toBeGreaterThanOrEqual(3 * 300 * 2_000)
})

describe('delivered content without a report is charged, wherever it stands', () => {
  const TOKENS = 2_000
  const text = 'word '.repeat(TOKENS * 0.8)
  const message = { type: 'message', id: 'm', role: 'assistant', content: [{ type: 'output_text', text }] }
  const call = { type: 'function_call', id: 'f', call_id: 'c', name: 'f', arguments: text }
  const patch = { type: 'apply_patch_call', id: 'p', call_id: 'c', operation: { type: 'update_file', diff: text } }
  const shell = { type: 'local_shell_call', id: 's', call_id: 'c', action: { type: 'exec', command: ['sh', text] } }
  const unknown = { type: 'later_call', id: 'l', call_id: 'c', plan: text }
  const thought = { type: 'reasoning', id: 'r', summary: [{ type: 'summary_text', text }] }
  const itemDone = (item: object, index = 0) => ({ type: 'response.output_item.done', output_index: index, item })
  const delta = { type: 'response.output_text.delta', item_id: 'm', output_index: 0, content_index: 0, delta: text }
  const responseOf = (...output: readonly object[]) => ({ id: 'r', object: 'response', status: 'completed', output })
  const last = (...output: readonly object[]) => ({ type: 'response.completed', response: responseOf(...output) })
  const chunk = (choice: object) => ({ id: 'c', object: 'chat.completion.chunk', choices: [{ index: 0, ...choice }] })
  const chatMessage = { role: 'assistant', content: text }
  const stop = { finish_reason: 'stop' }

  const charge = async (dialect: 'openai-chat' | 'openai-responses', script: Script, stream: boolean) => {
    harness.upstream.plan(script)
    await (await send(harness, key, requestIn(dialect, { model: modelOf(dialect), stream }))).text()
    return await settledRecord()
  }
  const expectCharged = (record: Record<string, unknown>, tokens: number): void => {
    expect(record).toMatchObject({ rule: 'completed_unreported', usage_source: 'estimated' })
    expect(Number(record.output_tokens) / tokens).toBeWithin(1, 1.02)
  }

  const streams: readonly (readonly [string, 'openai-chat' | 'openai-responses', readonly object[], number])[] = [
    ['a message only in its last event', 'openai-responses', [itemDone(message), last()], TOKENS],
    ['a message only in the last event of all', 'openai-responses', [last(message)], TOKENS],
    ['a message in both', 'openai-responses', [itemDone(message), last(message)], TOKENS],
    ['a message with deltas, once', 'openai-responses', [delta, itemDone(message), last(message)], TOKENS],
    [
      'a message with deltas, and a call without',
      'openai-responses',
      [delta, itemDone(message), itemDone(call, 1), last(message, call)],
      2 * TOKENS,
    ],
    ['a call only in its last event', 'openai-responses', [itemDone(patch), last()], TOKENS],
    ['a thought only in its last event', 'openai-responses', [itemDone(thought), last()], TOKENS],
    ['a message instead of a delta', 'openai-chat', [chunk({ message: chatMessage, ...stop })], TOKENS],
    [
      'a message after its deltas, once',
      'openai-chat',
      [chunk({ delta: chatMessage }), chunk({ message: chatMessage, ...stop })],
      TOKENS,
    ],
    [
      'a message beside its delta, once',
      'openai-chat',
      [chunk({ delta: chatMessage, message: chatMessage, ...stop })],
      TOKENS,
    ],
  ]
  test.each(streams)('in a stream: %s (%s)', async (_what, dialect, events, tokens) => {
    const done = dialect === 'openai-chat' ? 'data: [DONE]\n\n' : ''
    expectCharged(await charge(dialect, sendsEvents(events, done), true), tokens)
  })

  const items = [message, call, patch, shell, unknown, thought].map(item => [item.type, item] as const)
  test.each(items)('in a plain answer: %s', async (_type, item) => {
    expectCharged(await charge('openai-responses', says(responseOf(item)), false), TOKENS)
  })

  test('but what a tool returned is not: it is no output of the model', async () => {
    const output = [
      { type: 'mcp_call', id: 'm', name: 'f', arguments: '{}', output: text },
      { type: 'shell_call_output', id: 'o', output: [{ stdout: text }] },
      { type: 'web_search_call', id: 'w', action: { type: 'search', query: 'x', sources: [{ url: text }] } },
    ]
    const record = await charge('openai-responses', says(responseOf(...output)), false)
    expect(Number(record.output_tokens)).toBeWithin(1, 50)
  })

  test('a whole item is passed on at once, also if the upstream is silent after it', async () => {
    harness.upstream.plan(
      sendsBytes('text/event-stream', [`data: ${JSON.stringify(itemDone(call))}\n\n`], gate(never.promise)),
    )
    const { path, body } = requestIn('openai-responses', { model: modelOf('openai-responses'), stream: true })
    const caller = openRaw(harness.url, post(path, headersFor(key), body))
    await caller.until(({ text: seen }) => seen.includes('output_item.done'), 'the caller has the item')
    caller.leave()
    const record = await settledRecord()
    expect(record.rule).toBe('left_reading')
    expect(Number(record.output_tokens) / TOKENS).toBeWithin(1, 1.02)
  })
})
