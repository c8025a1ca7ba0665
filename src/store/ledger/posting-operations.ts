// The manual postings of an operator, and the deletion of old idempotency keys.

import { assert } from '../../base/assert.ts'
import type { StepsOf } from '../engine/operation.ts'
import { query } from '../engine/steps.ts'
import { addToBalance, insertTransfer, readAccount } from './accounts.ts'
import type { PostedKind } from './hold-types.ts'
import { deleteExpiredKeys } from './idempotency-rows.ts'
import type { MoneyText } from './money-text.ts'
import { readMoney } from './money-text.ts'
import { BALANCE_MAX, CLEARING, PROMO, REVENUE } from './operator-accounts.ts'

/** The operator account that pays for each kind of posting. A negative adjustment pays to that account instead. */
const counterparts: Readonly<Record<PostedKind, number>> = {
  top_up: CLEARING,
  gift: PROMO,
  adjustment: REVENUE,
  refund: REVENUE,
}

export interface PostingOperations {
  /** Moves money on the order of an operator. `ref` is the refunded call, else a new id. */
  post: {
    input: {
      readonly kind: PostedKind
      readonly ref: number
      readonly accountId: number
      /** An adjustment may be negative. A refund may be `all` that was charged. */
      readonly amount: MoneyText | 'all'
      readonly reference: string | null
      readonly author: string
    }
    result:
      | { done: 'posted'; amount: MoneyText; balance: MoneyText }
      /** There is such a posting already; `same` tells whether call, account, amount and reference are the same too. */
      | { done: 'exists'; same: boolean; ref: number; amount: MoneyText; balance: MoneyText }
      | { done: 'account_unknown' | 'balance_too_low' | 'balance_too_high' }
      | { done: 'call_not_charged' | 'more_than_charged' }
  }
  /** Deletes some of the finished idempotency keys and answers of calls with ids below `before`. */
  forgetAnswers: { input: { readonly before: number }; result: { done: 'forgotten'; count: number } }
}

type PostingResult = PostingOperations['post']['result']

interface Charge {
  readonly amount: bigint
  readonly debit: bigint
}

interface ExistingPosting extends Charge {
  readonly ref: bigint
  readonly credit: bigint
  readonly reference: string | null
}

interface NewPosting {
  /** The call, of a refund: its identity. Undefined for a posting that only its reference identifies. */
  readonly call: number | undefined
  readonly accountId: number
  readonly amount: bigint
  readonly reference: string | null
  readonly balance: bigint
}

/** The result of a posting that exists already. */
function repeatedPosting(
  existing: ExistingPosting,
  { call, accountId, amount, reference, balance }: NewPosting,
): PostingResult {
  const isCredit = Number(existing.credit) === accountId
  const moved = isCredit ? existing.amount : -existing.amount
  const isOwn = isCredit || Number(existing.debit) === accountId
  const isSameCall = call === undefined || call === Number(existing.ref)
  const same = isOwn && isSameCall && moved === amount && existing.reference === reference
  return { done: 'exists', same, ref: Number(existing.ref), amount: `${moved}`, balance: `${balance}` }
}

const findOne = query<ExistingPosting>(
  'SELECT ref, amount, debit, credit, reference FROM transfer WHERE ref = ?1 AND kind = ?2',
)
const findReference = query<ExistingPosting>(
  'SELECT ref, amount, debit, credit, reference FROM transfer WHERE kind = ?1 AND reference = ?2',
)

export const postingOperations: StepsOf<PostingOperations> = {
  *post({ kind, ref, accountId, amount: text, reference, author }, { operators, nowMs }) {
    const charge = kind === 'refund' ? yield* findOne.get(ref, 'charge') : undefined
    const amount = text === 'all' ? (charge?.amount ?? 0n) : readMoney(text)
    assert(kind === 'adjustment' ? amount !== 0n : amount > 0n || text === 'all', 'a posting must move money')
    const account = yield* readAccount(accountId)
    if (account === undefined || account.kind === 'operator') return { done: 'account_unknown' }
    const existing =
      (yield* findOne.get(ref, kind)) ?? (reference === null ? undefined : yield* findReference.get(kind, reference))
    if (existing !== undefined) {
      const call = kind === 'refund' ? ref : undefined
      return repeatedPosting(existing, { call, accountId, amount, reference, balance: account.balance })
    }
    if (account.kind === 'prepaid' && account.available + amount < 0n) return { done: 'balance_too_low' }
    const operatorId = counterparts[kind]
    const newBalance = account.balance + amount
    const operatorBalance = (yield* operators.read(operatorId)) - amount
    if (newBalance < -BALANCE_MAX) return { done: 'balance_too_low' }
    if (newBalance > BALANCE_MAX || operatorBalance > BALANCE_MAX || operatorBalance < -BALANCE_MAX) {
      return { done: 'balance_too_high' }
    }
    if (kind === 'refund') {
      if (charge === undefined || Number(charge.debit) !== accountId) return { done: 'call_not_charged' }
      if (amount > charge.amount) return { done: 'more_than_charged' }
    }
    // From here on the posting must succeed.
    const transfer = { ref, kind, madeMs: nowMs(), reference, author }
    if (amount > 0n) yield* insertTransfer({ ...transfer, debit: operatorId, credit: accountId, amount })
    else yield* insertTransfer({ ...transfer, debit: accountId, credit: operatorId, amount: -amount })
    yield* addToBalance(accountId, amount)
    yield* operators.move(operatorId, -amount)
    return { done: 'posted', amount: `${amount}`, balance: `${newBalance}` }
  },
  *forgetAnswers({ before }) {
    return { done: 'forgotten', count: yield* deleteExpiredKeys(before) }
  },
}
