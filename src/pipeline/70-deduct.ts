// Cost → ledger: the hold is posted at the cost, and the record is written with it, in one transaction. A call that
// can hold nothing has only a record, which may be shed under load.

import type { Ledger, SettleExtras } from '../billing/ledger.ts'
import { isUndelivered } from '../billing/ledger.ts'
import type { RecordRow } from '../store/ledger/hold-types.ts'
import type { Cost } from './settle/call-cost.ts'

/** `extras` for a call that may hold something, else undefined. */
export type Deduct = (row: RecordRow, cost: Pick<Cost, 'amount'>, extras: SettleExtras | undefined) => Promise<void>

export function buildDeduct(ledger: Ledger): Deduct {
  return async function deduct(row, cost, extras) {
    if (extras === undefined) return await ledger.record(row)
    const done = await ledger.settle(row, cost.amount, extras)
    // It was durable after all, later than we could wait: by then the caller had been told that the call failed.
    if (done === 'exists' && isUndelivered(row)) await ledger.takeBack(row)
  }
}
