// A call whose provider runs tools of the caller's choice pays for its input and its time when the upstream refuses or
// fails after it may have worked: the model may have written its answer to a tool server, which then caused the error. An
// error that comes at once is free, and so is every error of a call without such tools.

import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { systemClock } from '../../src/base/clock.ts'
import { fail, streamHead } from '../../tools/fake-upstream/answers.ts'
import type { Script } from '../../tools/fake-upstream/script.ts'
import { chunk, close, end, gate, script, scripted } from '../../tools/fake-upstream/script.ts'
import type { Caller } from '../forwarding/caller.ts'
import { openRaw } from '../forwarding/caller.ts'
import type { Harness } from '../support/gateway.ts'
import { until } from '../support/gateway.ts'
import { post } from '../support/raw.ts'
import { rawCallers } from './raw-callers.ts'
import type { Dialect } from './upstreams.ts'
import { dialects, modelOf, startDialects } from './upstreams.ts'

/** Time moves only where a test says so: a slow machine must not look like a model that works. */
let nowMs = 1_000_000
const clock = { ...systemClock, nowMs: () => nowMs }
const QUICK_MS = 1_000
const WORK_MS = 3_000

const CHANNELS = 3
const variableOf = (dialect: Dialect): string => `UP_${dialect.toUpperCase().replaceAll('-', '_')}_KEY`

/** Each test has a gateway of its own, because channels that failed are not asked for a while. */
let harness: Harness
let key: string
beforeEach(async () => {
  const attemptTimes = { firstContentMs: 1e9, wholeMs: 1e9, betweenChunksMs: 1e9 }
  const included = ['mcp', 'mcp_servers', 'web_fetch', 'urlContext']
  const price = { input: '1', output: '2', perSearch: '0.001', included }
  const keys = dialects.map(dialect => [variableOf(dialect), 'sk-one, sk-two, sk-three'])
  harness = await startDialects({
    world: { clock, attemptTimes },
    env: { WEIR_ATTEMPTS: String(CHANNELS), ...Object.fromEntries(keys) },
    models: [{ id: 'echo', contextTokens: 32_768, outputTokensMax: 4_096, traits: { thinking: 'none' }, price }],
  })
  key = await harness.key({ credit: '1000', qpm: 100_000 })
})
afterEach(() => harness.stop())

type Tools = readonly [Dialect, object]

const tools: readonly Tools[] = [
  ['openai-responses', { tools: [{ type: 'mcp', server_label: 'x', server_url: 'https://tools.example' }] }],
  ['anthropic-messages', { mcp_servers: [{ type: 'url', url: 'https://tools.example', name: 'x' }] }],
  ['anthropic-messages', { tools: [{ type: 'web_fetch_20250910', name: 'web_fetch' }] }],
  ['gemini', { tools: [{ urlContext: {} }] }],
  ['openai-chat', { tools: [{ type: 'mcp', server_url: 'https://tools.example' }] }],
  ['ark', { mcp_servers: ['https://tools.example'] }],
]
const mcp = tools[0]!

/** No tools, tools that the caller runs, and the provider's search. */
const harmless: readonly Tools[] = [
  ['openai-responses', {}],
  ['openai-chat', { tools: [{ type: 'function', function: { name: 'x' } }] }],
  ['openai-chat', { web_search_options: {} }],
  ['openai-responses', { tools: [{ type: 'web_search' }] }],
]

function open([dialect, more]: Tools, stream: boolean): Caller {
  const { path, body } = rawCallers[dialect]
  const input = { model: modelOf(dialect), stream, outputTokensMax: 2_000 }
  const headers = { 'authorization': `Bearer ${key}`, 'content-type': 'application/json' }
  return openRaw(harness.url, post(path(input), headers, JSON.stringify({ ...body(input), ...more })))
}

/** The upstream answers each attempt with the script, after so much time. */
async function ask(call: Tools, answer: Script, { ms = WORK_MS, stream = false } = {}) {
  const gates = Array.from({ length: CHANNELS }, () => Promise.withResolvers<void>())
  const late = ({ promise }: { promise: Promise<void> }): Script =>
    scripted(function* steps(request) {
      yield gate(promise)
      yield* answer.steps(request)
    })
  harness.upstream.plan(...gates.map(late))
  const caller = open(call, stream)
  let isOver = false
  const whole = caller.whole().finally(() => (isOver = true))
  for (const [at, { resolve }] of gates.entries()) {
    await until(() => isOver || harness.upstream.requests.length > at, 'the request is at the upstream')
    if (!isOver) nowMs += ms
    resolve()
  }
  const { status } = await whole
  await harness.idle()
  expect(harness.openHolds()).toBe(0)
  return { status, hits: harness.upstream.requests.length, record: harness.lastRecord()! }
}

