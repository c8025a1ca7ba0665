// Cost → ledger: the hold is posted at the cost, and the record is written with it, in one transaction.

import type { Ledger } from '../billing/ledger.ts'
import type { RecordRow } from '../store/operations.ts'
import type { Cost } from './60-cost.ts'

export type Deduct = (row: RecordRow, cost: Cost, recordOnly?: boolean) => Promise<void>

export function buildDeduct(ledger: Ledger): Deduct {
  return function deduct(row, cost, recordOnly = false) {
    return recordOnly ? ledger.record(row) : ledger.settle(row, cost.amount)
  }
}
