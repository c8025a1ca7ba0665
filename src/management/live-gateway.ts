// What only a running gateway can do for the management interface: channel tests, health, model lists of upstreams.

import type { ErrorCode } from '../base/errors.ts'
import type { HintData } from '../base/hints.ts'
import type { PriceBook } from '../billing/price-book.ts'
import type { KeyRights } from '../identity/key-rights.ts'
import type { Quota } from '../limits/limits.ts'
import type { HealthSnapshot } from '../routing/health/health.ts'
import type { FoundKey, KeyRow } from '../store/engine/reader.ts'

/** The result of a real call on one channel. */
export interface ChannelTestReport {
  readonly channel: string
  readonly model: string
  readonly dialect: string
  readonly ok: boolean
  /** Null if there was no response. */
  readonly status: number | null
  /** The same words as for attempts of calls: `answered`, `credential_bad`, `broken` and so on. */
  readonly verdict: string
  /** What the result means, and what to do. */
  readonly advice: string
  /** The time until the head of the response arrived, and until all of it arrived. */
  readonly timings: { readonly headMs: number | null; readonly totalMs: number }
  /** The request, without the credential. */
  readonly sent: {
    readonly method: string
    readonly url: string
    readonly headers: Readonly<Record<string, string>>
    readonly body: string
    /** The fields that the channel changes in every request. */
    readonly overrides: readonly string[]
  }
  /** The response, without the credential; null if there was none. */
  readonly received: { readonly contentType: string; readonly body: string } | null
  readonly fault: string | null
  readonly faultHint: HintData | null
}

/** A call that somebody asks about, as the key would send it. */
export interface CallInQuestion {
  readonly key: FoundKey
  readonly path: string
  readonly body: object
  /** In lower case. */
  readonly headers: Readonly<Record<string, string>>
  /** Undefined: the list of addresses of the key is not checked. */
  readonly address: string | undefined
  readonly requestId: string
  /** Whether the answer shows channels and the upstream request. */
  readonly showsRouting: boolean
}

export interface LiveGateway {
  readonly prices: PriceBook
  /** Undefined for a channel that has had no call. */
  health(channelId: string): HealthSnapshot | undefined
  /** Closes the circuit breaker of a channel and forgets its failures, in all processes. */
  resetHealth(channelId: string): Promise<void>
  /** Without a model it uses the cheapest chat model. Throws a Refusal if the channel cannot be tested. */
  testChannel(channelId: string, model?: string): Promise<ChannelTestReport>
  /** The ids of the models that the upstream lists. Throws a Refusal if the upstream has no list. */
  listModels(channelId: string): Promise<readonly string[]>
  /** What the call would do, as JSON text. Nothing is sent. Throws a Refusal if there is no call at the path. */
  explain(call: CallInQuestion): Promise<string>
  /** The limits that every call of a key counts in. The first is its own calls per minute. */
  quotasOf(key: KeyRow): Promise<readonly Quota[]>
  /** Why no call with these rights can use a model name; undefined if one can. */
  modelProblem(name: string, rights: KeyRights): ErrorCode | undefined
}
