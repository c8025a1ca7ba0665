// The public data: the price list shows every rate and case, and changes of the operator appear at once.

import { expect, test } from 'bun:test'
import type { PriceBook } from '../../billing/price-book.ts'
import { buildPriceBook, findNewPrices, shippedTexts } from '../../billing/price-book.ts'
import type { CachedPage } from '../../http/server/cached-page.ts'
import type { HealthState } from '../../routing/health/health.ts'
import type { RouteRow, Rules } from '../../store/rules/rules.ts'
import { noRules } from '../../store/rules/rules.ts'
import { buildCatalogue } from '../../upstreams/catalogue.ts'
import { siteDefaults, siteInfo } from '../services/site-settings.ts'
import type { PublicData, PublicParts } from './public-data.ts'
import { buildPublicData } from './public-data.ts'
import { providerStatus } from './public-views.ts'

const expensive = {
  input: '8',
  output: '16',
  cacheWrite1h: '4',
  perRequest: '0.01',
  cases: [
    { class: 'priority', input: '10' },
    { inputAbove: 1000, hours: ['16:30', '00:30'], output: '20' },
  ],
  currency: { code: 'CNY', unitsPerUsd: '8' },
}

const sizes = { contextTokens: 9_000, outputTokensMax: 7_000 }
const plain = { input: '1', output: '2' }

const file = (id: string, rest: object): { name: string; text: string } => {
  const head = { id, name: id, baseUrl: 'https://api.test/v1', keyEnv: 'TEST_KEY', baseUrlEnv: `${id}_URL` }
  return { name: id, text: JSON.stringify({ ...head, speaks: { 'openai-chat': '/chat' }, sign: 'bearer', ...rest }) }
}
const files = [
  file('paid', { models: [{ id: 'dear', price: expensive, ...sizes }, { id: 'plain', price: plain }, { id: 'no' }] }),
  file('own', { free: true, models: [{ id: 'local', contextTokens: 8_000 }] }),
]
const catalogue = buildCatalogue({ files, env: { TEST_KEY: 'k' }, builtInUrl: undefined })

type PartOverrides = Partial<Pick<PublicParts, 'rules' | 'tiers' | 'standing' | 'site'>>

function open(overrides: PartOverrides = {}): { data: PublicData; prices: PriceBook } {
  const shipped = catalogue.prices()
  const rows = findNewPrices(shippedTexts(shipped), [], 'weir').map((row, index) => ({ ...row, version: index + 1 }))
  const prices = buildPriceBook(shipped, rows)
  const site = siteInfo({ siteName: 'Weir', ...siteDefaults }, '1')
  const defaults = { rules: { current: noRules }, tiers: async () => [], standing: () => undefined, site: () => site }
  return { prices, data: buildPublicData({ catalogue, prices, ...defaults, ...overrides }) }
}

type Rows = readonly Record<string, unknown>[]

const textOf = ({ body }: CachedPage): Promise<string> => body.text()
const rowsOf = async (page: CachedPage): Promise<Rows> => (JSON.parse(await textOf(page)) as { data: Rows }).data
const pricing = async (data: PublicData, tier: string | null = null): Promise<Rows> => rowsOf(await data.pricing(tier))

