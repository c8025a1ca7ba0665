// The shipped prices, compared with what the vendors publish: each kind of price once, in full, and rules for all.

import { expect, test } from 'bun:test'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { handPrices } from '../../scripts/providers/hand.ts'
import { PRICES_AS_OF } from '../../scripts/providers/prices.ts'
import { formatUsd } from '../../src/base/money/money.ts'
import type { Usage } from '../../src/base/money/usage.ts'
import { computeBill } from '../../src/billing/price.ts'
import { printPriceCheck } from '../../src/cli/checks/prices.ts'
import { loadPriceData } from '../../src/management/prices/public-sources.ts'
import type { Provider } from '../../src/upstreams/provider.ts'
import { parseProvider } from '../../src/upstreams/provider.ts'

const folder = join(import.meta.dir, '..', '..', 'providers')

const files = readdirSync(folder).map(name => ({ name, text: readFileSync(join(folder, name), 'utf8') }))
const providers: readonly Provider[] = files.map(({ name, text }) => parseProvider(text, name))

interface Written {
  readonly id: string
  readonly price?: Readonly<Record<string, unknown>>
}

const written = (provider: string): readonly Written[] =>
  (JSON.parse(files.find(({ name }) => name === `${provider}.json`)!.text) as { models: Written[] }).models

const priceInFile = (provider: string, model: string): unknown =>
  written(provider).find(({ id }) => id === model)?.price

interface Call {
  readonly at?: string
  readonly serviceClass?: string
}

function cost(path: string, usage: Usage, { at = `${PRICES_AS_OF}T12:00Z`, serviceClass }: Call = {}): string {
  const [provider = '', ...model] = path.split('/')
  const price = providers.find(({ id }) => id === provider)?.models.get(model.join('/'))?.price
  if (price === undefined) throw new Error(`${path} has no price`)
  return formatUsd(
    computeBill(usage, { price, version: 1, perMille: 1000n, serviceClass, atMs: Date.parse(at) }).amount,
  )
}

/** Whether calls of the dialect are not chats. */
const isSide = (dialect: string): boolean =>
  /-(completions|embeddings|embed|images|image-edits|speech|transcription|moderations)$/.test(dialect)

test('gpt-5.4 costs twice as much from 272,000 input tokens on, cached ones included', () => {
  expect(priceInFile('openai', 'gpt-5.4')).toEqual({
    input: '2.50',
    output: '15.00',
    cacheRead: '0.25',
    perSearch: '0.01',
    perFileSearch: '0.0025',
    perCodeSession: '0.03',
    included: ['web_search_preview'],
    cases: [
      { inputAbove: 271_999, input: '5.00', output: '22.50', cacheRead: '0.50' },
      { class: 'priority', input: '5.00', output: '30.00', cacheRead: '0.50' },
      { class: 'flex', input: '1.25', output: '7.50', cacheRead: '0.125' },
      { class: 'flex', inputAbove: 271_999, input: '2.50', output: '11.25', cacheRead: '0.25' },
    ],
  })
  expect(cost('openai/gpt-5.4', { input: 271_999, output: 1000 })).toBe('0.6949975')
  expect(cost('openai/gpt-5.4', { input: 272_000, output: 1000 })).toBe('1.3825')
  expect(cost('openai/gpt-5.4', { input: 72_000, cacheRead: 200_000, output: 0 })).toBe('0.46')
})

test('a service tier has its own price, and a search its fee', () => {
  const usage = { input: 1_000_000, output: 0 }
  expect(cost('openai/gpt-5.4', usage, { serviceClass: 'flex' })).toBe('2.50')
  expect(cost('openai/gpt-5.4', usage, { serviceClass: 'priority' })).toBe('5.00')
  expect(cost('openai/gpt-5', { ...usage, searches: 3 })).toBe('1.28')
})

test('a Claude model has both kinds of cache writes, and prices for long prompts', () => {
  const path = 'openrouter/anthropic/claude-sonnet-4.5'
  expect(cost(path, { input: 0, cacheWrite: 100_000, output: 0 })).toBe('0.375')
  expect(cost(path, { input: 0, cacheWrite1h: 100_000, output: 0 })).toBe('0.60')
  expect(cost(path, { input: 0, cacheWrite: 100_000, cacheWrite1h: 100_001, output: 0 })).toBe('1.950012')
})

test('Claude is priced by its vendor, its region and the kind of cache write', () => {
  const usage = { input: 1_000_000, cacheRead: 1_000_000, cacheWrite: 1_000_000, cacheWrite1h: 1_000_000, output: 0 }
  expect(cost('anthropic/claude-opus-5-5', usage)).toBe('17.20')
  expect(cost('bedrock/global.anthropic.claude-opus-5-5', usage)).toBe('17.20')
  expect(cost('bedrock/us.anthropic.claude-opus-5-5', usage)).toBe('18.92')
  // The data has no rate for an hour in the cache here.
  expect(cost('bedrock/us.anthropic.claude-opus-4-8', { ...usage, output: 1_000_000 })).toBe('51.425')
  expect(cost('vertex-anthropic/claude-opus-4-8', { input: 0, cacheWrite1h: 1_000_000, output: 0 })).toBe('10.00')
  expect(cost('anthropic/claude-sonnet-4-5', { input: 200_001, output: 0 })).toBe('1.200006')
  expect(cost('anthropic/claude-sonnet-5', { input: 0, output: 0, searches: 2 })).toBe('0.02')
  expect(cost('vertex/gemini-2.5-pro', { input: 200_001, output: 0 })).toBe('0.5000025')
  expect(written('azure')).toEqual([])
})

