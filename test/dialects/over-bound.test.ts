// An answer that a bound of the gateway ends after content was delivered is charged, in every dialect, native and
// translated. So is an answer that the upstream ends because of the request, or that a tool of the caller may have ended.
// An answer that the upstream itself breaks off is free.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { bounds } from '../../src/base/bounds.ts'
import { buildFramesTo, jsonAnswer, silence, streamHead } from '../../tools/fake-upstream/answers.ts'
import { formatEvent } from '../../tools/fake-upstream/dialect.ts'
import type { Script, Step } from '../../tools/fake-upstream/script.ts'
import { chunk, close, end, gate, script, scripted } from '../../tools/fake-upstream/script.ts'
import { openRaw } from '../forwarding/caller.ts'
import type { Harness } from '../support/gateway.ts'
import { post } from '../support/raw.ts'
import type { CallerDialect } from './raw-callers.ts'
import { eventsOfBody, rawCallers, requestOf } from './raw-callers.ts'
import type { Dialect } from './upstreams.ts'
import { modelOf, startDialects } from './upstreams.ts'

const EVENT_BYTES_MAX = 1024 * 1024

const SILENCE_MS = 100_000
let aheadMs = 0
/** Lets an upstream that has sent nothing for a while be too slow. The time is long, so that no pause of the machine is. */
const passTime = (): void => void (aheadMs += SILENCE_MS)

let harness: Harness
let key: string
beforeAll(async () => {
  const attemptTimes = { firstContentMs: SILENCE_MS, wholeMs: SILENCE_MS, betweenChunksMs: SILENCE_MS }
  const clock = { nowMs: () => performance.now() + aheadMs, dateMs: Date.now }
  const traits = { thinking: 'none' }
  const sized = { contextTokens: 32_768, outputTokensMax: 4_096, traits }
  const included = ['mcp', 'mcp_servers', 'web_fetch', 'urlContext']
  harness = await startDialects({
    world: { clock, attemptTimes, eventBytesMax: EVENT_BYTES_MAX },
    env: { WEIR_DRAIN_SECONDS: '0' },
    models: [{ id: 'echo', ...sized, price: { input: '1', output: '2', perSearch: '0.001', included } }],
  })
  key = await harness.key({ qpm: 100_000, credit: '1000' })
})
afterAll(() => harness.stop())

/** A hundred tokens of four bytes each. */
const content = 'word'.repeat(100)

/** Sends the content without usage, and the rest once the caller has the content. */
function contentThen(delivered: Promise<unknown>, ...rest: readonly Step[]): Script {
  return scripted(function* steps(request) {
    yield streamHead
    for (const frame of buildFramesTo(request, [content], { usage: 'missing' })) {
      yield chunk(formatEvent(frame))
      if (frame.kind === 'piece') break
    }
    yield gate(delivered)
    yield* rest
  })
}

const callOptions = { stream: true, outputTokensMax: 500 }

const pairs: readonly (readonly [CallerDialect, Dialect])[] = [
  ['openai-chat', 'openai-chat'],
  ['openai-responses', 'openai-responses'],
  ['anthropic-messages', 'anthropic-messages'],
  ['gemini', 'gemini'],
  ['ark', 'ark'],
  ['openai-chat', 'anthropic-messages'],
  ['anthropic-messages', 'openai-chat'],
  ['gemini-array', 'openai-responses'],
]

/** Nested more deeply than allowed, and long enough to be checked. */
const LEVELS = 10_000
const deep = (levels: number): string => '['.repeat(levels) + ']'.repeat(levels)
const huge = chunk(`data: {"type":"x","text":"${'x'.repeat(EVENT_BYTES_MAX)}"}\n\n`)
const nested = chunk(`data: {"type":"response.output_text.delta","x":${deep(LEVELS)}}\n\n`)

const lastRecord = async (): Promise<Record<string, unknown>> => {
  await harness.idle()
  expect(harness.openHolds()).toBe(0)
  return harness.lastRecord()!
}

