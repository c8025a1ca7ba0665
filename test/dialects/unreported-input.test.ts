// Input that only the report at the end of an answer tells: what tools of the provider have read, files, a conversation
// that the provider sums up. If no report comes after content, and a caller can cause that, the call costs the input that
// was held. Where only the upstream or the operator can be the cause, the input is estimated.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { bounds } from '../../src/base/bounds.ts'
import { buildFramesTo, silence, streamHead } from '../../tools/fake-upstream/answers.ts'
import { formatEvent } from '../../tools/fake-upstream/dialect.ts'
import type { Script, Step } from '../../tools/fake-upstream/script.ts'
import { chunk, close, end, gate, script, scripted } from '../../tools/fake-upstream/script.ts'
import type { Caller } from '../forwarding/caller.ts'
import { openRaw } from '../forwarding/caller.ts'
import type { Harness } from '../support/gateway.ts'
import { until } from '../support/gateway.ts'
import { post } from '../support/raw.ts'
import { rawCallers } from './raw-callers.ts'
import type { Dialect } from './upstreams.ts'
import { modelOf, startDialects } from './upstreams.ts'

const CONTEXT = 32_768
const SILENCE_MS = 100_000
let aheadMs = 0
const clock = { nowMs: () => performance.now() + aheadMs, dateMs: Date.now }

function start(): Promise<Harness> {
  const attemptTimes = { firstContentMs: SILENCE_MS, wholeMs: SILENCE_MS, betweenChunksMs: SILENCE_MS }
  const included = ['mcp', 'mcp_servers', 'web_fetch', 'urlContext']
  const cases = [{ inputAbove: 20_000, input: '10', output: '20' }]
  const sized = { contextTokens: CONTEXT, outputTokensMax: 4_096, traits: { thinking: 'none' } }
  return startDialects({
    world: { clock, attemptTimes },
    env: { WEIR_DRAIN_SECONDS: '0' },
    models: [
      { id: 'echo', ...sized, price: { input: '1', output: '2', perSearch: '0', included } },
      { id: 'long', ...sized, price: { input: '1', output: '2', cases } },
    ],
  })
}

let harness: Harness
let key: string
beforeAll(async () => {
  harness = await start()
  key = await harness.key({ qpm: 100_000, credit: '1000' })
})
afterAll(() => harness.stop())

type Request = readonly [Dialect, object]

function open([dialect, more]: Request, { to = harness, by = key, model = 'echo', stream = true } = {}): Caller {
  const { path, body } = rawCallers[dialect]
  const input = { model: modelOf(dialect, model), stream, outputTokensMax: 500 }
  const headers = { 'authorization': `Bearer ${by}`, 'content-type': 'application/json' }
  return openRaw(to.url, post(path(input), headers, JSON.stringify({ ...body(input), ...more })))
}

/** A hundred tokens without a report, and then the rest. */
const content = 'word'.repeat(100)
const contentThen = (...rest: readonly Step[]): Script =>
  scripted(function* steps(request) {
    yield streamHead
    for (const frame of buildFramesTo(request, [content], { usage: 'missing' })) {
      yield chunk(formatEvent(frame))
      if (frame.kind === 'piece') break
    }
    yield* rest
  })

const never = gate(new Promise(() => {}))

const untilRead = (caller: Caller, text = 'wordword'): Promise<unknown> =>
  caller.until(({ text: read }) => read.includes(text), 'the caller has content')

async function lastRecord(): Promise<Record<string, unknown>> {
  await harness.idle()
  expect(harness.openHolds()).toBe(0)
  return harness.lastRecord()!
}

/** When another request is answered, the gateway has noticed what happened on its sockets before. */
async function noticed(): Promise<void> {
  for (let round = 0; round < 5; round++) await fetch(`${harness.url}/health/live`)
}

/** The caller has the answer and leaves. No report comes within the time for which the gateway reads on. */
async function leave(caller: Caller): Promise<void> {
  caller.leave()
  await caller.closed
  await noticed()
  expect(harness.gateway.activeCalls).toBe(1)
  aheadMs += bounds.callerGoneMsMax
}

