// What an operator has laid down about calls: limits, names of models, and what is to be known of a channel beyond its
// credential. Few rows, read whole, and read again after each change.

import type { Secret } from '../base/secret.ts'

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
}

export interface Rules {
  readonly limits: readonly LimitRow[]
  readonly routes: readonly RouteRow[]
  readonly channels: readonly ChannelRow[]
}

export const noRules: Rules = { limits: [], routes: [], channels: [] }

/** Who changes a rule. */
interface Author {
  readonly author: string
}

/** What is not given stays as it is. */
export interface ChannelChange extends Partial<Omit<ChannelRow, 'channel' | 'proxy' | 'proxyLost'>> {
  readonly channel: string
  /** Sealed, in base64. */
  readonly proxy?: string | null
}

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
  setChannel: { input: ChannelChange & Author; result: { done: 'set' | 'too_many' } }
  resetChannel: { input: { readonly channel: string }; result: { done: 'removed' | 'unknown' } }
}
