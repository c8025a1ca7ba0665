// A ledger that tells how each call ended and what it came to, once that is durable.

import type { Nanos } from '../base/money/money.ts'
import { noMoney } from '../base/money/money.ts'
import type { RecordRow } from '../store/ledger/hold-types.ts'
import type { Ledger } from './ledger.ts'
import { isUndelivered } from './ledger.ts'

export type CountSettled = (record: RecordRow, cost: Nanos) => void

export function countedLedger(ledger: Ledger, count: CountSettled): Ledger {
  return {
    ...ledger,
    async settle(record, cost, extras) {
      const done = await ledger.settle(record, cost, extras)
      // One that is known already and now fails is about to be taken back.
      count(record, done === 'exists' && isUndelivered(record) ? noMoney : cost)
      return done
    },
    async record(record) {
      await ledger.record(record)
      count(record, noMoney)
    },
  }
}
