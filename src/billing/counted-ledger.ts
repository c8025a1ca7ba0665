// Wraps a ledger: calls a function with the record and the cost of each call as soon as they are durable.

import type { Nanos } from '../base/money/money.ts'
import { noMoney } from '../base/money/money.ts'
import type { RecordRow } from '../store/ledger/hold-types.ts'
import type { Ledger } from './ledger.ts'
import { isUndelivered } from './ledger.ts'

export type CountSettled = (record: RecordRow, cost: Nanos) => void

export function buildCountedLedger(ledger: Ledger, count: CountSettled): Ledger {
  return {
    ...ledger,
    async settle(record, cost, extras) {
      const result = await ledger.settle(record, cost, extras)
      // A call that was settled before and now failed is about to be refunded.
      count(record, result === 'exists' && isUndelivered(record) ? noMoney : cost)
      return result
    },
    async record(record) {
      await ledger.record(record)
      count(record, noMoney)
    },
  }
}
