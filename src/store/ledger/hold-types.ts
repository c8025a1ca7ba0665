// What a hold is asked with and what it results in; and the row that a call leaves.

import type { MoneyText } from './money-text.ts'

/** What is known of a call when it is held. */

export interface RecordDraft {
  readonly dialect: string
  readonly provider: string | null
  readonly model: string | null
  readonly streamed: boolean
  /** The version of the price it was admitted with; null where it is free. */
  readonly priceVersion: number | null
  readonly endUser: string | null
  readonly tags: string | null
  /** What a translation could not carry, with commas between. */
  readonly loss?: string | null
  /** What the caller sent and what the upstream got: the first 16 bytes of a SHA-256, in hex. */
  readonly cameHash?: string | null
  readonly wentHash?: string | null
  /** The name that the caller used, where it is not the model's own. */
  readonly asked?: string | null
  /** JSON: why it went where it went. */
  readonly why?: string | null
}

export interface RecordUsage {
  readonly inputTokens: number
  readonly cacheReadTokens: number
  readonly cacheWriteTokens: number
  readonly outputTokens: number
  readonly reasoningTokens: number
  /** JSON: what the bill is made of. */
  readonly lines: string | null
}

/** Of a call under way: what it came to so far, and what of its draft is otherwise by now. */
export type RecordKnown = RecordUsage & Partial<RecordDraft>

export interface RecordRow extends RecordDraft, RecordUsage {
  readonly callId: number
  readonly keyId: number
  readonly accountId: number
  readonly channel: string | null
  readonly status: number
  /** The code of the refusal, if it ended in one. */
  readonly error: string | null
  readonly outcome: string
  /** Which rule decided who pays. */
  readonly rule: string
  readonly usageSource: string
  /** JSON. */
  readonly attempts: string | null
  /** JSON. */
  readonly timings: string | null
  /** From arrival to the first content. */
  readonly firstMs: number | null
  readonly durationMs: number
}

export interface HoldInput {
  readonly callId: number
  readonly kind: 'call' | 'task'
  readonly accountId: number
  readonly keyId: number
  readonly amount: MoneyText
  /** Refuse with `count_first` unless this much is available: the bound is coarse and could be made finer. */
  readonly wants: MoneyText
  readonly draft: RecordDraft
  readonly idempotency?: { readonly name: string; readonly fingerprint: string }
}

export type HoldResult =
  | { readonly done: 'held' | 'account_unknown' | 'account_frozen' }
  | { readonly done: 'balance_too_low' | 'count_first'; readonly available: MoneyText }
  | { readonly done: 'budget_too_low'; readonly available: MoneyText; readonly budget: string }
  /** Another call has this idempotency key. */
  | { readonly done: 'running' | 'other_body' | 'finished'; readonly callId: number }

export type BudgetSpan = 'total' | 'day' | 'month'

export type PostedKind = 'top_up' | 'gift' | 'adjustment' | 'refund'

export interface PriceInsert {
  /** `<provider>/<model>`, as callers name it. */
  readonly model: string
  readonly origin: 'shipped' | 'operator' | 'withdrawn'
  /** Canonical JSON; empty for a withdrawal. */
  readonly price: string
  readonly author: string
}
