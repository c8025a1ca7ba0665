// Hold before the first upstream byte, settle before the last byte to the caller. Both resolve when durable.

import { bounds } from '../base/bounds.ts'
import type { Deadlines } from '../base/deadlines.ts'
import { Refusal } from '../base/errors.ts'
import type { Nanos } from '../base/money.ts'
import { formatUsd, nanos } from '../base/money.ts'
import type { RecordRow } from '../store/operations.ts'
import type { Writer } from '../store/writer.ts'

export interface Ledger {
  hold(callId: number, accountId: number, amount: Nanos): Promise<void>
  settle(record: RecordRow, cost: Nanos): Promise<void>
}

export function buildLedger(writer: Pick<Writer, 'run'>, deadlines: Deadlines): Ledger {
  const late = (): Refusal => new Refusal('storage_away', 'the ledger took too long', { retryAfterMs: 1_000 })
  const inTime = <T>(work: Promise<T>): Promise<T> => deadlines.within(bounds.settleMsMax, work, late)
  return {
    async hold(callId, accountId, amount) {
      const result = await inTime(writer.run('hold', { callId, accountId, amount }))
      if (result.done === 'held') return
      if (result.done === 'balance_too_low') {
        const needs = `It may cost up to $${formatUsd(amount)}; $${formatUsd(nanos(result.available))} is there.`
        throw new Refusal('balance_too_low', `account ${accountId}`, { hint: needs })
      }
      throw new Error(`hold of call ${callId}: ${result.done}`)
    },
    async settle(record, cost) {
      await inTime(writer.run('settle', { record, cost }))
    },
  }
}
