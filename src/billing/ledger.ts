// Hold before the first upstream byte, settle before the last byte to the caller. Both resolve when durable.

import { Refusal } from '../base/errors.ts'
import type { Nanos } from '../base/money/money.ts'
import { formatUsd, noMoney } from '../base/money/money.ts'
import type { Input } from '../store/engine/operations.ts'
import type { Writer } from '../store/engine/writer.ts'
import type { HoldInput, HoldResult, RecordKnown, RecordRow } from '../store/ledger/hold-types.ts'
import { moneyText, readMoney } from '../store/ledger/money-text.ts'

export interface HoldRequest extends Omit<HoldInput, 'amount' | 'wants' | 'kind'> {
  readonly amount: Nanos
  /** Of a call, unless told: a task's outlives a crash. */
  readonly kind?: HoldInput['kind']
  /** The part that a count of tokens could make smaller; none if they are counted. */
  readonly coarse?: Nanos
}

export type Held = Exclude<HoldResult, { done: 'account_unknown' }>

export interface SettleExtras {
  readonly idempotency?: Input<'settle'>['idempotency']
}

export interface Ledger {
  hold(request: HoldRequest): Promise<Held>
  /** Gives `exists` for a call that has been settled before. */
  settle(record: RecordRow, cost: Nanos, extras?: SettleExtras): Promise<'settled' | 'exists'>
  /** Gives back what a call was charged after its caller had been told that it failed. */
  takeBack(record: RecordRow): Promise<void>
  /** What has been delivered so far: a crash charges no more than that. */
  checkpoint(callId: number, used: Nanos, known: RecordKnown): Promise<void>
  /** Writes down a call that holds nothing. */
  record(record: RecordRow): Promise<void>
}

/** A coarse bound may take up to this share of what is there before its tokens are counted. */
const COARSE_SHARE = 10n

/** What must be there for so coarse a bound. */
export const wantsOf = (coarse: Nanos = noMoney): bigint => coarse * COARSE_SHARE

export interface LedgerParts {
  readonly writer: Pick<Writer, 'run'>
  /** A provider went beyond the bound, and the caller could not pay for it. */
  onShortfall(callId: number, amount: Nanos): void
}

export function buildLedger({ writer, onShortfall }: LedgerParts): Ledger {
  return {
    async hold({ amount, coarse, kind = 'call', ...rest }) {
      const wants = `${wantsOf(coarse)}` as const
      const result = await writer.run('hold', { ...rest, kind, amount: moneyText(amount), wants })
      if (result.done === 'account_unknown') throw new Error(`call ${rest.callId}: no account ${rest.accountId}`)
      return result
    },
    async settle(record, cost, { idempotency } = {}) {
      const input = { record, cost: moneyText(cost) }
      const result = await writer.run('settle', idempotency === undefined ? input : { ...input, idempotency })
      if (result.done === 'settled' && result.shortfall !== '0') onShortfall(record.callId, readMoney(result.shortfall))
      return result.done
    },
    async takeBack({ callId, accountId }) {
      const about = { reference: null, author: 'weir' }
      await writer.run('post', { kind: 'refund', ref: callId, accountId, amount: 'all', ...about }, { actor: 'weir' })
    },
    async checkpoint(callId, used, known) {
      await writer.run('checkpoint', { callId, used: moneyText(used), known })
    },
    async record(record) {
      await writer.run('record', { record })
    },
  }
}

/** A mistake of ours of which the caller was told in place of an answer: what it was charged is given back. */
export const isUndelivered = ({ outcome, rule }: RecordRow): boolean =>
  outcome === 'gateway_fault' && rule !== 'gateway_fault_delivered'

/** Why nothing was held, for the caller; `hint` says what would help. */
export function refusalOfHold(held: Held, amount: Nanos, hint = ''): Refusal | undefined {
  if (held.done === 'account_frozen') return new Refusal('account_frozen', 'hold')
  if (held.done !== 'balance_too_low' && held.done !== 'budget_too_low' && held.done !== 'count_first') return undefined
  const available = readMoney(held.available)
  const there = formatUsd(available > 0n ? available : noMoney)
  const of = held.done === 'budget_too_low' ? ` of the budget (${held.budget})` : ''
  const needs = `It may cost up to $${formatUsd(amount)}; $${there}${of} is there.`
  const code = held.done === 'budget_too_low' ? 'budget_too_low' : 'balance_too_low'
  return new Refusal(code, `needs ${amount}`, { hint: hint === '' ? needs : `${needs} ${hint}` })
}
