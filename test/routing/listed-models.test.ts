// Models that the provider file does not know, and whose price the provider's own list gives.

import { afterEach, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { jsonAnswer, plain } from '../../tools/fake-upstream/answers.ts'
import { script } from '../../tools/fake-upstream/script.ts'
import type { FakeUpstream } from '../../tools/fake-upstream/server.ts'
import { startFakeUpstream } from '../../tools/fake-upstream/server.ts'
import type { Harness } from '../support/gateway.ts'
import { chat, hello, startHarness } from '../support/gateway.ts'

const opened: { stop(): Promise<void> }[] = []
afterEach(async () => {
  for (const one of opened.splice(0).reverse()) await one.stop()
})

interface ListedRow {
  readonly id: string
  readonly pricing?: Record<string, string>
}

/** An aggregator whose list has these rows. */
async function startAggregator(rows: ListedRow[]): Promise<FakeUpstream> {
  const upstream = await startFakeUpstream()
  opened.push(upstream)
  upstream.decideBy((at, request) => {
    if (at !== 'request' || !request?.path.endsWith('/models')) return undefined
    return script(...jsonAnswer(200, JSON.stringify({ data: rows.map(row => ({ context_length: 8_000, ...row })) })))
  })
  return upstream
}

let aheadMs = 0

async function start(aggregator: FakeUpstream, folder?: string): Promise<Harness> {
  const harness = await startHarness({
    ...(folder !== undefined && { folder }),
    env: { OPENROUTER_API_KEY: 'sk-or', OPENROUTER_BASE_URL: `${aggregator.url}/v1` },
    world: { clock: { nowMs: () => performance.now() + aheadMs, dateMs: Date.now } },
  })
  opened.push(harness)
  return harness
}

const usage = { input: 7, output: 5 }

async function costOf(harness: Harness, aggregator: FakeUpstream, key: string, model: string): Promise<unknown> {
  aggregator.planModel(model.replace('openrouter/', ''), plain('hi', { usage }))
  const answer = await chat(harness, key, { model, messages: hello, max_tokens: 20 })
  if (answer.status !== 200) return answer.status
  await harness.idle()
  return harness.records().at(-1)!.cost
}

const row = (id: string, prompt: string, completion: string, more: Record<string, string> = {}): ListedRow => ({
  id,
  pricing: { prompt, completion, request: '0', image: '0', ...more },
})

test('a new model can be called at the price of the list, also by its bare name, and after a restart', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'weir-listed-'))
  const rows = [row('acme/river-1', '0.000001', '0.000002'), row('openai/gpt-99', '0.000003', '0.000004')]
  const aggregator = await startAggregator(rows)
  const first = await start(aggregator, folder)
  const key = await first.key()
  expect(await costOf(first, aggregator, key, 'openrouter/acme/river-1')).toBe(7 * 1_000 + 5 * 2_000)
  expect(aggregator.requests.some(({ path }) => path.endsWith('/models'))).toBe(true)
  aggregator.planModel('openai/gpt-99', plain('hi', { usage }))
  expect((await chat(first, key, { model: 'gpt-99', messages: hello, max_tokens: 20 })).status).toBe(200)
  expect(await (await fetch(`${first.url}/v1/models`)).text()).toContain('"id":"gpt-99"')

  // A price that has changed is noticed, and becomes a version.
  rows[0] = row('acme/river-1', '0.00001', '0.00002')
  aheadMs += 120_000
  expect(await costOf(first, aggregator, key, 'openrouter/acme/none')).toBe(404)
  expect(await costOf(first, aggregator, key, 'openrouter/acme/river-1')).toBe(7 * 10_000 + 5 * 20_000)
  const versions = await first.manage('GET', '/api/web/prices/history/openrouter/acme/river-1')
  expect(versions.data).toHaveLength(2)
  await opened.pop()!.stop()

  const second = await start(aggregator, folder)
  expect(await costOf(second, aggregator, key, 'openrouter/acme/river-1')).toBe(7 * 10_000 + 5 * 20_000)
  const same = await second.manage('GET', '/api/web/prices/history/openrouter/acme/river-1')
  expect(same.data).toHaveLength(2) // a restart alone makes no versions
  expect((await second.weir('audit')).findings).toEqual([])
  await opened.pop()!.stop()
  rmSync(folder, { recursive: true })
})

test('a price of the operator, and one of the provider file, come before that of the list', async () => {
  const aggregator = await startAggregator([
    row('acme/river-1', '0.000001', '0.000002'),
    row('openai/gpt-4o-mini', '0.1', '0.1'),
  ])
  const harness = await start(aggregator)
  const key = await harness.key()
  expect(await costOf(harness, aggregator, key, 'openrouter/acme/river-1')).toBe(7 * 1_000 + 5 * 2_000)
  await harness.weir('prices set', { model: 'openrouter/acme/river-1', price: '{"input":"5","output":"6"}' })
  expect(await costOf(harness, aggregator, key, 'openrouter/acme/river-1')).toBe(7 * 5_000 + 5 * 6_000)
  expect(await costOf(harness, aggregator, key, 'openrouter/openai/gpt-4o-mini')).toBe(7 * 150 + 5 * 600)
})

test.each([
  ['no price', { id: 'acme/x' }],
  ['a price of 0', row('acme/x', '0', '0')],
  ['a price that rounds to 0', row('acme/x', '1e-15', '1e-15')],
  ['half a price', row('acme/x', '0.000001', '')],
  ['a negative price', row('acme/x', '-1', '-1')],
  ['a price in words', row('acme/x', 'cheap', 'cheap')],
  ['a price of something else as well', row('acme/x', '0.000001', '0.000002', { per_video: '0.5' })],
])('a model with %s is not served', async (_, listed) => {
  const aggregator = await startAggregator([listed])
  const harness = await start(aggregator)
  expect(await costOf(harness, aggregator, await harness.key(), 'openrouter/acme/x')).toBe(404)
})

test('a list that is broken or endless leaves everything as it was', async () => {
  const aggregator = await startFakeUpstream()
  opened.push(aggregator)
  aggregator.decideBy((at, request) =>
    at === 'request' && request?.path.endsWith('/models') ? script(...jsonAnswer(200, '{"data": 7}')) : undefined,
  )
  const harness = await start(aggregator)
  const key = await harness.key()
  for (let calls = 0; calls < 3; calls++) {
    expect(await costOf(harness, aggregator, key, 'openrouter/acme/x')).toBe(404)
  }
  // Asked once for all of them.
  expect(aggregator.requests.filter(({ path }) => path.endsWith('/models'))).toHaveLength(1)
})
