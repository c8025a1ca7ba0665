// Permit + model name → Route: the provider and model the caller named, and the channels that can serve them, in order.

import { Refusal } from '../base/errors.ts'
import type { PriceOrFree } from '../billing/price.ts'
import type { ModelName } from '../routing/model-name.ts'
import type { Catalogue } from '../upstreams/catalogue.ts'
import type { Model, Provider } from '../upstreams/provider.ts'
import type { Permit, Route } from './exchange.ts'

export type RouteCall = (permit: Permit, name: ModelName, dialect: string) => Route

export function buildRoute(catalogue: Catalogue): RouteCall {
  return function route(permit, name, dialect) {
    const provider = catalogue.providers.get(name.provider)
    if (provider === undefined) throw new Refusal('provider_unknown', name.provider, { param: 'model' })
    const model = findModel(provider, name.model)
    if (model === undefined) throw new Refusal('model_unknown', name.model, { param: 'model' })
    const channels = provider.speaks[dialect] === undefined ? [] : catalogue.channelsOf(provider.id)
    if (channels.length === 0) throw new Refusal('no_channel', provider.id, { retryAfterMs: 30_000 })
    const price = priceOf(provider, model, permit.caller.perMille)
    return { permit, provider, model, price, channels } as Route
  }
}

function findModel(provider: Provider, id: string): Model | undefined {
  return provider.models.get(id) ?? (provider.openModels ? { id } : undefined)
}

/** A price that nobody knows is not a price of nothing. */
function priceOf(provider: Provider, model: Model, perMille: bigint): PriceOrFree {
  if (provider.free) return undefined
  if (model.price === undefined) throw new Refusal('price_unknown', `${provider.id}/${model.id}`)
  return { ...model.price, perMille }
}
