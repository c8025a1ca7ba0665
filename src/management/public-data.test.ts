// The public price list: every rate and every case, and what an operator changed is shown at once.

import { expect, test } from 'bun:test'
import type { PriceBook } from '../billing/price-book.ts'
import { buildPriceBook, shippedTexts, syncRows } from '../billing/price-book.ts'
import { buildCatalogue } from '../upstreams/catalogue.ts'
import { buildPublicData } from './public-data.ts'

const dear = {
  ...{ input: '8', output: '16', cacheWrite1h: '4', perRequest: '0.01' },
  cases: [{ class: 'priority', input: '10' }, { inputAbove: 1000, hours: ['16:30', '00:30'], output: '20' }],
  currency: { code: 'CNY', unitsPerUsd: '8' },
}

const plain = { input: '1', output: '2' }

const file = (id: string, rest: object): { name: string; text: string } => {
  const head = { id, name: id, baseUrl: 'https://api.test/v1', keyEnv: 'TEST_KEY', baseUrlEnv: `${id}_URL` }
  return { name: id, text: JSON.stringify({ ...head, speaks: { 'openai-chat': '/chat' }, sign: 'bearer', ...rest }) }
}
const files = [
  file('paid', { models: [{ id: 'dear', price: dear }, { id: 'plain', price: plain }, { id: 'no' }] }),
  file('own', { free: true, models: [{ id: 'local' }] }),
]
const catalogue = buildCatalogue({ files, env: { TEST_KEY: 'k' }, builtInUrl: undefined })

function open(): { data: ReturnType<typeof buildPublicData>; prices: PriceBook } {
  const shipped = catalogue.prices()
  const rows = syncRows(shippedTexts(shipped), [], 'weir').map((row, index) => ({ ...row, version: index + 1 }))
  const prices = buildPriceBook(shipped, rows)
  return { prices, data: buildPublicData({ catalogue, prices, site: { name: 'Weir', version: '1' } }) }
}

const pricing = (data: ReturnType<typeof buildPublicData>): readonly Record<string, unknown>[] =>
  (JSON.parse(data.pricing) as { data: readonly Record<string, unknown>[] }).data

test('shows every rate and every case, in dollars', () => {
  expect(pricing(open().data)).toEqual([
    {
      ...{ model: 'paid/dear', free: false, input: '1.00', cacheRead: '1.00', cacheWrite1h: '0.50', output: '2.00' },
      perRequest: '0.00125',
      cases: [
        { class: 'priority', input: '1.25' },
        { inputAbove: 1000, hours: ['16:30', '00:30'], output: '2.50' },
      ],
      convertedFrom: { code: 'CNY', unitsPerUsd: '8' },
    },
    { model: 'paid/plain', free: false, input: '1.00', cacheRead: '1.00', output: '2.00', cases: [] },
    { model: 'own/local', free: true, input: '0.00', cacheRead: '0.00', output: '0.00', cases: [] },
  ])
})

test('shows what an operator changed, and a model that has a price since then', () => {
  const { data, prices } = open()
  const price = '{"input":"7","output":"9"}'
  expect(data.modelById('paid/no')).toBeUndefined()
  prices.add({ version: 3, model: 'paid/no', origin: 'operator', price, author: 'ann' })
  prices.add({ version: 4, model: 'paid/plain', origin: 'operator', price, author: 'ann' })
  expect(pricing(data).map(({ model, input }) => [model, input])).toEqual([
    ...[['paid/dear', '1.00'], ['paid/plain', '7.00'], ['paid/no', '7.00'], ['own/local', '0.00']],
  ])
  expect(data.modelById('paid/no')).toContain('"paid/no"')
  expect(data.modelList).toContain('"paid/no"')
  expect(data.models).toContain('"paid/no"')
})
