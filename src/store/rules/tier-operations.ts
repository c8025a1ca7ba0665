// The operations on tiers. A tier sets limits and the price factor for its keys.

import { FIRST_VERSION } from '../audit-log/first-version.ts'
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
  /** `nowMs` tells which keys of playgrounds are over. */
  removeTier: {
    input: { readonly name: string; readonly nowMs: number }
    result: { done: 'removed' | 'unknown' | 'in_use' | 'is_default' | 'is_needed' }
  }
}

/** The tier of keys whose account has none of its own; also that of new people, if the settings of the site name no other. */
export const DEFAULT_TIER = 'standard'

/** The key of a playground stays for the records of its calls, and gets the tier of its account when it is used again. */
const OVER = 'playground_of IS NOT NULL AND (revoked_ms IS NOT NULL OR expires_ms <= ?2)'
const findUse = query(
  `SELECT 1 FROM api_key WHERE tier = ?1 AND NOT (${OVER}) UNION ALL SELECT 1 FROM limit_rule WHERE tier = ?1
   UNION ALL SELECT 1 FROM account WHERE tier = ?1 LIMIT 1`,
)
const findSite = query<{ value: string }>("SELECT value FROM setting WHERE name = 'site'")
const findOver = query(`SELECT 1 FROM api_key WHERE tier = ?1 AND ${OVER} LIMIT 1`)
const moveOver = query(`UPDATE api_key SET tier = ?3 WHERE tier = ?1 AND ${OVER}`)
const find = query('SELECT 1 FROM tier WHERE name = ?1')
const insert = query(
  `INSERT INTO tier (name, qpm, price_per_mille, account_qpm, account_concurrency, version)
   VALUES (?1, ?2, ?3, ?4, ?5, ${FIRST_VERSION}) ON CONFLICT (name) DO NOTHING`,
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

/** The tier of the accounts of new people. */
function* defaultTier(): Steps<string> {
  const site = JSON.parse((yield* findSite.get())?.value ?? '{}') as { readonly defaultTier?: string }
  return site.defaultTier ?? DEFAULT_TIER
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
  *removeTier({ name, nowMs }) {
    if (name === DEFAULT_TIER) return { done: (yield* hasTier(name)) ? 'is_needed' : 'unknown' }
    if (name === (yield* defaultTier())) return { done: (yield* hasTier(name)) ? 'is_default' : 'unknown' }
    if ((yield* findUse.get(name, nowMs)) !== undefined) return { done: 'in_use' }
    if ((yield* findOver.get(name, nowMs)) !== undefined) {
      if (!(yield* hasTier(DEFAULT_TIER))) return { done: 'in_use' }
      yield* moveOver.run(name, nowMs, DEFAULT_TIER)
    }
    return { done: (yield* remove.run(name)) > 0 ? 'removed' : 'unknown' }
  },
}
