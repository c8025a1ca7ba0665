// Credits an account with money from the operator's promotion account. The caller has checked the amount and account.

import type { OperationContext } from '../engine/operation.ts'
import type { Steps } from '../engine/steps.ts'
import { addToBalance, insertTransfer } from './accounts.ts'
import { PROMO } from './operator-accounts.ts'

export interface CreditGift {
  readonly kind: 'gift' | 'redemption'
  readonly ref: number
  readonly accountId: number
  readonly amount: bigint
}

export function* giveCredit(credit: CreditGift, { operators, nowMs }: OperationContext): Steps<void> {
  const { kind, ref, accountId, amount } = credit
  const madeMs = nowMs()
  yield* insertTransfer({ ref, kind, madeMs, reference: null, author: null, debit: PROMO, credit: accountId, amount })
  yield* addToBalance(accountId, amount)
  yield* operators.move(PROMO, -amount)
}