const paysAll = {
  usage_source: 'estimated',
  input_tokens: CONTEXT,
  output_tokens: 100,
  cost: CONTEXT * 1_000 + 100 * 2_000,
}

/** The hold for the input is far more than what is in the request. */
function expectEstimated(record: Readonly<Record<string, unknown>>, rule: string): void {
  expect(record).toMatchObject({ rule, usage_source: 'estimated', output_tokens: 100 })
  expect(Number(record.input_tokens)).toBeGreaterThan(0)
  expect(Number(record.input_tokens)).toBeLessThan(CONTEXT / 4)
}

const mcp: Request = [
  'openai-responses',
  { tools: [{ type: 'mcp', server_label: 'x', server_url: 'https://tools.example' }] },
]
const tools: readonly Request[] = [
  mcp,
  ['anthropic-messages', { mcp_servers: [{ type: 'url', url: 'https://tools.example', name: 'x' }] }],
  ['gemini', { tools: [{ urlContext: {} }] }],
  ['openai-chat', { tools: [{ type: 'mcp', server_url: 'https://tools.example' }] }],
  ['ark', { mcp_servers: ['https://tools.example'] }],
]
const search: Request = ['openai-responses', { tools: [{ type: 'web_search' }] }]
const pdf = 'data:application/pdf;base64,JVBERi0xLjQK'
const user = (part: object): object => ({ messages: [{ role: 'user', content: [part] }] })
const file: Request = ['openai-chat', user({ type: 'file', file: { filename: 'a.pdf', file_data: pdf } })]

test.each([...tools, search, file])(
  '%s %j: a caller that leaves with the answer pays the input that was held, if no report comes',
  async (dialect, more) => {
    harness.upstream.plan(contentThen(never))
    const caller = open([dialect, more])
    await untilRead(caller)
    await leave(caller)
    expect(await lastRecord()).toMatchObject({ rule: 'left_reading', ...paysAll })
  },
)

test.each(tools)('%s %j: so does one whose upstream is silent, because of its tool', async (dialect, more) => {
  harness.upstream.plan(contentThen(never))
  const caller = open([dialect, more])
  await untilRead(caller)
  aheadMs += SILENCE_MS
  await caller.whole()
  expect(await lastRecord()).toMatchObject({ rule: 'over_bound_answered', error: 'upstream_too_slow', ...paysAll })
})

test.each(tools)('%s %j: so does one whose upstream breaks off, because of its tool', async (dialect, more) => {
  harness.upstream.plan(contentThen(close))
  await open([dialect, more]).whole()
  expect(await lastRecord()).toMatchObject({ rule: 'upstream_broke_off_tools', ...paysAll })
})

test('so does one whose tool makes the response fail', async () => {
  const error = { code: 'server_error', message: 'The tool failed.' }
  const response = { id: 'resp_1', object: 'response', status: 'failed', output: [], error }
  const failed = `event: response.failed\ndata: ${JSON.stringify({ type: 'response.failed', response })}\n\n`
  harness.upstream.plan(contentThen(chunk(failed), end))
  await open(mcp).whole()
  expect(await lastRecord()).toMatchObject({ rule: 'upstream_broke_off_tools', ...paysAll })
})

test('so does one that leaves while too many others are read on', async () => {
  const callers: Caller[] = []
  for (let count = 0; count <= bounds.callerGoneCallsOfAccountMax; count++) {
    harness.upstream.plan(contentThen(never))
    const caller = open(mcp)
    await untilRead(caller)
    callers.push(caller)
  }
  const before = harness.recordCount()
  for (const caller of callers) caller.leave()
  await until(() => harness.recordCount() === before + 1, 'one has ended')
  expect(harness.lastRecord()).toMatchObject({ rule: 'left_reading', ...paysAll })
  aheadMs += bounds.callerGoneMsMax
  await lastRecord()
})

