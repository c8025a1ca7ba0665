// Answers a hold request like the ledger, but only reads: for calls that are explained and not made.

import type { AccountReader, KeyAccount } from '../store/ledger/account-reader.ts'
import { grantShare } from '../store/ledger/funds-share.ts'
import type { HoldOutcome, HoldRequest } from './ledger.ts'

export interface DryLedgerParts {
  readonly accounts: Pick<AccountReader, 'findByKey'>
  dateMs(): number
}

/** The most that a call may use now; null when nothing limits it. */
export function availableOf(row: KeyAccount): bigint | null {
  const inBudgets = row.budgets.map(({ cap, spent, held }) => cap - spent - held)
  const inAccount = row.kind === 'postpaid' ? [] : [row.balance + row.creditLimit - row.held]
  const amounts = [...inAccount, ...inBudgets]
  return amounts.length === 0 ? null : amounts.reduce((least, amount) => (amount < least ? amount : least))
}

/** Checks in the same order as the ledger: budgets, the account, its balance. */
export function buildDryHold({ accounts, dateMs }: DryLedgerParts): (request: HoldRequest) => Promise<HoldOutcome> {
  return async function dryHold({ keyId, amount: asked, least, wants = 0n }) {
    const row = await accounts.findByKey(keyId, dateMs())
    if (row === undefined) throw new Error(`key ${keyId} has no account`)
    const amount = least ?? asked
    const left = availableOf(row)
    const extra =
      least === undefined || left === null || left < least ? 0n : grantShare(asked - least, 0n, [left - least])
    const held: HoldOutcome = least === undefined ? { done: 'held' } : { done: 'held', granted: `${least + extra}` }
    const shortage = amount > 0n ? findShortBudget(row, amount, wants) : undefined
    if (shortage !== undefined) return shortage
    if (row.frozen) return { done: 'account_frozen' }
    const { kind, balance, creditLimit } = row
    if (kind === 'postpaid') return held
    const available = balance + creditLimit - row.held
    if (available < amount) return { done: 'balance_too_low', available: `${available}` }
    if (available < wants) return { done: 'hold_less', available: `${available}` }
    return held
  }
}

/** The budget with the least money left, if that is not enough for the amount. */
function findShortBudget({ budgets }: KeyAccount, amount: bigint, wants: bigint): HoldOutcome | undefined {
  let least: { readonly available: bigint; readonly budget: string } | undefined
  for (const { scope, span, cap, spent, held } of budgets) {
    const available = cap - spent - held
    if (least === undefined || available < least.available) least = { available, budget: `${scope}, ${span}` }
  }
  if (least === undefined) return undefined
  if (least.available >= amount) {
    return least.available < wants ? { done: 'hold_less', available: `${least.available}` } : undefined
  }
  return { done: 'budget_too_low', available: `${least.available}`, budget: least.budget }
}
