// What anybody may know: models, providers, prices, the site's name. Made once, when the catalogue is.

import { caseText, rateTexts } from '../base/price.ts'
import type { Catalogue } from '../upstreams/catalogue.ts'
import type { Model, Provider } from '../upstreams/provider.ts'

export interface PublicData {
  readonly models: string
  readonly providers: string
  readonly pricing: string
  readonly settings: string
  /** GET /v1/models, in a shape that readers of OpenAI's and of Anthropic's list both accept. */
  readonly modelList: string
  /** GET /v1/models/{id}; undefined for a model that cannot be called. */
  modelById(id: string): string | undefined
}

interface Offer {
  readonly id: string
  readonly provider: Provider
  readonly model: Model
}

export function buildPublicData(catalogue: Catalogue, site: { name: string; version: string }): PublicData {
  const offers = [...catalogue.providers.values()].flatMap(provider => offersOf(provider, catalogue))
  const cards = new Map(offers.map(offer => [offer.id, modelCard(offer)]))
  const ids = [...cards.keys()]
  return {
    models: JSON.stringify({ data: offers.map(publicModel) }),
    providers: JSON.stringify({ data: [...catalogue.providers.values()].map(one => publicProvider(one, catalogue)) }),
    pricing: JSON.stringify({ currency: 'USD', unit: 'million tokens', data: offers.map(publicPrice) }),
    settings: JSON.stringify({ name: site.name, version: site.version }),
    modelList: JSON.stringify({
      object: 'list',
      data: [...cards.values()],
      has_more: false,
      first_id: ids[0] ?? null,
      last_id: ids.at(-1) ?? null,
    }),
    modelById: id => (cards.has(id) ? JSON.stringify(cards.get(id)) : undefined),
  }
}

/** The models that a call would reach: there is a channel, and the price is known. */
function offersOf(provider: Provider, catalogue: Catalogue): readonly Offer[] {
  if (catalogue.channelsOf(provider.id).length === 0) return []
  return [...provider.models.values()]
    .filter(model => provider.free || model.price !== undefined)
    .map(model => ({ id: `${provider.id}/${model.id}`, provider, model }))
}

function modelCard({ id, provider, model }: Offer): object {
  return {
    id,
    object: 'model',
    created: 0, // a release date that is not known is the epoch, in both dialects
    owned_by: provider.id,
    type: 'model',
    display_name: model.name ?? model.id,
    created_at: '1970-01-01T00:00:00Z',
  }
}

function publicModel({ id, provider, model }: Offer): object {
  return {
    id,
    provider: provider.id,
    name: model.name ?? model.id,
    contextTokens: model.contextTokens ?? null,
    outputTokensMax: model.outputTokensMax ?? null,
  }
}

function publicProvider(provider: Provider, catalogue: Catalogue): object {
  return {
    id: provider.id,
    name: provider.name,
    website: provider.website ?? null,
    speaks: Object.keys(provider.speaks),
    models: provider.models.size,
    available: catalogue.channelsOf(provider.id).length > 0,
  }
}

const NOTHING = { input: '0.00', cacheRead: '0.00', output: '0.00' }

/** Every rate and every case, in USD; what is not named here has the rate of its neighbour (docs/prices.md). */
function publicPrice({ id, provider, model: { price } }: Offer): object {
  if (price === undefined) return { model: id, free: provider.free, ...NOTHING, cases: [] }
  const { rates, cases, currency } = price
  const cacheRead = rates.cacheRead ?? rates.input
  return {
    model: id,
    free: provider.free,
    ...rateTexts({ ...rates, cacheRead }),
    cases: cases.map(caseText),
    ...(currency && { currency }),
  }
}
