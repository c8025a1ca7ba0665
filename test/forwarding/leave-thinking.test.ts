// A caller that leaves a model with hidden thinking pays for the thinking: by the reported usage, to which the gateway
// reads on, or by the elapsed time, where it cannot. The same applies to a call that exceeds a bound, and to a key that
// is revoked.

import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { bounds } from '../../src/base/bounds.ts'
import { tokensPerSecondDefault } from '../../src/base/money/model-traits.ts'
import { buildFramesTo, silence, streamHead } from '../../tools/fake-upstream/answers.ts'
import { formatEvent } from '../../tools/fake-upstream/dialect.ts'
import type { Script } from '../../tools/fake-upstream/script.ts'
import { chunk, end, gate, scripted } from '../../tools/fake-upstream/script.ts'
import type { CallerDialect } from '../dialects/raw-callers.ts'
import { rawCallers } from '../dialects/raw-callers.ts'
import type { Dialect } from '../dialects/upstreams.ts'
import { dialects, modelOf, startDialects } from '../dialects/upstreams.ts'
import type { Harness } from '../support/gateway.ts'
import { until } from '../support/gateway.ts'
import { post } from '../support/raw.ts'
import type { Caller } from './caller.ts'
import { openRaw } from './caller.ts'

let harness: Harness
let key: string
let jumpMs = 0
/** The clock hardly moves by itself, so that a slow machine does not look like a model that thinks. */
const clock = { nowMs: () => performance.now() / 1_000 + jumpMs, dateMs: () => Date.now() + jumpMs }
/** So long that no jump exceeds them: only what the tests do ends a call. */
const attemptTimes = { firstContentMs: 1e9, wholeMs: 1e9, betweenChunksMs: 1e9 }

const SPEED = 100
const sized = { contextTokens: 1_000_000, outputTokensMax: 30_000, price: { input: '1', output: '2' } }
const models = [
  { id: 'deep', ...sized, traits: { thinking: 'effort', tokensPerSecondMax: SPEED } },
  { id: 'must', ...sized, traits: { thinking: 'effort', stopsThinking: false } },
  { id: 'plain', ...sized, traits: { thinking: 'none' } },
  { id: 'unknown', ...sized },
  { id: 'aloud', ...sized, traits: { thinking: 'effort', hidesThinking: false } },
  { id: 'hurried', ...sized, traits: { thinking: 'effort', tokensPerSecondMax: SPEED }, billsWhenLeft: false },
]

beforeAll(async () => {
  harness = await startDialects({ models, world: { clock, attemptTimes }, env: { WEIR_DRAIN_SECONDS: '0' } })
})
afterAll(() => harness.stop())
beforeEach(async () => {
  key = await harness.key({ qpm: 100_000, credit: '1000' })
})

/** A hundred tokens of four bytes each. */
const content = 'word'.repeat(100)
const thought = 20_000
const usage = { input: 50, output: 100 + thought, reasoning: thought }

/** Sends the content, and reports the thinking tokens when the gate opens. */
function thinkingScript(reportGate: Promise<unknown>, contentGate: Promise<unknown> = Promise.resolve()): Script {
  return scripted(function* steps(request) {
    yield streamHead
    let hasContent = false
    for (const frame of buildFramesTo(request, [content], { usage })) {
      if (frame.kind === 'piece') yield gate(contentGate)
      if (hasContent) yield gate(reportGate)
      yield chunk(formatEvent(frame))
      hasContent ||= frame.kind === 'piece'
    }
    yield end
  })
}

/** Sends everything as openai-chat, with visible thinking. */
function visibleThinkingScript(): Script {
  const event = (delta: object): string => `data: ${JSON.stringify({ choices: [{ index: 0, delta }] })}\n\n`
  return scripted(function* steps() {
    yield streamHead
    yield chunk(event({ reasoning_content: 'hmmm'.repeat(10) }) + event({ content }))
    yield gate(never)
  })
}

const never = new Promise<void>(() => {})

interface CallOptions {
  readonly model?: string
  readonly stream?: boolean
  readonly more?: object
  readonly speaker?: CallerDialect
}

function open(upstream: Dialect, options: CallOptions = {}): Caller {
  const { model = 'deep', stream = true, more = {}, speaker = upstream } = options
  const callFields = { model: modelOf(upstream, model), stream, outputTokensMax: 25_000 }
  const { path, body } = rawCallers[speaker]
  const headers = { 'authorization': `Bearer ${key}`, 'content-type': 'application/json' }
  return openRaw(harness.url, post(path(callFields), headers, JSON.stringify({ ...body(callFields), ...more })))
}

const contentOf = (caller: Caller): Promise<void> =>
  caller.until(({ text }) => text.includes('wordword'), 'content has arrived')

