// Finds the targets of a model name: the models and providers, the dialect in which the gateway speaks to each, and
// their channels with their health. Groups are built once per name and dialect, and again when an operator changes
// something. They hold no state of single calls.

import { bounds } from '../../base/bounds.ts'
import type { ErrorCode } from '../../base/errors.ts'
import { Refusal } from '../../base/errors.ts'
import { hintOf } from '../../base/hints.ts'
import type { Price } from '../../base/money/price.ts'
import type { Secret } from '../../base/secrets/secret.ts'
import type { RuleNames } from '../../base/text/rule-names.ts'
import { joinNames, plainNames, variantBase, withoutModelsPath } from '../../base/text/rule-names.ts'
import type { PriceBook } from '../../billing/price-book.ts'
import type { KeyRights } from '../../identity/key-rights.ts'
import { checkModelAllowed, mayUseChannel } from '../../identity/key-rights.ts'
import type { Protocol } from '../../protocols/protocol.ts'
import { findProtocol } from '../../protocols/protocols.ts'
import type { ChannelOption, TargetOption } from '../../routing/choice/target-option.ts'
import { Health } from '../../routing/health/health.ts'
import type { ChannelCaps } from '../../routing/health/operator-caps.ts'
import { CapShare } from '../../routing/health/operator-caps.ts'
import type { ModelAliases, ResolvedModel } from '../../routing/model-aliases.ts'
import { compileAliases } from '../../routing/model-aliases.ts'
import { checkModelName, checkNameText, isPlainId, parseModelName } from '../../routing/model-name.ts'
import type { ChannelRow, MemberRow, PolicyName, Rules } from '../../store/rules/rules.ts'
import type { Catalogue } from '../../upstreams/catalogue.ts'
import type { Channel } from '../../upstreams/channel.ts'
import type { IndexedModel, ModelIndex } from '../../upstreams/model-index.ts'
import type { Model, Provider } from '../../upstreams/provider.ts'
import { selectUsable } from './usable.ts'

/** A channel of a target, which routing may pick. */
export interface TargetChannel extends ChannelOption {
  readonly channel: Channel
  /** Labels of the operator about the data that may go there. */
  readonly tags: readonly string[]
}

/** A model at a provider, and its channels. */
export interface ModelTarget {
  /** The names that a key's rights are compared with. */
  readonly names: RuleNames
  readonly provider: Provider
  readonly model: Model
  readonly channels: readonly TargetChannel[]
}

/** A model at a provider, in the dialect in which the gateway speaks to it. */
export interface Target extends ModelTarget {
  /** The dialect of the upstream. */
  readonly upstreamProtocol: Protocol
  /** Further dialects of the provider, for requests that can be translated better into one of them. Absent: none. */
  readonly otherProtocols?: readonly Protocol[]
  /** The target as routing sees it. */
  readonly option: TargetOption
}

/** The targets of a model name in one dialect: at least one, in order of preference. */
export interface TargetGroup {
  readonly requestedModel: string
  readonly policy: PolicyName
  readonly targets: readonly Target[]
  /** The options of the targets for routing, in the same order. */
  readonly options: readonly TargetOption[]
}

/** The names of a call's model, for the limits. */
export interface ModelNames {
  /** The first model of the name. */
  readonly model: string
  /** The requested name, and its models with all their names, without the fallbacks that an operator has configured. */
  readonly names: RuleNames
}

export interface ExplainedTarget {
  /** `<provider>/<model>`. */
  readonly model: string
  /** Why no channel can serve the model. */
  readonly refused?: ErrorCode
  readonly channels: readonly Pick<TargetChannel, 'id' | 'tags'>[]
}

export interface TargetsParts {
  readonly catalogue: Catalogue
  readonly prices: Pick<PriceBook, 'current'>
  chance(): number
  /** How many processes use the channels, with this one; undefined if there is only this one. */
  readonly processes?: (() => number) | undefined
  /** Called when a provider refuses a credential; its channel is not used any more. */
  onCredentialOff(channelId: string): void
  /** Called when the quota of a credential is used up. */
  onQuotaSpent?(channelId: string): void
  /** Called when such a credential works again. */
  onRecovered?(channelId: string): void
}

const DEFAULT_POLICY: PolicyName = 'balanced'

export class Targets {
  readonly #parts: TargetsParts
  readonly #healths = new Map<string, WatchedHealth>()
  #groups = new Map<string, TargetGroup>()
  #channels = new Map<string, readonly TargetChannel[]>()
  #aliases: ModelAliases = compileAliases([])
  #resolved = new Map<string, Resolution>()
  /** The index that the cached names and groups were built with. */
  #index: ModelIndex | undefined

