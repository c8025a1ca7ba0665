// What the writer can do, one row each: data in, data out, inside the transaction that the writer has open.
//
// Inputs and results cross a thread as JSON text, which costs a third of what a structured clone does. So money is
// written as decimal digits there, and bytes as hex or base64.
//
// A refusal (no funds, already settled) is a result. Only the unexpected is thrown, and then the whole batch
// is rolled back and its operations are run one by one.

import { assert } from '../base/assert.ts'
import type { Nanos } from '../base/money.ts'
import { nanos } from '../base/money.ts'
import type { CodeOperations } from './code-operations.ts'
import type { FundingOperations } from './funding-operations.ts'
import type { KeptOperations } from './kept.ts'
import type { KeyOperations } from './key-operations.ts'
import type { LimitDebt } from './limit-debts.ts'
import type { PeopleOperations } from './people.ts'
import type { RecordOperations } from './record-deletion.ts'
import type { RuleOperations } from './rules.ts'
import type { SecretOperations } from './secret-operations.ts'
import type { TierOperations } from './tier-operations.ts'
import type { WebhookOperations } from './webhook-operations.ts'

/** Nano-USD as decimal digits. */
export type MoneyText = `${bigint}`

export const moneyText = (amount: Nanos): MoneyText => `${amount}`
export const readMoney = (text: MoneyText): Nanos => nanos(BigInt(text))

/** Beyond 64 bits the driver would wrap it silently. */
export function amountOf(text: MoneyText): bigint {
  const amount = readMoney(text)
  assert(amount >= 0n, 'an amount of money is not negative')
  return amount
}

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

export interface Operations
  extends CodeOperations,
    FundingOperations,
    KeptOperations,
    KeyOperations,
    PeopleOperations,
    RecordOperations,
    RuleOperations,
    SecretOperations,
    TierOperations,
    WebhookOperations {
  hold: { input: HoldInput; result: HoldResult }
  /** Ends a call: its hold, if it has one, is posted at `cost` or less, and its record is written. */
  settle: {
    input: {
      readonly record: RecordRow
      readonly cost: MoneyText
      /** What becomes of the call's idempotency key: kept with its answer (base64; null: too large), or given back. */
      readonly idempotency?: { readonly sealed: string | null } | 'release'
    }
    result: { done: 'settled'; charged: MoneyText; shortfall: MoneyText } | { done: 'exists' }
  }
  /** What has been delivered so far, so that a crash does not make it free. */
  checkpoint: {
    input: { readonly callId: number; readonly used: MoneyText; readonly known: RecordKnown }
    result: { done: 'noted' | 'unknown' }
  }
  /** Writes down a call that never held anything. */
  record: { input: { readonly record: RecordRow }; result: { done: 'recorded' | 'exists' } }
  /** Moves money by an operator's word. `ref`: the call that is refunded, else an id of its own. */
  post: {
    input: {
      readonly kind: PostedKind
      readonly ref: number
      readonly accountId: number
      /** Of an adjustment it may be negative. Of a refund it may be all that was charged. */
      readonly amount: MoneyText | 'all'
      readonly reference: string | null
      readonly author: string
    }
    result:
      | { done: 'posted'; amount: MoneyText; balance: MoneyText }
      /** It has been posted before; `same` to the account and with all else, so that it need not be again. */
      | { done: 'exists'; same: boolean; ref: number; amount: MoneyText; balance: MoneyText }
      | { done: 'account_unknown' | 'balance_too_low' | 'balance_too_high' }
      | { done: 'call_not_charged' | 'more_than_charged' }
  }
  addPrices: { input: { readonly prices: readonly PriceInsert[] }; result: { done: 'added'; versions: number[] } }
  setSetting: { input: { readonly name: string; readonly value: string }; result: { done: 'set' } }
  /** What day limits have given. */
  noteDebts: { input: { readonly debts: readonly LimitDebt[] }; result: { done: 'noted' } }
  /** Idempotency keys of calls before this one, some at a time. */
  forgetAnswers: { input: { readonly before: number }; result: { done: 'forgotten'; count: number } }
}

export type OperationName = keyof Operations
export type Input<Name extends OperationName> = Operations[Name]['input']
export type Result<Name extends OperationName> = Operations[Name]['result']

export type Run = { readonly [Name in OperationName]: (input: Input<Name>) => Result<Name> }

/** What begins something or is not missed: the first to be refused when there is too much to write, or no room. */
export const beginning: ReadonlySet<OperationName> = new Set([
  ...(['hold', 'record', 'createTask'] as const),
  ...(['keepResponse', 'keepReasoning', 'keepFile', 'keepReferences', 'learnFactors', 'noteDebts', 'trimLog'] as const),
  ...(['redigestKeys', 'reseal'] as const),
])
