// Tests `weir prices check` with a test provider and a public price list that agrees, differs, or is missing.

import { expect, test } from 'bun:test'
import type { ModelPrice } from '@pydantic/genai-prices'
import type { SourceCheckParts } from '../../management/prices/public-sources.ts'
import type { Provider } from '../../upstreams/provider.ts'
import { parseProvider } from '../../upstreams/provider.ts'
import { printPriceCheck } from './prices.ts'

const NOON_MS = Date.parse('2026-11-15T12:00Z')

function testProvider(price: unknown): Provider {
  const models = [{ id: 'one', ...(price !== undefined && { price }) }]
  const head = { id: 'river', name: 'River', baseUrl: 'https://river.test/v1', keyEnv: 'RIVER_KEY', sign: 'bearer' }
  const rest = { baseUrlEnv: 'RIVER_URL', speaks: { 'openai-chat': '/chat/completions' }, models }
  return parseProvider(JSON.stringify({ ...head, ...rest }), 'river.json')
}

/** A public price list with this price for the model, at every hour or by hour. */
function priceList(price: ModelPrice | ((hour: number) => ModelPrice)): SourceCheckParts['data'] {
  const calcPrice = (_usage: unknown, modelId: string, options?: { providerApiUrl?: string; timestamp?: Date }) => {
    if (modelId !== 'one' || options?.providerApiUrl !== 'https://river.test/v1') return null
    const found = typeof price === 'function' ? price(options.timestamp!.getUTCHours()) : price
    return { provider: { id: 'atlas' }, model: { id: 'one' }, model_price: found }
  }
  return { calcPrice } as unknown as NonNullable<SourceCheckParts['data']>
}

interface CheckResult {
  readonly code: number
  readonly lines: readonly string[]
}

function check(price: unknown, data: SourceCheckParts['data']): CheckResult {
  const lines: string[] = []
  const code = printPriceCheck(
    { providers: [testProvider(price)], data, nowMs: NOON_MS },
    line => void lines.push(line),
  )
  return { code, lines }
}

test('equal prices print only the summary, also with tiers and fees', () => {
  const price = { input: '2.50', output: '15', perRequest: '0.012', cases: [{ inputAbove: 100, input: '5' }] }
  const tiered = { base: 2.5, tiers: [{ start: 100, price: 5 }] }
  const { code, lines } = check(price, priceList({ input_mtok: tiered as never, output_mtok: 15, requests_kcount: 12 }))
  expect(lines).toEqual(['1 prices, 0 rates differ, 0 of them without a reason'])
  expect(code).toBe(0)
})

test('a rate that differs prints a line and the command fails', () => {
  const { code, lines } = check({ input: '2', output: '8' }, priceList({ input_mtok: 2.5, output_mtok: 8 }))
  expect(lines).toEqual([
    'river/one  input  ours 2.00  theirs 2.50 (atlas one)  CHEAPER',
    '1 prices, 1 rates differ, 1 of them without a reason',
  ])
  expect(code).toBe(1)
})

test('a tier that only the list has prints a line', () => {
  const tiered = { base: 2, tiers: [{ start: 100, price: 4 }] }
  const { lines } = check({ input: '2', output: '8' }, priceList({ input_mtok: tiered as never, output_mtok: 8 }))
  expect(lines[0]).toBe('river/one  input, above 100 tokens  ours 2.00  theirs 4.00 (atlas one)  CHEAPER')
})

test('prices by hour are compared at the start and the end of each period', () => {
  const price = { input: '1', output: '8', cases: [{ hours: ['08:00', '10:00'], input: '2' }] }
  const right = priceList(hour => ({ input_mtok: hour >= 8 && hour < 10 ? 2 : 1, output_mtok: 8 }))
  expect(check(price, right).code).toBe(0)
  const wrongHours = priceList(hour => ({ input_mtok: hour >= 8 && hour < 11 ? 2 : 1, output_mtok: 8 }))
  expect(check(price, wrongHours).lines[0]).toBe(
    'river/one  input, at 10:00  ours 1.00  theirs 2.00 (atlas one)  CHEAPER',
  )
})

test('a price with a source may differ: the source is its reason', () => {
  const price = { input: '2', output: '8', source: 'river.test/prices' }
  const { code, lines } = check(price, priceList({ input_mtok: 1, output_mtok: 8 }))
  expect(lines[0]).toBe('river/one  input  ours 2.00  theirs 1.00 (atlas one)  reason: river.test/prices')
  expect(code).toBe(0)
})

test('without the public price list no price is compared, and the output says so', () => {
  const { code, lines } = check(undefined, undefined)
  expect(lines).toEqual([
    '@pydantic/genai-prices is not installed (it is a development dependency), so no price was compared.',
    'no price, so not served: river/one',
  ])
  expect(code).toBe(0)
})

test('a model that the list does not have prints a line', () => {
  const data = { calcPrice: () => null }
  expect(check({ input: '2', output: '8' }, data).lines[0]).toBe('not in @pydantic/genai-prices: river/one')
})