describe('a plain call, whose answer nobody sees before its end', () => {
  async function openSilent(request: Request): Promise<Caller> {
    harness.upstream.plan(silence())
    const received = harness.upstream.nextRequest()
    const caller = open(request, { stream: false })
    await received
    return caller
  }

  test.each(tools)('%s %j: pays the input that was held if its caller leaves later', async (dialect, more) => {
    const caller = await openSilent([dialect, more])
    aheadMs += 2_000
    await leave(caller)
    expect(await lastRecord()).toMatchObject({ rule: 'left_waiting', usage_source: 'estimated', input_tokens: CONTEXT })
  })

  test.each(tools)('%s %j: pays the input that was held if its tool hangs', async (dialect, more) => {
    const caller = await openSilent([dialect, more])
    aheadMs += SILENCE_MS
    await caller.whole()
    expect(await lastRecord()).toMatchObject({ rule: 'over_bound_tools', input_tokens: CONTEXT })
  })

  test('pays an estimate of the input if it only searches', async () => {
    const caller = await openSilent(search)
    aheadMs += SILENCE_MS
    await caller.whole()
    const record = await lastRecord()
    expect(record).toMatchObject({ rule: 'over_bound_tools', usage_source: 'estimated' })
    expect(Number(record.input_tokens)).toBeLessThan(CONTEXT / 4)
  })
})

test('a report at the end is charged as it is', async () => {
  const usage = { input_tokens: 70, output_tokens: 50, total_tokens: 120 }
  const response = { id: 'resp_1', object: 'response', status: 'completed', output: [], usage }
  const opens = Promise.withResolvers<void>()
  const completed = `event: response.completed\ndata: ${JSON.stringify({ type: 'response.completed', response })}\n\n`
  harness.upstream.plan(contentThen(gate(opens.promise), chunk(completed), end))
  const caller = open(mcp)
  await untilRead(caller)
  caller.leave()
  await caller.closed
  await noticed()
  opens.resolve()
  expect(await lastRecord()).toMatchObject({ rule: 'left_reading', usage_source: 'reported', input_tokens: 70 })
})

describe('the input is estimated', () => {
  test('if the upstream breaks off a call that only searches, in which no server of the caller takes part', async () => {
    harness.upstream.plan(contentThen(close))
    await open(search).whole()
    expectEstimated(await lastRecord(), 'upstream_broke_off_tools')
  })

  test.each([search, file])('%s %j: if the upstream is silent, and no tool of the caller is', async (dialect, more) => {
    harness.upstream.plan(contentThen(never))
    const caller = open([dialect, more])
    await untilRead(caller)
    aheadMs += SILENCE_MS
    await caller.whole()
    expectEstimated(await lastRecord(), 'over_bound_answered')
  })

  test('if the operator stops the gateway', async () => {
    const stopped = await start()
    try {
      stopped.upstream.plan(contentThen(never))
      const caller = open(mcp, { to: stopped, by: await stopped.key({ credit: '1000' }) })
      await untilRead(caller)
      await Promise.all([stopped.gateway.drain(), caller.whole()])
      expectEstimated(stopped.lastRecord()!, 'drained_delivered')
    } finally {
      await stopped.stop()
    }
  })
})

