// The operations on tiers. A tier sets limits and the price factor for its keys.

import type { HandlersOf } from '../engine/operation.ts'
import type { Books } from '../ledger/books.ts'
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

export function tierOperations({ db }: Books): HandlersOf<TierOperations> {
  const insert = db.query(
    `INSERT INTO tier (name, qpm, price_per_mille, account_qpm, account_concurrency)
     VALUES (?1, ?2, ?3, coalesce(?4, min(10 * ?2, 1000000000)), coalesce(?5, 500)) ON CONFLICT DO NOTHING`,
  )
  const update = db.query(
    `UPDATE tier SET qpm = coalesce(?2, qpm), price_per_mille = coalesce(?3, price_per_mille),
       account_qpm = coalesce(?4, account_qpm), account_concurrency = coalesce(?5, account_concurrency)
     WHERE name = ?1`,
  )
  const findUse = db.query(
    `SELECT 1 FROM api_key WHERE tier = ?1 UNION ALL SELECT 1 FROM limit_rule WHERE tier = ?1
     UNION ALL SELECT 1 FROM account WHERE tier = ?1 LIMIT 1`,
  )
  const remove = db.query('DELETE FROM tier WHERE name = ?1')
  return {
    setTier({ name, isNew, qpm = null, pricePerMille = null, accountQpm = null, accountConcurrency = null }) {
      const values = [name, qpm, pricePerMille, accountQpm, accountConcurrency]
      const { changes } = (isNew ? insert : update).run(...values)
      return { done: changes > 0 ? 'set' : isNew ? 'exists' : 'unknown' }
    },
    removeTier({ name }) {
      if (findUse.get(name) !== null) return { done: 'in_use' }
      return { done: remove.run(name).changes > 0 ? 'removed' : 'unknown' }
    },
  }
}
