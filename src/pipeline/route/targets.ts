// Finds the targets of a model name: the models and providers, the dialect in which the gateway speaks to each, and
// their channels with their health. Groups are built once per name and dialect, and again when an operator changes
// something. They hold no state of single calls.

import { bounds } from '../../base/bounds.ts'
import type { ErrorCode } from '../../base/errors.ts'
import { Refusal } from '../../base/errors.ts'
import type { Price } from '../../base/money/price.ts'
import type { Secret } from '../../base/secrets/secret.ts'
import type { PriceBook } from '../../billing/price-book.ts'
import type { KeyRights } from '../../identity/key-rights.ts'
import { mayUseChannel } from '../../identity/key-rights.ts'
import type { Protocol } from '../../protocols/protocol.ts'
import { findProtocol } from '../../protocols/protocols.ts'
import type { ChannelOption, TargetOption } from '../../routing/choice/target-option.ts'
import { Health } from '../../routing/health/health.ts'
import type { ChannelCaps } from '../../routing/health/operator-caps.ts'
import type { ModelAliases, ResolvedModel } from '../../routing/model-aliases.ts'
import { compileAliases } from '../../routing/model-aliases.ts'
import type { ModelName } from '../../routing/model-name.ts'
import { parseModelName } from '../../routing/model-name.ts'
import type { ChannelRow, MemberRow, PolicyName, Rules } from '../../store/rules/rules.ts'
import type { Catalogue } from '../../upstreams/catalogue.ts'
import type { Channel } from '../../upstreams/channel.ts'
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
  readonly provider: Provider
  readonly model: Model
  readonly channels: readonly TargetChannel[]
}

/** A model at a provider, in the dialect in which the gateway speaks to it. */
export interface Target extends ModelTarget {
  /** The dialect of the upstream. */
  readonly upstreamProtocol: Protocol
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
  /** The requested name, and its models without the fallbacks. */
  readonly names: readonly string[]
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
  /** Called when a provider refuses a credential; its channel is not used any more. */
  onCredentialOff(channelId: string): void
  /** Called when the quota of a credential is used up. */
  onQuotaSpent?(channelId: string): void
  /** Called when such a credential works again. */
  onRecovered?(channelId: string): void
}

const NO_TAGGED_CHANNEL = 'No channel of the model has all the tags that this key requires.'
const DEFAULT_POLICY: PolicyName = 'balanced'

export class Targets {
  readonly #parts: TargetsParts
  readonly #healths = new Map<string, WatchedHealth>()
  #groups = new Map<string, TargetGroup>()
  #channels = new Map<string, readonly TargetChannel[]>()
  #aliases: ModelAliases = compileAliases([])

  constructor(parts: TargetsParts) {
    this.#parts = parts
  }

