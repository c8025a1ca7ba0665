// The ledger as the pipeline sees it. A call holds money before its first byte goes upstream, and is settled before its
// last byte goes to the caller. Both promises resolve when the data is durable.

import { Refusal } from '../base/errors.ts'
import type { Hint } from '../base/hints.ts'
import { hintOf } from '../base/hints.ts'
import type { Nanos } from '../base/money/money.ts'
import { formatUsd, noMoney } from '../base/money/money.ts'
import type { OperationInput, OperationResult } from '../store/engine/operations.ts'
import type { StoreWriter } from '../store/engine/store-engine.ts'
import type { CheckpointData, HoldInput, HoldResult, RecordRow } from '../store/ledger/hold-types.ts'
import { moneyText, readMoney } from '../store/ledger/money-text.ts'

export interface HoldRequest extends Pick<HoldInput, 'callId' | 'accountId' | 'keyId' | 'draft'> {
  readonly amount: Nanos
  /** Less than the amount may be held, but not less than this. */
  readonly least?: Nanos | undefined
  readonly idempotency?: HoldInput['idempotency'] | undefined
  /** What the call was admitted with, where another process may have changed it. */
  readonly admitted?: Required<Pick<HoldInput, 'keyVersion' | 'revision'>> | undefined
  /** `call` by default. The hold of a task survives a crash. */
  readonly kind?: HoldInput['kind']
  /** If less than this is available, the hold is refused with `hold_less`: the caller of this function can ask for less. */
  readonly wants?: bigint
}

export type HoldOutcome = Exclude<
  HoldResult,
  { done: 'account_unknown' } | { done: 'key_changed' | 'key_expired' | 'rules_changed' }
>

/** Another process has changed the key or the rules since the call was admitted. Nothing is reserved. */
export class ConfigurationChanged extends Error {}

export interface SettleExtras {
  readonly idempotency?: OperationInput<'settle'>['idempotency']
}

export interface ExtendRequest {
  readonly callId: number
  readonly amount: Nanos
  readonly least: Nanos
  /** What the call has reserved, as far as is known. */
  readonly held: Nanos
}

export type ExtendOutcome = OperationResult<'extend'>

export interface Ledger {
  hold(request: HoldRequest): Promise<HoldOutcome>
  /**
   * Reserves more for a running call: `amount`, or less where money is short, but at least `least`. It can be repeated
   * if its confirmation was lost: what the call has beyond `held` is granted first.
   */
  extend(request: ExtendRequest): Promise<ExtendOutcome>
  /** Returns `exists` for a call that was settled before. */
  settle(record: RecordRow, cost: Nanos, extras?: SettleExtras): Promise<'settled' | 'exists'>
  /** Refunds a call that was charged although its caller got an error. */
  refund(record: RecordRow): Promise<void>
  /** Writes what a call has used so far. After a crash, the call is charged no more than this. */
  checkpoint(callId: number, used: Nanos, known: CheckpointData): Promise<void>
  /** Writes the record of a call without a hold. */
  record(record: RecordRow): Promise<void>
}

type Writable<T> = { -readonly [Name in keyof T]: T[Name] }

export interface LedgerParts {
  readonly writer: Pick<StoreWriter, 'run'>
  /** The cost was higher than the hold, and the account could not pay the difference. */
  onShortfall(callId: number, amount: Nanos): void
}

export function buildLedger({ writer, onShortfall }: LedgerParts): Ledger {
  return {
    async hold(request) {
      const {
        callId,
        accountId,
        keyId,
        amount,
        least,
        wants = 0n,
        kind = 'call',
        draft,
        idempotency,
        admitted,
      } = request
      const input: Writable<HoldInput> = {
        callId,
        kind,
        accountId,
        keyId,
        amount: moneyText(amount),
        wants: `${wants}`,
        draft,
      }
      if (least !== undefined) input.least = moneyText(least)
      if (idempotency !== undefined) input.idempotency = idempotency
      if (admitted !== undefined) {
        input.keyVersion = admitted.keyVersion
        input.revision = admitted.revision
      }
      const result = await writer.run('hold', input)
      switch (result.done) {
        case 'account_unknown':
          throw new Error(`call ${callId}: account ${accountId} does not exist`)
        case 'key_changed':
        case 'rules_changed':
          throw new ConfigurationChanged(result.done)
        case 'key_expired':
          throw new Refusal('key_invalid', 'expired, by the clock of the database')
        default:
          return result
      }
    },
    extend: ({ callId, amount, least, held }) =>
      writer.run('extend', { callId, amount: moneyText(amount), least: moneyText(least), held: moneyText(held) }),
    async settle(record, cost, { idempotency } = {}) {
      const input = { record, cost: moneyText(cost) }
      const result = await writer.run('settle', idempotency === undefined ? input : { ...input, idempotency })
      if (result.done === 'settled' && result.shortfall !== '0') onShortfall(record.callId, readMoney(result.shortfall))
      return result.done
    },
    async refund({ callId, accountId }) {
      await writer.run(
        'post',
        { kind: 'refund', ref: callId, accountId, amount: 'all', reference: null, author: 'weir' },
        { actor: 'weir' },
      )
    },
    async checkpoint(callId, used, known) {
      await writer.run('checkpoint', { callId, used: moneyText(used), known })
    },
    async record(record) {
      await writer.run('record', { record })
    },
  }
}

/** Whether the caller got a gateway error instead of an answer, so that its charge is refunded. */
export const isUndelivered = ({ outcome, rule }: RecordRow): boolean =>
  outcome === 'gateway_fault' && rule !== 'gateway_fault_delivered'

/** The refusal for a hold that failed; `hint` says what the caller can do. Undefined when the hold succeeded. */
export function refusalOfHold(held: HoldOutcome, amount: Nanos, hint?: Hint): Refusal | undefined {
  if (held.done === 'account_frozen') return new Refusal('account_frozen', 'hold')
  if (held.done !== 'balance_too_low' && held.done !== 'budget_too_low' && held.done !== 'hold_less') return undefined
  const available = readMoney(held.available)
  const availableUsd = formatUsd(available > 0n ? available : noMoney)
  const figures = { cost: formatUsd(amount), available: availableUsd }
  const needs =
    held.done === 'budget_too_low'
      ? hintOf('call_cost_budget', { ...figures, budget: held.budget })
      : hintOf('call_cost', figures)
  const code = held.done === 'budget_too_low' ? 'budget_too_low' : 'balance_too_low'
  return new Refusal(code, `needs ${amount}`, {
    hint: hint === undefined ? needs : hintOf('call_and', { first: needs, second: hint }),
  })
}
