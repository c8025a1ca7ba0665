// Models that the provider file does not know, and whose price the provider's own list gives.

import { afterEach, describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { bounds } from '../../src/base/bounds.ts'
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

/** The clock stands still: a list that takes long on a busy machine is not given up, and is not read again too soon. */
let nowMs = 0

async function start(aggregator: FakeUpstream, folder?: string): Promise<Harness> {
  const harness = await startHarness({
    ...(folder !== undefined && { folder }),
    env: { OPENROUTER_API_KEY: 'sk-or', OPENROUTER_BASE_URL: `${aggregator.url}/v1` },
    world: { clock: { nowMs: () => nowMs, dateMs: Date.now } },
  })
  opened.push(harness)
  return harness
}

const usage = { input: 7, output: 5 }

async function costOf(harness: Harness, aggregator: FakeUpstream, key: string, model: string): Promise<unknown> {
  aggregator.planModel(model.replace('openrouter/', ''), plain('hi', { usage }))
  const answer = await chat(harness, key, { model, messages: hello, max_tokens: 20 })
  if (answer.status === 503) return ((await answer.json()) as { error: { message: string } }).error.message
  if (answer.status !== 200) return answer.status
  await harness.idle()
  return harness.lastRecord()!.cost
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
  nowMs += 120_000
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
  rmSync(folder, { recursive: true, force: true })
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
  ['half a price', row('acme/x', '0.000001', '')],
  ['a negative price', row('acme/x', '-1', '-1')],
  ['a price in words', row('acme/x', 'cheap', 'cheap')],
])('a model with %s is not served', async (_, listed) => {
  const aggregator = await startAggregator([listed])
  const harness = await start(aggregator)
  expect(await costOf(harness, aggregator, await harness.key(), 'openrouter/acme/x')).toBe(404)
})

test('every price of the list is billed, and none is rounded to 0', async () => {
  const aggregator = await startAggregator([
    row('acme/fee', '0.000001', '0.000002', { request: '0.005' }),
    row('acme/tiny', '1e-15', '0.0000000000000000001'),
    row('acme/thought', '0.000001', '0.000002', { internal_reasoning: '0.00001', web_search: '0.01', discount: '0' }),
  ])
  const harness = await start(aggregator)
  const key = await harness.key()
  expect(await costOf(harness, aggregator, key, 'openrouter/acme/fee')).toBe(5_000_000 + 7 * 1_000 + 5 * 2_000)
  expect(await costOf(harness, aggregator, key, 'openrouter/acme/tiny')).toBeGreaterThan(0)
  expect(await costOf(harness, aggregator, key, 'openrouter/acme/thought')).toBe(7 * 1_000 + 5 * 2_000)
  const { price } = await harness.manage('GET', '/api/web/prices/openrouter/acme/thought')
  expect(price).toMatchObject({ reasoning: '10.00', perSearch: '0.01' })
  expect(await harness.manage('GET', '/api/web/prices/openrouter/acme/tiny')).toMatchObject({
    price: { input: '0.000000001', output: '0.000000001' },
  })
})

test('a model with a price for what is kept in a cache for an hour is served at that price', async () => {
  const writes = { input_cache_read: '0.0000001', input_cache_write: '0.00000125', input_cache_write_1h: '0.000002' }
  const aggregator = await startAggregator([row('acme/x', '0.000001', '0.000005', writes)])
  const harness = await start(aggregator)
  expect(await costOf(harness, aggregator, await harness.key(), 'openrouter/acme/x')).toBe(7 * 1_000 + 5 * 5_000)
  const { price } = await harness.manage('GET', '/api/web/prices/openrouter/acme/x')
  expect(price).toMatchObject({ cacheRead: '0.10', cacheWrite: '1.25', cacheWrite1h: '2.00' })
})

test.each([{ image: '0.0048' }, { per_video: '0.5' }, { audio: 'much' }, { overrides: [{ prompt: '1' }] }])(
  'a model that also costs %o needs a price of the operator',
  async more => {
    const listed = row('acme/x', '0.000001', '0.000002', more as Record<string, string>)
    const aggregator = await startAggregator([listed])
    const harness = await start(aggregator)
    const key = await harness.key()
    const refused = await costOf(harness, aggregator, key, 'openrouter/acme/x')
    expect(refused).toMatch(
      /^The price of this model is not known.* more than the gateway can bill \(\w+\)\..*operator/,
    )
    expect(await (await fetch(`${harness.url}/v1/models`)).text()).not.toContain('acme/x')
    await harness.weir('prices set', { model: 'openrouter/*', price: '{"input":"5","output":"6"}' })
    expect(await costOf(harness, aggregator, key, 'openrouter/acme/x')).toBe(7 * 5_000 + 5 * 6_000)
  },
)

