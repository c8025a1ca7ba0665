// Accounts and budgets: who has them, how they pay, what their keys may use and how much they may spend.

import { matchesGlob } from '../../base/text/glob.ts'
import type { Runs } from '../engine/operation.ts'
import type { Scoped } from '../engine/reach.ts'
import { buildReaches } from '../engine/reach.ts'
import type { Books } from './books.ts'
import type { BudgetSpan } from './hold-types.ts'
import type { MoneyText } from './money-text.ts'
import { amountOf } from './money-text.ts'

/** What is not given stays as it is; null takes it away. Lists have commas between. */
export interface AccountChange {
  readonly name?: string | undefined
  /** How it pays. */
  readonly kind?: 'prepaid' | 'postpaid' | undefined
  readonly creditLimit?: MoneyText | undefined
  readonly keepsBodies?: boolean | undefined
  readonly frozen?: boolean | undefined
  /** Of its new keys. */
  readonly tier?: string | null | undefined
  /** Patterns of names of models, for all of its keys. */
  readonly allows?: string | null | undefined
  readonly denies?: string | null | undefined
}

export interface FundingOperations {
  createAccount: {
    input: AccountChange & {
      readonly id: number
      readonly name: string
      /** Whose it is. */
      readonly type: 'personal' | 'team'
    }
    result: { done: 'created' | 'tier_unknown' }
  }
  setAccount: {
    /** Whoever may not change every account can make its rights narrower only. */
    input: AccountChange & Scoped & { readonly id: number }
    result: { done: 'set' | 'account_unknown' | 'balance_too_low' | 'tier_unknown' | 'rights_wider' }
  }
  setBudget: {
    input: Scoped & {
      /** The key or the account. */
      readonly scopeId: number
      readonly span: BudgetSpan
      readonly cap: MoneyText | null
      /** Whoever has seen one does not make another. */
      readonly isThere?: boolean
    }
    result: { done: 'set' | 'removed' | 'scope_unknown' | 'none' }
  }
}

type FundingRun = Runs<FundingOperations>

interface Funding {
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

export const fundingOperations = (books: Books): FundingRun => ({
  createAccount: buildCreate(books),
  setAccount: buildSet(books),
  setBudget: buildBudget(books),
})

function buildCreate({ db, nowMs }: Books): FundingRun['createAccount'] {
  const findTier = db.query('SELECT 1 FROM tier WHERE name = ?1')
  const insert = db.query(
    `INSERT INTO account (id, name, type, kind, credit_limit, keeps_bodies, frozen_ms, created_ms, tier, allows, denies)
     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)`,
  )
  return function createAccount({ id, name, type, kind = 'prepaid', creditLimit = '0', ...more }) {
    const { tier = null, allows = null, denies = null, keepsBodies = false, frozen = false } = more
    if (tier !== null && findTier.get(tier) === null) return { done: 'tier_unknown' }
    const money = [kind, amountOf(creditLimit), Number(keepsBodies), frozen ? nowMs() : null]
    insert.run(id, name, type, ...money, nowMs(), tier, allows, denies)
    return { done: 'created' }
  }
}

function buildSet({ db, nowMs }: Books): FundingRun['setAccount'] {
  const read = db.query('SELECT * FROM account WHERE id = ?1')
  const findTier = db.query('SELECT 1 FROM tier WHERE name = ?1')
  const update = db.query(
    `UPDATE account SET name = ?2, kind = ?3, credit_limit = ?4, frozen_ms = ?5, keeps_bodies = ?6, tier = ?7,
       allows = ?8, denies = ?9 WHERE id = ?1`,
  )
  const reaches = buildReaches(db)
  return function setAccount({ id, scope, keepsBodies, frozen, ...wanted }) {
    const row = read.get(id) as Funding | null
    if (row === null || row.kind === 'operator' || !reaches(scope, id)) return { done: 'account_unknown' }
    const { name = row.name, kind = row.kind, tier = row.tier } = wanted
    const { allows = row.allows, denies = row.denies } = wanted
    if (tier !== null && findTier.get(tier) === null) return { done: 'tier_unknown' }
    if (scope && !isWithin({ allows, denies }, row)) return { done: 'rights_wider' }
    const limit = wanted.creditLimit === undefined ? row.credit_limit : amountOf(wanted.creditLimit)
    if (kind === 'prepaid' && row.balance + limit - row.held < 0n) return { done: 'balance_too_low' }
    const frozenMs = frozen === undefined ? row.frozen_ms : frozen ? (row.frozen_ms ?? nowMs()) : null
    const bodies = keepsBodies === undefined ? row.keeps_bodies : Number(keepsBodies)
    update.run(id, name, kind, limit, frozenMs, bodies, tier, allows, denies)
    return { done: 'set' }
  }
}

type Rights = Pick<Funding, 'allows' | 'denies'>

const listOf = (text: string | null): readonly string[] => text?.split(',') ?? []

/**
 * Whether all that some rights allow others allow, too. A pattern that fits another's text, stars and all, fits
 * whatever that one does.
 */
function isWithin(rights: Rights, others: Rights): boolean {
  const covers = (patterns: readonly string[], pattern: string): boolean =>
    patterns.some(one => matchesGlob(one, pattern))
  const [allows, denies] = [listOf(others.allows), listOf(rights.denies)]
  if (!listOf(others.denies).every(pattern => covers(denies, pattern))) return false
  if (others.allows === null) return true
  return rights.allows !== null && listOf(rights.allows).every(pattern => covers(allows, pattern))
}

function buildBudget({ db, budgets }: Books): FundingRun['setBudget'] {
  const findAccount = db.query(
    `SELECT account_id FROM api_key WHERE id = ?1
     UNION ALL SELECT id FROM account WHERE id = ?1 AND kind <> 'operator'`,
  )
  const find = db.query('SELECT 1 FROM budget WHERE scope_id = ?1 AND span = ?2')
  const reaches = buildReaches(db)
  return function setBudget({ scopeId, scope, span, cap, isThere }) {
    const owner = findAccount.get(scopeId) as { account_id: bigint } | null
    if (owner === null || !reaches(scope, Number(owner.account_id))) return { done: 'scope_unknown' }
    if ((cap === null || isThere) && find.get(scopeId, span) === null) return { done: 'none' }
    return { done: budgets.set(scopeId, span, cap === null ? null : amountOf(cap)) }
  }
}
