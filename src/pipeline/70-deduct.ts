// Cost → ledger: posts the cost against the hold and writes the record, in one transaction. A call without a hold has
// only a record, which may be dropped under load.

import type { Ledger, SettleExtras } from '../billing/ledger.ts'
import { isUndelivered } from '../billing/ledger.ts'
import type { RecordRow } from '../store/ledger/hold-types.ts'
import type { Cost } from './settle/call-cost.ts'

/** `extras` is undefined for a call that cannot have a hold. */
export type Deduct = (row: RecordRow, cost: Pick<Cost, 'amount'>, extras: SettleExtras | undefined) => Promise<unknown>

export function buildDeduct(ledger: Ledger): Deduct {
  async function settleUndelivered(row: RecordRow, cost: Pick<Cost, 'amount'>, extras: SettleExtras): Promise<void> {
    const done = await ledger.settle(row, cost.amount, extras)
    // The first settlement was durable after all, but later than the gateway waited: the caller got an error then.
    if (done === 'exists') await ledger.refund(row)
  }

  return function deduct(row, cost, extras) {
    if (extras === undefined) return ledger.record(row)
    return isUndelivered(row) ? settleUndelivered(row, cost, extras) : ledger.settle(row, cost.amount, extras)
  }
}