describe.each(pairs)('a stream of %s on %s', (callerDialect, upstream) => {
  async function recordOfFailed(...rest: readonly Step[]): Promise<Record<string, unknown>> {
    const delivered = Promise.withResolvers<void>()
    harness.upstream.plan(contentThen(delivered.promise, ...rest))
    const caller = openRaw(harness.url, requestOf(callerDialect, key, { model: modelOf(upstream), ...callOptions }))
    await caller.until(({ text }) => text.includes('wordword'), 'the caller has content')
    delivered.resolve()
    if (rest.length === 0) passTime()
    await caller.whole()
    rawCallers[callerDialect].failed(eventsOfBody(callerDialect, caller.body))
    return await lastRecord()
  }

  const cuts: readonly (readonly [string, string, readonly Step[]])[] = [
    ['too deeply nested JSON', 'answer_too_large', [nested]],
    ['silence', 'upstream_too_slow', []],
  ]
  // Natively, a large event may pass.
  const tooLarge = ['a too large event', 'answer_too_large', [huge]] as const
  const all = callerDialect === upstream ? cuts : [...cuts, tooLarge]

  test.each(all)('that %s ends after content is charged by what was delivered', async (_what, error, rest) => {
    const record = await recordOfFailed(...rest)
    const cut = { outcome: 'over_bound', rule: 'over_bound_answered', error, usage_source: 'estimated' }
    expect(record).toMatchObject({ ...cut, output_tokens: 100 })
    expect(record.cost).toBe(Number(record.input_tokens) * 1_000 + 100 * 2_000)
    expect(Number(record.input_tokens)).toBeGreaterThan(0)
  })

  test('that the upstream breaks off after content is free', async () => {
    const free = { outcome: 'upstream_failed', rule: 'upstream_broke_off', output_tokens: 0 }
    expect(await recordOfFailed(close)).toMatchObject(free)
  })
})

/** Collected: with little money the upstream is asked for a stream. Its gateway waits for as long as it takes. */
describe('a plain answer that is collected', () => {
  let patient: Harness
  beforeAll(async () => {
    const price = { input: '1', output: '2' }
    const models = [{ id: 'echo', contextTokens: 32_768, outputTokensMax: 4_096, traits: { thinking: 'none' }, price }]
    patient = await startDialects({ world: { eventBytesMax: EVENT_BYTES_MAX }, models })
  })
  afterAll(() => patient.stop())

  const plainPairs = pairs.filter(([caller]) => caller !== 'gemini-array') as readonly (readonly [Dialect, Dialect])[]
  describe.each(plainPairs)('of %s from a stream of %s', (dialect, upstream) => {
    /** Sent in pieces, because an event of its own may be too large. */
    const many = Array.from({ length: 5 }, () => chunk(`: ${'x'.repeat(EVENT_BYTES_MAX - 100)}\n\n`))
    const bounds: readonly (readonly [string, readonly Step[]])[] = [
      ['an event that is nested too deeply', [nested]],
      ['more bytes than are collected', many],
    ]

    test.each(bounds)('and ended by %s is delivered up to there, charged, and not repeated', async (_what, rest) => {
      const poor = await patient.key({ credit: '0.02' })
      const before = patient.upstream.requests.length
      patient.upstream.plan(contentThen(Promise.resolve(), ...rest, end))
      const request = requestOf(dialect, poor, { model: modelOf(upstream), stream: false, outputTokensMax: 4_000 })
      const caller = await openRaw(patient.url, request).whole()
      expect([caller.status, caller.header('x-weir-stop')]).toEqual([200, 'answer_too_large'])
      const json = JSON.parse(caller.text)
      expect(rawCallers[dialect].whole(json)).toBe(content)
      expect(caller.text).toMatch(/"length"|"max_tokens"|"max_output_tokens"|"MAX_TOKENS"/)
      await patient.idle()
      expect(patient.openHolds()).toBe(0)
      const record = patient.lastRecord()!
      const cut = { outcome: 'over_bound', rule: 'over_bound_answered', error: 'answer_too_large', status: 200 }
      expect(record).toMatchObject({ ...cut, usage_source: 'estimated', output_tokens: 100 })
      expect(record.cost).toBe(Number(record.input_tokens) * 1_000 + 100 * 2_000)
      expect(patient.upstream.requests.length).toBe(before + 1)
    })
  })
})

