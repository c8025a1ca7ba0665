// A caller that leaves a model which thinks in secret pays for what was thought: by the report, to which the gateway
// reads on, or by the time that it took, where it cannot. So does whoever is cut by a bound or has its key taken away.

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
/** It hardly moves by itself, so that no machine is so slow that a model seems to think. */
const clock = { nowMs: () => performance.now() / 1_000 + jumpMs, dateMs: () => Date.now() + jumpMs }

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
  harness = await startDialects({ models, world: { clock }, env: { WEIR_DRAIN_SECONDS: '0' } })
})
afterAll(() => harness.stop())
beforeEach(async () => {
  key = await harness.key({ qpm: 100_000, credit: '1000' })
})

/** A hundred tokens, by four bytes each. */
const said = 'word'.repeat(100)
const thought = 20_000
const usage = { input: 50, output: 100 + thought, reasoning: thought }

/** Says everything, and reports what it thought when it may. */
function saying(reports: Promise<unknown>, begins: Promise<unknown> = Promise.resolve()): Script {
  return scripted(function* steps(request) {
    yield streamHead
    let isSaid = false
    for (const frame of buildFramesTo(request, [said], { usage })) {
      if (frame.kind === 'piece') yield gate(begins)
      if (isSaid) yield gate(reports)
      yield chunk(formatEvent(frame))
      isSaid ||= frame.kind === 'piece'
    }
    yield end
  })
}

/** Everything as chat says it, with thoughts that are shown. */
function aloud(): Script {
  const event = (delta: object): string => `data: ${JSON.stringify({ choices: [{ index: 0, delta }] })}\n\n`
  return scripted(function* steps() {
    yield streamHead
    yield chunk(event({ reasoning_content: 'hmmm'.repeat(10) }) + event({ content: said }))
    yield gate(never)
  })
}

const never = new Promise<void>(() => {})

interface Asking {
  readonly model?: string
  readonly stream?: boolean
  readonly more?: object
  readonly speaker?: CallerDialect
}

function open(upstream: Dialect, asking: Asking = {}): Caller {
  const { model = 'deep', stream = true, more = {}, speaker = upstream } = asking
  const asked = { model: modelOf(upstream, model), stream, outputTokensMax: 25_000 }
  const { path, body } = rawCallers[speaker]
  const headers = { 'authorization': `Bearer ${key}`, 'content-type': 'application/json' }
  return openRaw(harness.url, post(path(asked), headers, JSON.stringify({ ...body(asked), ...more })))
}

const contentOf = (caller: Caller): Promise<void> =>
  caller.until(({ text }) => text.includes('wordword'), 'content is here')

async function lastRecord(): Promise<Record<string, unknown>> {
  await harness.idle()
  expect(harness.openHolds()).toBe(0)
  return harness.records().at(-1)!
}

/** Asks something else a few times: when that is answered, the gateway has seen what came before it. */
async function takenIn(): Promise<void> {
  for (let round = 0; round < 5; round++) await fetch(`${harness.url}/api/public/settings`)
}

const costOf = ({ input_tokens: input, output_tokens: output }: Record<string, unknown>): number =>
  Number(input) * 1_000 + Number(output) * 2_000

