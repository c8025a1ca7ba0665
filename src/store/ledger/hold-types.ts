// The types of holds, of call records and of prices as operations take and return them.

import type { MoneyText } from './money-text.ts'

/** What is known about a call when its hold is made. It is stored as JSON in the hold, so its names must not change. */
export interface RecordDraft {
  readonly dialect: string
  readonly provider: string | null
  readonly model: string | null
  readonly streamed: boolean
  /** The version of the price with which the call was admitted; null where the model is free. */
  readonly priceVersion: number | null
  readonly endUser: string | null
  readonly tags: string | null
  /** The losses of the translation, separated by commas. */
  readonly loss?: string | null
  /** Hash of the caller's request: the first 16 bytes of a SHA-256, in hex. */
  readonly requestHash?: string | null
  /** Hash of the upstream request, in the same form. */
  readonly upstreamHash?: string | null
  /** The model name in the request, where it differs from the name of the model. */
  readonly requestedModel?: string | null
  /** JSON: the reasons of the routing decision. */
  readonly routing?: string | null
  /** The id of the conversation that the call is a turn of. */
  readonly conversation?: string | null
}

export interface RecordUsage {
  readonly inputTokens: number
  readonly cacheReadTokens: number
  readonly cacheWriteTokens: number
  readonly outputTokens: number
  readonly reasoningTokens: number
  /** JSON: the lines of the bill. */
  readonly lines: string | null
}

/** What a checkpoint adds to the draft of an active call: its usage so far, and the fields that have changed. */
export type CheckpointData = RecordUsage & Partial<RecordDraft>

export interface RecordRow extends RecordDraft, RecordUsage {
  readonly callId: number
  readonly keyId: number
  readonly accountId: number
  readonly channel: string | null
  readonly status: number
  /** The error code, if the call ended with an error. */
  readonly error: string | null
  readonly outcome: string
  /** Which rule decided who pays. */
  readonly rule: string
  readonly usageSource: string
  /** JSON. */
  readonly attempts: string | null
  /** JSON. */
  readonly timings: string | null
  /** Time from arrival to the first content. */
  readonly firstContentMs: number | null
  readonly durationMs: number
}

export interface HoldInput {
  readonly callId: number
  readonly kind: 'call' | 'task'
  readonly accountId: number
  readonly keyId: number
  readonly amount: MoneyText
  /**
   * If less than this is available, the hold is refused with `hold_less`, although the money would be enough: `amount`
   * is a coarse bound, and a call that reserves its money in slices leaves more for others.
   */
  readonly wants: MoneyText
  /**
   * Less than `amount` may be held, but not less than this: what exceeds it is at most a twentieth of what is left, so
   * that calls that begin at the same time get a share each. Absent: all or nothing.
   */
  readonly least?: MoneyText
  readonly draft: RecordDraft
  readonly idempotency?: { readonly name: string; readonly fingerprint: string }
  /**
   * What the process knew when it admitted the call: the version of its key (`KeyRow.version`), and the revision of rules
   * and prices (`Changes.revision`). On PostgreSQL the hold is refused if they have changed since. With SQLite, the one
   * process always knows the newest. A revision that is null is not compared.
   */
  readonly keyVersion?: number
  readonly revision?: number | null
}

export type HoldResult =
  /** `granted`: where less than the amount may be held. */
  | { readonly done: 'held'; readonly granted?: MoneyText }
  | { readonly done: 'account_unknown' }
  | { readonly done: 'account_frozen' }
  /** The call was admitted with a configuration that another process has changed. `key_expired`: by the database's clock. */
  | { readonly done: 'key_changed' | 'key_expired' | 'rules_changed' }
  | { readonly done: 'balance_too_low' | 'hold_less'; readonly available: MoneyText }
  | { readonly done: 'budget_too_low'; readonly available: MoneyText; readonly budget: string }
  /** Another call has used this idempotency key. */
  | { readonly done: 'running' | 'other_body' | 'finished'; readonly callId: number }

export type BudgetSpan = 'total' | 'day' | 'month'

export type PostedKind = 'top_up' | 'gift' | 'adjustment' | 'refund'

export interface PriceInsert {
  /** `<provider>/<model>`, as callers write it. */
  readonly model: string
  readonly origin: 'shipped' | 'operator' | 'withdrawn'
  /** Canonical JSON; empty for a withdrawal. */
  readonly price: string
  readonly author: string
}
