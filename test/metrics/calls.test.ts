// What the metrics count for calls: each call once, in the right series, and without anything that a caller wrote.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { join } from 'node:path'
import { bounds } from '../../src/base/bounds.ts'
import { fail, jsonAnswer, plain, streamed } from '../../tools/fake-upstream/answers.ts'
import { script } from '../../tools/fake-upstream/script.ts'
import { after as whenOpen } from '../forwarding/wire.ts'
import { openDatabase } from '../support/database.ts'
import type { Harness } from '../support/gateway.ts'
import { chat, hello, startHarness, until, upstreamKey } from '../support/gateway.ts'
import type { Exposed, Sample } from './exposition.ts'
import { readExposition, valueOf } from './exposition.ts'

const MODEL = 'openai/gpt-4o-mini'
const labels = { provider: 'openai', model: 'gpt-4o-mini' }
const CANARY = 'canary-words-of-a-caller'

let harness: Harness
let url: string
let key: string

const metricsUrl = (logs: readonly string[]): string =>
  /http:\S+\/metrics/.exec(logs.find(line => line.includes('"metrics"'))!)![0]

beforeAll(async () => {
  harness = await startHarness({
    env: { METRICS_PORT: '0', WEIR_ATTEMPTS: '2' },
    upstreamEnv: upstream => ({ OLLAMA_BASE_URL: `${upstream}/v1` }),
    upstreamKeys: `${upstreamKey},${upstreamKey}-2`,
    world: { ledgerMs: bounds.settleMsMax },
  })
  url = metricsUrl(harness.logs)
  key = await harness.key({ qpm: 10_000 })
})
afterAll(() => harness.stop())

async function scrape(): Promise<readonly Exposed[]> {
  await harness.idle()
  return readExposition(await (await fetch(url)).text())
}

/** By how much a series grows while the function runs. */
async function growth(name: string, of: Sample['labels'], run: () => Promise<unknown>): Promise<number> {
  const before = valueOf(await scrape(), name, of) ?? 0
  await run()
  return (valueOf(await scrape(), name, of) ?? 0) - before
}

const call = (more: object = {}, headers: Record<string, string> = {}, by = key): Promise<Response> =>
  chat(harness, by, { model: MODEL, messages: hello, ...more }, headers)

test('a plain answer counts one request, its duration, its tokens and its cost', async () => {
  const before = await scrape()
  harness.upstream.plan(plain('Hello', { usage: { input: 11, output: 7 } }))
  expect((await call()).status).toBe(200)
  const after = await scrape()
  const increase = (name: string, of: Sample['labels']): number =>
    (valueOf(after, name, of) ?? 0) - (valueOf(before, name, of) ?? 0)
  const completed = { dialect: 'openai-chat', status: '200', outcome: 'completed' }
  expect(increase('weir_requests_total', { ...labels, ...completed })).toBe(1)
  expect(increase('weir_request_duration_seconds_count', labels)).toBe(1)
  expect(increase('weir_time_to_first_token_seconds_count', labels)).toBe(0)
  expect(increase('weir_added_latency_seconds_count', {})).toBe(1)
  expect(increase('weir_tokens_total', { ...labels, kind: 'input' })).toBe(11)
  expect(increase('weir_tokens_total', { ...labels, kind: 'output' })).toBe(7)
  expect(increase('weir_calls_total', { outcome: 'completed' })).toBe(1)
  expect(increase('weir_attempts_total', { verdict: 'answered' })).toBe(1)
  const charged = harness.lastRecord()!
  const { data } = await harness.weir('statement', { account: key })
  const [{ amount }] = data as [{ amount: string }]
  expect(charged.outcome).toBe('completed')
  expect(increase('weir_cost_usd_total', labels)).toBeCloseTo(Math.abs(Number(amount)), 9)
  expect(increase('weir_errors_total', {})).toBe(0)
})

test('a stream has a time to the first token', async () => {
  const counted = await growth('weir_time_to_first_token_seconds_count', labels, async () => {
    harness.upstream.plan(streamed(['Hel', 'lo']))
    await (await call({ stream: true })).text()
  })
  expect(counted).toBe(1)
})

const strict = { 'x-weir-translate': 'strict' }