  /** Applies to new calls; running calls keep what they have. The health of unchanged channels stays. */
  setRules({ routes }: Pick<Rules, 'routes'>): void {
    this.#aliases = compileAliases(routes)
    this.#groups = new Map()
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
      watched.health.caps = capsOf(catalogue.rulesOf(id))
      if (!watched.key.isSameAs(key)) watched.health.reset()
      watched.key = key
    }
  }

  /** Called after a price change, because targets are compared by price. */
  forget(): void {
    this.#groups = new Map()
  }

  healthOf(channelId: string): Health | undefined {
    return this.#healths.get(channelId)?.health
  }

  /** Throws where the text is not a valid model name. The model need not exist. */
  namesOf(asked: string): ModelNames {
    const resolved = this.#aliases.resolve(asked)
    const first = resolved?.members[0]
    if (first === undefined) {
      if (resolved === undefined) parseModelName(asked)
      return { model: asked, names: [asked] }
    }
    const { members } = resolved!
    const own = members.flatMap(({ model, priority }) => (priority === first.priority ? [model] : []))
    return { model: first.model, names: [asked, ...own] }
  }

  /** Uses only channels that have all the required tags. Throws where none can serve the model. */
  find(asked: string, protocol: Protocol, requires: KeyRights['requires'] = null): TargetGroup {
    const key = `${protocol.name} ${asked} ${requires?.join() ?? ''}`
    const known = this.#groups.get(key)
    if (known !== undefined) return known
    const group = this.#buildGroup(asked, protocol, requires)
    if (this.#groups.size >= bounds.targetGroupsMax) this.#groups.clear()
    this.#groups.set(key, group)
    return group
  }

  /** The models of a name in any dialect, each with its own name. Throws where no channel can serve any of them. */
  modelTargets(asked: string, requires: KeyRights['requires']): readonly (ModelTarget & { readonly name: string })[] {
    const { members } = this.#aliases.resolve(asked) ?? singleModel(asked)
    return selectUsable(members, ({ model }) => ({ ...this.#modelTargetOf(model, requires), name: model }))
  }

  /** For explanations: each model with its channels, or with the reason why it is left out. */
  explain(asked: string, protocol: Protocol): readonly ExplainedTarget[] {
    const resolved = this.#aliases.resolve(asked) ?? singleModel(asked)
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

  #buildGroup(asked: string, protocol: Protocol, requires: KeyRights['requires']): TargetGroup {
    const resolved = this.#aliases.resolve(asked) ?? singleModel(asked)
    const targets = [...selectUsable(resolved.members, member => this.#targetFor(member, protocol, requires))]
    targets.sort(({ option: one }, { option: other }) => one.priority - other.priority)
    return { requestedModel: asked, policy: resolved.policy, targets, options: targets.map(({ option }) => option) }
  }

  #targetFor(
    { model: name, priority, weight }: MemberRow,
    protocol: Protocol,
    requires: KeyRights['requires'],
  ): Target {
    const { provider, model } = findModel(this.#parts.catalogue, parseModelName(name))
    const upstreamProtocol = dialectFor(provider, model, protocol)
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
    return { provider, model, upstreamProtocol, channels, option }
  }

  #modelTargetOf(name: string, requires: KeyRights['requires']): ModelTarget {
    const { provider, model } = findModel(this.#parts.catalogue, parseModelName(name))
    return { provider, model, channels: this.#channelsFor(name, provider, requires) }
  }

  #channelsFor(name: string, provider: Provider, requires: KeyRights['requires']): readonly TargetChannel[] {
    const all = this.#channelsOf(provider)
    if (all.length === 0) throw new Refusal('no_channel', provider.id, { retryAfterMs: 30_000 })
    const channels = requires === null ? all : this.#withTags(provider, all, requires)
    if (channels.length === 0)
      throw new Refusal('model_forbidden', `${name}: tags`, { param: 'model', hint: NO_TAGGED_CHANNEL })
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
      caps: capsOf(row),
      random: chance,
      onCredentialRefused: () => onCredentialOff(id),
      onQuotaSpent: () => onQuotaSpent?.(id),
      onRecovered: () => onRecovered?.(id),
    })
    this.#healths.set(id, { health, key })
    return health
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

const singleModel = (asked: string): ResolvedModel => ({
  policy: DEFAULT_POLICY,
  members: [{ model: asked, priority: 0, weight: 1 }],
})

function capsOf({ requestsPerMinute, tokensPerMinute, concurrency }: ChannelRow): ChannelCaps {
  return {
    ...(requestsPerMinute !== null && { requestsPerMinute }),
    ...(tokensPerMinute !== null && { tokensPerMinute }),
    ...(concurrency !== null && { concurrency }),
  }
}

/** The caller's own dialect if the provider speaks it, so that nothing is translated; else the first that fits. */
function dialectFor(provider: Provider, model: Model, protocol: Protocol): Protocol | undefined {
  const served = model.speaks ?? Object.keys(provider.speaks)
  if (served.includes(protocol.name) && provider.speaks[protocol.name] !== undefined) return protocol
  const others = served.filter(name => provider.speaks[name] !== undefined).map(findProtocol)
  return others.find(other => canTranslate(protocol, other))
}

/** Conversations are translated into conversations, and embeddings into embeddings. */
function canTranslate({ codec, vectors }: Protocol, other: Protocol | undefined): boolean {
  if (codec !== undefined) return other?.codec !== undefined
  return vectors !== undefined && other?.vectors !== undefined
}

/** Throws where the provider or the model does not exist. */
export function findModel({ providers }: Pick<Catalogue, 'providers'>, name: ModelName): FoundModel {
  const provider = providers.get(name.provider)
  if (provider === undefined) throw new Refusal('provider_unknown', name.provider, { param: 'model' })
  const model = provider.models.get(name.model) ?? (provider.openModels ? { id: name.model } : undefined)
  if (model === undefined) throw new Refusal('model_unknown', name.model, { param: 'model' })
  return { provider, model }
}

interface FoundModel {
  readonly provider: Provider
  readonly model: Model
}
