// What anybody may know: models, providers, prices, the site's name. Made once, and again when a price or a rule has
// changed.

import type { Price } from '../base/price.ts'
import { caseText, rateTexts } from '../base/price.ts'
import type { PriceBook } from '../billing/price-book.ts'
import { protocolNamed } from '../protocols/list.ts'
import type { ListedModel } from '../protocols/listed-model.ts'
import { unknownDate } from '../protocols/listed-model.ts'
import { compileRoutes } from '../routing/names.ts'
import type { RouteRow } from '../store/rules.ts'
import type { RuleBook } from '../store/rules-book.ts'
import type { Catalogue } from '../upstreams/catalogue.ts'
import type { Model, Provider } from '../upstreams/provider.ts'

export interface PublicData {
  readonly models: string
  readonly providers: string
  readonly pricing: string
  readonly settings: string
  /** GET /v1/models, in a shape that readers of OpenAI's and of Anthropic's list both accept. */
  readonly modelList: string
  /** The same, for lists of other shapes. */
  readonly listed: readonly ListedModel[]
  /** GET /v1/models/{id}; undefined for a model that cannot be called. */
  modelById(id: string): string | undefined
}

export interface PublicParts {
  readonly catalogue: Catalogue
  readonly prices: Pick<PriceBook, 'current' | 'revision'>
  readonly rules: Pick<RuleBook, 'current'>
  readonly site: { readonly name: string; readonly version: string }
}

interface Offer {
  readonly id: string
  readonly provider: Provider
  readonly model: Model
  /** Undefined: free of charge. */
  readonly price: Price | undefined
}

export function buildPublicData(parts: PublicParts): PublicData {
  const { prices, rules } = parts
  let made = makePublicData(parts)
  let madeOf = { revision: prices.revision, rules: rules.current }
  const now = (): PublicData => {
    if (madeOf.revision !== prices.revision || madeOf.rules !== rules.current) {
      made = makePublicData(parts)
      madeOf = { revision: prices.revision, rules: rules.current }
    }
    return made
  }
  return {
    get models() {
      return now().models
    },
    get pricing() {
      return now().pricing
    },
    get modelList() {
      return now().modelList
    },
    get listed() {
      return now().listed
    },
    modelById: id => now().modelById(id),
    get providers() {
      return now().providers
    },
    settings: made.settings,
  }
}

function makePublicData(parts: PublicParts): PublicData {
  const { catalogue, site } = parts
  const offers = [...catalogue.providers.values()].flatMap(provider => offersOf(provider, parts))
  const models = offers.map(listedModel)
  const listed = [...models, ...listedNames(parts.rules.current.routes, models)]
  const cards = new Map(listed.map(model => [model.id, modelCard(model)]))
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
    listed,
    modelById: id => (cards.has(id) ? JSON.stringify(cards.get(id)) : undefined),
  }
}

/** The models that a call would reach: there is a channel, and the price is known. */
function offersOf(provider: Provider, { catalogue, prices }: PublicParts): readonly Offer[] {
  if (catalogue.channelsOf(provider.id).length === 0) return []
  return [...provider.models.values()].flatMap(model => {
    const id = `${provider.id}/${model.id}`
    const free = provider.free || model.free === true
    const price = free ? undefined : prices.current(id)?.price
    return free || price !== undefined ? [{ id, provider, model, price }] : []
  })
}

function listedModel({ id, provider, model }: Offer): ListedModel {
  const traits = model.traits ?? provider.traits
  const served = model.speaks ?? Object.keys(provider.speaks)
  const talks = served.some(name => protocolNamed(name)?.codec !== undefined)
  const { contextTokens, outputTokensMax } = model
  return {
    id,
    name: model.name ?? model.id,
    provider: provider.id,
    ...(contextTokens !== undefined && { contextTokens }),
    ...(outputTokensMax !== undefined && { outputTokensMax }),
    ...(Object.keys(traits).length > 0 && { traits }),
    ...(!talks && { sideOnly: served }),
  }
}

/** The names that an operator gave, but for patterns: each as what it first stands for, with what all of it holds. */
function listedNames(routes: readonly RouteRow[], models: readonly ListedModel[]): readonly ListedModel[] {
  const names = compileRoutes(routes)
  const byId = new Map(models.map(model => [model.id, model]))
  return routes.flatMap(({ name }) => {
    const members = names.resolve(name)!.members.flatMap(({ model }) => byId.get(model) ?? [])
    if (members.length === 0 || name.includes('*') || byId.has(name)) return []
    const least = (sizes: readonly (number | undefined)[]): number | undefined =>
      sizes.every(size => size !== undefined) ? Math.min(...sizes) : undefined
    const { contextTokens: _context, outputTokensMax: _output, ...first } = members[0]!
    const contextTokens = least(members.map(member => member.contextTokens))
    const outputTokensMax = least(members.map(member => member.outputTokensMax))
    return [
      {
        ...{ ...first, id: name, name },
        ...(contextTokens !== undefined && { contextTokens }),
        ...(outputTokensMax !== undefined && { outputTokensMax }),
      },
    ]
  })
}

function modelCard({ id, name, provider, sideOnly }: ListedModel): object {
  return {
    id,
    object: 'model',
    created: unknownDate.seconds,
    owned_by: provider,
    type: 'model',
    display_name: name,
    created_at: unknownDate.text,
    ...(sideOnly && { speaks: sideOnly }),
  }
}

function publicModel({ id, provider, model }: Offer): object {
  return {
    id,
    provider: provider.id,
    name: model.name ?? model.id,
    contextTokens: model.contextTokens ?? null,
    outputTokensMax: model.outputTokensMax ?? null,
    ...(model.speaks && { speaks: model.speaks }),
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

/** Every rate and every case, in USD, fees each. A kind of token that is not named costs what its neighbour does. */
function publicPrice({ id, price }: Offer): object {
  if (price === undefined) return { model: id, free: true, ...NOTHING, cases: [] }
  const { rates, cases, currency } = price
  return {
    model: id,
    free: false,
    ...rateTexts({ ...rates, cacheRead: rates.cacheRead ?? rates.input }),
    cases: cases.map(caseText),
    ...(currency && { convertedFrom: currency }),
  }
}
