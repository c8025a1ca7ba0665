// What the ledger would say to a hold, read and not written: for calls that are only explained.

import type { AccountReader, AccountRow } from '../store/ledger/account-reader.ts'
import type { Held, HoldRequest } from './ledger.ts'
import { wantsOf } from './ledger.ts'

export interface DryLedgerParts {
  readonly accounts: Pick<AccountReader, 'ofKey'>
  dateMs(): number
}

/** What a call may use at most at this moment; null where nothing stops it. */
export function availableOf(row: AccountRow): bigint | null {
  const left = row.budgets.map(({ cap, spent, held }) => cap - spent - held)
  const own = row.kind === 'postpaid' ? [] : [row.balance + row.creditLimit - row.held]
  const rooms = [...own, ...left]
  return rooms.length === 0 ? null : rooms.reduce((least, room) => (room < least ? room : least))
}

/** In the order in which the ledger itself looks: budgets, the account, its balance. */
export function buildDryHold({ accounts, dateMs }: DryLedgerParts): (request: HoldRequest) => Promise<Held> {
  return async function dryHold({ keyId, amount, coarse }) {
    const row = accounts.ofKey(keyId, dateMs())
    if (row === undefined) throw new Error(`no account of key ${keyId}`)
    const short = amount > 0n ? shortBudget(row, amount) : undefined
    if (short !== undefined) return short
    if (row.frozen) return { done: 'account_frozen' }
    const { kind, balance, creditLimit, held } = row
    if (kind === 'postpaid') return { done: 'held' }
    const available = balance + creditLimit - held
    if (available < amount) return { done: 'balance_too_low', available: `${available}` }
    if (available < wantsOf(coarse)) return { done: 'count_first', available: `${available}` }
    return { done: 'held' }
  }
}

/** The one of which the least is left, if that is not enough. */
function shortBudget({ budgets }: AccountRow, amount: bigint): Held | undefined {
  let least: { readonly available: bigint; readonly budget: string } | undefined
  for (const { scope, span, cap, spent, held } of budgets) {
    const available = cap - spent - held
    if (least === undefined || available < least.available) least = { available, budget: `${scope}, ${span}` }
  }
  if (least === undefined || least.available >= amount) return undefined
  return { done: 'budget_too_low', available: `${least.available}`, budget: least.budget }
}
