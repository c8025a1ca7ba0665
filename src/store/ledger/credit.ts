// Credits an account with money from the operator's promotion account. The caller has checked the amount and account.

import type { Books } from './books.ts'
import { buildTransferInserter } from './ledger-operations.ts'
import { PROMO } from './operator-accounts.ts'

export interface CreditGift {
  readonly kind: 'gift' | 'redemption'
  readonly ref: number
  readonly accountId: number
  readonly amount: bigint
}

export function buildGiveCredit({ db, operators, nowMs }: Books): (credit: CreditGift) => void {
  const insertTransfer = buildTransferInserter(db)
  const addToBalance = db.query('UPDATE account SET balance = balance + ?2 WHERE id = ?1')
  return function giveCredit({ kind, ref, accountId, amount }) {
    insertTransfer({
      ref,
      kind,
      madeMs: nowMs(),
      reference: null,
      author: null,
      debit: PROMO,
      credit: accountId,
      amount,
    })
    addToBalance.run(accountId, amount)
    operators.move(PROMO, -amount)
  }
}
