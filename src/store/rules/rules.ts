// The rules that an operator configures: limits, model routes, channels and providers. There are few rows; all of them
// are read together, and read again after each change.

import type { Secret } from '../../base/secrets/secret.ts'

export type LimitedResource = 'requests' | 'tokens' | 'concurrency'
export type LimitSpan = 'minute' | 'day'
/** What gets a separate limit under one rule. */
export type LimitScope = 'key' | 'account' | 'model'
/** The order in which scopes are stored. */
export const limitScopes = ['key', 'account', 'model'] as const satisfies readonly LimitScope[]

/** A limit for a resource in a window. All matching calls share it, unless `per` gives each scope its own limit. */
export interface LimitRow {
  readonly id: number
  readonly resource: LimitedResource
  /** Null for concurrency. */
  readonly span: LimitSpan | null
  readonly amount: number
  /** The calls that the limit is for; null: all. */
  readonly keyId: number | null
  /** The account of this key. */
  readonly keyAccountId?: number | null
  readonly accountId: number | null
  readonly tier: string | null
  /** A pattern of model names, with any number of `*`. */
  readonly model: string | null
  readonly per: readonly LimitScope[]
  /** The default limit of a tier for accounts. It does not apply to keys for which an operator has set a limit. */
  readonly isDefault?: true
}

export const policyNames = ['balanced', 'weighted', 'least_busy', 'fastest', 'cheapest'] as const
export type PolicyName = (typeof policyNames)[number]

export interface MemberRow {
  /** `<provider>/<model>`, or the name of another route. May have a `*` where the name of the route has one. */
  readonly model: string
  /** Members with the lowest number are used first, the others only when none of these can serve the call. */
  readonly priority: number
  /** The share among members of the same priority. */
  readonly weight: number
}

/** A model name that callers may use: an alias has one member, a group has several. */
export interface RouteRow {
  /** May have one `*`. It may be the name of a real model: then a member with that name means the model itself. */
  readonly name: string
  readonly policy: PolicyName
  readonly members: readonly MemberRow[]
}

/** To compare routes. */
export const textOfRoutes = (routes: readonly RouteRow[]): string =>
  JSON.stringify(routes.map(({ name, policy, members }) => [name, policy, members]))

/** The rules of a channel. A channel without a row is enabled, has weight 1, priority 0 and no caps. */
export interface ChannelRow {
  readonly channel: string
  readonly disabled: boolean
  readonly weight: number
  readonly priority: number
  readonly requestsPerMinute: number | null
  readonly tokensPerMinute: number | null
  readonly concurrency: number | null
  /** The URL of the outgoing proxy; it may contain a name and a password. */
  readonly proxy: Secret | null
  /** The stored proxy cannot be decrypted. No request may go around the proxy, so the channel counts as disabled. */
  readonly proxyLost?: true
  /** Properties of the channel that keys can require, such as `eu` or `no-training`. */
  readonly tags: readonly string[]
  /** Requests may contain references that their account has not created through this gateway: files, prompts, … */
  readonly foreignIds: boolean
}

/** Changes to the requests of a channel, by the dialect of its upstream. */
export type ChannelParameters = Readonly<Record<string, FieldChanges>>

/** Changes by field name; `a.b` is the field `b` of the object in the field `a`. */
export interface FieldChanges {
  /** Replaces the value of the caller. */
  readonly set?: Readonly<Record<string, unknown>>
  /** Used where the caller does not set the field. */
  readonly default?: Readonly<Record<string, unknown>>
  readonly remove?: readonly string[]
}

/** The settings of a stored channel: one that is configured in the database and not in the environment. */
export interface ChannelSettings {
  /** A name for people, unique among the channels of a provider. */
  readonly name: string
  /** Null: the base URL of its provider. */
  readonly baseUrl: string | null
  /** Headers of all requests of the channel. */
  readonly headers: Readonly<Record<string, string>>
  readonly parameters: ChannelParameters
  /** Timeouts in seconds, as in a provider file. */
  readonly times: Readonly<Record<string, number>>
}

/** A channel that is configured in the database. */
export interface StoredChannel extends ChannelSettings {
  readonly id: string
  readonly provider: string
  /** The origin for which the credential was given. The credential is sent nowhere else. */
  readonly origin: string | null
  readonly credential: Secret | null
  /** The stored credential cannot be decrypted. */
  readonly credentialLost?: true
  /** The only part of the credential that is shown. */
  readonly fingerprint: string | null
  /** Where a configuration file says that the credential is: `env:NAME` or `file:path`. */
  readonly credentialFrom?: string | null
}

