// The list of all operations of the writer, with the types of their inputs and results.
//
// Inputs and results cross a thread as JSON text, which costs a third of what a structured clone does. So money is
// written as decimal digits there, and bytes as hex or base64.
//
// An expected refusal (no funds, already settled) is a result. Operations throw only unexpected errors; then the
// whole batch is rolled back and its operations are run one by one.
import type { CodeOperations } from '../ledger/code-operations.ts'
import type { DailyHashOperations } from '../ledger/daily-hash-operations.ts'
import type { FundingOperations } from '../ledger/funding-operations.ts'
import type { PriceInsert } from '../ledger/hold-types.ts'
import type { LedgerOperations } from '../ledger/ledger-operations.ts'
import type { LimitDebt } from '../ledger/limit-debts.ts'
import type { PostingOperations } from '../ledger/posting-operations.ts'
import type { PeopleOperations } from '../people/people.ts'
import type { ServiceTokenOperations } from '../people/service-token-operations.ts'
import type { RecordOperations } from '../records/record-operations.ts'
import type { KeyOperations } from '../rules/key-operations.ts'
import type { RuleOperations } from '../rules/rules.ts'
import type { TierOperations } from '../rules/tier-operations.ts'
import type { SecretOperations } from '../secrets/secret-operations.ts'
import type { VaultOperations } from '../vault/vault-types.ts'
import type { WebhookOperations } from '../webhooks/webhook-operations.ts'
import type { HandlersOf, StepsOf } from './operation.ts'

export interface Operations
  extends CodeOperations,
    DailyHashOperations,
    FundingOperations,
    VaultOperations,
    KeyOperations,
    LedgerOperations,
    PeopleOperations,
    PostingOperations,
    RecordOperations,
    RuleOperations,
    SecretOperations,
    ServiceTokenOperations,
    TierOperations,
    WebhookOperations {
  addPrices: { input: { readonly prices: readonly PriceInsert[] }; result: { done: 'added'; versions: number[] } }
  setSetting: { input: { readonly name: string; readonly value: string }; result: { done: 'set' } }
  /** Saves how much of the day limits has been used. */
  noteDebts: { input: { readonly debts: readonly LimitDebt[] }; result: { done: 'noted' } }
}

export type OperationName = keyof Operations
export type OperationInput<Name extends OperationName> = Operations[Name]['input']
export type OperationResult<Name extends OperationName> = Operations[Name]['result']

/** All operations as functions that the writer calls. */
export type OperationHandlers = HandlersOf<Operations>

/** All operations as steps. On SQLite, the operations of `HotName` have none. */
export type OperationSteps = StepsOf<Operations>

/** The operations that each call needs. On SQLite they are synchronous functions. */
export type HotName = 'hold' | 'extend' | 'settle' | 'checkpoint' | 'record'

export type ColdName = Exclude<OperationName, HotName>

/**
 * Operations that start something new, or that can be skipped without harm. They are refused first when the write
 * queue or the disk is full.
 */
export const refusableOperations: ReadonlySet<OperationName> = new Set([
  'hold',
  'record',
  'createTask',
  'keepResponse',
  'keepReasoning',
  'keepFile',
  'keepReferences',
  'learnFactors',
  'noteDebts',
  'noteTokenUse',
  'trimLog',
  'redigestKeys',
  'reseal',
])
