// An answer without content costs the same in every dialect: what its upstream reports for it, once. A caller of another
// dialect gets an empty answer that does not look complete. Only where the upstream failed, other channels are tried.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import type { FinishReasonField } from '../../src/protocols/neutral/finish-reasons.ts'
import { badFinishes, readFinish } from '../../src/protocols/neutral/finish-reasons.ts'
import type { Harness } from '../support/gateway.ts'
import { rawRequest } from '../support/raw.ts'
import type { Json } from './raw-callers.ts'
import { eventsOfBody, rawCallers, requestOf } from './raw-callers.ts'
import { eventsOf, plainJson, reasonIn, reasonInStream, streamedJson, upstreamOf, wholeOf } from './reasons.ts'
import type { Dialect } from './upstreams.ts'
import { dialects, modelOf, startDialects } from './upstreams.ts'

const CHANNELS = 3
const variableOf = (dialect: Dialect): string => `UP_${dialect.toUpperCase().replaceAll('-', '_')}_KEY`
const keysOf = (dialect: Dialect): string =>
  Array.from({ length: CHANNELS }, (_, at) => `sk-${dialect}-${at}`).join(', ')
const env = {
  WEIR_ATTEMPTS: String(CHANNELS),
  ...Object.fromEntries(dialects.map(dialect => [variableOf(dialect), keysOf(dialect)])),
}

/** Seven tokens of input and five of output, as the answers report them. */
const COST = 7 * 1_000 + 5 * 2_000

type Empty = readonly [FinishReasonField, reason: string | undefined]

/** Ways in which a model ends without a word. */
const endings: readonly Empty[] = [
  ['openai-chat', 'stop'],
  ['openai-chat', 'length'],
  ['openai-chat', 'content_filter'],
  ['openai-chat', 'function_call_filter'],
  ['openai-chat', 'tool_calls'],
  ['openai-chat', 'x_new'],
  ['openai-chat', undefined],
  ['anthropic-messages', 'end_turn'],
  ['anthropic-messages', 'max_tokens'],
  ['anthropic-messages', 'refusal'],
  ['anthropic-messages', 'tool_use'],
  ['anthropic-messages', 'x_new'],
  ['gemini', 'STOP'],
  ['gemini', 'MAX_TOKENS'],
  ['gemini', 'SAFETY'],
  ['gemini', 'MALFORMED_FUNCTION_CALL'],
  ['gemini', 'UNEXPECTED_TOOL_CALL'],
  ['gemini', 'OTHER'],
  ['gemini-block', 'PROHIBITED_CONTENT'],
  ['openai-responses', 'completed'],
  ['openai-responses', 'incomplete/max_output_tokens'],
  ['openai-responses', 'incomplete/content_filter'],
  ['openai-responses', 'incomplete/x_new'],
]

/** The same answer without its report. */
function unreported<T>(json: T): T {
  const isReport = (name: string): boolean => name === 'usage' || name === 'usageMetadata'
  return JSON.parse(JSON.stringify(json), (name, value) => (isReport(name) ? undefined : value)) as T
}

async function start(): Promise<{ harness: Harness; key: string }> {
  const harness = await startDialects({ env })
  return { harness, key: await harness.key({ credit: '1000', qpm: 100_000 }) }
}

