// What only a running gateway can tell and do, for those who manage it.

import type { PriceBook } from '../billing/price-book.ts'
import type { HealthSnapshot } from '../routing/health/health.ts'
import { OperatorError } from './operator-error.ts'

/** An upstream does not tell what it is asked for. */
export class NotTold extends OperatorError {}

/** A real call by one channel. */
export interface Trial {
  readonly channel: string
  readonly model: string
  readonly dialect: string
  readonly ok: boolean
  /** Null where no answer came. */
  readonly status: number | null
  /** As attempts of calls are told: `answered`, `credential_bad`, `broken` and so on. */
  readonly verdict: string
  /** What it means, and what to do. */
  readonly advice: string
  /** Until the head of the answer was there, and until all of it was. */
  readonly timings: { readonly headMs: number | null; readonly totalMs: number }
  /** Without what proves that it is us. */
  readonly sent: {
    readonly method: string
    readonly url: string
    readonly headers: Readonly<Record<string, string>>
    readonly body: string
    /** What the channel changes of any request. */
    readonly overrides: readonly string[]
  }
  /** What came, without our secrets; null where nothing did. */
  readonly received: { readonly contentType: string; readonly body: string } | null
  readonly fault: string | null
}

export interface Running {
  readonly prices: PriceBook
  /** Undefined for a channel that no call has come to. */
  health(channelId: string): HealthSnapshot | undefined
  /** Forgets what closes it. */
  resetHealth(channelId: string): void
  /** Without a model, the cheapest that talks. Throws an OperatorError for what cannot be tried. */
  tryChannel(channelId: string, model?: string): Promise<Trial>
  /** The ids of the models that its upstream says it has. Throws a NotTold where it does not say. */
  listModels(channelId: string): Promise<readonly string[]>
}
