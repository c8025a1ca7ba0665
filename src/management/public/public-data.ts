// The public data: models, providers, prices, the site's name. A page is built on the first request, and again after a
// price, a rule, a tier, a setting or the health of a provider has changed.

import { Refusal } from '../../base/errors.ts'
import { hintOf } from '../../base/hints.ts'
import { shareWhilePending } from '../../base/share-while-pending.ts'
import type { PriceBook } from '../../billing/price-book.ts'
import type { CachedPage } from '../../http/server/cached-page.ts'
import { buildCachedPage } from '../../http/server/cached-page.ts'
import type { ListedModel } from '../../protocols/listed-model.ts'
import { unknownDate } from '../../protocols/listed-model.ts'
import { findProtocol } from '../../protocols/protocols.ts'
import type { HealthState } from '../../routing/health/health.ts'
import { compileAliases } from '../../routing/model-aliases.ts'
import type { LiveRules } from '../../store/rules/live-rules.ts'
import type { RouteRow } from '../../store/rules/rules.ts'
import type { Catalogue } from '../../upstreams/catalogue.ts'
import type { Provider } from '../../upstreams/provider.ts'
import type { SiteInfo } from '../services/site-settings.ts'
import type { OfferedModel, PublicTier } from './public-views.ts'
import { multiplierText, providerStatus, publicModel, publicName, publicPrice, publicProvider } from './public-views.ts'

export interface PublicData {
  readonly models: CachedPage
  readonly providers: CachedPage
  readonly settings: CachedPage
  /** The prices that keys of this tier pay; null: the base prices. Throws if there is no such tier. */
  pricing(tier: string | null): Promise<CachedPage>
  /** GET /v1/models, in a shape that readers of OpenAI's and of Anthropic's list both accept. */
  readonly modelList: string
  /** The same models, for the lists of other dialects. */
  readonly listed: readonly ListedModel[]
  /** GET /v1/models/{id}; undefined for a model that callers cannot use. */
  modelById(id: string): string | undefined
}

export interface PublicParts {
  readonly catalogue: Pick<Catalogue, 'providers' | 'channelsOf' | 'index'>
  readonly prices: Pick<PriceBook, 'current' | 'revision'>
  readonly rules: Pick<LiveRules, 'current'>
  site(): SiteInfo
  tiers(): Promise<readonly PublicTier[]>
  /** Undefined for a channel that has had no call. */
  standing(channelId: string): HealthState | undefined
}

export function buildPublicData(parts: PublicParts): PublicData {
  const { prices, rules } = parts
  const { site } = parts
  const readTiers = shareWhilePending(lastKnown(parts.tiers))
  let tiers: readonly PublicTier[] = []
  const publicModels = cached(
    () => buildPublicModels(parts),
    () => [prices.revision, rules.current, parts.catalogue.index],
  )
  const statuses = (): string =>
    [...parts.catalogue.providers.keys()].map(id => providerStatus(standingsOf(id, parts))).join()
  const models = cached(
    () => modelsPage(publicModels()),
    () => [publicModels()],
  )
  const providers = cached(
    () => providersPage(publicModels(), parts),
    () => [publicModels(), statuses()],
  )
  const settings = cached(
    () => buildCachedPage(JSON.stringify(site())),
    () => [JSON.stringify(site())],
  )
  const pricingPages = new Map<string | null, () => CachedPage>()
  async function pricing(tier: string | null): Promise<CachedPage> {
    tiers = await readTiers()
    if (tier !== null && !tiers.some(({ name }) => name === tier)) {
      const hint = hintOf('tier_unknown_listed', { tiers: tiers.map(({ name }) => name).join(', ') })
      throw new Refusal('resource_unknown', 'no such tier', { param: 'tier', hint })
    }
    if (!pricingPages.has(tier)) {
      if (pricingPages.size > TIERS_KEPT_MAX) pricingPages.clear()
      const make = (): CachedPage => pricingPage(publicModels(), tiers, tier)
      pricingPages.set(
        tier,
        cached(make, () => [publicModels(), JSON.stringify(tiers)]),
      )
    }
    return pricingPages.get(tier)!()
  }
  return {
    get models() {
      return models()
    },
    get providers() {
      return providers()
    },
    get settings() {
      return settings()
    },
    pricing,
    get modelList() {
      return publicModels().modelList
    },
    get listed() {
      return publicModels().listed
    },
    modelById: id => publicModels().modelById(id),
  }
}

const TIERS_KEPT_MAX = 16

/** Builds the value again when one of its inputs has changed. */
function cached<T>(build: () => T, readInputs: () => readonly unknown[]): () => T {
  let last: { readonly value: T; readonly inputs: readonly unknown[] } | undefined
  return () => {
    const inputs = readInputs()
    if (last === undefined || inputs.some((input, at) => input !== last!.inputs[at])) last = { value: build(), inputs }
    return last.value
  }
}

/** Returns the last value that could be read while the database is unavailable. */
function lastKnown<T>(read: () => Promise<T>): () => Promise<T> {
  let known: { readonly value: T } | undefined
  return async () => {
    try {
      known = { value: await read() }
    } catch (fault) {
      if (known === undefined) throw fault
    }
    return known.value
  }
}

interface PublicModels extends Pick<PublicData, 'modelList' | 'listed' | 'modelById'> {
  readonly offers: readonly OfferedModel[]
  /** The entries of `listed` that are model names of the operator. */
  readonly names: readonly ListedModel[]
}

