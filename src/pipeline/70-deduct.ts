// Cost → ledger: the hold is posted at the cost, and the record is written with it, in one transaction. A call that
// can hold nothing has only a record, which may be shed under load.

import type { Ledger } from '../billing/ledger.ts'
import type { RecordRow } from '../store/operations.ts'
import type { Cost } from './60-cost.ts'

export type Deduct = (row: RecordRow, cost: Cost, mayHold: boolean) => Promise<void>

export function buildDeduct(ledger: Ledger): Deduct {
  return async function deduct(row, cost, mayHold) {
    if (!mayHold) return await ledger.record(row)
    const done = await ledger.settle(row, cost.amount)
    // It was durable after all, later than we could wait: by then the caller had been told that the call failed.
    if (done === 'exists' && row.outcome === 'gateway_fault') await ledger.takeBack(row)
  }
}