/** Error events of upstreams, and whether they blame the request. */
const errors: readonly (readonly [Dialect, boolean, object])[] = [
  ['openai-chat', true, { error: { message: 'No.', type: 'invalid_request_error', code: 'tool_use_failed' } }],
  ['openai-chat', true, { error: { message: 'Filtered.', code: 'content_filter' } }],
  ['openai-chat', true, { error: { message: 'No.', code: 400 } }],
  ['openai-chat', true, { error: { message: 'No.', code: '403' } }],
  ['openai-chat', true, { error: { message: 'No.', code: 422 } }],
  ['openai-chat', true, { error: { message: 'No.', status: 413 } }],
  ['openai-chat', true, { error: 'No.', status: 400 }],
  ['openai-chat', true, { status: 413 }],
  ['openai-chat', true, { choices: [{ index: 0, delta: {}, finish_reason: 'error', error: { code: 400 } }] }],
  ['openai-chat', false, { choices: [{ index: 0, delta: {}, finish_reason: 'error', error: { code: 502 } }] }],
  ['openai-chat', false, { error: { message: 'Who?', code: 401 } }],
  ['openai-chat', false, { error: { message: 'Pay.', code: 402 } }],
  ['openai-chat', false, { error: { message: 'Late.', code: '408' } }],
  ['openai-chat', false, { error: { message: 'Twice.', code: 409 } }],
  ['openai-chat', false, { error: { message: 'Later.', code: 429 } }],
  ['openai-chat', false, { error: { message: 'Sorry.', code: 500 } }],
  ['openai-responses', true, { type: 'error', status: 400, error: { message: 'No.' } }],
  ['gemini', true, [{ error: { code: 400, message: 'No.', status: 'INVALID' } }]],
  ['gemini', false, [{ error: { code: 503, message: 'Sorry.' } }]],
  ['openai-chat', false, { error: { message: 'Sorry.', type: 'server_error' } }],
  ['openai-chat', false, { error: { message: 'Sorry.', type: 'invalid_request_error', code: 'insufficient_quota' } }],
  ['openai-chat', false, { error: { message: 'Slow down.', type: 'rate_limit_error' } }],
  ['openai-responses', true, { type: 'error', error: { message: 'Bad.', code: 'invalid_prompt' } }],
  [
    'openai-responses',
    true,
    {
      type: 'error',
      error: { type: 'external_connector_error', message: 'The tool failed.', code: 'http_error' },
    },
  ],
  ['openai-responses', false, { type: 'error', error: { type: 'server_error', message: 'Sorry.' } }],
  ['anthropic-messages', true, { type: 'error', error: { type: 'invalid_request_error', message: 'Too long.' } }],
  ['anthropic-messages', false, { type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } }],
]

test.each(errors)(
  '%s: an answer is charged after an error event that blames the request (%p), else free: %j',
  async (...row) => {
    const [dialect, blamesRequest, event] = row
    const delivered = Promise.withResolvers<void>()
    harness.upstream.plan(contentThen(delivered.promise, chunk(`data: ${JSON.stringify(event)}\n\n`), end))
    const caller = openRaw(harness.url, requestOf(dialect, key, { model: modelOf(dialect), ...callOptions }))
    await caller.until(({ text }) => text.includes('wordword'), 'the caller has content')
    delivered.resolve()
    await caller.whole()
    const expected = blamesRequest
      ? { outcome: 'refused', rule: 'refused_answered', output_tokens: 100, usage_source: 'estimated' }
      : { outcome: 'upstream_failed', rule: 'upstream_broke_off' }
    expect(await lastRecord()).toMatchObject(expected)
  },
)