const refusals: Record<string, readonly [stage: string, code: string, ask: () => Promise<Response>]> = {
  'no key': ['auth', 'key_missing', () => fetch(`${harness.url}/v1/chat/completions`, { method: 'POST', body: '{}' })],
  'a wrong key': ['auth', 'key_invalid', () => call({}, {}, `wk-${CANARY}`)],
  'a wrong key elsewhere': [...(['auth', 'key_missing'] as const), () => fetch(`${harness.url}/v1/responses/resp_x`)],
  'no such path': [
    ...(['server', 'path_unknown'] as const),
    () => fetch(`${harness.url}/v1/${CANARY}`, { headers: { authorization: `Bearer ${key}` } }),
  ],
  'no JSON': ['read', 'json_invalid', () => chat(harness, key, `{"model": ${CANARY}`)],
  'no name of a model': ['read', 'model_malformed', () => call({ model: `${CANARY}/` })],
  'too many': [
    ...(['rate_limit', 'qpm_exceeded'] as const),
    async () => {
      const slow = await harness.key({ qpm: 1 })
      await call({}, {}, slow)
      return await call({}, {}, slow)
    },
  ],
  'no such model': ['route', 'model_unknown', () => call({ model: `openai/${CANARY}` })],
  'no money': ['hold', 'balance_too_low', async () => call({}, {}, await harness.key({ credit: '0' }))],
  'what cannot be said there': [
    ...(['adapter', 'translation_loses'] as const),
    () =>
      fetch(`${harness.url}/v1/messages`, {
        method: 'POST',
        headers: { 'x-api-key': key, 'content-type': 'application/json', ...strict },
        body: JSON.stringify({ model: MODEL, max_tokens: 9, messages: hello, top_k: 3 }),
      }),
  ],
  'an upstream that fails': [
    ...(['forward', 'upstream_unusable'] as const),
    () => {
      for (let times = 0; times < 2; times++) harness.upstream.plan(fail(500))
      return call()
    },
  ],
  'an upstream that refuses': [
    ...(['forward', 'upstream_refused'] as const),
    () => {
      harness.upstream.plan(fail(400))
      return call()
    },
  ],
}

test.each(Object.entries(refusals))('a refusal counts once, at its stage: %s', async (_, [stage, code, run]) => {
  const before = await scrape()
  const answer = await run()
  expect(answer.status).toBeGreaterThanOrEqual(400)
  await answer.text()
  const after = await scrape()
  const increase = (of: Sample['labels']): number =>
    (valueOf(after, 'weir_errors_total', of) ?? 0) - (valueOf(before, 'weir_errors_total', of) ?? 0)
  expect([increase({ stage, code }), increase({})]).toEqual([1, 1])
})

test('attempts are counted by channel and verdict, and those after the first as retries', async () => {
  const before = await scrape()
  harness.upstream.plan(fail(500))
  expect((await call()).status).toBe(200)
  const after = await scrape()
  const increase = (name: string, of: Sample['labels'] = {}): number =>
    (valueOf(after, name, of) ?? 0) - (valueOf(before, name, of) ?? 0)
  expect(increase('weir_retries_total')).toBe(1)
  expect([increase('weir_attempts_total', { verdict: 'broken' }), increase('weir_attempts_total')]).toEqual([1, 2])
  expect(after.find(({ name }) => name === 'weir_channel_in_flight')!.samples.length).toBeGreaterThan(2)
})

test('an open circuit breaker shows in the metrics', async () => {
  const shut = (families: readonly Exposed[]): number => {
    const { samples } = families.find(({ name }) => name === 'weir_channel_breaker_state')!
    return samples.filter(({ value }) => value === 2).length
  }
  let families = await scrape()
  expect(shut(families)).toBe(0)
  harness.upstream.planModel('gpt-4o-mini', fail(500))
  // It is open for a second at first, and longer after each further failure. What was read is judged: it may be closed now.
  for (let times = 0; times < 20 && shut(families) === 0; times++) {
    await (await call()).text()
    families = await scrape()
  }
  expect(shut(families)).toBeGreaterThan(0)
  expect(valueOf(families, 'weir_channel_unavailable', { reason: 'broken' })).toBeGreaterThan(0)
  harness.upstream.planModel('gpt-4o-mini', undefined)
})

test('models that callers make up are one series, and a dry run is in none', async () => {
  const before = await scrape()
  for (let at = 0; at < 5; at++) expect((await call({ model: `ollama/${CANARY}-${at}` })).status).toBe(200)
  const explaining = (await harness.weir('keys create', { tier: 'pro', explain: 'on' })).key as string
  await (await call({ model: 'ollama/x' }, { 'x-weir-explain': 'dry' }, explaining)).text()
  const after = await scrape()
  const madeUp = { provider: 'ollama', model: 'other' }
  expect(valueOf(after, 'weir_requests_total', madeUp)).toBe(5)
  expect(valueOf(after, 'weir_requests_total')! - valueOf(before, 'weir_requests_total')!).toBe(5)
})

test('a call that cannot be settled is an error of that stage, without a cost', async () => {
  const before = await scrape()
  const locked = Promise.withResolvers<void>()
  harness.upstream.plan(whenOpen(locked.promise, plain('hi', { usage: { input: 7, output: 5 } })))
  const received = harness.upstream.nextRequest()
  const answer = call({}, {}, await harness.key({ credit: '1' }))
  await received
  const db = openDatabase(join(harness.folder, 'weir.db'))
  db.run('BEGIN IMMEDIATE')
  locked.resolve()
  expect((await answer).status).toBe(500)
  db.close()
  await until(() => harness.openHolds() === 0, 'the hold is released')
  const scraped = await scrape()
  const increase = (name: string, of: Sample['labels']): number =>
    (valueOf(scraped, name, of) ?? 0) - (valueOf(before, name, of) ?? 0)
  expect(increase('weir_errors_total', { stage: 'settle', code: 'settle_failed' })).toBe(1)
  expect(increase('weir_requests_total', { status: '500', outcome: 'gateway_fault' })).toBe(1)
  expect([increase('weir_cost_usd_total', {}), increase('weir_tokens_total', {})]).toEqual([0, 0])
})