describe('anthropic-messages', () => {
  const event = (json: { readonly type: string } & Record<string, unknown>): Step =>
    chunk(`event: ${json.type}\ndata: ${JSON.stringify(json)}\n\n`)
  const begins = (usage: object): Step =>
    event({ type: 'message_start', message: { id: 'msg_1', type: 'message', role: 'assistant', content: [], usage } })
  const block = (index: number, type: string, delta: object, more: object = {}): readonly Step[] => [
    event({ type: 'content_block_start', index, content_block: { type, ...more } }),
    event({ type: 'content_block_delta', index, delta }),
    event({ type: 'content_block_stop', index }),
  ]
  const summary = block(0, 'compaction', { type: 'compaction_delta', content: 'The summary.' }, { content: null })
  const text = block(1, 'text', { type: 'text_delta', text: content }, { text: '' })
  const tool = block(0, 'mcp_tool_use', { type: 'input_json_delta', partial_json: '{}' }, { name: 'x', input: {} })
  const ends = (usage: object): readonly Step[] => [
    event({ type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage }),
    event({ type: 'message_stop' }),
    end,
  ]
  const compacting: Request = ['anthropic-messages', { context_management: { edits: [{ type: 'compact_20260112' }] } }]
  const totals = { input_tokens: 2_300, output_tokens: 100 }
  const iterations = [
    { type: 'compaction', input_tokens: 18_000, output_tokens: 350 },
    { type: 'message', ...totals },
  ]
  const first = begins({ input_tokens: 2_300, output_tokens: 1 })
  const whole = { usage_source: 'reported', input_tokens: 20_300, output_tokens: 450, cost: 20_300_000 + 900_000 }

  test('a summary is charged, and the rates of long inputs apply to each reading on its own', async () => {
    harness.upstream.plan(script(streamHead, first, ...summary, ...text, ...ends({ ...totals, iterations })))
    await open(compacting, { model: 'long' }).whole()
    expect(await lastRecord()).toMatchObject({ rule: 'completed', ...whole })
    const longer = [{ ...iterations[0]!, input_tokens: 20_001 }, iterations[1]]
    harness.upstream.plan(script(streamHead, first, ...summary, ...text, ...ends({ ...totals, iterations: longer })))
    await open(compacting, { model: 'long' }).whole()
    expect(await lastRecord()).toMatchObject({ input_tokens: 22_301, cost: 22_301 * 10_000 + 450 * 20_000 })
  })

  test.each([
    ['only at the start', { input_tokens: 2_300, output_tokens: 1, iterations }, totals],
    ['in each report', { input_tokens: 2_300, output_tokens: 1, iterations }, { output_tokens: 100, iterations }],
    ['at the end, without totals', { input_tokens: 2_300, output_tokens: 1 }, { output_tokens: 100, iterations }],
  ])('a summary is charged once, if it is reported %s', async (_when, started, ended) => {
    harness.upstream.plan(script(streamHead, begins(started), ...summary, ...text, ...ends(ended)))
    await open(compacting).whole()
    expect(await lastRecord()).toMatchObject({ rule: 'completed', ...whole })
  })

  test.each([
    ['the summary', 'The summary.', summary],
    ['the answer', 'wordword', [...summary, ...text]],
  ])('a caller that leaves with %s pays for the summary', async (_what, read, written) => {
    const opens = Promise.withResolvers<void>()
    const rest = [gate(opens.promise), ...text, ...ends({ ...totals, iterations })]
    harness.upstream.plan(script(streamHead, first, ...written, ...rest))
    const caller = open(compacting)
    await untilRead(caller, read)
    caller.leave()
    await caller.closed
    await noticed()
    opens.resolve()
    expect(await lastRecord()).toMatchObject({ rule: 'left_reading', ...whole })
  })

  test.each([
    ['a summary', compacting, summary],
    ['the use of a tool', tools[1]!, tool],
  ])('the first report does not count after %s', async (_what, request, written) => {
    harness.upstream.plan(script(streamHead, first, ...written, ...text, never))
    const caller = open(request)
    await untilRead(caller)
    await leave(caller)
    expect(await lastRecord()).toMatchObject({ rule: 'left_reading', input_tokens: CONTEXT })
  })

  test.each([compacting, tools[1]!])(
    '%s %j: the first report counts if neither has happened',
    async (dialect, more) => {
      harness.upstream.plan(script(streamHead, first, ...text, never))
      const received = harness.upstream.nextRequest()
      const caller = open([dialect, more])
      await untilRead(caller)
      caller.leave()
      await (await received).closed
      const expected = { rule: 'left_reading', input_tokens: 2_300, output_tokens: 100 }
      expect(await lastRecord()).toMatchObject(expected)
    },
  )
})