async function lastRecord(): Promise<Record<string, unknown>> {
  await harness.idle()
  expect(harness.openHolds()).toBe(0)
  return harness.lastRecord()!
}

/** Sends other requests: when they are answered, the gateway has processed what came before them. */
async function untilProcessed(): Promise<void> {
  for (let round = 0; round < 5; round++) await fetch(`${harness.url}/api/public/settings`)
}

const costOf = ({ input_tokens: input, output_tokens: output }: Record<string, unknown>): number =>
  Number(input) * 1_000 + Number(output) * 2_000

describe.each(dialects)('%s', upstream => {
  // Anthropic's models think only if the request asks for it.
  const more = upstream === 'anthropic-messages' ? { thinking: { type: 'enabled', budget_tokens: 20_000 } } : {}

  // Gemini reports usage with each chunk, so its model has not been silent when the caller leaves.
  test.each(upstream === 'gemini' ? ['deep'] : ['deep', 'unknown'])(
    'reads model %s on to its usage report',
    async model => {
      const [reportGate, contentGate] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
      harness.upstream.plan(thinkingScript(reportGate.promise, contentGate.promise))
      const received = harness.upstream.nextRequest()
      const caller = open(upstream, { model, more })
      await received
      await untilProcessed()
      if (model === 'unknown') jumpMs += 5_000
      contentGate.resolve()
      await contentOf(caller)
      caller.leave()
      await caller.closed
      await untilProcessed()
      expect(harness.gateway.activeCalls).toBe(1)
      reportGate.resolve()
      const record = await lastRecord()
      expect(record).toMatchObject({ outcome: 'client_left', usage_source: 'reported', output_tokens: 100 + thought })
      expect(record.cost).toBe(costOf(record))
    },
  )

  test.each(['plain', 'unknown'])('releases model %s, which was never silent, at once', async model => {
    harness.upstream.plan(thinkingScript(never))
    const received = harness.upstream.nextRequest()
    const caller = open(upstream, { model })
    await contentOf(caller)
    caller.leave()
    await (await received).closed
    expect(await lastRecord()).toMatchObject({ outcome: 'client_left', output_tokens: 100, reasoning_tokens: 0 })
  })

  // Gemini reports usage with each chunk, including the thinking tokens.
  if (upstream !== 'gemini')
    test('charges the time before the first content at a model that is not read on', async () => {
      const contentGate = Promise.withResolvers<void>()
      for (const [seconds, hidden] of [
        [41, 40 * SPEED],
        [500, 25_000 - 100],
      ] as const) {
        harness.upstream.plan(thinkingScript(never, contentGate.promise))
        const received = harness.upstream.nextRequest()
        const caller = open(upstream, { model: 'hurried', more })
        await received
        await untilProcessed()
        jumpMs += seconds * 1_000
        contentGate.resolve()
        await contentOf(caller)
        caller.leave()
        const record = await lastRecord()
        expect(record).toMatchObject({ outcome: 'client_left', rule: 'left_reading', usage_source: 'estimated' })
        expect(Number(record.reasoning_tokens)).toBeGreaterThanOrEqual(hidden - (hidden > 10_000 ? 1_000 : 0))
        expect(Number(record.cost)).toBeLessThanOrEqual(Number(record.held))
        expect(record.cost).toBe(costOf(record))
      }
    })
})

describe('before any content', () => {
  test.each([true, false])('a caller that leaves a model that thinks pays for the time (stream: %p)', async stream => {
    harness.upstream.plan(silence())
    const received = harness.upstream.nextRequest()
    const caller = open('openai-chat', { model: 'hurried', stream })
    await received
    await untilProcessed()
    jumpMs += 31_000
    caller.leave()
    const record = await lastRecord()
    expect(record).toMatchObject({ outcome: 'client_left', rule: 'left_waiting', usage_source: 'estimated' })
    expect(Number(record.reasoning_tokens)).toBeGreaterThanOrEqual(30 * SPEED)
    expect(Number(record.input_tokens)).toBeGreaterThan(0)
  })

  test('a model of unknown speed is charged by the default speed', async () => {
    harness.upstream.plan(silence())
    const received = harness.upstream.nextRequest()
    const caller = open('openai-chat', { model: 'unknown' })
    await received
    await untilProcessed()
    jumpMs += 21_000
    caller.leave()
    await caller.closed
    await untilProcessed()
    expect(harness.gateway.activeCalls).toBe(1)
    jumpMs += bounds.callerGoneMsMax
    const record = await lastRecord()
    expect(record).toMatchObject({ outcome: 'client_left', rule: 'left_waiting' })
    // The upstream may hang: the time in which only the gateway waited is not charged.
    expect(Number(record.reasoning_tokens)).toBeWithin(20 * tokensPerSecondDefault, 21 * tokensPerSecondDefault)
  })

  test('a caller that revokes its own key pays as if it had left', async () => {
    harness.upstream.plan(silence())
    const received = harness.upstream.nextRequest()
    const caller = open('openai-chat')
    await received
    await untilProcessed()
    jumpMs += 31_000
    await harness.weir('keys revoke', { key })
    await caller.whole()
    const record = await lastRecord()
    expect(record).toMatchObject({ outcome: 'revoked', rule: 'revoked_waiting' })
    expect(Number(record.reasoning_tokens)).toBeGreaterThanOrEqual(30 * SPEED)
  })
})

