// Compares the prices of the provider files with the public price data that they come from, at today's date. The data is
// a development dependency; if it is not installed, nothing is compared.

import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { calcPrice, ModelPrice } from '@pydantic/genai-prices'
import type { Price } from '../../base/money/price.ts'
import { unitFees, unitNames } from '../../base/money/price.ts'
import { buckets, units } from '../../base/money/usage.ts'
import { computeBill } from '../../billing/price.ts'
import type { CheckedModel, ListedRates, PriceDisagreement, PriceListing } from '../../billing/price-check.ts'
import { checkPrices, dataRates, listedRate } from '../../billing/price-check.ts'
import type { Provider } from '../../upstreams/provider.ts'
import { parseProvider } from '../../upstreams/provider.ts'

export const PRICE_DATA_PACKAGE = '@pydantic/genai-prices'
const SHIPPED = join(import.meta.dir, '..', '..', '..', 'providers')

interface PriceData {
  readonly calcPrice: typeof calcPrice
}

export interface SourceCheckParts {
  readonly providers: readonly Provider[]
  readonly data: PriceData | undefined
  readonly nowMs: number
}

export interface SourceCheck {
  /** False if the public price data is not installed. */
  readonly compared: boolean
  /** How many models have a price. */
  readonly prices: number
  readonly disagreements: readonly PriceDisagreement[]
  /** Models that the data does not have. */
  readonly unlisted: readonly string[]
  /** Models without a price, which are not served. */
  readonly without: readonly string[]
}

export function checkSources({ providers, data, nowMs }: SourceCheckParts): SourceCheck {
  const priced = providers.filter(({ free, builtIn }) => !free && !builtIn)
  const without = priced.flatMap(({ id, models }) =>
    [...models.values()].filter(({ price }) => price === undefined).map(model => `${id}/${model.id}`),
  )
  if (data === undefined) return { compared: false, prices: 0, disagreements: [], unlisted: [], without }
  const models = priced.flatMap(provider => checkedModels(provider, data, nowMs))
  const prices = new Set(models.map(({ model }) => model)).size
  return { compared: true, prices, ...checkPrices(models), without }
}

/** Reads the shipped provider files and those in the operator's folders. */
export function readProviders(folders: readonly string[]): readonly Provider[] {
  const byId = new Map<string, Provider>()
  for (const folder of [SHIPPED, ...folders]) {
    for (const name of readdirSync(folder)
      .filter(file => file.endsWith('.json'))
      .sort()) {
      const provider = parseProvider(readFileSync(join(folder, name), 'utf8'), name)
      byId.set(provider.id, provider)
    }
  }
  return [...byId.values()]
}

export async function loadPriceData(): Promise<PriceData | undefined> {
  try {
    return (await import(PRICE_DATA_PACKAGE)) as PriceData
  } catch {
    return undefined
  }
}

function checkedModels(provider: Provider, data: PriceData, nowMs: number): readonly CheckedModel[] {
  return [...provider.models.values()].flatMap(({ id, price }) =>
    price === undefined ? [] : checkedModel(price, { data, provider, id, nowMs }),
  )
}

interface PricedModel {
  readonly data: PriceData
  readonly provider: Provider
  readonly id: string
  readonly nowMs: number
}

function checkedModel(price: Price, model: PricedModel): readonly CheckedModel[] {
  return momentsOf(price, model.nowMs).flatMap(([clock, atMs]) => {
    const found = listedPrices(model, atMs)
    const starts = found.flatMap(({ price }) => Object.values(price)).flatMap(rate => tiersOf(rate))
    const lengths = [0, ...new Set([...price.cases.flatMap(({ inputAbove }) => inputAbove ?? []), ...starts])]
    return lengths.map(above => ({
      model: `${model.provider.id}/${model.id}`,
      when: [clock, above > 0 ? `above ${above} tokens` : ''].filter(part => part !== '').join(', '),
      ours: ourRates(price, { atMs, tokens: above + 1 }),
      theirs: found.map(({ source, price }): PriceListing => ({ source, rates: theirRates(price, above + 1) })),
      ...(price.source !== undefined && { reason: price.source }),
    }))
  })
}

/** Now, or each time of today at which the price changes. */
function momentsOf(price: Price, nowMs: number): readonly (readonly [clock: string, atMs: number])[] {
  const minutes = [...new Set(price.cases.flatMap(({ hours }) => hours ?? []))].sort((a, b) => a - b)
  const midnightMs = nowMs - (nowMs % 86_400_000)
  if (minutes.length === 0) return [['', nowMs]]
  return minutes.map(minute => {
    const atMs = midnightMs + minute * 60_000
    return [`at ${new Date(atMs).toISOString().slice(11, 16)}`, atMs] as const
  })
}

function ourRates(price: Price, { atMs, tokens }: { atMs: number; tokens: number }): ListedRates {
  // The bill for one token of each kind and one of each unit has the rates as its lines.
  const oneOfEach = Object.fromEntries([...buckets, ...units].map(each => [each, 1]))
  const usage = { ...oneOfEach, input: tokens, output: 1 }
  const priced = { price, version: 0, perMille: 1000n, serviceClass: undefined, atMs }
  const rates = computeBill(usage, priced).lines.map(({ what, rate }) => {
    const unit = units.find(each => unitNames[each] === what)
    const fee = what === 'request' ? 'perRequest' : unit && unitFees[unit]
    return fee === undefined ? [what, rate as bigint] : [fee, rate / 1_000_000n]
  })
  return Object.fromEntries(rates) as ListedRates
}

interface ListedPrice {
  readonly source: string
  readonly price: ModelPrice
}

/** The prices in the data for this provider, and for the maker of a model that another provider serves. */
function listedPrices({ data, provider, id }: PricedModel, atMs: number): readonly ListedPrice[] {
  const timestamp = new Date(atMs)
  const [, name, host] = /^([^:]+)(?::(.+))?$/.exec(id) ?? []
  // The data does not depend on the variables in a base URL.
  const address = provider.baseUrl.replace(/\{\w+\}/g, 'x')
  // The model id of a router may end in the host that serves the model, which has its own price.
  const providerApiUrl = host === undefined ? address : `${new URL(address).origin}/${host}`
  const direct = data.calcPrice({ input_tokens: 1 }, name ?? id, { providerApiUrl, timestamp })
  if (direct === null) return []
  const maker = id.includes('/') ? data.calcPrice({ input_tokens: 1 }, id.replace(/^.*?\//, ''), { timestamp }) : null
  return [direct, ...(maker ? [maker] : [])].map(found => ({
    source: `${found.provider.id} ${found.model.id}`,
    price: found.model_price,
  }))
}

const tiersOf = (price: ModelPrice[string]): readonly number[] =>
  typeof price === 'object' ? price.tiers.map(({ start }) => start) : []

function theirRates(price: ModelPrice, tokens: number): ListedRates {
  const rates = Object.entries(price).flatMap(([key, value]) => {
    const [name, per] = dataRates[key] ?? []
    const reached = typeof value === 'object' ? value.tiers.filter(({ start }) => tokens > start).at(-1)?.price : value
    const usd = reached ?? (typeof value === 'object' ? value.base : 0)
    // A price of 0 in the data means unknown or free to try, so it is not compared.
    return name === undefined || usd === 0 ? [] : [[name, listedRate(usd / per!)] as const]
  })
  return Object.fromEntries(rates) as ListedRates
}