describe('a call with tools that the provider runs', () => {
  const tools: readonly (readonly [Dialect, object])[] = [
    ['openai-responses', { tools: [{ type: 'mcp', server_label: 'x', server_url: 'https://tools.example' }] }],
    ['anthropic-messages', { mcp_servers: [{ type: 'url', url: 'https://tools.example', name: 'x' }] }],
    ['anthropic-messages', { tools: [{ type: 'web_fetch_20250910', name: 'web_fetch' }] }],
    ['gemini', { tools: [{ urlContext: {} }] }],
    ['openai-chat', { tools: [{ type: 'mcp', server_url: 'https://tools.example' }] }],
    ['ark', { mcp_servers: ['https://tools.example'] }],
  ]
  /** Tools that the caller runs, and tools that are lost in translation. */
  const others: readonly (readonly [Dialect, Dialect, object])[] = [
    ['openai-responses', 'openai-responses', { tools: [{ type: 'local_shell' }, { type: 'custom', name: 'x' }] }],
    ['anthropic-messages', 'anthropic-messages', { tools: [{ type: 'bash_20250124', name: 'bash' }] }],
    ['gemini', 'gemini', { tools: [{ functionDeclarations: [{ name: 'x' }] }] }],
    ['openai-chat', 'openai-chat', { tools: [{ type: 'function', function: { name: 'x' } }] }],
    ['openai-responses', 'anthropic-messages', tools[0]![1]],
    ['anthropic-messages', 'openai-chat', tools[2]![1]],
  ]

  function bytesOf(dialect: Dialect, stream: boolean, more: object, upstream = dialect): Buffer {
    const { path, body } = rawCallers[dialect]
    const callOptions = { model: modelOf(upstream), stream, outputTokensMax: 500 }
    const headers = { 'authorization': `Bearer ${key}`, 'content-type': 'application/json' }
    return post(path(callOptions), headers, JSON.stringify({ ...body(callOptions), ...more }))
  }

  async function recordOfBrokenOff(
    dialect: Dialect,
    more: object,
    upstream = dialect,
  ): Promise<Record<string, unknown>> {
    const delivered = Promise.withResolvers<void>()
    harness.upstream.plan(contentThen(delivered.promise, close))
    const caller = openRaw(harness.url, bytesOf(dialect, true, more, upstream))
    await caller.until(({ text }) => text.includes('wordword'), 'the caller has content')
    delivered.resolve()
    await caller.whole()
    return await lastRecord()
  }

  test.each(tools)('%s %j: is charged for what it received when its upstream breaks off', async (dialect, more) => {
    const expected = { outcome: 'upstream_failed', rule: 'upstream_broke_off_tools', output_tokens: 100 }
    expect(await recordOfBrokenOff(dialect, more)).toMatchObject(expected)
  })

  test.each(others)(
    '%s on %s, %j: is free when its upstream breaks off, because no tool can be the cause',
    async (dialect, upstream, more) => {
      const expected = { outcome: 'upstream_failed', rule: 'upstream_broke_off', output_tokens: 0, cost: 0 }
      expect(await recordOfBrokenOff(dialect, more, upstream)).toMatchObject(expected)
    },
  )

  describe.each([
    ['a plain call', false],
    ['a streamed call', true],
  ])('%s', (_what, stream) => {
    test.each(tools)('%s %j: is charged for its input when a tool never answers', async (dialect, more) => {
      harness.upstream.plan(silence())
      const before = harness.upstream.requests.length
      const received = harness.upstream.nextRequest()
      const caller = openRaw(harness.url, bytesOf(dialect, stream, more))
      await received
      passTime()
      expect((await caller.whole()).status).toBe(504)
      const record = await lastRecord()
      expect(record).toMatchObject({ outcome: 'over_bound', rule: 'over_bound_tools', usage_source: 'estimated' })
      expect(Number(record.cost)).toBeGreaterThan(0)
      expect(harness.upstream.requests.length).toBe(before + 1)
    })
  })

  test.each(others)('%s on %s, %j: is free when a stream never begins', async (dialect, upstream, more) => {
    harness.upstream.plan(silence())
    const received = harness.upstream.nextRequest()
    const caller = openRaw(harness.url, bytesOf(dialect, true, more, upstream))
    await received
    passTime()
    expect((await caller.whole()).status).toBe(504)
    expect(await lastRecord()).toMatchObject({ outcome: 'upstream_failed', rule: 'upstream_failed', cost: 0 })
  })

  test.each(tools)('%s %j: is charged for its input when its answer is nested too deeply', async (dialect, more) => {
    harness.upstream.plan(script(...jsonAnswer(200, `{"x":${deep(LEVELS)}}`)))
    const before = harness.upstream.requests.length
    expect((await openRaw(harness.url, bytesOf(dialect, false, more)).whole()).status).toBe(502)
    const expected = { outcome: 'over_bound', rule: 'over_bound_tools', error: 'answer_too_large' }
    expect(await lastRecord()).toMatchObject(expected)
    expect(harness.upstream.requests.length).toBe(before + 1)
  })
})

test('without tools, an answer over a bound that was never sent is free, and the error names the bound', async () => {
  harness.upstream.plan(script(...jsonAnswer(200, `{"x":${deep(LEVELS)}}`)))
  const plain = { model: modelOf('openai-chat'), stream: false }
  const caller = await openRaw(harness.url, requestOf('openai-chat', key, plain)).whole()
  expect(caller.text).toContain(`nested more than ${bounds.jsonDepthMax} levels deep`)
  expect(await lastRecord()).toMatchObject({ outcome: 'over_bound', rule: 'over_bound', cost: 0 })
})

test('events after the finish reason are held back up to a bound, and the content before them is charged', async () => {
  const part = (text: string, more: object = {}): string =>
    `data: ${JSON.stringify({ candidates: [{ content: { role: 'model', parts: [{ text }] }, ...more }] })}\n\n`
  const delivered = Promise.withResolvers<void>()
  // Content would be delivered; other events wait for the end.
  const modelVersion = 'x'.repeat(EVENT_BYTES_MAX / 4)
  const after = Array.from({ length: 5 }, () => chunk(`data: ${JSON.stringify({ candidates: [], modelVersion })}\n\n`))
  const last = chunk(part('more', { finishReason: 'STOP' }))
  harness.upstream.plan(script(streamHead, chunk(part(content)), gate(delivered.promise), last, ...after, end))
  const caller = openRaw(harness.url, requestOf('gemini', key, { model: modelOf('gemini'), ...callOptions }))
  await caller.until(({ text }) => text.includes(content), 'the caller has content')
  delivered.resolve()
  await caller.whole()
  expect(caller.text).toContain('What follows the last content')
  expect(await lastRecord()).toMatchObject({ outcome: 'over_bound', rule: 'over_bound_answered' })
})