test('a name that the operator configured is a series of its own', async () => {
  await harness.weir('routes set', { name: 'house', members: ['ollama/named'] })
  expect((await call({ model: 'house' })).status).toBe(200)
  expect(valueOf(await scrape(), 'weir_requests_total', { provider: 'ollama', model: 'named' })).toBe(1)
})

test('nothing of a caller, a key or an account is in the metrics, and both formats can be read', async () => {
  const text = await (await fetch(url)).text()
  expect(text).not.toMatch(/wk-|(key|acc|req)_[0-9a-z]{11}|sk-canary/)
  expect(text).not.toContain(CANARY)
  const open = await fetch(url, { headers: { accept: 'application/openmetrics-text;version=1.0.0,text/plain;q=0.5' } })
  expect(open.headers.get('content-type')).toBe('application/openmetrics-text; version=1.0.0; charset=utf-8')
  const families = readExposition(await open.text(), 'openmetrics')
  expect(valueOf(families, 'weir_build_info')).toBe(1)
})

/** An answer of openai-chat with this usage report, or a stream of it. */
function reports(usage: object) {
  const choices = [{ index: 0, message: { role: 'assistant', content: CANARY }, finish_reason: 'stop' }]
  const body = { id: 'x', object: 'chat.completion', created: 1, model: 'm', choices, usage }
  return script(...jsonAnswer(200, JSON.stringify(body)))
}

test('a rejected usage report is counted, and logged with its names and numbers alone', async () => {
  const odd = { prompt_tokens: 10, completion_tokens: 4, total_tokens: 3, note: CANARY, [`${CANARY} `]: 1 }
  const increaseOf = growth('weir_usage_rejected_total', { ...labels, reason: 'adds_up_to_nothing' }, async () => {
    harness.upstream.plan(reports(odd))
    expect((await call()).status).toBe(200)
  })
  expect(await increaseOf).toBe(1)
  const lines = harness.logs.filter(line => line.includes('the usage report of an upstream is implausible'))
  expect(lines).toHaveLength(1)
  const { level, provider, why, shape } = JSON.parse(lines[0]!) as Record<string, string>
  expect([level, provider, why]).toEqual(['warn', 'openai', 'adds_up_to_nothing'])
  expect(JSON.parse(shape!)).toEqual({
    prompt_tokens: 10,
    completion_tokens: 4,
    total_tokens: 3,
    note: 'a text',
    '?': 1,
  })
  expect(lines[0]).not.toContain(CANARY)
})

test('a usage report that is far above all that a call can use is rejected', async () => {
  const most = 10 * 32_768
  const believed = { prompt_tokens: most, completion_tokens: most, total_tokens: 2 * most }
  for (const [usage, rejected] of [
    [believed, 0],
    [{ ...believed, prompt_tokens: most + 1, total_tokens: 2 * most + 1 }, 1],
    [{ ...believed, completion_tokens: most + 1, total_tokens: 2 * most + 1 }, 1],
    [{ prompt_tokens: 1, completion_tokens: 1, num_search_queries: 1_001 }, 1],
  ] as const) {
    const increaseOf = growth('weir_usage_rejected_total', { ...labels, reason: 'far_too_much' }, async () => {
      harness.upstream.plan(reports(usage))
      expect((await call()).status).toBe(200)
    })
    expect(await increaseOf).toBe(rejected)
    expect(harness.lastRecord()!.usage_source).toBe(rejected === 0 ? 'reported' : 'estimated')
  }
})

test('a usage report that adds up as a vendor documents it is billed as it is, and not counted', async () => {
  const details = { cached_tokens: 1_000, cache_write_tokens: 4_000 }
  const usage = { prompt_tokens: 1_200, completion_tokens: 50, total_tokens: 1_250, prompt_tokens_details: details }
  const increaseOf = growth('weir_usage_rejected_total', { ...labels, reason: 'adds_up_to_nothing' }, async () => {
    harness.upstream.plan(reports(usage))
    expect((await call()).status).toBe(200)
  })
  expect(await increaseOf).toBe(0)
  const row = harness.lastRecord()!
  expect(row).toMatchObject({ usage_source: 'reported', input_tokens: 5_200, cache_read_tokens: 1_000 })
  // 200 and 4,000 at $0.15, 1,000 at $0.075, 50 at $0.60 per million.
  expect(row.cost).toBe(4_200 * 150 + 1_000 * 75 + 50 * 600)
})
