// What an operator has laid down about calls: limits, names of models, and what is to be known of a channel beyond its
// credential. Few rows, read whole, and read again after each change.

import type { Secret } from '../../base/secrets/secret.ts'

export type LimitedResource = 'requests' | 'tokens' | 'concurrency'
export type LimitSpan = 'minute' | 'day'
/** What has a limit of its own under one rule. */
export type LimitScope = 'key' | 'account' | 'model'
/** In the order in which they are written. */
export const limitScopes = ['key', 'account', 'model'] as const satisfies readonly LimitScope[]

/** resource × window × scope. All that it is for share one limit, but for what `per` takes apart. */
export interface LimitRow {
  readonly id: number
  readonly resource: LimitedResource
  /** None for concurrency. */
  readonly span: LimitSpan | null
  readonly amount: number
  /** Which calls it is for; null: whichever. */
  readonly keyId: number | null
  readonly accountId: number | null
  readonly tier: string | null
  /** As callers name it, with any number of `*` in it. */
  readonly model: string | null
  readonly per: readonly LimitScope[]
  /** What its tier says of accounts: not for keys that an operator has given a limit of their own. */
  readonly isDefault?: true
}

export const policyNames = ['balanced', 'weighted', 'least_busy', 'fastest', 'cheapest'] as const
export type PolicyName = (typeof policyNames)[number]

export interface MemberRow {
  /** `<provider>/<model>`, or another row's name; of a row with a `*` it may hold one, too. */
  readonly model: string
  /** Those of the lowest number first; the others only when none of these can. */
  readonly priority: number
  /** Among those of the same priority. */
  readonly weight: number
}

/** A name that callers may use: an alias has one member, a group several. */
export interface RouteRow {
  /** With at most one `*`. It may be a real model's: then a member of the same name means that model itself. */
  readonly name: string
  readonly policy: PolicyName
  readonly members: readonly MemberRow[]
}

/** A channel that has no row is enabled, of weight 1 and priority 0, and knows no cap. */
export interface ChannelRow {
  readonly channel: string
  readonly disabled: boolean
  readonly weight: number
  readonly priority: number
  readonly requestsPerMinute: number | null
  readonly tokensPerMinute: number | null
  readonly concurrency: number | null
  /** Where an outgoing proxy is, which may hold a name and a password. */
  readonly proxy: Secret | null
  /** It has a proxy that cannot be read any more. Nothing may go there past it, so that it counts as disabled. */
  readonly proxyLost?: true
  /** What may be said of data that goes there, such as `eu` or `no-training`. */
  readonly tags: readonly string[]
  /** Requests may name what their account has not made through this gateway: files, prompts, vector stores. */
  readonly foreignIds: boolean
}

/** What is changed in the requests of a channel, by the dialect of its upstream. */
export type Parameters = Readonly<Record<string, FieldChanges>>

/** By the names of fields; `a.b` is a field of the object in the field `a`. */
export interface FieldChanges {
  /** Whatever the caller says. */
  readonly set?: Readonly<Record<string, unknown>>
  /** Where the caller says nothing. */
  readonly default?: Readonly<Record<string, unknown>>
  readonly remove?: readonly string[]
}

/** What a channel may be told of itself, where it is laid down here and not in the environment. */
export interface ChannelSetting {
  /** For people. No two channels of a provider have the same. */
  readonly name: string
  /** Null: where its provider is. */
  readonly baseUrl: string | null
  /** Sent with each of its requests. */
  readonly headers: Readonly<Record<string, string>>
  readonly parameters: Parameters
  /** In seconds, as a provider file has them. */
  readonly times: Readonly<Record<string, number>>
}

/** A channel that was laid down here. */
export interface StoredChannel extends ChannelSetting {
  readonly id: string
  readonly provider: string
  /** The only place that its credential was given for. */
  readonly origin: string | null
  readonly credential: Secret | null
  /** It has a credential that cannot be read any more. */
  readonly credentialLost?: true
  /** All that is ever shown of it. */
  readonly fingerprint: string | null
}

/** A provider as an operator describes it, in the words of a provider file. */
export interface StoredProvider {
  readonly id: string
  readonly definition: string
}

export interface Rules {
  readonly limits: readonly LimitRow[]
  /** What tiers say of accounts. */
  readonly tierLimits: readonly LimitRow[]
  readonly routes: readonly RouteRow[]
  /** What is said of channels, wherever their keys are. */
  readonly channels: readonly ChannelRow[]
  readonly stored: readonly StoredChannel[]
  readonly providers: readonly StoredProvider[]
}

export const noRules: Rules = { limits: [], tierLimits: [], routes: [], channels: [], stored: [], providers: [] }

/** How the ids of channels that are laid down here go on behind the name of their provider. */
const STORED_MARK = '#ch_'

export const isStoredId = (channel: string): boolean => channel.includes(STORED_MARK)

/** Who changes a rule. */
interface Author {
  readonly author: string
}

/** What is not given stays as it is. Only a channel that is laid down here has settings. */
export interface ChannelChange extends Partial<Omit<ChannelRow, 'channel' | 'proxy' | 'proxyLost'>> {
  readonly channel: string
  /** Sealed, in base64. */
  readonly proxy?: string | null
  /** As it was seen; 0 where nothing is said of it yet. If it is another by now, nothing is changed. */
  readonly version?: number | undefined
  readonly setting?: Partial<ChannelSetting>
  /** Where its requests go by now. A credential that was given for another place is forgotten. */
  readonly origin?: string
  readonly credential?: SealedCredential
}

/** For the place that is told beside it. */
export interface SealedCredential {
  /** Base64. */
  readonly sealed: string
  readonly fingerprint: string
}

/** A new one, with all that there is to say. */
export interface ChannelInsert extends Omit<ChannelChange, 'setting'> {
  readonly provider: string
  readonly setting: ChannelSetting
}

type Refused = { done: 'unknown' | 'name_taken' | 'too_many' | 'stale'; channel: string }

/** What the writer does with rules. Whether a rule makes sense is for whoever asks for it to know. */
export interface RuleOperations {
  /** One for the same calls is changed, and keeps its id; or is in the way of a new one. */
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
  setRoute: { input: RouteRow & Author; result: { done: 'set' | 'too_many' } }
  removeRoute: { input: { readonly name: string }; result: { done: 'removed' | 'unknown' } }
  /** All of them or none. `cleared`: those whose credential was for another place. */
  setChannels: {
    input: Author & { readonly changes: readonly ChannelChange[] }
    result: { done: 'set'; cleared: readonly string[] } | Refused
  }
  createChannels: {
    input: Author & { readonly channels: readonly ChannelInsert[] }
    result: { done: 'created' } | Refused
  }
  /** Forgets what is said of it; one that is laid down here is as it was when it was new. */
  resetChannel: { input: Author & { readonly channel: string }; result: { done: 'removed' | 'unknown' } }
  /** Only those that are laid down here. */
  removeChannels: { input: { readonly channels: readonly string[] }; result: { done: 'removed' } | Refused }
  /** `origin`: where its channels go that have no address of their own; null where that cannot be known. */
  setProvider: {
    input: Author & StoredProvider & { readonly isNew: boolean; readonly origin: string | null }
    result: { done: 'set'; cleared: readonly string[] } | { done: 'too_many' | 'exists' | 'unknown' }
  }
  /** What it replaced holds again; null as above. Without anything that it replaced, it must have no channels. */
  removeProvider: {
    input: { readonly id: string; readonly origin: string | null; readonly replaces: boolean }
    result: { done: 'removed'; cleared: readonly string[] } | { done: 'unknown' | 'in_use' }
  }
}
