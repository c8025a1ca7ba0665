// Every way to what a name stands for: models of providers, the dialect in which each is spoken to, and its channels
// with what is known of their health. Made once for each name and dialect, and made anew when an operator changes
// something; nothing here is of one call.

import { bounds } from '../../base/bounds.ts'
import type { ErrorCode } from '../../base/errors.ts'
import { Refusal } from '../../base/errors.ts'
import type { Price } from '../../base/money/price.ts'
import type { Secret } from '../../base/secrets/secret.ts'
import type { PriceBook } from '../../billing/price-book.ts'
import type { KeyRights } from '../../identity/key-rights.ts'
import { mayUseChannel } from '../../identity/key-rights.ts'
import { protocolNamed } from '../../protocols/list.ts'
import type { Protocol } from '../../protocols/protocol.ts'
import type { Option, Seat } from '../../routing/choice/option.ts'
import { Health } from '../../routing/health/health.ts'
import type { Caps } from '../../routing/health/operator-caps.ts'
import type { Names, Resolved } from '../../routing/model-aliases.ts'
import { compileRoutes } from '../../routing/model-aliases.ts'
import type { ModelName } from '../../routing/model-name.ts'
import { parseModelName } from '../../routing/model-name.ts'
import type { ChannelRow, MemberRow, PolicyName, Rules } from '../../store/rules/rules.ts'
import type { Catalogue } from '../../upstreams/catalogue.ts'
import type { Channel } from '../../upstreams/channel.ts'
import type { Model, Provider } from '../../upstreams/provider.ts'
import { fitting } from './usable.ts'

/** A channel where it may be picked. */
export interface ChannelSeat extends Seat {
  readonly channel: Channel
  /** What may be said of data that goes there. */
  readonly tags: readonly string[]
}

/** A model at a provider, and the channels to it. */
export interface Mouth {
  readonly provider: Provider
  readonly model: Model
  readonly seats: readonly ChannelSeat[]
}

/** The same, and how it is reached in one dialect. */
export interface Lane extends Mouth {
  /** The dialect in which the upstream is spoken to. */
  readonly spoken: Protocol
  /** The same as routing sees it. */
  readonly option: Option
}

/** What a name stands for in one dialect. At least one lane, the preferred ones first. */
export interface LaneGroup {
  readonly asked: string
  readonly policy: PolicyName
  readonly lanes: readonly Lane[]
  /** Of each lane, in the same order. */
  readonly options: readonly Option[]
}

/** What a call goes by, as far as limits care. */
export interface Named {
  /** The first model that the name stands for. */
  readonly model: string
  /** The name that was asked for, and each model that it stands for, but for those to fall back to. */
  readonly names: readonly string[]
}

export interface ExplainedLane {
  /** `<provider>/<model>`. */
  readonly model: string
  /** Why nothing can serve it. */
  readonly refused?: ErrorCode
  readonly channels: readonly Pick<ChannelSeat, 'id' | 'tags'>[]
}

export interface LanesParts {
  readonly catalogue: Catalogue
  readonly prices: Pick<PriceBook, 'current'>
  chance(): number
  /** A credential was refused by its provider and is left alone. */
  onCredentialOff(channelId: string): void
  /** A credential has nothing left to spend. */
  onQuotaSpent?(channelId: string): void
  /** One of these works again. */
  onWellAgain?(channelId: string): void
}

const UNTAGGED = 'No channel of it has all the tags that this key requires.'
const DEFAULT_POLICY: PolicyName = 'balanced'

export class Lanes {
  readonly #parts: LanesParts
  readonly #healths = new Map<string, Watched>()
  #groups = new Map<string, LaneGroup>()
  #seats = new Map<string, readonly ChannelSeat[]>()
  #names: Names = compileRoutes([])

  constructor(parts: LanesParts) {
    this.#parts = parts
  }

  /** From the next call on; calls under way go on as they began. What is known of a channel's health stays. */
  setRules({ routes }: Pick<Rules, 'routes'>): void {
    this.#names = compileRoutes(routes)
    this.#groups = new Map()
    this.#seats = new Map()
    this.#renewHealths()
  }

