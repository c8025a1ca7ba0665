// The operations that create and change accounts and budgets.

import { matchesGlob } from '../../base/text/glob.ts'
import { FIRST_VERSION } from '../audit-log/first-version.ts'
import type { OperationContext, StepsOf } from '../engine/operation.ts'
import type { ScopedInput } from '../engine/scope-check.ts'
import { isInScope } from '../engine/scope-check.ts'
import type { Steps } from '../engine/steps.ts'
import { query } from '../engine/steps.ts'
import { hasTier } from '../rules/tier-operations.ts'
import type { AccountKind } from '../tables/accounts.ts'
import { accountColumns } from '../tables/accounts.ts'
import type { RowChange, StoredRow } from '../tables/columns.ts'
import { list, rowInserter, rowUpdater } from '../tables/columns.ts'
import { isIdTaken } from './accounts.ts'
import { periodOf } from './budgets.ts'
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
    result: { done: 'set' | 'account_unknown' | 'balance_too_low' | 'tier_unknown' | 'rights_wider' | 'name_reserved' }
  }
  setBudget: {
    /**
     * An actor with a scope can only narrow the budgets of a postpaid account: nothing else limits what it owes to the
     * operator.
     */
    input: ScopedInput & {
      /** The id of a key or of an account. */
      readonly scopeId: number
      readonly span: BudgetSpan
      readonly cap: MoneyText | null
    }
    result: { done: 'set' | 'removed' | 'scope_unknown' | 'none' | 'budget_wider' | 'playground' }
  }
}

const insertAccount = rowInserter('account', accountColumns)
// The first comparison uses the index of names.
const findName = query({
  sqlite: "SELECT 1 FROM account WHERE name = ?1 COLLATE NOCASE AND name = ?1 AND type = 'team'",
  // Without the collation, the letters that `lower` changes would depend on the database.
  postgres: `SELECT 1 FROM account WHERE lower(name) = lower(CAST(?1 AS TEXT) COLLATE "C") AND name = ?1 AND type = 'team'`,
})
const findAccount = query<StoredRow<AccountColumns>>('SELECT * FROM account WHERE id = ?1')
const updateAccount = rowUpdater('account', accountColumns)

const accountOperations: Pick<StepsOf<FundingOperations>, 'createAccount' | 'setAccount'> = {
  *createAccount({ kind = 'prepaid', frozen = false, uniqueName = false, ...account }, { nowMs }) {
    const { tier = null } = account
    if (yield* isIdTaken(account.id)) return { done: 'id_taken' }
    if (uniqueName && (yield* findName.get(account.name)) !== undefined) return { done: 'name_taken' }
    if (tier !== null && !(yield* hasTier(tier))) return { done: 'tier_unknown' }
    yield* insertAccount({ ...account, kind, frozenMs: frozen ? nowMs() : null, createdMs: nowMs() })
    return { done: 'created' }
  },
  *setAccount({ id, scope, frozen, ...change }, { nowMs }) {
    const row = yield* findAccount.get(id)
    if (row === undefined || row.kind === 'operator' || !(yield* isInScope(scope, id))) {
      return { done: 'account_unknown' }
    }
    const { kind = row.kind, tier = row.tier } = change
    if (tier !== null && !(yield* hasTier(tier))) return { done: 'tier_unknown' }
    if (scope && !isWithin(change, row)) return { done: 'rights_wider' }
    // A configuration file finds the account of a team by its name.
    const isRenamed = change.name !== undefined && change.name !== row.name
    if (scope && isRenamed && row.type === 'team') return { done: 'name_reserved' }
    const limit = change.creditLimit === undefined ? row.credit_limit : readAmount(change.creditLimit)
    if (kind === 'prepaid' && row.balance + limit - row.held < 0n) return { done: 'balance_too_low' }
    // An account that is frozen already keeps its date.
    const isSwitched = frozen !== undefined && frozen !== (row.frozen_ms !== null)
    yield* updateAccount(id, row, { ...change, ...(isSwitched && { frozenMs: frozen ? nowMs() : null }) })
    return { done: 'set' }
  },
}

/**
 * Whether the account may use no more after the change than before. A pattern that matches the text of another pattern,
 * including its stars, matches everything that the other pattern matches. But a denied name without a star must stay: it
 * denies all names of its model, and a pattern only those that are written somewhere (isRuleAbout).
 */
