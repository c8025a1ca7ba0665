// Hold before the first upstream byte, settle before the last byte to the caller. Both resolve when durable.

import { Refusal } from '../base/errors.ts'
import type { Nanos } from '../base/money.ts'
import { formatUsd } from '../base/money.ts'
import type { RecordRow } from '../store/operations.ts'
import { moneyText, readMoney } from '../store/operations.ts'
import type { Writer } from '../store/writer.ts'

export interface Ledger {
  hold(callId: number, accountId: number, amount: Nanos): Promise<void>
  settle(record: RecordRow, cost: Nanos): Promise<void>
  /** Writes down a call that holds nothing. */
  record(record: RecordRow): Promise<void>
}

export function buildLedger(writer: Pick<Writer, 'run'>): Ledger {
  return {
    async hold(callId, accountId, amount) {
      const result = await writer.run('hold', { callId, accountId, amount: moneyText(amount) })
      if (result.done === 'held') return
      if (result.done === 'balance_too_low') {
        const needs = `It may cost up to $${formatUsd(amount)}; $${formatUsd(readMoney(result.available))} is there.`
        throw new Refusal('balance_too_low', `account ${accountId}`, { hint: needs })
      }
      throw new Error(`hold of call ${callId}: ${result.done}`)
    },
    async settle(record, cost) {
      await writer.run('settle', { record, cost: moneyText(cost) })
    },
    async record(record) {
      await writer.run('record', { record })
    },
  }
}
