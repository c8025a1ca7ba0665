// Permit + model name → Route: the provider and model the caller named, at which price, and the channels that can
// serve them, in order.

import { Refusal } from '../base/errors.ts'
import type { Units } from '../base/usage.ts'
import type { PriceBook } from '../billing/price-book.ts'
import type { PricedOrFree } from '../billing/price.ts'
import { classOf, hasBasis, hasClass, hasSearch } from '../billing/price.ts'
import { protocolNamed } from '../protocols/list.ts'
import type { Protocol } from '../protocols/protocol.ts'
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
  /** The caller's. */
  readonly protocol: Protocol
  /** As the caller wrote it. */
  readonly serviceClass: string | undefined
  /** The provider is asked to search, too. */
  readonly searches: boolean
  /** A tool that its own upstream would bill, and nothing tells how. */
  readonly unpriced?: string | undefined
  /** What it is counted in besides tokens. */
  readonly units?: Units | undefined
  /** Where what it follows is kept, and its name there. */
  readonly keptAt?: KeptAt | undefined
}

export interface KeptAt {
  readonly channel: string
  readonly upstreamId: string
}

export type RouteCall = (permit: Permit, asked: Asked) => Route

export function buildRoute({ catalogue, prices, dateMs }: RouteParts): RouteCall {
  /** A price that nobody knows is not a price of nothing. */
  function priceOf(provider: Provider, model: Model, asked: Asked & { readonly isNative: boolean }): CurrentOrFree {
    const { protocol, serviceClass, units, unpriced, isNative } = asked
    if (provider.free || model.free || protocol.free) return undefined
    const current = prices.current(`${provider.id}/${model.id}`)
    if (current === undefined) throw new Refusal('price_unknown', `${provider.id}/${model.id}`)
    if (!hasClass(current.price, serviceClass)) {
      const hint = `It is not known for the service class "${serviceClass}".`
      throw new Refusal('price_unknown', `${provider.id}/${model.id}`, { param: 'service_tier', hint })
    }
    // No other dialect has it, so that elsewhere it is left out.
    if (unpriced !== undefined && isNative) {
      const hint = `It is not known what its tool "${unpriced.slice(0, 64)}" costs.`
      throw new Refusal('price_unknown', `${provider.id}/${model.id}: a tool`, { param: 'tools', hint })
    }
    if (!hasBasis(current.price, units)) {
      const hint = 'It is not known for calls of this kind.'
      throw new Refusal('price_unknown', `${provider.id}/${model.id}: ${protocol.name}`, { hint })
    }
    return current
  }

  return function route(permit, asked) {
    const { name, protocol } = asked
    const { provider, model } = findModel(catalogue, name)
    const spoken = dialectFor(provider, model, protocol)
    if (spoken === undefined) throw new Refusal('call_unserved', `${provider.id}: ${protocol.name}`, { param: 'model' })
    const channels = catalogue.channelsOf(provider.id)
    if (channels.length === 0) throw new Refusal('no_channel', provider.id, { retryAfterMs: 30_000 })
    const current = priceOf(provider, model, { ...asked, isNative: spoken === protocol })
    const withoutSearch = asked.searches && current !== undefined && !hasSearch(current.price)
    // What a caller wrote in the upstream's own dialect is not ours to change.
    if (withoutSearch && spoken === protocol) {
      const hint = 'It is not known what a search by it costs.'
      throw new Refusal('price_unknown', `${provider.id}/${model.id}: search`, { hint })
    }
    const { perMille } = permit.caller
    const price: PricedOrFree =
      current && { ...current, perMille, serviceClass: classOf(asked.serviceClass), atMs: dateMs() }
    const keeps = provider.can.keepsResponses && spoken === protocol
    const keeper = keeps ? channels.find(({ id }) => id === asked.keptAt?.channel) : undefined
    const pinned = keeper && { channels: [keeper], follows: asked.keptAt!.upstreamId }
    const route = { permit, provider, model, price, spoken, channels, ...pinned }
    return (withoutSearch ? { ...route, withoutSearch } : route) as Route
  }
}

/** The caller's own dialect if the provider speaks it, for then nothing is translated; else the one it speaks best. */
function dialectFor(provider: Provider, model: Model, protocol: Protocol): Protocol | undefined {
  const served = model.speaks ?? Object.keys(provider.speaks)
  if (served.includes(protocol.name) && provider.speaks[protocol.name] !== undefined) return protocol
  const others = served.filter(name => provider.speaks[name] !== undefined).map(protocolNamed)
  return others.find(other => canMeet(protocol, other))
}

/** Talk is translated into talk, and vectors into vectors. */
function canMeet({ codec, vectors }: Protocol, other: Protocol | undefined): boolean {
  if (codec !== undefined) return other?.codec !== undefined
  return vectors !== undefined && other?.vectors !== undefined
}

type CurrentOrFree = ReturnType<PriceBook['current']>

/** Throws for one that does not exist. */
export function findModel({ providers }: Pick<Catalogue, 'providers'>, name: ModelName): Found {
  const provider = providers.get(name.provider)
  if (provider === undefined) throw new Refusal('provider_unknown', name.provider, { param: 'model' })
  const model = provider.models.get(name.model) ?? (provider.openModels ? { id: name.model } : undefined)
  if (model === undefined) throw new Refusal('model_unknown', name.model, { param: 'model' })
  return { provider, model }
}

interface Found {
  readonly provider: Provider
  readonly model: Model
}
