// What only a running gateway can do for the management interface: channel tests, health, model lists of upstreams.

import type { PriceBook } from '../billing/price-book.ts'
import type { HealthSnapshot } from '../routing/health/health.ts'

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
}

export interface LiveGateway {
  readonly prices: PriceBook
  /** Undefined for a channel that has had no call. */
  health(channelId: string): HealthSnapshot | undefined
  /** Closes the circuit breaker of a channel and forgets its failures. */
  resetHealth(channelId: string): void
  /** Without a model it uses the cheapest chat model. Throws a Refusal if the channel cannot be tested. */
  testChannel(channelId: string, model?: string): Promise<ChannelTestReport>
  /** The ids of the models that the upstream lists. Throws a Refusal if the upstream has no list. */
  listModels(channelId: string): Promise<readonly string[]>
}
