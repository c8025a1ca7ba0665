// Cost → ledger: the hold is posted at the cost, and the record is written with it, in one transaction. A call that
// can hold nothing has only a record, which may be shed under load.

import type { Ledger, SettleExtras } from '../billing/ledger.ts'
import type { RecordRow } from '../store/operations.ts'
import type { Cost } from './60-cost.ts'

/** `extras` for a call that may hold something, else undefined. */
export type Deduct = (row: RecordRow, cost: Cost, extras: SettleExtras | undefined) => Promise<void>

export function buildDeduct(ledger: Ledger): Deduct {
  return function deduct(row, cost, extras) {
    return extras === undefined ? ledger.record(row) : ledger.settle(row, cost.amount, extras)
  }
}
