// The operations that create and change accounts and budgets.

import { matchesGlob } from '../../base/text/glob.ts'
import type { HandlersOf } from '../engine/operation.ts'
import type { ScopedInput } from '../engine/scope-check.ts'
import { buildScopeCheck } from '../engine/scope-check.ts'
import type { Books } from './books.ts'
import type { BudgetSpan } from './hold-types.ts'
import type { MoneyText } from './money-text.ts'
import { readAmount } from './money-text.ts'

/** A change of an account. Undefined leaves a value as it is; null removes it. Lists are separated by commas. */
export interface AccountChange {
  readonly name?: string | undefined
  /** How the account pays. */
  readonly kind?: 'prepaid' | 'postpaid' | undefined
  readonly creditLimit?: MoneyText | undefined
  readonly keepsBodies?: boolean | undefined
  readonly frozen?: boolean | undefined
  /** The tier of new keys of the account. */
  readonly tier?: string | null | undefined
  /** Patterns of model names, for all keys of the account. */
  readonly allows?: string | null | undefined
  readonly denies?: string | null | undefined
}

export interface FundingOperations {
  createAccount: {
    input: AccountChange & {
      readonly id: number
      readonly name: string
      /** Whether the account belongs to one person or to a team. */
      readonly type: 'personal' | 'team'
    }
    result: { done: 'created' | 'tier_unknown' }
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

interface AccountColumns {
  readonly name: string
  readonly kind: string
  readonly balance: bigint
  readonly held: bigint
  readonly credit_limit: bigint
  readonly keeps_bodies: bigint
  readonly frozen_ms: bigint | null
  readonly tier: string | null
  readonly allows: string | null
  readonly denies: string | null
}

export const fundingOperations = (books: Books): FundingHandlers => ({
  createAccount: buildCreateAccount(books),
  setAccount: buildSetAccount(books),
  setBudget: buildSetBudget(books),
})

function buildCreateAccount({ db, nowMs }: Books): FundingHandlers['createAccount'] {
  const findTier = db.query('SELECT 1 FROM tier WHERE name = ?1')
  const insert = db.query(
    `INSERT INTO account (id, name, type, kind, credit_limit, keeps_bodies, frozen_ms, created_ms, tier, allows, denies)
     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)`,
  )
  return function createAccount({ id, name, type, kind = 'prepaid', creditLimit = '0', ...more }) {
    const { tier = null, allows = null, denies = null, keepsBodies = false, frozen = false } = more
    if (tier !== null && findTier.get(tier) === null) return { done: 'tier_unknown' }
    const limit = readAmount(creditLimit)
    const frozenMs = frozen ? nowMs() : null
    insert.run(id, name, type, kind, limit, Number(keepsBodies), frozenMs, nowMs(), tier, allows, denies)
    return { done: 'created' }
  }
}

function buildSetAccount({ db, nowMs }: Books): FundingHandlers['setAccount'] {
  const read = db.query('SELECT * FROM account WHERE id = ?1')
  const findTier = db.query('SELECT 1 FROM tier WHERE name = ?1')
  const update = db.query(
    `UPDATE account SET name = ?2, kind = ?3, credit_limit = ?4, frozen_ms = ?5, keeps_bodies = ?6, tier = ?7,
       allows = ?8, denies = ?9 WHERE id = ?1`,
  )
  const isInScope = buildScopeCheck(db)
  return function setAccount({ id, scope, keepsBodies, frozen, ...changes }) {
    const row = read.get(id) as AccountColumns | null
    if (row === null || row.kind === 'operator' || !isInScope(scope, id)) return { done: 'account_unknown' }
    const { name = row.name, kind = row.kind, tier = row.tier } = changes
    const { allows = row.allows, denies = row.denies } = changes
    if (tier !== null && findTier.get(tier) === null) return { done: 'tier_unknown' }
    if (scope && !isWithin({ allows, denies }, row)) return { done: 'rights_wider' }
    const limit = changes.creditLimit === undefined ? row.credit_limit : readAmount(changes.creditLimit)
    if (kind === 'prepaid' && row.balance + limit - row.held < 0n) return { done: 'balance_too_low' }
    const frozenMs = frozen === undefined ? row.frozen_ms : frozen ? (row.frozen_ms ?? nowMs()) : null
    const bodies = keepsBodies === undefined ? row.keeps_bodies : Number(keepsBodies)
    update.run(id, name, kind, limit, frozenMs, bodies, tier, allows, denies)
    return { done: 'set' }
  }
}

type ModelRights = Pick<AccountColumns, 'allows' | 'denies'>

const listOf = (text: string | null): readonly string[] => text?.split(',') ?? []

/**
 * Whether `rights` allow nothing that `others` do not allow. A pattern that matches the text of another pattern,
 * including its stars, matches everything that the other pattern matches.
 */
function isWithin(rights: ModelRights, others: ModelRights): boolean {
  const covers = (patterns: readonly string[], other: string): boolean =>
    patterns.some(pattern => matchesGlob(pattern, other))
  const [allows, denies] = [listOf(others.allows), listOf(rights.denies)]
  if (!listOf(others.denies).every(pattern => covers(denies, pattern))) return false
  if (others.allows === null) return true
  return rights.allows !== null && listOf(rights.allows).every(pattern => covers(allows, pattern))
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
