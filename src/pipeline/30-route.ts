// Permit + model name → Route: the provider and model the caller named, at which price, and the channels that can
// serve them, in order.

import { Refusal } from '../base/errors.ts'
import type { PriceBook } from '../billing/price-book.ts'
import type { PricedOrFree } from '../billing/price.ts'
import { classOf, hasClass, hasSearch } from '../billing/price.ts'
import type { ModelName } from '../routing/model-name.ts'
import type { Catalogue } from '../upstreams/catalogue.ts'
import type { Model, Provider } from '../upstreams/provider.ts'
import type { Permit, Route } from './exchange.ts'

export interface RouteParts {
  readonly catalogue: Catalogue
  readonly prices: Pick<PriceBook, 'current'>
  dateMs(): number
}

export interface Asked {
  readonly name: ModelName
  readonly dialect: string
  /** As the caller wrote it. */
  readonly serviceClass: string | undefined
  /** The provider is asked to search, too. */
  readonly searches: boolean
}

export type RouteCall = (permit: Permit, asked: Asked) => Route

export function buildRoute({ catalogue, prices, dateMs }: RouteParts): RouteCall {
  /** A price that nobody knows is not a price of nothing. */
  function priceOf(provider: Provider, model: Model, { serviceClass, searches }: Asked): CurrentOrFree {
    if (provider.free) return undefined
    const current = prices.current(`${provider.id}/${model.id}`)
    if (current === undefined) throw new Refusal('price_unknown', `${provider.id}/${model.id}`)
    if (!hasClass(current.price, serviceClass)) {
      const hint = `It is not known for the service class "${serviceClass}".`
      throw new Refusal('price_unknown', `${provider.id}/${model.id}`, { param: 'service_tier', hint })
    }
    if (searches && !hasSearch(current.price)) {
      const hint = 'It is not known what a search by it costs.'
      throw new Refusal('price_unknown', `${provider.id}/${model.id}: search`, { hint })
    }
    return current
  }

  return function route(permit, asked) {
    const { name, dialect } = asked
    const provider = catalogue.providers.get(name.provider)
    if (provider === undefined) throw new Refusal('provider_unknown', name.provider, { param: 'model' })
    const model = findModel(provider, name.model)
    if (model === undefined) throw new Refusal('model_unknown', name.model, { param: 'model' })
    const channels = provider.speaks[dialect] === undefined ? [] : catalogue.channelsOf(provider.id)
    if (channels.length === 0) throw new Refusal('no_channel', provider.id, { retryAfterMs: 30_000 })
    const current = priceOf(provider, model, asked)
    const { perMille } = permit.caller
    const price: PricedOrFree =
      current && { ...current, perMille, serviceClass: classOf(asked.serviceClass), atMs: dateMs() }
    return { permit, provider, model, price, channels } as Route
  }
}

type CurrentOrFree = ReturnType<PriceBook['current']>

function findModel(provider: Provider, id: string): Model | undefined {
  return provider.models.get(id) ?? (provider.openModels ? { id } : undefined)
}