test('a key that is revoked in the middle of an answer still pays for the thinking', async () => {
  const contentGate = Promise.withResolvers<void>()
  harness.upstream.plan(thinkingScript(never, contentGate.promise))
  const received = harness.upstream.nextRequest()
  const caller = open('openai-chat')
  await received
  await untilProcessed()
  jumpMs += 31_000
  contentGate.resolve()
  await contentOf(caller)
  await harness.weir('keys revoke', { key })
  await caller.whole()
  const record = await lastRecord()
  expect(record).toMatchObject({ outcome: 'revoked', rule: 'revoked_answered' })
  expect(Number(record.reasoning_tokens)).toBeGreaterThanOrEqual(30 * SPEED)
})

describe('a model whose thinking can be turned off', () => {
  const offs: readonly (readonly [CallerDialect, Dialect, object])[] = [
    ['openai-chat', 'openai-chat', { reasoning_effort: 'none' }],
    ['ark', 'ark', { thinking: { type: 'disabled' } }],
    ['openai-responses', 'openai-responses', { reasoning: { effort: 'none' } }],
    ['anthropic-messages', 'anthropic-messages', { thinking: { type: 'disabled' } }],
    ['anthropic-messages', 'anthropic-messages', {}],
    ['gemini', 'gemini', { generationConfig: { maxOutputTokens: 20_000, thinkingConfig: { thinkingBudget: 0 } } }],
    ['openai-chat', 'anthropic-messages', {}],
    ['openai-responses', 'openai-chat', { reasoning: { effort: 'none' } }],
  ]

  test.each(offs)('%s on %s %j: is released at once', async (speaker, upstream, more) => {
    harness.upstream.plan(thinkingScript(never))
    const received = harness.upstream.nextRequest()
    const caller = open(upstream, { speaker, more })
    await contentOf(caller)
    caller.leave()
    await (await received).closed
    expect(await lastRecord()).toMatchObject({ outcome: 'client_left', output_tokens: 100, reasoning_tokens: 0 })
  })

  test.each(['must', 'unknown'])('is read on if it may not obey (%s)', async model => {
    const [reportGate, contentGate] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    harness.upstream.plan(thinkingScript(reportGate.promise, contentGate.promise))
    const received = harness.upstream.nextRequest()
    const caller = open('openai-chat', { model, more: { reasoning_effort: 'none' } })
    await received
    await untilProcessed()
    jumpMs += 5_000
    contentGate.resolve()
    await contentOf(caller)
    caller.leave()
    await caller.closed
    reportGate.resolve()
    expect(await lastRecord()).toMatchObject({ usage_source: 'reported', output_tokens: 100 + thought })
  })
})

test.each(['unknown', 'aloud'])(
  'a model with visible thinking (%s) is released, and its thinking is counted',
  async model => {
    harness.upstream.plan(visibleThinkingScript())
    const received = harness.upstream.nextRequest()
    const caller = open('openai-chat', { model })
    await contentOf(caller)
    jumpMs += 30_000
    caller.leave()
    await (await received).closed
    const counted = { outcome: 'client_left', usage_source: 'estimated', output_tokens: 110, reasoning_tokens: 0 }
    expect(await lastRecord()).toMatchObject(counted)
  },
)

test('when too many calls are read on, further ones are charged by their time', async () => {
  harness.upstream.planModel('deep', silence())
  const before = harness.upstream.requests.length
  const callers = Array.from({ length: bounds.callerGoneCallsOfAccountMax + 3 }, () => open('openai-chat'))
  await until(() => harness.upstream.requests.length - before === callers.length, 'all are upstream')
  await untilProcessed()
  jumpMs += 11_000
  for (const caller of callers) caller.leave()
  await until(() => harness.gateway.activeCalls === bounds.callerGoneCallsOfAccountMax, 'some have ended')
  const ended = harness.records().slice(-3)
  for (const record of ended) expect(Number(record.reasoning_tokens)).toBeGreaterThanOrEqual(10 * SPEED)
  jumpMs += bounds.callerGoneMsMax
  await harness.idle()
  harness.upstream.planModel('deep', undefined)
})
