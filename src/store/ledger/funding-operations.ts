// The operations that create and change accounts and budgets.

import type { Database } from 'bun:sqlite'
import { matchesGlob } from '../../base/text/glob.ts'
import type { HandlersOf } from '../engine/operation.ts'
import type { ScopedInput } from '../engine/scope-check.ts'
import { buildScopeCheck } from '../engine/scope-check.ts'
import type { AccountKind } from '../tables/accounts.ts'
import { accountColumns } from '../tables/accounts.ts'
import type { RowChange, StoredRow } from '../tables/columns.ts'
import { list, rowInserter, rowUpdater } from '../tables/columns.ts'
import type { Books } from './books.ts'
import type { BudgetSpan } from './hold-types.ts'
import type { MoneyText } from './money-text.ts'
import { readAmount } from './money-text.ts'

type AccountColumns = typeof accountColumns

/** A change of an account. Undefined leaves a value as it is; null removes it. */
export interface AccountChange extends Omit<RowChange<AccountColumns>, 'kind' | 'frozenMs'> {
  readonly kind?: Exclude<AccountKind, 'operator'> | undefined
  readonly frozen?: boolean | undefined
}

export interface FundingOperations {
  createAccount: {
    input: AccountChange & {
      readonly id: number
      readonly name: string
      /** Whether the account belongs to one person or to a team. */
      readonly type: 'personal' | 'team'
      /** Refuses the name of another account of a team. */
      readonly uniqueName?: boolean
    }
    result: { done: 'created' | 'tier_unknown' | 'id_taken' | 'name_taken' }
  }
  setAccount: {
    /** An actor with a scope can only narrow the rights of the account. */
    input: AccountChange & ScopedInput & { readonly id: number }
    result: { done: 'set' | 'account_unknown' | 'balance_too_low' | 'tier_unknown' | 'rights_wider' }
  }
  setBudget: {
    input: ScopedInput & {
      /** The id of a key or of an account. */
      readonly scopeId: number
      readonly span: BudgetSpan
      readonly cap: MoneyText | null
      /** Only change a budget that exists; do not create one. */
      readonly isThere?: boolean
    }
    result: { done: 'set' | 'removed' | 'scope_unknown' | 'none' }
  }
}

type FundingHandlers = HandlersOf<FundingOperations>

export const fundingOperations = (books: Books): FundingHandlers => ({
  createAccount: buildCreateAccount(books),
  setAccount: buildSetAccount(books),
  setBudget: buildSetBudget(books),
})

/** Accounts and keys have ids from one range, because budgets are stored by the id of either. */
export function buildIdCheck(db: Database): (id: number) => boolean {
  const find = db.query('SELECT 1 FROM account WHERE id = ?1 UNION ALL SELECT 1 FROM api_key WHERE id = ?1')
  return id => find.get(id) !== null
}

function buildCreateAccount({ db, nowMs }: Books): FundingHandlers['createAccount'] {
  const findTier = db.query('SELECT 1 FROM tier WHERE name = ?1')
  const insert = rowInserter(db, 'account', accountColumns)
  const isTaken = buildIdCheck(db)
  // The first comparison uses the index of names.
  const findName = db.query("SELECT 1 FROM account WHERE name = ?1 COLLATE NOCASE AND name = ?1 AND type = 'team'")
  return function createAccount({ kind = 'prepaid', frozen = false, uniqueName = false, ...account }) {
    const { tier = null } = account
    if (isTaken(account.id)) return { done: 'id_taken' }
    if (uniqueName && findName.get(account.name) !== null) return { done: 'name_taken' }
    if (tier !== null && findTier.get(tier) === null) return { done: 'tier_unknown' }
    insert({ ...account, kind, frozenMs: frozen ? nowMs() : null, createdMs: nowMs() })
    return { done: 'created' }
  }
}

function buildSetAccount({ db, nowMs }: Books): FundingHandlers['setAccount'] {
  const find = db.query<StoredRow<AccountColumns>, [number]>('SELECT * FROM account WHERE id = ?1')
  const findTier = db.query('SELECT 1 FROM tier WHERE name = ?1')
  const update = rowUpdater(db, 'account', accountColumns)
  const isInScope = buildScopeCheck(db)
  return function setAccount({ id, scope, frozen, ...change }) {
    const row = find.get(id)
    if (row === null || row.kind === 'operator' || !isInScope(scope, id)) return { done: 'account_unknown' }
    const { kind = row.kind, tier = row.tier } = change
    if (tier !== null && findTier.get(tier) === null) return { done: 'tier_unknown' }
    if (scope && !isWithin(change, row)) return { done: 'rights_wider' }
    const limit = change.creditLimit === undefined ? row.credit_limit : readAmount(change.creditLimit)
    if (kind === 'prepaid' && row.balance + limit - row.held < 0n) return { done: 'balance_too_low' }
    // An account that is frozen already keeps its date.
    const isSwitched = frozen !== undefined && frozen !== (row.frozen_ms !== null)
    update(id, row, { ...change, ...(isSwitched && { frozenMs: frozen ? nowMs() : null }) })
    return { done: 'set' }
  }
}

/**
 * Whether the account may use no more after the change than before. A pattern that matches the text of another pattern,
 * including its stars, matches everything that the other pattern matches.
 */
function isWithin(change: AccountChange, row: StoredRow<AccountColumns>): boolean {
  const covers = (patterns: readonly string[], other: string): boolean =>
    patterns.some(pattern => matchesGlob(pattern, other))
  const [allows, denies] = [list.read(row.allows), list.read(row.denies)]
  const { allows: newAllows = allows, denies: newDenies = denies } = change
  if (!(denies ?? []).every(pattern => covers(newDenies ?? [], pattern))) return false
  // Without patterns everything is allowed.
  const isUnlimited = newAllows === null || newAllows.length === 0
  return allows === null || (!isUnlimited && newAllows.every(pattern => covers(allows, pattern)))
}

function buildSetBudget({ db, budgets }: Books): FundingHandlers['setBudget'] {
  const findAccount = db.query(
    `SELECT account_id FROM api_key WHERE id = ?1
     UNION ALL SELECT id FROM account WHERE id = ?1 AND kind <> 'operator'`,
  )
  const find = db.query('SELECT 1 FROM budget WHERE scope_id = ?1 AND span = ?2')
  const isInScope = buildScopeCheck(db)
  return function setBudget({ scopeId, scope, span, cap, isThere }) {
    const owner = findAccount.get(scopeId) as { account_id: bigint } | null
    if (owner === null || !isInScope(scope, Number(owner.account_id))) return { done: 'scope_unknown' }
    if ((cap === null || isThere) && find.get(scopeId, span) === null) return { done: 'none' }
    return { done: budgets.set(scopeId, span, cap === null ? null : readAmount(cap)) }
  }
}