function buildPublicModels(parts: PublicParts): PublicModels {
  const offers = [...parts.catalogue.providers.values()].flatMap(provider => offersOf(provider, parts))
  const models = offers.map(listedModel)
  const names = listedNames(parts.rules.current.routes, models)
  const listed = [...models, ...names, ...listedBareNames(parts, models, names)]
  const cards = new Map(listed.map(model => [model.id, modelCard(model)]))
  const ids = [...cards.keys()]
  return {
    offers,
    names,
    listed,
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

const modelsPage = ({ offers, names }: PublicModels): CachedPage =>
  buildCachedPage(JSON.stringify({ data: offers.map(publicModel), names: names.map(publicName) }))

const standingsOf = (providerId: string, { catalogue, standing }: PublicParts): readonly (HealthState | undefined)[] =>
  catalogue.channelsOf(providerId).map(({ id }) => standing(id))

/** Lists only providers that callers can use. Others that the operator configured stay private. */
function providersPage({ offers }: PublicModels, parts: PublicParts): CachedPage {
  const data = [...parts.catalogue.providers.values()].flatMap(provider => {
    const standings = standingsOf(provider.id, parts)
    const count = offers.filter(offer => offer.provider.id === provider.id).length
    return standings.length === 0
      ? []
      : [publicProvider(provider, { offers: count, status: providerStatus(standings) })]
  })
  return buildCachedPage(JSON.stringify({ data }))
}

function pricingPage({ offers }: PublicModels, tiers: readonly PublicTier[], tier: string | null): CachedPage {
  const perMille = BigInt(tiers.find(({ name }) => name === tier)?.pricePerMille ?? 1000)
  return buildCachedPage(
    JSON.stringify({
      currency: 'USD',
      unit: 'million tokens',
      tier,
      tiers: tiers.map(({ name, pricePerMille }) => ({ name, multiplier: multiplierText(pricePerMille) })),
      data: offers.map(({ id, price }) => ({ model: id, ...publicPrice(price, perMille) })),
    }),
  )
}

/** The models that callers can use: the provider has a channel, and the model has a price or is free. */
function offersOf(provider: Provider, { catalogue, prices }: PublicParts): readonly OfferedModel[] {
  if (catalogue.channelsOf(provider.id).length === 0) return []
  return [...provider.models.values()].flatMap(model => {
    const id = `${provider.id}/${model.id}`
    const price = prices.current(id)?.price
    const free = provider.free || model.free === true
    return free || price !== undefined ? [{ id, provider, model, price }] : []
  })
}

function listedModel({ id, provider, model }: OfferedModel): ListedModel {
  const traits = model.traits ?? provider.traits
  const served = model.speaks ?? Object.keys(provider.speaks)
  const hasCodec = served.some(name => findProtocol(name)?.codec !== undefined)
  const { contextTokens, outputTokensMax } = model
  return {
    id,
    name: model.name ?? model.id,
    provider: provider.id,
    ...(contextTokens !== undefined && { contextTokens }),
    ...(outputTokensMax !== undefined && { outputTokensMax }),
    ...(Object.keys(traits).length > 0 && { traits }),
    ...(!hasCodec && { passthroughDialects: served }),
  }
}

/** The model names that the operator defined, without patterns. */
function listedNames(routes: readonly RouteRow[], models: readonly ListedModel[]): readonly ListedModel[] {
  const names = compileAliases(routes)
  const byId = new Map(models.map(model => [model.id, model]))
  return routes.flatMap(({ name }) => {
    const members = names.resolve(name)!.members.flatMap(({ model }) => byId.get(model) ?? [])
    return members.length === 0 || name.includes('*') || byId.has(name) ? [] : [listedName(name, members)]
  })
}

/** The names without a provider, except those that the operator has given to something else. */
function listedBareNames(
  { catalogue, rules }: PublicParts,
  models: readonly ListedModel[],
  names: readonly ListedModel[],
): readonly ListedModel[] {
  const aliases = compileAliases(rules.current.routes)
  const byId = new Map([...models, ...names].map(model => [model.id, model]))
  return [...catalogue.index.bareNames()].flatMap(([name, meant]) => {
    const members = meant.flatMap(model => byId.get(model.name) ?? [])
    return members.length === 0 || byId.has(name) || aliases.resolve(name) ? [] : [listedName(name, members)]
  })
}

/** A name has the traits of its first model and the smallest sizes of all of its models. */
function listedName(name: string, members: readonly ListedModel[]): ListedModel {
  const smallest = (sizes: readonly (number | undefined)[]): number | undefined =>
    sizes.every(size => size !== undefined) ? Math.min(...sizes) : undefined
  const { contextTokens: _context, outputTokensMax: _output, ...first } = members[0]!
  const contextTokens = smallest(members.map(member => member.contextTokens))
  const outputTokensMax = smallest(members.map(member => member.outputTokensMax))
  return {
    ...first,
    id: name,
    name,
    ...(contextTokens !== undefined && { contextTokens }),
    ...(outputTokensMax !== undefined && { outputTokensMax }),
  }
}

function modelCard({ id, name, provider, passthroughDialects }: ListedModel): object {
  return {
    id,
    object: 'model',
    created: unknownDate.seconds,
    owned_by: provider,
    type: 'model',
    display_name: name,
    created_at: unknownDate.text,
    ...(passthroughDialects && { speaks: passthroughDialects }),
  }
}
