// What operations that are no calls read of accounts. The operations of calls have their own copy of this
// (ledger-operations.ts), which is prepared for the connection of the writer.

import type { Steps } from '../engine/steps.ts'
import { query } from '../engine/steps.ts'
import type { TransferRow } from './ledger-operations.ts'

export interface AccountFunds {
  readonly kind: string
  readonly available: bigint
  readonly balance: bigint
}

const read = query<AccountFunds>(
  'SELECT kind, balance + credit_limit - held AS available, balance FROM account WHERE id = ?1',
)
const findId = query('SELECT 1 FROM account WHERE id = ?1 UNION ALL SELECT 1 FROM api_key WHERE id = ?1')

export const readAccount = (id: number): Steps<AccountFunds | undefined> => read.get(id)

/** Accounts and keys have ids from one range, because budgets are stored by the id of either. */
export function* isIdTaken(id: number): Steps<boolean> {
  return (yield* findId.get(id)) !== undefined
}

const insert = query(
  `INSERT INTO transfer (ref, kind, debit, credit, amount, made_ms, reference, author)
   VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)`,
)
const add = query('UPDATE account SET balance = balance + ?2 WHERE id = ?1')

/** Writes a transfer. The caller changes the two balances. */
export function* insertTransfer(row: TransferRow): Steps<void> {
  yield* insert.run(row.ref, row.kind, row.debit, row.credit, row.amount, row.madeMs, row.reference, row.author)
}

export function* addToBalance(accountId: number, amount: bigint): Steps<void> {
  yield* add.run(accountId, amount)
}