describe('an empty answer that is billed', () => {
  let harness: Harness
  let key: string
  beforeAll(async () => {
    ;({ harness, key } = await start())
  })
  afterAll(() => harness.stop())

  const cells = endings.flatMap(([field, reason]) => dialects.map(caller => [field, reason, caller] as const))

  test.each(cells)('%s %s: costs a caller of %s what it reports, once', async (field, reason, caller) => {
    const ending = { field, reason, text: '' }
    const isNative = upstreamOf(field) === caller
    for (const stream of [false, true]) {
      harness.upstream.plan(stream ? streamedJson(eventsOf(ending)) : plainJson(wholeOf(ending)))
      const before = harness.upstream.requests.length
      const request = requestOf(caller, key, { model: modelOf(upstreamOf(field)), stream })
      const { status, body } = await rawRequest(harness.url, request)
      await harness.idle()
      const charged = { outcome: 'completed', rule: 'completed_empty', usage_source: 'reported', cost: COST }
      expect(harness.lastRecord()).toMatchObject({ ...charged, status: 200 })
      expect([status, harness.upstream.requests.length - before]).toEqual([200, 1])
      if (isNative) continue
      const text = stream
        ? rawCallers[caller].completed(eventsOfBody(caller, String(body)))
        : rawCallers[caller].whole(JSON.parse(String(body)) as Json)
      expect(text).toBe('')
      const said = stream
        ? reasonInStream(caller, eventsOfBody(caller, String(body)))
        : reasonIn[caller](JSON.parse(String(body)) as Json)
      const isBad = badFinishes.has(readFinish(field, reason)) || reason === 'tool_calls' || reason === 'tool_use'
      if (isBad) expect(['length', 'max_tokens', 'incomplete/max_output_tokens', ...geminiEnds]).toContain(String(said))
    }
  })

  const geminiEnds = ['OTHER', 'MALFORMED_FUNCTION_CALL']

  test('is answered as a stream where a stream was asked for and the upstream sends a whole answer', async () => {
    const ending = { field: 'gemini', reason: 'MALFORMED_FUNCTION_CALL', text: '' } as const
    harness.upstream.plan(plainJson(wholeOf(ending)))
    const request = requestOf('openai-chat', key, { model: modelOf('gemini'), stream: true })
    const events = eventsOfBody('openai-chat', String((await rawRequest(harness.url, request)).body))
    expect(reasonInStream('openai-chat', events)).toBe('length')
    await harness.idle()
    expect(harness.lastRecord()).toMatchObject({ rule: 'completed_empty', cost: COST })
  })

  test('may have no choice at all', async () => {
    const whole = { ...wholeOf({ field: 'openai-chat', reason: 'stop', text: '' }), choices: [] }
    for (const caller of ['openai-chat', 'anthropic-messages', 'gemini', 'openai-responses'] as const) {
      harness.upstream.plan(plainJson(whole))
      const request = requestOf(caller, key, { model: modelOf('openai-chat'), stream: false })
      expect([caller, (await rawRequest(harness.url, request)).status]).toEqual([caller, 200])
      await harness.idle()
      expect(harness.lastRecord()).toMatchObject({ rule: 'completed_empty', cost: COST })
    }
  })
})

describe('an empty answer that nobody bills', () => {
  const faults = [
    ['openai-chat', 'x_new'],
    ['anthropic-messages', 'x_new'],
    ['gemini', 'MALFORMED_FUNCTION_CALL'],
  ] as const
  const cells = faults.flatMap(([field, reason]) => [false, true].map(stream => [field, reason, stream] as const))

  /** A gateway of its own, because channels that failed are not asked for a while. */
  test.each(cells)(
    '%s %s (streamed: %p): is a failure, and other channels are tried',
    async (field, reason, stream) => {
      const { harness, key } = await start()
      const ending = { field, reason, text: '' }
      const [answer, whole] = [eventsOf(ending).map(unreported), unreported(wholeOf(ending))]
      const script = stream ? streamedJson(answer) : plainJson(whole)
      harness.upstream.plan(...Array.from({ length: CHANNELS }, () => script))
      const request = requestOf('openai-responses', key, { model: modelOf(field), stream })
      expect((await rawRequest(harness.url, request)).status).toBe(502)
      await harness.idle()
      expect(harness.lastRecord()).toMatchObject({ outcome: 'upstream_failed', rule: 'upstream_failed', cost: 0 })
      expect(harness.upstream.requests.length).toBe(CHANNELS)
      await harness.stop()
    },
  )

  test('is a failure, too, where the stream ends before a report', async () => {
    const { harness, key } = await start()
    const events = eventsOf({ field: 'openai-chat', reason: 'x_new', text: '' }).slice(0, -2)
    harness.upstream.plan(...Array.from({ length: CHANNELS }, () => streamedJson(events)))
    const request = requestOf('gemini', key, { model: modelOf('openai-chat'), stream: true })
    expect((await rawRequest(harness.url, request)).status).toBe(502)
    await harness.idle()
    expect(harness.lastRecord()).toMatchObject({ outcome: 'upstream_failed', cost: 0 })
    expect(harness.upstream.requests.length).toBe(CHANNELS)
    await harness.stop()
  })
})