test('the price list shows every rate and every case, in dollars', async () => {
  expect(await pricing(open().data)).toEqual([
    {
      model: 'paid/dear',
      free: false,
      input: '1.00',
      cacheRead: '1.00',
      cacheWrite1h: '0.50',
      output: '2.00',
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

test('public data shows prices that an operator changed, and a model that got its first price', async () => {
  const { data, prices } = open()
  const price = '{"input":"7","output":"9"}'
  expect(data.modelById('paid/no')).toBeUndefined()
  prices.add({ version: 3, model: 'paid/no', origin: 'operator', price, author: 'ann' })
  prices.add({ version: 4, model: 'paid/plain', origin: 'operator', price, author: 'ann' })
  expect((await pricing(data)).map(({ model, input }) => [model, input])).toEqual([
    ...[
      ['paid/dear', '1.00'],
      ['paid/plain', '7.00'],
      ['paid/no', '7.00'],
      ['own/local', '0.00'],
    ],
  ])
  expect(data.modelById('paid/no')).toContain('"paid/no"')
  expect(data.modelList).toContain('"paid/no"')
  expect(await textOf(data.models)).toContain('"paid/no"')
})

test('public data lists model names of the operator as soon as they exist, with the smallest sizes of their models', async () => {
  const rules: { current: Rules } = { current: noRules }
  const { data } = open({ rules })
  const route = (name: string, ...models: readonly string[]): RouteRow => ({
    name,
    policy: 'balanced',
    members: models.map((model, priority) => ({ model, priority, weight: 1 })),
  })
  const ids = (): unknown => data.listed.map(({ id }) => id)
  const models = ['paid/dear', 'paid/plain', 'own/local']
  const bareNames = ['dear', 'plain', 'local']
  expect(ids()).toEqual([...models, ...bareNames])
  const routes = [route('smart', 'paid/no', 'own/local', 'paid/dear'), route('gone', 'paid/no'), route('x-*', 'paid/*')]
  rules.current = { ...noRules, routes: [...routes, route('paid/plain', 'own/local'), route('again', 'smart')] }
  expect(ids()).toEqual([...models, 'smart', 'again', ...bareNames])
  const [smart] = data.listed.slice(3)
  expect(smart).toMatchObject({ id: 'smart', name: 'smart', provider: 'own', contextTokens: 8_000 })
  expect(smart).not.toHaveProperty('outputTokensMax')
  expect(JSON.parse(data.modelById('smart')!)).toMatchObject({ id: 'smart', object: 'model' })
  expect(JSON.parse(await textOf(data.models)).names).toMatchObject([
    { id: 'smart', contextTokens: 8_000 },
    { id: 'again' },
  ])
  rules.current = { ...noRules, routes: [route('plain', 'own/local')] }
  expect(ids()).toEqual([...models, 'plain', 'dear', 'local'])
  rules.current = noRules
  expect(ids()).toEqual([...models, ...bareNames])
})

test('public data does not list a provider without a usable channel', async () => {
  const [channel] = catalogue.channelsOf('own')
  const rules: { current: Rules } = { current: noRules }
  const { data } = open({ rules })
  expect((await rowsOf(data.providers))[1]).toMatchObject({ id: 'own', models: 1, status: 'up' })
  const row = { ...catalogue.rulesOf(channel!.id), disabled: true }
  catalogue.setRules([row])
  rules.current = { ...noRules, channels: [row] }
  expect(data.listed.map(({ id }) => id)).toEqual(['paid/dear', 'paid/plain', 'dear', 'plain'])
  expect((await rowsOf(data.providers)).map(({ id }) => id)).toEqual(['paid'])
  catalogue.setRules([])
})

test('prices for a tier are exact to the last decimal, and follow its multiplier', async () => {
  let perMille = 333
  const { data } = open({ tiers: async () => [{ name: 'gold', pricePerMille: perMille }] })
  expect((await pricing(data, 'gold'))[0]).toMatchObject({
    model: 'paid/dear',
    input: '0.333',
    output: '0.666',
    perRequest: '0.00041625',
    cases: [{ class: 'priority', input: '0.41625' }, { output: '0.8325' }],
  })
  expect(JSON.parse(await textOf(await data.pricing('gold')))).toMatchObject({
    tier: 'gold',
    tiers: [{ multiplier: '0.333' }],
  })
  expect((await pricing(data))[0]).toMatchObject({ input: '1.00' })
  const before = (await data.pricing('gold')).headers.etag
  perMille = 1_001
  expect((await pricing(data, 'gold'))[0]).toMatchObject({ input: '1.001' })
  expect((await data.pricing('gold')).headers.etag).not.toBe(before)
  await expect(data.pricing('lead')).rejects.toThrow('resource_unknown')
})

test('public data shows the status of a provider', async () => {
  const health = new Map<string, HealthState>()
  const { data } = open({ standing: id => health.get(id) })
  const [channel] = catalogue.channelsOf('own')
  const statuses: readonly (readonly [HealthState, string])[] = [
    ...([
      ['available', 'up'],
      ['busy', 'up'],
      ['rate_limited', 'up'],
      ['upstream_limit', 'up'],
    ] as const),
    ...([
      ['broken', 'down'],
      ['credential_bad', 'down'],
      ['quota_spent', 'down'],
      ['available', 'up'],
    ] as const),
  ]
  for (const [standing, status] of statuses) {
    health.set(channel!.id, standing)
    expect((await rowsOf(data.providers))[1]).toMatchObject({ id: 'own', status })
  }
  expect(providerStatus(['available', 'broken'])).toBe('degraded')
  expect(providerStatus(['broken', undefined])).toBe('degraded')
  expect(providerStatus(['broken', 'broken'])).toBe('down')
})

test('a public page is built once, and again only when its data changes', async () => {
  const { data, prices } = open()
  const { models, providers, settings } = data
  expect([data.models, data.providers, data.settings, await data.pricing(null)]).toEqual([
    ...[models, providers, settings, await data.pricing(null)],
  ])
  expect(data.models).toBe(models)
  prices.add({ version: 3, model: 'paid/no', origin: 'operator', price: '{"input":"7","output":"9"}', author: 'ann' })
  expect(data.models).not.toBe(models)
})

test('public data is the last known one while the database is unavailable', async () => {
  let isAway = false
  const tiers = async (): Promise<readonly { name: string; pricePerMille: number }[]> => {
    if (isAway) throw new Error('away')
    return [{ name: 'gold', pricePerMille: 500 }]
  }
  const { data } = open({ tiers })
  const before = await data.pricing('gold')
  isAway = true
  expect(await data.pricing('gold')).toBe(before)
})
