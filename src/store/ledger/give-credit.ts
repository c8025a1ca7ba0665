// Gives an account money that the operator gives away. What is given is checked before.

import type { Books } from './books.ts'
import { transferInserter } from './ledger-operations.ts'
import { PROMO } from './operator-accounts.ts'

export interface Given {
  readonly kind: 'gift' | 'redemption'
  readonly ref: number
  readonly accountId: number
  readonly amount: bigint
}

export function buildGive({ db, operators, nowMs }: Books): (given: Given) => void {
  const insertTransfer = transferInserter(db)
  const add = db.query('UPDATE account SET balance = balance + ?2 WHERE id = ?1')
  return function give({ kind, ref, accountId, amount }) {
    const made = { ref, kind, madeMs: nowMs(), reference: null, author: null }
    insertTransfer({ ...made, debit: PROMO, credit: accountId, amount })
    add.run(accountId, amount)
    operators.move(PROMO, -amount)
  }
}