describe('variants', () => {
  const pattern = { model: 'openrouter/*', price: '{"input":"5","output":"6"}' }

  test('are not sold at the price of a pattern that does not name them', async () => {
    const aggregator = await startAggregator([row('acme/river-1:thinking', '0.00001', '0.00002')])
    const harness = await start(aggregator)
    const key = await harness.key()
    const cost = (model: string): Promise<unknown> => costOf(harness, aggregator, key, `openrouter/${model}`)
    const hint = (end: string): RegExp => new RegExp(`^The price of this model.*variant of .*openrouter/\\*${end}\\.$`)
    expect(await cost('openai/gpt-5:online')).toMatch(hint(':online')) // no pattern: that of a model in the file
    await harness.weir('prices set', pattern)
    expect(await cost('acme/new')).toBe(7 * 5_000 + 5 * 6_000)
    for (const end of [':online', ':nitro', ':exacto', ':free', ':something-new']) {
      expect(await cost(`acme/new${end}`)).toMatch(hint(end))
    }
    expect(await cost('acme/nova-v1:0')).toBe(7 * 5_000 + 5 * 6_000) // a version
    await harness.weir('prices set', { model: 'openrouter/*:online', price: '{"input":"7","output":"8"}' })
    expect(await cost('acme/new:online')).toBe(7 * 7_000 + 5 * 8_000)
    expect(await cost('acme/new:nitro')).toMatch(hint(':nitro'))
    // One with a row of its own in the list has the price of its row.
    nowMs += 120_000
    expect(await cost('acme/river-1:thinking')).toBe(7 * 10_000 + 5 * 20_000)
  })

  test('are denied and limited with their model', async () => {
    const aggregator = await startAggregator([])
    const harness = await start(aggregator)
    await harness.weir('prices set', { ...pattern, model: 'openrouter/*:*' })
    const key = await harness.key()
    await harness.weir('keys set', { key, deny: 'gpt-5' })
    expect(await costOf(harness, aggregator, key, 'openrouter/openai/gpt-5:nitro')).toBe(403)
    const limited = await harness.key()
    await harness.weir('limits set', { resource: 'requests', amount: '1/minute', key: limited, model: 'gpt-5' })
    expect(await costOf(harness, aggregator, limited, 'openrouter/openai/gpt-5:nitro')).toBeGreaterThan(0)
    expect(await costOf(harness, aggregator, limited, 'openrouter/openai/gpt-5:floor')).toBe(429)
    const allowed = await harness.key()
    await harness.weir('keys set', { key: allowed, allow: 'gpt-5' })
    expect(await costOf(harness, aggregator, allowed, 'openrouter/openai/gpt-5:nitro')).toBe(403)
  })

  test('and models that are not listed have no other rules and no other price in another spelling', async () => {
    const aggregator = await startAggregator([])
    const harness = await start(aggregator)
    await harness.weir('prices set', pattern)
    await harness.weir('prices set', { ...pattern, model: 'openrouter/*:*' })
    await harness.weir('prices set', { ...pattern, model: 'openrouter/*@preset/*' })
    await harness.weir('prices set', { model: 'openrouter/openai/gpt-5:nitro', price: '{"input":"70","output":"80"}' })
    const key = await harness.key()
    const cost = (model: string): Promise<unknown> => costOf(harness, aggregator, key, `openrouter/${model}`)
    for (const id of ['OpenAI/gpt-5:nitro', 'models/openai/gpt-5:nitro']) {
      aggregator.planModel('openai/gpt-5:nitro', plain('hi', { usage }))
      expect([id, await cost(id)]).toEqual([id, 7 * 70_000 + 5 * 80_000])
    }
    expect(await cost('openai/gpt-5@preset/x')).toBe(7 * 5_000 + 5 * 6_000)
    await harness.weir('prices withdraw', { model: 'openrouter/*@preset/*' })
    for (const id of ['openai/gpt-5@preset/x', '@preset/x']) expect(await cost(id)).toMatch('may cost more')
    await harness.weir('keys set', { key, deny: 'gpt-5,gpt-5.9' })
    for (const id of [
      'OpenAI/gpt-5',
      'OpenAI/gpt-5:nitro',
      'openai/gpt-5@preset/x',
      'openai/GPT_5:nitro@preset/x',
      'openai/gpt-5:',
      'models/openai/gpt-5',
      'OpenAI/gpt-5.9',
      'openAI/GPT-5_9:free',
    ]) {
      expect([id, await cost(id)]).toEqual([id, 403])
    }
  })
})

