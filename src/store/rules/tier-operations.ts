// The operations on tiers. A tier sets limits and the price factor for its keys.

import type { StepsOf } from '../engine/operation.ts'
import type { Steps } from '../engine/steps.ts'
import { query } from '../engine/steps.ts'
import type { RowChange } from '../tables/columns.ts'
import type { tierColumns } from '../tables/rules.ts'

export interface TierOperations {
  /** Undefined fields stay as they are. A new tier needs `qpm` and `pricePerMille`. */
  setTier: {
    input: RowChange<typeof tierColumns> & { readonly name: string; readonly isNew: boolean }
    result: { done: 'set' | 'exists' | 'unknown' }
  }
  removeTier: { input: { readonly name: string }; result: { done: 'removed' | 'unknown' | 'in_use' } }
}

const findUse = query(
  `SELECT 1 FROM api_key WHERE tier = ?1 UNION ALL SELECT 1 FROM limit_rule WHERE tier = ?1
   UNION ALL SELECT 1 FROM account WHERE tier = ?1 LIMIT 1`,
)
const find = query('SELECT 1 FROM tier WHERE name = ?1')
const insert = query(
  `INSERT INTO tier (name, qpm, price_per_mille, account_qpm, account_concurrency)
   VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT (name) DO NOTHING`,
)
const update = query(
  `UPDATE tier SET qpm = coalesce(?2, qpm), price_per_mille = coalesce(?3, price_per_mille),
     account_qpm = coalesce(?4, account_qpm), account_concurrency = coalesce(?5, account_concurrency)
   WHERE name = ?1`,
)
const remove = query('DELETE FROM tier WHERE name = ?1')

/** The default of a tier is ten times as many calls for an account as for a key. */
const ACCOUNT_KEYS = 10
const ACCOUNT_QPM_MAX = 1_000_000_000
const ACCOUNT_CONCURRENCY = 500

export function* hasTier(name: string): Steps<boolean> {
  return (yield* find.get(name)) !== undefined
}

export const tierOperations: StepsOf<TierOperations> = {
  *setTier({ name, isNew, qpm = null, pricePerMille = null, accountQpm = null, accountConcurrency = null }) {
    if (isNew) {
      const ofAccount = accountQpm ?? Math.min(ACCOUNT_KEYS * (qpm ?? 0), ACCOUNT_QPM_MAX)
      const inserted = yield* insert.run(name, qpm, pricePerMille, ofAccount, accountConcurrency ?? ACCOUNT_CONCURRENCY)
      return { done: inserted > 0 ? 'set' : 'exists' }
    }
    const updated = yield* update.run(name, qpm, pricePerMille, accountQpm, accountConcurrency)
    return { done: updated > 0 ? 'set' : 'unknown' }
  },
  *removeTier({ name }) {
    if ((yield* findUse.get(name)) !== undefined) return { done: 'in_use' }
    return { done: (yield* remove.run(name)) > 0 ? 'removed' : 'unknown' }
  },
}