describe.each(dialects)('%s', upstream => {
  // What Anthropic's models think must be asked for.
  const more = upstream === 'anthropic-messages' ? { thinking: { type: 'enabled', budget_tokens: 20_000 } } : {}

  // Gemini reports with each piece, so that its model has been silent for no time when the caller leaves.
  test.each(upstream === 'gemini' ? ['deep'] : ['deep', 'unknown'])('%s is read on to its report', async model => {
    const [reports, begins] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    harness.upstream.plan(saying(reports.promise, begins.promise))
    const received = harness.upstream.nextRequest()
    const caller = open(upstream, { model, more })
    await received
    await takenIn()
    if (model === 'unknown') jumpMs += 5_000
    begins.resolve()
    await contentOf(caller)
    caller.leave()
    await caller.closed
    await takenIn()
    expect(harness.gateway.activeCalls).toBe(1)
    reports.resolve()
    const record = await lastRecord()
    expect(record).toMatchObject({ outcome: 'client_left', usage_source: 'reported', output_tokens: 100 + thought })
    expect(record.cost).toBe(costOf(record))
  })

  test.each(['plain', 'unknown'])('%s, which was never silent, is let go at once', async model => {
    harness.upstream.plan(saying(never))
    const received = harness.upstream.nextRequest()
    const caller = open(upstream, { model })
    await contentOf(caller)
    caller.leave()
    await (await received).closed
    expect(await lastRecord()).toMatchObject({ outcome: 'client_left', output_tokens: 100, reasoning_tokens: 0 })
  })

  // Gemini reports with each piece, also what it has thought.
  if (upstream !== 'gemini')
    test('without a place to read on, the time before the first word is charged', async () => {
      const begins = Promise.withResolvers<void>()
      for (const [seconds, hidden] of [
        [41, 40 * SPEED],
        [500, 25_000 - 100],
      ] as const) {
        harness.upstream.plan(saying(never, begins.promise))
        const received = harness.upstream.nextRequest()
        const caller = open(upstream, { model: 'hurried', more })
        await received
        await takenIn()
        jumpMs += seconds * 1_000
        begins.resolve()
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
  test.each([true, false])('who leaves a model that thinks pays for the time (stream: %p)', async stream => {
    harness.upstream.plan(silence())
    const received = harness.upstream.nextRequest()
    const caller = open('openai-chat', { model: 'hurried', stream })
    await received
    await takenIn()
    jumpMs += 31_000
    caller.leave()
    const record = await lastRecord()
    expect(record).toMatchObject({ outcome: 'client_left', rule: 'left_waiting', usage_source: 'estimated' })
    expect(Number(record.reasoning_tokens)).toBeGreaterThanOrEqual(30 * SPEED)
    expect(Number(record.input_tokens)).toBeGreaterThan(0)
  })

  test('a model of which nobody knows has the speed that is written down', async () => {
    harness.upstream.plan(silence())
    const received = harness.upstream.nextRequest()
    const caller = open('openai-chat', { model: 'unknown' })
    await received
    await takenIn()
    jumpMs += 21_000
    caller.leave()
    await caller.closed
    await takenIn()
    expect(harness.gateway.activeCalls).toBe(1)
    jumpMs += bounds.callerGoneMsMax
    const record = await lastRecord()
    expect(record).toMatchObject({ outcome: 'client_left', rule: 'left_waiting' })
    // The upstream may hang: the time in which only the gateway waited is not charged.
    expect(Number(record.reasoning_tokens)).toBeWithin(20 * tokensPerSecondDefault, 21 * tokensPerSecondDefault)
  })

  test('who takes its own key away pays as if it had left', async () => {
    harness.upstream.plan(silence())
    const received = harness.upstream.nextRequest()
    const caller = open('openai-chat')
    await received
    await takenIn()
    jumpMs += 31_000
    await harness.weir('keys revoke', { key })
    await caller.whole()
    const record = await lastRecord()
    expect(record).toMatchObject({ outcome: 'revoked', rule: 'revoked_waiting' })
    expect(Number(record.reasoning_tokens)).toBeGreaterThanOrEqual(30 * SPEED)
  })
})

test('a key that is taken away in the midst of an answer does not make thoughts free', async () => {
  const begins = Promise.withResolvers<void>()
  harness.upstream.plan(saying(never, begins.promise))
  const received = harness.upstream.nextRequest()
  const caller = open('openai-chat')
  await received
  await takenIn()
  jumpMs += 31_000
  begins.resolve()
  await contentOf(caller)
  await harness.weir('keys revoke', { key })
  await caller.whole()
  const record = await lastRecord()
  expect(record).toMatchObject({ outcome: 'revoked', rule: 'revoked_answered' })
  expect(Number(record.reasoning_tokens)).toBeGreaterThanOrEqual(30 * SPEED)
})

describe('a model that can be told not to think', () => {
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

  test.each(offs)('%s on %s %j: is let go at once', async (speaker, upstream, more) => {
    harness.upstream.plan(saying(never))
    const received = harness.upstream.nextRequest()
    const caller = open(upstream, { speaker, more })
    await contentOf(caller)
    caller.leave()
    await (await received).closed
    expect(await lastRecord()).toMatchObject({ outcome: 'client_left', output_tokens: 100, reasoning_tokens: 0 })
  })

  test.each(['must', 'unknown'])('but one that may not obey (%s) is read on', async model => {
    const [reports, begins] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    harness.upstream.plan(saying(reports.promise, begins.promise))
    const received = harness.upstream.nextRequest()
    const caller = open('openai-chat', { model, more: { reasoning_effort: 'none' } })
    await received
    await takenIn()
    jumpMs += 5_000
    begins.resolve()
    await contentOf(caller)
    caller.leave()
    await caller.closed
    reports.resolve()
    expect(await lastRecord()).toMatchObject({ usage_source: 'reported', output_tokens: 100 + thought })
  })
})

test.each(['unknown', 'aloud'])('one that thinks aloud (%s) is let go, and its thoughts are counted', async model => {
  harness.upstream.plan(aloud())
  const received = harness.upstream.nextRequest()
  const caller = open('openai-chat', { model })
  await contentOf(caller)
  jumpMs += 30_000
  caller.leave()
  await (await received).closed
  const counted = { outcome: 'client_left', usage_source: 'estimated', output_tokens: 110, reasoning_tokens: 0 }
  expect(await lastRecord()).toMatchObject(counted)
})

test('with too many calls that are read on, further ones are charged by their time', async () => {
  harness.upstream.planModel('deep', silence())
  const before = harness.upstream.requests.length
  const callers = Array.from({ length: bounds.callerGoneCallsOfAccountMax + 3 }, () => open('openai-chat'))
  await until(() => harness.upstream.requests.length - before === callers.length, 'all are upstream')
  await takenIn()
  jumpMs += 11_000
  for (const caller of callers) caller.leave()
  await until(() => harness.gateway.activeCalls === bounds.callerGoneCallsOfAccountMax, 'some have ended')
  const ended = harness.records().slice(-3)
  for (const record of ended) expect(Number(record.reasoning_tokens)).toBeGreaterThanOrEqual(10 * SPEED)
  jumpMs += bounds.callerGoneMsMax
  await harness.idle()
  harness.upstream.planModel('deep', undefined)
})