function isWithin(change: AccountChange, row: StoredRow<AccountColumns>): boolean {
  const covers = (patterns: readonly string[], other: string): boolean =>
    patterns.some(pattern => matchesGlob(pattern, other))
  const [allows, denies] = [list.read(row.allows), list.read(row.denies)]
  const { allows: newAllows = allows, denies: newDenies = denies } = change
  const isStillDenied = (denied: string): boolean =>
    newDenies !== null && (denied.includes('*') ? covers(newDenies, denied) : newDenies.includes(denied))
  if (!(denies ?? []).every(isStillDenied)) return false
  // Without patterns everything is allowed.
  const isUnlimited = newAllows === null || newAllows.length === 0
  return allows === null || (!isUnlimited && newAllows.every(pattern => covers(allows, pattern)))
}

/** `kind` is that of an account, `playground_of` is of a key. */
const findOwner = query<{ account_id: bigint; kind: AccountKind | null; playground_of: string | null }>(
  `SELECT account_id, CAST(NULL AS TEXT) AS kind, playground_of FROM api_key WHERE id = ?1
   UNION ALL SELECT id, kind, CAST(NULL AS TEXT) FROM account WHERE id = ?1 AND kind <> 'operator'`,
)
const findBudget = query<{ cap: bigint }>('SELECT cap FROM budget WHERE scope_id = ?1 AND span = ?2')
const deleteBudget = query('DELETE FROM budget WHERE scope_id = ?1 AND span = ?2')
const sumHeld = query<{ held: bigint }>(
  'SELECT CAST(coalesce(sum(amount), 0) AS BIGINT) AS held FROM hold WHERE key_id = ?1 OR account_id = ?1',
)
// A budget that is lower than what is spent and held already keeps that as its ceiling.
const upsertBudget = query(
  `INSERT INTO budget (scope_id, span, cap, ceiling, held, period, version)
   VALUES (?1, ?2, ?3, CASE WHEN CAST(?3 AS BIGINT) > CAST(?4 AS BIGINT) THEN ?3 ELSE ?4 END, ?4, ?5, ${FIRST_VERSION})
   ON CONFLICT (scope_id, span) DO UPDATE SET cap = excluded.cap, ceiling =
     CASE WHEN excluded.cap > budget.spent + budget.held THEN excluded.cap ELSE budget.spent + budget.held END`,
)

const findTotal = query<{ spent: bigint; held: bigint }>(
  "SELECT spent, held FROM budget WHERE scope_id = ?1 AND span = 'total'",
)

/** Lets a key spend this amount from now on, beside what it has spent and what its calls have reserved. */
export function* grantBudget(
  keyId: number,
  amount: bigint,
  { nowMs, budgets }: Pick<OperationContext, 'nowMs' | 'budgets'>,
): Steps<void> {
  const { held } = (yield* sumHeld.get(keyId))!
  const used = (yield* findTotal.get(keyId)) ?? { spent: 0n, held }
  yield* upsertBudget.run(keyId, 'total', used.spent + used.held + amount, held, periodOf('total', nowMs()))
  budgets.add(keyId)
}

export const fundingOperations: StepsOf<FundingOperations> = {
  ...accountOperations,
  *setBudget({ scopeId, scope, span, cap }, { nowMs, budgets }) {
    const owner = yield* findOwner.get(scopeId)
    if (owner === undefined || !(yield* isInScope(scope, Number(owner.account_id)))) return { done: 'scope_unknown' }
    // It may spend what was granted with its text, and no more.
    if (owner.playground_of !== null) return { done: 'playground' }
    const before = yield* findBudget.get(scopeId, span)
    if (cap === null && before === undefined) return { done: 'none' }
    const isWider = before !== undefined && (cap === null || readAmount(cap) > before.cap)
    if (scope && owner.kind === 'postpaid' && isWider) return { done: 'budget_wider' }
    if (cap === null) {
      yield* deleteBudget.run(scopeId, span)
      budgets.reload()
      return { done: 'removed' }
    }
    const { held } = (yield* sumHeld.get(scopeId))!
    yield* upsertBudget.run(scopeId, span, readAmount(cap), held, periodOf(span, nowMs()))
    budgets.add(scopeId)
    return { done: 'set' }
  },
}