describe('the history of prices', () => {
  /** Makes the gateway read the list again. */
  async function readAgain(harness: Harness, aggregator: FakeUpstream, key: string): Promise<void> {
    nowMs += 120_000
    expect(await costOf(harness, aggregator, key, 'openrouter/acme/none')).toBe(404)
  }

  const versionsOf = async (harness: Harness, model: string): Promise<number> => {
    const { data } = await harness.manage('GET', `/api/web/prices/history/${model}?limit=100`)
    return (data as unknown[]).length
  }

  test('has a price once, however often a list comes back to it', async () => {
    const rows = [row('acme/river-1', '0.000001', '0.000002')]
    const aggregator = await startAggregator(rows)
    const harness = await start(aggregator)
    const key = await harness.key()
    const prices = ['0.000001', '0.000003']
    for (let turn = 0; turn < 6; turn++) {
      const prompt = prices[turn % 2]!
      rows[0] = row('acme/river-1', prompt, '0.000002')
      await readAgain(harness, aggregator, key)
      const cost = 7 * Math.round(Number(prompt) * 1e9) + 5 * 2_000
      expect(await costOf(harness, aggregator, key, 'openrouter/acme/river-1')).toBe(cost)
      const shown = await harness.manage('GET', '/api/web/prices/openrouter/acme/river-1')
      expect(shown).toMatchObject({ inUse: true, price: { input: `${Math.round(Number(prompt) * 1e6)}.00` } })
    }
    expect(await versionsOf(harness, 'openrouter/acme/river-1')).toBe(2)
    expect((await harness.weir('audit')).findings).toEqual([])
  })

  test('does not grow without end, even if each list has another price', async () => {
    const rows = [row('acme/river-1', '0.000001', '0.000002')]
    const aggregator = await startAggregator(rows)
    const harness = await start(aggregator)
    const key = await harness.key()
    for (let turn = 0; turn < bounds.listedPricesOfModelMax + 2; turn++) {
      rows[0] = row('acme/river-1', `0.0000${1_000 + turn}`, '0.000002')
      await readAgain(harness, aggregator, key)
    }
    expect(await versionsOf(harness, 'openrouter/acme/river-1')).toBe(bounds.listedPricesOfModelMax)
    expect(await costOf(harness, aggregator, key, 'openrouter/acme/river-1')).toMatch(/too many different prices/)
    await harness.weir('prices set', { model: 'openrouter/acme/*', price: '{"input":"5","output":"6"}' })
    expect(await costOf(harness, aggregator, key, 'openrouter/acme/river-1')).toBe(7 * 5_000 + 5 * 6_000)
  })

  test('leaves no model without a price when a price is withdrawn, by the list or by the operator', async () => {
    const rows = [row('acme/river-1', '0.000001', '0.000002')]
    const aggregator = await startAggregator(rows)
    const harness = await start(aggregator)
    const key = await harness.key()
    const [model, listed] = ['openrouter/acme/river-1', 7 * 1_000 + 5 * 2_000]
    const own = { model, price: '{"input":"5","output":"6"}' }
    await harness.weir('prices set', own)
    await readAgain(harness, aggregator, key) // while the operator's price counts
    expect(await costOf(harness, aggregator, key, model)).toBe(7 * 5_000 + 5 * 6_000)
    await harness.weir('prices withdraw', { model })
    expect(await costOf(harness, aggregator, key, model)).toBe(listed)
    await harness.weir('prices set', { ...own, model: 'openrouter/*' })
    expect(await costOf(harness, aggregator, key, model)).toBe(listed)
    rows.splice(0, 1, row('acme/other', '0.000001', '0.000002'))
    nowMs += 120_000
    await harness.weir('prices withdraw', { model: 'openrouter/*' })
    expect(await costOf(harness, aggregator, key, 'openrouter/acme/none')).toBe(404)
    expect(await costOf(harness, aggregator, key, model)).toBe(404) // gone from the list
    await harness.weir('prices set', { ...own, model: 'openrouter/*' })
    expect(await costOf(harness, aggregator, key, model)).toBe(7 * 5_000 + 5 * 6_000)
    expect(await costOf(harness, aggregator, key, 'openrouter/openai/gpt-4o-mini')).toBe(7 * 150 + 5 * 600)
    expect((await harness.weir('audit')).findings).toEqual([])
  })

  test('has the price of the provider file where the file begins to list the model', async () => {
    const rows = [row('acme/river-1', '0.000001', '0.000002')]
    const aggregator = await startAggregator(rows)
    const harness = await start(aggregator)
    const key = await harness.key()
    const model = 'openrouter/acme/river-1'
    expect(await costOf(harness, aggregator, key, model)).toBe(7 * 1_000 + 5 * 2_000)
    const { definition } = await harness.manage('GET', '/api/web/providers/openrouter')
    const file = (typeof definition === 'string' ? JSON.parse(definition) : definition) as { models: object[] }
    const models = [...file.models, { id: 'acme/river-1', price: { input: '9', output: '9' } }]
    await harness.manage('POST', '/api/web/providers', { definition: { ...file, models } })
    expect(await costOf(harness, aggregator, key, model)).toBe(12 * 9_000)
    const before = await versionsOf(harness, model)
    for (const prompt of ['0.000003', '0.000004']) {
      rows.splice(0, 2, row('acme/river-1', prompt, '0.000002'), row('acme/other', prompt, '0.000002'))
      await readAgain(harness, aggregator, key)
      expect(await costOf(harness, aggregator, key, model)).toBe(12 * 9_000)
    }
    expect(await versionsOf(harness, model)).toBe(before)
    expect((await harness.weir('audit')).findings).toEqual([])
  })
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