/** The input, and the time beyond the first second at 250 tokens per second. */
function expectPaidForTime(record: Readonly<Record<string, unknown>>): void {
  expect(record.usage_source).toBe('estimated')
  expect(Number(record.input_tokens)).toBeGreaterThan(0)
  expect(record.reasoning_tokens).toBe(((WORK_MS - QUICK_MS) / 1_000) * 250)
  expect(record.cost).toBe(Number(record.input_tokens) * 1_000 + Number(record.reasoning_tokens) * 2_000)
}

const errors = [
  { error: 400, status: 400, outcome: 'refused' },
  { error: 500, status: 502, outcome: 'upstream_failed' },
] as const

describe.each([false, true])('streamed: %p', stream => {
  describe.each(errors)('an upstream that answers $error', ({ error, status, outcome }) => {
    const free = { outcome, rule: outcome, usage_source: 'none', cost: 0 }
    const freeHits = outcome === 'refused' ? 1 : CHANNELS

    test.each(tools)('%s %j: is paid for after some time, and not asked again', async (dialect, more) => {
      const result = await ask([dialect, more], fail(error), { stream })
      expect(result).toMatchObject({ status, hits: 1, record: { outcome, rule: `${outcome}_tools` } })
      expectPaidForTime(result.record)
    })

    test.each(tools)('%s %j: is free where it answers at once', async (dialect, more) => {
      const result = await ask([dialect, more], fail(error), { stream, ms: QUICK_MS })
      expect(result).toMatchObject({ status, hits: freeHits, record: free })
    })

    test.each(harmless)('%s %j: is free without such tools, whenever it answers', async (dialect, more) => {
      expect(await ask([dialect, more], fail(error), { stream })).toMatchObject({
        status,
        hits: freeHits,
        record: free,
      })
    })
  })

  test.each([
    ['a refusal that blames a tool', fail(424), 424, 'refused_tools'],
    ['a rate limit, which a huge result may exceed', fail(429), 503, 'upstream_failed_tools'],
    ['a refused key, which may be the key of a tool', fail(401), 502, 'upstream_failed_tools'],
    ['a connection that breaks', script(close), 502, 'upstream_failed_tools'],
  ])('with tools, %s is paid for', async (_what, answer, status, rule) => {
    const result = await ask(mcp, answer, { stream })
    expect(result).toMatchObject({ status, hits: 1, record: { rule } })
    expectPaidForTime(result.record)
  })
})

test('a response that fails with a report is charged as reported', async () => {
  const usage = { input_tokens: 7, output_tokens: 5, total_tokens: 12 }
  const error = { code: 'server_error', message: 'It broke.' }
  const response = { id: 'resp_1', object: 'response', status: 'failed', output: [], error, usage }
  const event = `event: response.failed\ndata: ${JSON.stringify({ type: 'response.failed', response })}\n\n`
  const { record, hits } = await ask(mcp, script(streamHead, chunk(event), end), { stream: true })
  const expected = { rule: 'upstream_failed_tools', usage_source: 'reported', cost: 7 * 1_000 + 5 * 2_000 }
  expect([record, hits]).toMatchObject([expected, 1])
})

test('a caller that leaves before its tool server makes the upstream refuse pays as well', async () => {
  const refuses = Promise.withResolvers<void>()
  harness.upstream.plan(
    scripted(function* steps(request) {
      yield gate(refuses.promise)
      yield* fail(400).steps(request)
    }),
  )
  const caller = open(mcp, false)
  await until(() => harness.upstream.requests.length > 0, 'the request is at the upstream')
  caller.leave()
  await caller.closed
  nowMs += WORK_MS
  refuses.resolve()
  await harness.idle()
  expect(harness.lastRecord()).toMatchObject({ outcome: 'client_left', rule: 'left_waiting' })
  expect(Number(harness.lastRecord()!.cost)).toBeGreaterThan(0)
})