/** A provider that an operator has defined, in the format of a provider file. */
export interface StoredProvider {
  readonly id: string
  readonly definition: string
}

export interface Rules {
  readonly limits: readonly LimitRow[]
  /** The default limits of tiers for accounts. */
  readonly tierLimits: readonly LimitRow[]
  readonly routes: readonly RouteRow[]
  /** The rules of channels, both of stored channels and of channels from the environment. */
  readonly channels: readonly ChannelRow[]
  readonly stored: readonly StoredChannel[]
  readonly providers: readonly StoredProvider[]
}

export const noRules: Rules = { limits: [], tierLimits: [], routes: [], channels: [], stored: [], providers: [] }

/** Follows the provider's name in the ids of stored channels. */
const STORED_MARK = '#ch_'

export const isStoredChannelId = (channel: string): boolean => channel.includes(STORED_MARK)

/** Who changes a rule. */
interface Author {
  readonly author: string
}

/** A change of a channel. Undefined fields stay as they are. Only a stored channel has settings. */
export interface ChannelChange extends Partial<Omit<ChannelRow, 'channel' | 'proxy' | 'proxyLost'>> {
  readonly channel: string
  /** Encrypted, in base64. */
  readonly proxy?: string | null
  /** The expected version; 0 for a channel without a row. With another version nothing is changed. */
  readonly version?: number | undefined
  readonly setting?: Partial<ChannelSettings>
  /** The origin of its requests after the change. A credential that was given for another origin is deleted. */
  readonly origin?: string
  readonly credential?: SealedCredential
  /** Where the credential comes from. A new credential without it comes from no file. */
  readonly credentialFrom?: string | null | undefined
}

/** An encrypted credential for the `origin` of the same change. */
export interface SealedCredential {
  /** Base64. */
  readonly sealed: string
  readonly fingerprint: string
}

/** A new stored channel with all of its settings. */
export interface ChannelInsert extends Omit<ChannelChange, 'setting'> {
  readonly provider: string
  readonly setting: ChannelSettings
}

type ChannelRefusal = { done: 'unknown' | 'name_taken' | 'too_many' | 'stale'; channel: string }

/** The operations on rules. The caller has checked that a rule makes sense. */
export interface RuleOperations {
  /** Changes the limit for the same calls, which keeps its id, or adds one. With `isNew` it only adds. */
  setLimit: {
    input: Omit<LimitRow, 'id'> & Author & { readonly isNew?: true }
    result:
      | { done: 'added' | 'changed' | 'exists'; id: number }
      | { done: 'too_many' | 'key_unknown' | 'account_unknown' | 'tier_unknown' | 'for_nobody' }
  }
  changeLimit: {
    input: Author & { readonly id: number; readonly amount: number }
    result: { done: 'changed' | 'unknown' }
  }
  removeLimit: { input: { readonly id: number }; result: { done: 'removed' | 'unknown' } }
  /**
   * `others`: the text of all other routes with which this one was checked (textOfRoutes). `raced`: they have changed since,
   * for example by another process. Undefined: it was not checked.
   */
  setRoute: {
    input: RouteRow & Author & { readonly others?: string }
    result: { done: 'set' | 'too_many' | 'raced' }
  }
  removeRoute: { input: { readonly name: string }; result: { done: 'removed' | 'unknown' } }
  /** Changes all channels or none. `cleared`: channels whose credential was deleted because the origin changed. */
  setChannels: {
    input: Author & { readonly changes: readonly ChannelChange[] }
    result: { done: 'set'; cleared: readonly string[] } | ChannelRefusal
  }
  createChannels: {
    input: Author & { readonly channels: readonly ChannelInsert[] }
    result: { done: 'created' } | ChannelRefusal
  }
  /** Removes the rules of a channel. A stored channel keeps its settings and credential. */
  resetChannel: { input: Author & { readonly channel: string }; result: { done: 'removed' | 'unknown' } }
  /** Removes stored channels. */
  removeChannels: { input: { readonly channels: readonly string[] }; result: { done: 'removed' } | ChannelRefusal }
  /** `origin`: the origin of its channels that have no base URL of their own; null where it is unknown. */
  setProvider: {
    input: Author & StoredProvider & { readonly isNew: boolean; readonly origin: string | null }
    result: { done: 'set'; cleared: readonly string[] } | { done: 'too_many' | 'exists' | 'unknown' }
  }
  /** A shipped provider with the same id becomes valid again (`replaces`); else the provider must have no channels. */
  removeProvider: {
    input: { readonly id: string; readonly origin: string | null; readonly replaces: boolean }
    result: { done: 'removed'; cleared: readonly string[] } | { done: 'unknown' | 'in_use' }
  }
}
