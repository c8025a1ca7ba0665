// What a route fixes of the price, and which prices count as unknown.

import { expect, test } from 'bun:test'
import { Refusal } from '../base/errors.ts'
import { parsePrice, priceText } from '../base/money/price.ts'
import { buildPriceBook, findNewPrices, shippedTexts } from '../billing/price-book.ts'
import type { Call } from '../protocols/neutral/call.ts'
import { protocols } from '../protocols/protocols.ts'
import { buildCatalogue } from '../upstreams/catalogue.ts'
import { buildRoute, narrowRoute } from './30-route.ts'
import type { Candidate, Permit, Route } from './exchange.ts'
import { Targets } from './route/targets.ts'

const file = (id: string, rest: object): { name: string; text: string } => {
  const head = { id, name: id, baseUrl: 'https://api.test/v1', keyEnv: 'TEST_KEY', baseUrlEnv: `${id}_URL` }
  return { name: id, text: JSON.stringify({ ...head, speaks: { 'openai-chat': '/chat' }, sign: 'bearer', ...rest }) }
}
const plain = { input: '1', output: '2' }
const searchPrice = { ...plain, perSearch: '0' }
const tiered = { ...plain, cases: [{ class: 'priority', input: '2' }] }
const files = [
  file('paid', {
    openModels: true,
    models: [
      ...[{ id: 'plain', price: plain }, { id: 'tiered', price: tiered }, { id: 'unpriced' }],
      { id: 'searching', price: searchPrice },
    ],
  }),
  file('own', { free: true, openModels: true, models: [{ id: 'local', price: plain }] }),
]
const catalogue = buildCatalogue({ files, env: { TEST_KEY: 'k' }, builtInUrl: undefined })
const shipped = catalogue.prices()
const rows = findNewPrices(shippedTexts(shipped), [], 'weir').map((row, index) => ({ ...row, version: index + 1 }))
const prices = buildPriceBook(shipped, rows)
const rights = { allows: null, accountAllows: null, denies: null, requires: null }
const permit = { caller: { perMille: 1_200n, ...rights } } as Permit
const targets = new Targets({ catalogue, prices, chance: () => 0, onCredentialOff: () => {} })
const route = buildRoute({ targets, prices, dateMs: () => 5_000 })

const callTo = (model: string, more: Partial<Call> = {}): Call =>
  ({ model, searchesMax: 0, textOnly: true, bodyBytes: 100, choices: 1, ...more }) as Call

function routeTo(provider: string, model: string, serviceClass?: string): Route {
  const call = callTo(`${provider}/${model}`, serviceClass === undefined ? {} : { serviceClass })
  return route(permit, { call, protocol: protocols['openai-chat'] })
}

const firstCandidate = ({ candidates }: Route): Candidate => candidates[0]!

function refusalOf(...args: Parameters<typeof routeTo>): Refusal {
  try {
    routeTo(...args)
  } catch (fault) {
    if (fault instanceof Refusal) return fault
  }
  throw new Error('not refused')
}

test('everything that a bill depends on is fixed', () => {
  const found: unknown = firstCandidate(routeTo('paid', 'tiered', 'priority')).price
  const price = shipped.get('paid/tiered')!
  expect(found).toEqual({ price, version: 2, perMille: 1_200n, serviceClass: 'priority', atMs: 5_000 })
})

test('all names of the standard class mean the same', () => {
  for (const name of [undefined, 'auto', 'default', 'standard']) {
    expect(firstCandidate(routeTo('paid', 'plain', name)).price?.serviceClass).toBeUndefined()
  }
  expect(firstCandidate(routeTo('paid', 'plain', 'flex')).price?.serviceClass).toBe('flex')
})

test('a class that may be more expensive needs a price of its own', () => {
  for (const name of ['priority', 'fast', 'scale', '']) {
    const refusal = refusalOf('paid', 'plain', name)
    expect([refusal.code, refusal.extras.param]).toEqual(['service_unpriced', 'service_tier'])
  }
  expect(refusalOf('paid', 'tiered', 'fast').code).toBe('service_unpriced')
})

test('an unknown price is never zero', () => {
  expect(refusalOf('paid', 'unpriced').code).toBe('price_unknown')
  expect(refusalOf('paid', 'open').code).toBe('price_unknown')
})

test('a search needs a price, which may be zero', () => {
  const protocol = protocols['openai-chat']
  const routeSearch = (model: string) => (): Route =>
    route(permit, { call: callTo(`paid/${model}`, { searchesMax: 1 }), protocol })
  expect(routeSearch('plain')).toThrow('service_unpriced')
  expect(firstCandidate(routeSearch('searching')()).price?.price.rates.perSearch).toBe(0n as never)
})

test('a translated call leaves out a search whose price is unknown', () => {
  const protocol = protocols['openai-responses']
  const routeSearch = (model: string): Candidate =>
    firstCandidate(route(permit, { call: callTo(`paid/${model}`, { searchesMax: 1 }), protocol }))
  expect(routeSearch('plain').withoutSearch).toBe(true)
  expect(routeSearch('searching').withoutSearch).toBeUndefined()
})

test('a free provider is free, whatever its models cost elsewhere', () => {
  expect(firstCandidate(routeTo('own', 'local', 'priority')).price).toBeUndefined()
  expect(firstCandidate(routeTo('own', 'open')).price).toBeUndefined()
})

test('a price that an operator adds applies from then on', () => {
  const price = priceText(
    parsePrice(plain, () => {
      throw new Error('no price')
    }),
  )
  prices.add({ version: 9, model: 'paid/open', origin: 'operator', price, author: 'ann' })
  expect(firstCandidate(routeTo('paid', 'open')).price?.version).toBe(9)
  prices.add({ version: 10, model: 'paid/open', origin: 'withdrawn', price: '', author: 'ann' })
  expect(refusalOf('paid', 'open').code).toBe('price_unknown')
})

test('a narrowed route has the candidates that are left, with the channels that are left', () => {
  const found = routeTo('paid', 'plain')
  const other = { ...firstCandidate(found), option: { ...firstCandidate(found).option, name: 'paid/other' } }
  const both = { ...found, candidates: [firstCandidate(found), other] } as Route
  const narrowed = narrowRoute(both, candidate => candidate.option.name === 'paid/other')!
  expect(narrowed.candidates.map(({ option }) => option.name)).toEqual(['paid/other'])
  expect(firstCandidate(narrowed).option.channels).toBe(firstCandidate(narrowed).channels)
  expect(narrowRoute(both, () => false)).toBeUndefined()
})