test('DeepSeek is more expensive in two periods of the day', () => {
  const usage = { input: 1_000_000, cacheRead: 1_000_000, output: 1_000_000 }
  const at = (time: string): string => cost('deepseek/deepseek-flash', usage, { at: `${PRICES_AS_OF}T${time}Z` })
  expect(['00:59', '04:00', '05:59', '10:00'].map(at)).toEqual(Array.from({ length: 4 }, () => '0.753'))
  expect(['01:00', '03:59', '06:00', '09:59'].map(at)).toEqual(Array.from({ length: 4 }, () => '1.506'))
})

test('an announced price applies from its day on', () => {
  const usage = { input: 1_000_000, output: 0 }
  expect(cost('google/gemini-3.8-flash', usage, { at: '2026-12-31T23:59Z' })).toBe('0.75')
  expect(cost('google/gemini-3.8-flash', usage, { at: '2027-01-01T00:00Z' })).toBe('1.50')
})

test('a price in yuan is converted at its pinned rate and rounded up', () => {
  expect(priceInFile('ark', 'doubao-seed-2-0-pro-260215')).toMatchObject({
    input: '3.2',
    output: '16',
    cacheRead: '0.64',
    currency: { code: 'CNY', unitsPerUsd: '6.60' },
    cases: [
      { inputAbove: 32_000, input: '4.8', output: '24', cacheRead: '0.96' },
      { inputAbove: 128_000, input: '9.6', output: '48', cacheRead: '1.92' },
    ],
    source: expect.stringContaining('volcengine.com/docs/82379/1544106'),
  })
  // A thousandth of 3.2 yuan at 6.60 is 0.000484848… dollars.
  expect(cost('ark/doubao-seed-2-0-pro-260215', { input: 1000, output: 0 })).toBe('0.000484849')
  const models = providers.flatMap(provider => [...provider.models.values()])
  const currencies = models.flatMap(({ price }) => price?.currency ?? [])
  expect(new Set(currencies.map(currency => JSON.stringify(currency))).size).toBe(1)
})

test('a request can have a fee, and audio a rate of its own', () => {
  expect(cost('perplexity/sonar', { input: 1000, output: 1000 })).toBe('0.014')
  expect(cost('google/gemini-2.5-flash', { input: 0, inputAudio: 1_000_000, output: 0 })).toBe('1.00')
  expect(cost('openai/gpt-audio', { input: 0, output: 0, outputAudio: 1000 })).toBe('0.064')
})

test("a replaced price is gone, an aggregator has the tiers of the model's maker, and an unnamed kind has the price of its neighbour", () => {
  expect(cost('openai/o3', { input: 1_000_000, output: 0 })).toBe('2.00')
  expect(cost('openrouter/google/gemini-2.5-pro', { input: 200_001, output: 0 })).toBe('0.5000025')
  expect(cost('groq/llama-3.1-8b-instant', { input: 0, cacheRead: 1_000_000, output: 0 })).toBe('0.05')
})

test('a model that cannot be metered has no price', () => {
  expect(priceInFile('perplexity', 'sonar-deep-research')).toBeUndefined()
  expect(written('google').filter(({ id }) => /image|omni|live/.test(id))).toEqual([])
})

test("no model is free, except on servers of one's own", () => {
  for (const { id, free, models } of providers) {
    for (const { id: model, price, speaks } of models.values()) {
      if (speaks?.every(isSide)) continue // the model does not chat, and may be counted in another unit than tokens
      const stated = price ? [price.rates, ...price.cases.map(one => one.rates)] : []
      const rates = stated.flatMap(one => Object.values(one) as bigint[])
      expect({ id, model, zero: !free && rates.some(rate => rate <= 0n) }).toEqual({ id, model, zero: false })
    }
  }
})

test('every price that was added by hand is in its file and names its source', () => {
  for (const [provider, prices] of Object.entries(handPrices)) {
    for (const [model, price] of Object.entries(prices)) {
      expect({ model, price: priceInFile(provider, model) }).toEqual({ model, price: { ...price } })
      expect(price.source).toMatch(/\S/)
    }
  }
})

test('no price differs from the public data without a reason', async () => {
  const lines: string[] = []
  const data = await loadPriceData()
  const code = printPriceCheck({ providers, data, nowMs: Date.parse(PRICES_AS_OF) }, line => void lines.push(line))
  expect(lines.filter(line => / ours /.test(line) && !/ reason: /.test(line))).toEqual([])
  expect(code).toBe(0)
})
