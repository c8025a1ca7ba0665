// The ledger's state that all operations share: the writing connection, and what is kept in memory beside it.

import type { Database } from 'bun:sqlite'
import { Budgets } from './budgets.ts'
import { IdempotencyRows } from './idempotency-rows.ts'
import { OperatorAccounts } from './operator-accounts.ts'

export interface Books {
  readonly db: Database
  readonly budgets: Budgets
  readonly idempotency: IdempotencyRows
  readonly operators: OperatorAccounts
  /** The clock of the ledger. All decisions about money use this clock and no other. */
  nowMs(): number
}

export function openBooks(db: Database, nowMs: () => number = Date.now): Books {
  const budgets = new Budgets(db, nowMs)
  return { db, budgets, idempotency: new IdempotencyRows(db, nowMs), operators: new OperatorAccounts(db), nowMs }
}
