// Cost → ledger: the hold is posted at the cost, and the record is written with it, in one transaction. A call that
// can hold nothing has only a record, which may be shed under load.

import type { Ledger } from '../billing/ledger.ts'
import type { RecordRow } from '../store/operations.ts'
import type { Cost } from './60-cost.ts'

export type Deduct = (row: RecordRow, cost: Cost, mayHold: boolean) => Promise<void>

export function buildDeduct(ledger: Ledger): Deduct {
  return function deduct(row, cost, mayHold) {
    return mayHold ? ledger.settle(row, cost.amount) : ledger.record(row)
  }
}