  /** What is known of a channel that has not changed stays. With another credential it begins anew. */
  #renewHealths(): void {
    const { catalogue } = this.#parts
    const keys = new Map(catalogue.all().map(({ id, key }) => [id, key]))
    for (const [id, watched] of this.#healths) {
      const key = keys.get(id)
      if (key === undefined) {
        this.#healths.delete(id)
        continue
      }
      watched.health.caps = capsOf(catalogue.ruleOf(id))
      if (!watched.key.isSameAs(key)) watched.health.reset()
      watched.key = key
    }
  }

  /** A price has changed, by which lanes are compared. */
  forget(): void {
    this.#groups = new Map()
  }

  healthOf(channelId: string): Health | undefined {
    return this.#healths.get(channelId)?.health
  }

  /** Throws for what is no name of a model. That there is such a model is another matter. */
  named(asked: string): Named {
    const resolved = this.#names.resolve(asked)
    const first = resolved?.members[0]
    if (first === undefined) {
      if (resolved === undefined) parseModelName(asked)
      return { model: asked, names: [asked] }
    }
    const { members } = resolved!
    const own = members.flatMap(({ model, priority }) => (priority === first.priority ? [model] : []))
    return { model: first.model, names: [asked, ...own] }
  }

  /** By channels alone that have all the tags that are required. Throws where nothing can serve it. */
  find(asked: string, protocol: Protocol, requires: KeyRights['requires'] = null): LaneGroup {
    const key = `${protocol.name} ${asked} ${requires?.join() ?? ''}`
    const known = this.#groups.get(key)
    if (known !== undefined) return known
    const group = this.#make(asked, protocol, requires)
    if (this.#groups.size >= bounds.laneGroupsMax) this.#groups.clear()
    this.#groups.set(key, group)
    return group
  }

  /** What a name stands for, whatever is spoken there: with each model's own name. Throws where nothing can. */
  mouthsOf(asked: string, requires: KeyRights['requires']): readonly (Mouth & { readonly name: string })[] {
    const { members } = this.#names.resolve(asked) ?? itself(asked)
    return fitting(members, ({ model }) => ({ ...this.#mouthOf(model, requires), name: model }))
  }

  /** The same for whoever wants to know why: each model with its channels, or why it is left out. */
  explain(asked: string, protocol: Protocol): readonly ExplainedLane[] {
    const resolved = this.#names.resolve(asked) ?? itself(asked)
    return resolved.members.map(member => {
      const { model } = member
      try {
        return { model, channels: this.#laneTo(member, protocol, null).seats }
      } catch (fault) {
        if (!(fault instanceof Refusal)) throw fault
        return { model, refused: fault.code, channels: [] }
      }
    })
  }

  #make(asked: string, protocol: Protocol, requires: KeyRights['requires']): LaneGroup {
    const resolved = this.#names.resolve(asked) ?? itself(asked)
    const lanes = [...fitting(resolved.members, member => this.#laneTo(member, protocol, requires))]
    lanes.sort(({ option: one }, { option: other }) => one.priority - other.priority)
    return { asked, policy: resolved.policy, lanes, options: lanes.map(({ option }) => option) }
  }

  #laneTo({ model: name, priority, weight }: MemberRow, protocol: Protocol, requires: KeyRights['requires']): Lane {
    const { provider, model } = findModel(this.#parts.catalogue, parseModelName(name))
    const spoken = dialectFor(provider, model, protocol)
    if (spoken === undefined) throw new Refusal('call_unserved', `${provider.id}: ${protocol.name}`, { param: 'model' })
    const seats = this.#seatsFor(name, provider, requires)
    const price = this.#parts.prices.current(name)?.price
    const option = { name, priority, weight, translates: spoken !== protocol, price: typicalCost(price), seats }
    return { provider, model, spoken, seats, option }
  }

  #mouthOf(name: string, requires: KeyRights['requires']): Mouth {
    const { provider, model } = findModel(this.#parts.catalogue, parseModelName(name))
    return { provider, model, seats: this.#seatsFor(name, provider, requires) }
  }

  #seatsFor(name: string, provider: Provider, requires: KeyRights['requires']): readonly ChannelSeat[] {
    const all = this.#seatsOf(provider)
    if (all.length === 0) throw new Refusal('no_channel', provider.id, { retryAfterMs: 30_000 })
    const seats = requires === null ? all : this.#tagged(provider, all, requires)
    if (seats.length === 0) throw new Refusal('model_forbidden', `${name}: tags`, { param: 'model', hint: UNTAGGED })
    return seats
  }

  /** One list for all its models, of which there may be any number: much is made ready for each list. */
  #tagged({ id }: Provider, all: readonly ChannelSeat[], requires: readonly string[]): readonly ChannelSeat[] {
    const key = `${id} ${requires.join()}`
    let seats = this.#seats.get(key)
    if (seats === undefined) {
      seats = all.filter(({ tags }) => mayUseChannel({ requires }, tags))
      if (this.#seats.size >= bounds.laneGroupsMax) this.#seats.clear()
      this.#seats.set(key, seats)
    }
    return seats
  }

  /** The same for all its models. */
  #seatsOf(provider: Provider): readonly ChannelSeat[] {
    const known = this.#seats.get(provider.id)
    if (known !== undefined) return known
    const seats: ChannelSeat[] = []
    const { catalogue } = this.#parts
    for (const channel of catalogue.channelsOf(provider.id)) {
      const row = catalogue.ruleOf(channel.id)
      const { weight, priority, tags } = row
      seats.push({ id: channel.id, channel, weight, priority, tags, health: this.#healthFor(channel, row) })
    }
    this.#seats.set(provider.id, seats)
    return seats
  }

  #healthFor({ id, key }: Channel, row: ChannelRow): Health {
    const known = this.#healths.get(id)
    if (known !== undefined) return known.health
    const { chance, onCredentialOff, onQuotaSpent, onWellAgain } = this.#parts
    const health = new Health({
      ...{ caps: capsOf(row), chance },
      ...{ onCredentialOff: () => onCredentialOff(id), onQuotaSpent: () => onQuotaSpent?.(id) },
      onWellAgain: () => onWellAgain?.(id),
    })
    this.#healths.set(id, { health, key })
    return health
  }
}

interface Watched {
  readonly health: Health
  /** What it is known of. */
  key: Secret
}

/** To compare by: a prompt of some length, and an answer of a third of it. */
function typicalCost(price: Price | undefined): number {
  if (price === undefined) return 0
  const { input, output } = price.rates
  return 3 * Number(input) + Number(output)
}

const itself = (asked: string): Resolved => ({
  policy: DEFAULT_POLICY,
  members: [{ model: asked, priority: 0, weight: 1 }],
})

function capsOf({ requestsPerMinute, tokensPerMinute, concurrency }: ChannelRow): Caps {
  return {
    ...(requestsPerMinute !== null && { requestsPerMinute }),
    ...(tokensPerMinute !== null && { tokensPerMinute }),
    ...(concurrency !== null && { concurrency }),
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
