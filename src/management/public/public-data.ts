// What anybody may know: models, providers, prices, the site's name. Made when it is asked for, and again when a price,
// a rule, a tier, a setting or the health of a provider has changed.

import { Refusal } from '../../base/errors.ts'
import type { PriceBook } from '../../billing/price-book.ts'
import type { KeptPage } from '../../http/server/cached-page.ts'
import { keepPage } from '../../http/server/cached-page.ts'
import { protocolNamed } from '../../protocols/list.ts'
import type { ListedModel } from '../../protocols/listed-model.ts'
import { unknownDate } from '../../protocols/listed-model.ts'
import type { Standing } from '../../routing/health/health.ts'
import { compileRoutes } from '../../routing/model-aliases.ts'
import type { RouteRow } from '../../store/rules/rules.ts'
import type { RuleBook } from '../../store/rules/rules-book.ts'
import type { Catalogue } from '../../upstreams/catalogue.ts'
import type { Provider } from '../../upstreams/provider.ts'
import type { Offer, PublicTier } from './cards.ts'
import { multiplierText, publicModel, publicName, publicPrice, publicProvider, statusOf } from './cards.ts'

export interface PublicData {
  readonly models: KeptPage
  readonly providers: KeptPage
  readonly settings: KeptPage
  /** As keys of that tier pay; null: as they are. Throws for a tier that there is not. */
  pricing(tier: string | null): KeptPage
  /** GET /v1/models, in a shape that readers of OpenAI's and of Anthropic's list both accept. */
  readonly modelList: string
  /** The same, for lists of other shapes. */
  readonly listed: readonly ListedModel[]
  /** GET /v1/models/{id}; undefined for a model that cannot be called. */
  modelById(id: string): string | undefined
}

export interface Site {
  readonly name: string
  readonly notice: string | null
  /** Whether anybody may make an account. */
  readonly registration: boolean
  readonly version: string
}

export interface PublicParts {
  readonly catalogue: Pick<Catalogue, 'providers' | 'channelsOf'>
  readonly prices: Pick<PriceBook, 'current' | 'revision'>
  readonly rules: Pick<RuleBook, 'current'>
  site(): Site
  tiers(): readonly PublicTier[]
  /** Undefined of a channel that no call has come to. */
  standing(channelId: string): Standing | undefined
}

export function buildPublicData(parts: PublicParts): PublicData {
  const { prices, rules } = parts
  const [site, tiers] = [lastKnown(parts.site), lastKnown(parts.tiers)]
  const offering = made(
    () => makeOffering(parts),
    () => [prices.revision, rules.current],
  )
  const statuses = (): string =>
    [...parts.catalogue.providers.keys()].map(id => statusOf(standingsOf(id, parts))).join()
  const models = made(
    () => modelsPage(offering()),
    () => [offering()],
  )
  const providers = made(
    () => providersPage(offering(), parts),
    () => [offering(), statuses()],
  )
  const settings = made(
    () => keepPage(JSON.stringify(site())),
    () => [JSON.stringify(site())],
  )
  const priced = new Map<string | null, () => KeptPage>()
  function pricing(tier: string | null): KeptPage {
    const known = tiers()
    if (tier !== null && !known.some(({ name }) => name === tier)) {
      throw new Refusal('resource_unknown', 'no such tier', { param: 'tier' })
    }
    if (!priced.has(tier)) {
      if (priced.size > TIERS_KEPT_MAX) priced.clear()
      const make = (): KeptPage => pricingPage(offering(), tiers(), tier)
      priced.set(
        tier,
        made(make, () => [offering(), JSON.stringify(tiers())]),
      )
    }
    return priced.get(tier)!()
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
      return offering().modelList
    },
    get listed() {
      return offering().listed
    },
    modelById: id => offering().modelById(id),
  }
}

const TIERS_KEPT_MAX = 16

/** Made again when one of those that it is made of is another. */
function made<T>(make: () => T, of: () => readonly unknown[]): () => T {
  let last: { readonly value: T; readonly of: readonly unknown[] } | undefined
  return () => {
    const now = of()
    if (last === undefined || now.some((one, at) => one !== last!.of[at])) last = { value: make(), of: now }
    return last.value
  }
}

/** While the database is away, what was so before still is. */
function lastKnown<T>(look: () => T): () => T {
  let known: { readonly value: T } | undefined
  return () => {
    try {
      known = { value: look() }
    } catch (fault) {
      if (known === undefined) throw fault
    }
    return known.value
  }
}

interface Offering extends Pick<PublicData, 'modelList' | 'listed' | 'modelById'> {
  readonly offers: readonly Offer[]
  /** Of `listed`, those that are names of models. */
  readonly names: readonly ListedModel[]
}

function makeOffering(parts: PublicParts): Offering {
  const offers = [...parts.catalogue.providers.values()].flatMap(provider => offersOf(provider, parts))
  const models = offers.map(listedModel)
  const names = listedNames(parts.rules.current.routes, models)
  const listed = [...models, ...names]
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

const modelsPage = ({ offers, names }: Offering): KeptPage =>
  keepPage(JSON.stringify({ data: offers.map(publicModel), names: names.map(publicName) }))

const standingsOf = (providerId: string, { catalogue, standing }: PublicParts): readonly (Standing | undefined)[] =>
  catalogue.channelsOf(providerId).map(({ id }) => standing(id))

/** Those that can be called. That an operator has others, or had, is nobody's business. */
function providersPage({ offers }: Offering, parts: PublicParts): KeptPage {
  const data = [...parts.catalogue.providers.values()].flatMap(provider => {
    const standings = standingsOf(provider.id, parts)
    const own = offers.filter(offer => offer.provider.id === provider.id).length
    return standings.length === 0 ? [] : [publicProvider(provider, { offers: own, status: statusOf(standings) })]
  })
  return keepPage(JSON.stringify({ data }))
}

function pricingPage({ offers }: Offering, tiers: readonly PublicTier[], tier: string | null): KeptPage {
  const perMille = BigInt(tiers.find(({ name }) => name === tier)?.pricePerMille ?? 1000)
  return keepPage(
    JSON.stringify({
      currency: 'USD',
      unit: 'million tokens',
      tier,
      tiers: tiers.map(({ name, pricePerMille }) => ({ name, multiplier: multiplierText(pricePerMille) })),
      data: offers.map(({ id, price }) => ({ model: id, ...publicPrice(price, perMille) })),
    }),
  )
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
