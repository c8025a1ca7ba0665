// Credits an account with money from the operator's promotion account. The caller has checked the account, and with
// `isCreditTooHigh` the amount.

import type { OperationContext } from '../engine/operation.ts'
import type { Steps } from '../engine/steps.ts'
import { addToBalance, insertTransfer } from './accounts.ts'
import { BALANCE_MAX, PROMO } from './operator-accounts.ts'

export interface CreditGift {
  readonly kind: 'gift' | 'redemption'
  readonly ref: number
  readonly accountId: number
  readonly amount: bigint
}

/** Whether the credit would lift the account above what a balance can be, or the operator's own account below. */
export function* isCreditTooHigh(
  amount: bigint,
  balance: bigint,
  { operators }: Pick<OperationContext, 'operators'>,
): Steps<boolean> {
  return balance + amount > BALANCE_MAX || (yield* operators.read(PROMO)) - amount < -BALANCE_MAX
}

export function* giveCredit(credit: CreditGift, { operators, nowMs }: OperationContext): Steps<void> {
  const { kind, ref, accountId, amount } = credit
  const madeMs = nowMs()
  yield* insertTransfer({ ref, kind, madeMs, reference: null, author: null, debit: PROMO, credit: accountId, amount })
  yield* addToBalance(accountId, amount)
  yield* operators.move(PROMO, -amount)
}
