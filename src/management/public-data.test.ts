// The public price list: every rate and every case, and what an operator changed is shown at once.

import { expect, test } from 'bun:test'
import type { PriceBook } from '../billing/price-book.ts'
import { buildPriceBook, shippedTexts, syncRows } from '../billing/price-book.ts'
import type { RouteRow, Rules } from '../store/rules.ts'
import { noRules } from '../store/rules.ts'
import { buildCatalogue } from '../upstreams/catalogue.ts'
import { buildPublicData } from './public-data.ts'

const dear = {
  ...{ input: '8', output: '16', cacheWrite1h: '4', perRequest: '0.01' },
  cases: [{ class: 'priority', input: '10' }, { inputAbove: 1000, hours: ['16:30', '00:30'], output: '20' }],
  currency: { code: 'CNY', unitsPerUsd: '8' },
}

const sizes = { contextTokens: 9_000, outputTokensMax: 7_000 }
const plain = { input: '1', output: '2' }

const file = (id: string, rest: object): { name: string; text: string } => {
  const head = { id, name: id, baseUrl: 'https://api.test/v1', keyEnv: 'TEST_KEY', baseUrlEnv: `${id}_URL` }
  return { name: id, text: JSON.stringify({ ...head, speaks: { 'openai-chat': '/chat' }, sign: 'bearer', ...rest }) }
}
const files = [
  file('paid', { models: [{ id: 'dear', price: dear, ...sizes }, { id: 'plain', price: plain }, { id: 'no' }] }),
  file('own', { free: true, models: [{ id: 'local', contextTokens: 8_000 }] }),
]
const catalogue = buildCatalogue({ files, env: { TEST_KEY: 'k' }, builtInUrl: undefined })

function open(rules = { current: noRules }): { data: ReturnType<typeof buildPublicData>; prices: PriceBook } {
  const shipped = catalogue.prices()
  const rows = syncRows(shippedTexts(shipped), [], 'weir').map((row, index) => ({ ...row, version: index + 1 }))
  const prices = buildPriceBook(shipped, rows)
  return { prices, data: buildPublicData({ catalogue, prices, rules, site: { name: 'Weir', version: '1' } }) }
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

test('lists the names that an operator gave, from the moment they hold, with what all of their models can hold', () => {
  const rules: { current: Rules } = { current: noRules }
  const { data } = open(rules)
  const route = (name: string, ...models: readonly string[]): RouteRow => ({
    ...{ name, policy: 'balanced' },
    members: models.map((model, priority) => ({ model, priority, weight: 1 })),
  })
  const ids = (): unknown => data.listed.map(({ id }) => id)
  const models = ['paid/dear', 'paid/plain', 'own/local']
  expect(ids()).toEqual(models)
  const given = [route('smart', 'paid/no', 'own/local', 'paid/dear'), route('gone', 'paid/no'), route('x-*', 'paid/*')]
  rules.current = { ...noRules, routes: [...given, route('paid/plain', 'own/local'), route('again', 'smart')] }
  expect(ids()).toEqual([...models, 'smart', 'again'])
  const [smart] = data.listed.slice(3)
  expect(smart).toMatchObject({ id: 'smart', name: 'smart', provider: 'own', contextTokens: 8_000 })
  expect(smart).not.toHaveProperty('outputTokensMax')
  expect(JSON.parse(data.modelById('smart')!)).toMatchObject({ id: 'smart', object: 'model' })
  expect(data.models).not.toContain('smart')
  rules.current = noRules
  expect(ids()).toEqual(models)
})

test('lists nothing of a provider without a channel that may be used', () => {
  const [channel] = catalogue.channelsOf('own')
  const rules: { current: Rules } = { current: noRules }
  const { data } = open(rules)
  expect(JSON.parse(data.providers).data[1]).toMatchObject({ id: 'own', available: true })
  const row = { ...catalogue.ruleOf(channel!.id), disabled: true }
  catalogue.setRules([row])
  rules.current = { ...noRules, channels: [row] }
  expect(data.listed.map(({ id }) => id)).toEqual(['paid/dear', 'paid/plain'])
  expect(JSON.parse(data.providers).data[1]).toMatchObject({ id: 'own', available: false })
  catalogue.setRules([])
})