  constructor(parts: TargetsParts) {
    this.#parts = parts
  }

  /** Applies to new calls; running calls keep what they have. The health of unchanged channels stays. */
  setRules({ routes }: Pick<Rules, 'routes'>): void {
    this.#aliases = compileAliases(routes)
    this.#index = this.#parts.catalogue.index // built here, so that no call waits for it
    this.#clear()
  }

  #clear(): void {
    this.#groups = new Map()
    this.#resolved = new Map()
    this.#channels = new Map()
    this.#renewHealths()
  }

  /** The health of an unchanged channel stays. With another credential it is reset. */
  #renewHealths(): void {
    const { catalogue } = this.#parts
    const keys = new Map(catalogue.all().map(({ id, key }) => [id, key]))
    for (const [id, watched] of this.#healths) {
      const key = keys.get(id)
      if (key === undefined) {
        this.#healths.delete(id)
        continue
      }
      watched.health.caps = this.#capsOf(catalogue.rulesOf(id))
      if (!watched.key.isSameAs(key)) watched.health.reset()
      watched.key = key
    }
  }

  /** Called after a price change, because targets are compared by price. */
  forget(): void {
    this.#groups = new Map()
    this.#resolved = new Map()
  }

  healthOf(channelId: string): Health | undefined {
    return this.#healths.get(channelId)?.health
  }

  /**
   * Throws where the text is not a valid model name. The model need not exist: routing refuses the name, after the call
   * was counted.
   */
  namesOf(requested: string, rights: KeyRights): ModelNames {
    const resolved = this.#resolve(requested)
    if (typeof resolved === 'function') return { model: requested, names: plainNames(requested) }
    const { members, limitNames, isAlias } = resolved
    if (isAlias || members.length === 1) return limitNames
    // Any model that the key may use may answer, so a limit of each of them counts the call.
    const usable = members.filter(member => this.#mayUse(member, rights, requested))
    if (usable.length === 0 || usable.length === members.length) return limitNames
    const key = usable.map(({ model }) => model).join(' ')
    let names = resolved.limitNamesOfSome.get(key)
    if (names === undefined) {
      names = buildLimitNames(requested, usable)
      if (resolved.limitNamesOfSome.size >= bounds.targetGroupsMax) resolved.limitNamesOfSome.clear()
      resolved.limitNamesOfSome.set(key, names)
    }
    return names
  }

  /** Why no call of a key with these rights can use a name; undefined if one can. */
  problemOf(requested: string, rights: KeyRights): ErrorCode | undefined {
    const resolved = this.#resolve(requested)
    if (typeof resolved === 'function') return resolved().code
    let problem: ErrorCode = 'model_unknown'
    for (const { model: name, names } of resolved.members) {
      try {
        checkModelAllowed(rights, { requested, names })
        const { provider, model } = this.#findModel(name)
        this.#channelsFor(name, provider, rights.requires)
        const isPriced = provider.free || model.free === true || this.#parts.prices.current(name) !== undefined
        if (isPriced) return undefined
        problem = 'price_unknown'
      } catch (fault) {
        if (!(fault instanceof Refusal)) throw fault
        problem = fault.code
      }
    }
    return problem
  }

  #mayUse({ model, names }: NamedMember, rights: KeyRights, requested: string): boolean {
    try {
      checkModelAllowed(rights, { requested, names })
      return this.#channelsFor(model, this.#findModel(model).provider, rights.requires).length > 0
    } catch (fault) {
      if (!(fault instanceof Refusal)) throw fault
      return false
    }
  }

  /**
   * What a name means: first what an operator has defined, then a model of a provider, then a name without one. For a
   * name without a meaning, the function that says why.
   */
  #resolve(requested: string): Resolution | (() => Refusal) {
    const { index } = this.#parts.catalogue
    if (index !== this.#index) {
      this.#clear() // providers, models or channels have changed
      this.#index = index
    }
    const known = this.#resolved.get(requested)
    if (known !== undefined) return known
    const alias = this.#aliases.resolve(requested)
    if (alias === undefined) checkModelName(requested)
    else checkNameText(requested) // a pattern of an operator matches any text
    const meaning = alias ?? this.#meaningOf(requested)
    if (typeof meaning === 'function') return meaning
    const { policy, members: rows } = meaning
    const isAlias = alias !== undefined
    const members = rows.map((row): NamedMember => {
      const names = this.#namesOf(row.model)
      return { ...row, names: isAlias ? joinNames([plainNames(requested), names]) : names }
    })
    const counted = isAlias ? members.filter(({ priority }) => priority === members[0]?.priority) : members
    const limitNames = buildLimitNames(requested, counted)
    const resolution = { policy, members, isAlias, limitNames, limitNamesOfSome: new Map<string, ModelNames>() }
    if (this.#resolved.size >= bounds.targetGroupsMax) this.#resolved.clear()
    this.#resolved.set(requested, resolution)
    return resolution
  }

  #requireMeaning(requested: string): Resolution {
    const resolved = this.#resolve(requested)
    if (typeof resolved === 'function') throw resolved()
    return resolved
  }

  /**
   * All names of a model. A name that an operator has given to other models still forbids and counts the model, because
   * a rule may be older than the operator's name; it does not allow the model any more.
   */
  #namesOf(model: string): RuleNames {
    const { providers, index } = this.#parts.catalogue
    const { provider: id, model: modelId } = parseModelName(model)
    const provider = providers.get(id)
    if (provider === undefined) return plainNames(model)
    const names = index.namesOf(provider, modelId)
    const written = names.written.filter(name => name === model || this.#aliases.resolve(name) === undefined)
    return { ...names, written }
  }

  /** A function where no model has this name, or models of several makers. */
  #meaningOf(requested: string): ResolvedModel | (() => Refusal) {
    const { catalogue, prices } = this.#parts
    const exact = exactModel(catalogue, prices, requested)
    const listed = exact && listedModel(catalogue, exact)
    if (listed !== undefined) return this.#meaningOf(listed)
    if (exact !== undefined && catalogue.channelsOf(exact.provider.id).length > 0) return singleModel(requested)
    const { index } = catalogue
    const models = index.find(requested)?.filter(({ hasChannel }) => exact === undefined || hasChannel) ?? []
    if (models.length === 0) {
      return exact === undefined ? () => unknownModel(requested, catalogue) : singleModel(requested)
    }
    if (index.makersOf(models).length > 1) return () => ambiguousModel(requested, models)
    const members = models.slice(0, bounds.routeMembersMax).map(({ name, isMakers }) => ({
      model: name,
      priority: isMakers ? 0 : 1,
      weight: 1,
    }))
    return { policy: DEFAULT_POLICY, members }
  }

  /** Uses only channels that have all the required tags. Throws where none can serve the model. */
  find(requested: string, protocol: Protocol, requires: KeyRights['requires'] = null): TargetGroup {
    const resolution = this.#requireMeaning(requested)
    const key = `${protocol.name} ${requested} ${requires?.join() ?? ''}`
    const known = this.#groups.get(key)
    if (known !== undefined) return known
    const group = this.#buildGroup(requested, resolution, protocol, requires)
    if (this.#groups.size >= bounds.targetGroupsMax) this.#groups.clear()
    this.#groups.set(key, group)
    return group
  }

  /** The models of a name in any dialect, each with its own name. Throws where no channel can serve any of them. */
  modelTargets(
    requested: string,
    requires: KeyRights['requires'],
  ): readonly (ModelTarget & { readonly name: string })[] {
    const { members } = this.#requireMeaning(requested)
    return selectUsable(members, member => ({ ...this.#modelTargetOf(member, requires), name: member.model }))
  }

  /** For explanations: each model with its channels, or with the reason why it is left out. */
  explain(requested: string, protocol: Protocol): readonly ExplainedTarget[] {
    const resolved = this.#resolve(requested)
    if (typeof resolved === 'function') return [{ model: requested, refused: resolved().code, channels: [] }]
    return resolved.members.map(member => {
      const { model } = member
      try {
        return { model, channels: this.#targetFor(member, protocol, null).channels }
      } catch (fault) {
        if (!(fault instanceof Refusal)) throw fault
        return { model, refused: fault.code, channels: [] }
      }
    })
  }

  #buildGroup(
    requested: string,
    { policy, members }: Resolution,
    protocol: Protocol,
    requires: KeyRights['requires'],
  ): TargetGroup {
    const targets = [...selectUsable(members, member => this.#targetFor(member, protocol, requires))]
    targets.sort(({ option: one }, { option: other }) => one.priority - other.priority)
    return { requestedModel: requested, policy, targets, options: targets.map(({ option }) => option) }
  }

  #targetFor(
    { model: name, names, priority, weight }: NamedMember,
    protocol: Protocol,
    requires: KeyRights['requires'],
  ): Target {
    const { provider, model } = this.#findModel(name)
    const [upstreamProtocol, ...otherProtocols] = dialectsFor(provider, model, protocol)
    if (upstreamProtocol === undefined)
      throw new Refusal('call_unserved', `${provider.id}: ${protocol.name}`, { param: 'model' })
    const channels = this.#channelsFor(name, provider, requires)
    const price = this.#parts.prices.current(name)?.price
    const option: TargetOption = {
      name,
      priority,
      weight,
      needsTranslation: upstreamProtocol !== protocol,
      price: typicalCost(price),
      channels,
    }
    const target = { names, provider, model, upstreamProtocol, channels, option }
    return otherProtocols.length === 0 ? target : { ...target, otherProtocols }
  }

  #modelTargetOf({ model: name, names }: NamedMember, requires: KeyRights['requires']): ModelTarget {
    const { provider, model } = this.#findModel(name)
    return { names, provider, model, channels: this.#channelsFor(name, provider, requires) }
  }

  /** Throws where the provider or the model does not exist. */
  #findModel(name: string): FoundModel {
    const { catalogue, prices } = this.#parts
    const found = exactModel(catalogue, prices, name)
    if (found === undefined) throw unknownModel(name, catalogue)
    return found
  }

  #channelsFor(name: string, provider: Provider, requires: KeyRights['requires']): readonly TargetChannel[] {
    const all = this.#channelsOf(provider)
    if (all.length === 0) throw noEnabledChannel(provider)
    const channels = requires === null ? all : this.#withTags(provider, all, requires)
    if (channels.length === 0)
      throw new Refusal('model_forbidden', `${name}: tags`, { param: 'model', hint: hintOf('call_no_tags') })
    return channels
  }

  /** All models of a provider share one list, because routing prepares much data for each list. */
  #withTags({ id }: Provider, all: readonly TargetChannel[], requires: readonly string[]): readonly TargetChannel[] {
    const key = `${id} ${requires.join()}`
    let channels = this.#channels.get(key)
    if (channels === undefined) {
      channels = all.filter(({ tags }) => mayUseChannel({ requires }, tags))
      if (this.#channels.size >= bounds.targetGroupsMax) this.#channels.clear()
      this.#channels.set(key, channels)
    }
    return channels
  }

  /** All models of a provider share these. */
  #channelsOf(provider: Provider): readonly TargetChannel[] {
    const known = this.#channels.get(provider.id)
    if (known !== undefined) return known
    const channels: TargetChannel[] = []
    const { catalogue } = this.#parts
    for (const channel of catalogue.channelsOf(provider.id)) {
      const row = catalogue.rulesOf(channel.id)
      const { weight, priority, tags } = row
      channels.push({ id: channel.id, channel, weight, priority, tags, health: this.#healthFor(channel, row) })
    }
    this.#channels.set(provider.id, channels)
    return channels
  }

  #healthFor({ id, key }: Channel, row: ChannelRow): Health {
    const known = this.#healths.get(id)
    if (known !== undefined) return known.health
    const { chance, onCredentialOff, onQuotaSpent, onRecovered } = this.#parts
    const health = new Health({
      caps: this.#capsOf(row),
      random: chance,
      onCredentialRefused: () => onCredentialOff(id),
      onQuotaSpent: () => onQuotaSpent?.(id),
      onRecovered: () => onRecovered?.(id),
    })
    this.#healths.set(id, { health, key })
    return health
  }

  #capsOf(row: ChannelRow): ChannelCaps {
    const { processes } = this.#parts
    return processes === undefined ? capsOf(row) : new CapShare(capsOf(row), processes)
  }
}

interface WatchedHealth {
  readonly health: Health
  /** The credential that the health belongs to. */
  key: Secret
}

/** A price to compare targets by: three tokens of input for each token of output. */
function typicalCost(price: Price | undefined): number {
  if (price === undefined) return 0
  const { input, output } = price.rates
  return 3 * Number(input) + Number(output)
}

const singleModel = (requested: string): ResolvedModel => ({
  policy: DEFAULT_POLICY,
  members: [{ model: requested, priority: 0, weight: 1 }],
})

function capsOf({ requestsPerMinute, tokensPerMinute, concurrency }: ChannelRow): ChannelCaps {
  return {
    ...(requestsPerMinute !== null && { requestsPerMinute }),
    ...(tokensPerMinute !== null && { tokensPerMinute }),
    ...(concurrency !== null && { concurrency }),
  }
}

/**
 * The caller's own dialect if the provider speaks it, so that nothing is translated; else those that the call can be
 * translated into, in the order of the provider.
 */
function dialectsFor(provider: Provider, model: Model, protocol: Protocol): readonly Protocol[] {
  const served = (model.speaks ?? Object.keys(provider.speaks)).filter(name => provider.speaks[name] !== undefined)
  if (served.includes(protocol.name)) return [protocol]
  return served.flatMap(name => findProtocol(name) ?? []).filter(other => canTranslate(protocol, other))
}

/** Conversations are translated into conversations, and embeddings into embeddings. */
function canTranslate({ codec, vectors }: Protocol, other: Protocol): boolean {
  if (codec !== undefined) return other.codec !== undefined
  return vectors !== undefined && other.vectors !== undefined
}

/**
 * The model with this name at its provider; undefined if there is none. A model that the provider file does not list can
 * be called if the provider takes any model, or if an operator has set its price, but not in a spelling that servers may
 * read as that of another model. A variant of such a model exists, too, but needs a price of its own. Only aggregators,
 * whose models are in a list of their own, have variants of listed models.
 */
function exactModel(
  { providers }: Pick<Catalogue, 'providers'>,
  prices: TargetsParts['prices'],
  name: string,
): FoundModel | undefined {
  const slash = name.indexOf('/')
  const provider = providers.get(name.slice(0, Math.max(0, slash)))
  if (provider === undefined) return undefined
  const id = name.slice(slash + 1)
  const isOpen = (modelId: string): boolean =>
    provider.openModels || prices.current(`${provider.id}/${modelId}`) !== undefined
  const base = variantBase(id)
  const hasVariants = (modelId: string): boolean =>
    provider.models.has(modelId) ? provider.modelList !== undefined : isOpen(modelId)
  const isVariant = base !== undefined && hasVariants(base)
  const model = provider.models.get(id) ?? (isPlainId(id) && (isOpen(id) || isVariant) ? { id } : undefined)
  return model && { provider, model }
}

/**
 * The name of the listed model that an unlisted one means in another spelling. Otherwise another spelling would have
 * another price, and no limit.
 */
function listedModel({ index }: Pick<Catalogue, 'index'>, { provider, model }: FoundModel): string | undefined {
  if (provider.models.has(model.id)) return undefined
  const id = withoutModelsPath(model.id)
  if (provider.models.has(id)) return `${provider.id}/${id}`
  return index.find(id)?.find(one => one.provider.id === provider.id)?.name
}

const SHOWN_MODELS_MAX = 5

function unknownModel(requested: string, { providers, index }: Pick<Catalogue, 'providers' | 'index'>): Refusal {
  const near = index.nearest(requested, SHOWN_MODELS_MAX)
  const hint = near.length > 0 ? hintOf('call_similar', { models: near.join(', ') }) : hintOf('call_models_list')
  const slash = requested.indexOf('/')
  const isProvider = slash < 0 || providers.has(requested.slice(0, slash))
  return new Refusal(isProvider ? 'model_unknown' : 'provider_unknown', requested, { param: 'model', hint })
}

/** Without a time of its own to retry after: official SDKs would wait for it before they show the error. */
function noEnabledChannel({ id }: Provider): Refusal {
  return new Refusal('no_channel', id, { hint: hintOf('call_no_channel', { provider: id }) })
}

function ambiguousModel(requested: string, models: readonly IndexedModel[]): Refusal {
  const hint = hintOf('call_may_be', { models: models.map(({ name }) => name).join(', ') })
  return new Refusal('model_ambiguous', requested, { param: 'model', hint })
}

/** A model that a name stands for. */
interface NamedMember extends MemberRow {
  /** The names that a key's rights are compared with. */
  readonly names: RuleNames
}

/** The first model, and the names of all models. */
function buildLimitNames(requested: string, members: readonly NamedMember[]): ModelNames {
  const names = joinNames([plainNames(requested), ...members.map(member => member.names)])
  return { model: members[0]?.model ?? requested, names }
}

/** What a requested name means. */
interface Resolution {
  readonly policy: PolicyName
  readonly members: readonly NamedMember[]
  /** Whether an operator has defined the name. */
  readonly isAlias: boolean
  /** For a key that may use all of the models. */
  readonly limitNames: ModelNames
  /** For keys that may use only some of the models, by the names of these. */
  readonly limitNamesOfSome: Map<string, ModelNames>
}

interface FoundModel {
  readonly provider: Provider
  readonly model: Model
}
