// The operations on rules: limits and model routes here, channels and providers in channel-operations.ts.

import { bounds } from '../../base/bounds.ts'
import { FIRST_VERSION } from '../audit-log/first-version.ts'
import type { OperationSteps } from '../engine/operations.ts'
import type { Steps } from '../engine/steps.ts'
import { query } from '../engine/steps.ts'
import { readAccount } from '../ledger/accounts.ts'
import { channelOperations } from './channel-operations.ts'
import type { LimitRow, PolicyName, RouteRow, RuleOperations } from './rules.ts'
import { textOfRoutes } from './rules.ts'
import { hasTier } from './tier-operations.ts'

type RuleSteps = Pick<OperationSteps, keyof RuleOperations>

interface LimitedKey {
  readonly account_id: bigint
  readonly tier: string
}

const findKey = query<LimitedKey>('SELECT account_id, tier FROM api_key WHERE id = ?1')
const findLimit = query<{ id: bigint }>(
  `SELECT id FROM limit_rule WHERE resource = ?1 AND span IS NOT DISTINCT FROM ?2 AND key_id IS NOT DISTINCT FROM ?3
     AND account_id IS NOT DISTINCT FROM ?4 AND tier IS NOT DISTINCT FROM ?5 AND model IS NOT DISTINCT FROM ?6
     AND per = ?7`,
)
const countLimits = query<{ n: bigint }>('SELECT count(*) AS n FROM limit_rule')
const insertLimit = query<{ id: bigint }>(
  `INSERT INTO limit_rule (resource, span, key_id, account_id, tier, model, per, amount, author, changed_ms, version)
   VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ${FIRST_VERSION}) RETURNING id`,
)
const updateLimit = query('UPDATE limit_rule SET amount = ?2, author = ?3, changed_ms = ?4 WHERE id = ?1')
const deleteLimit = query('DELETE FROM limit_rule WHERE id = ?1')

const limitOperations: Pick<RuleSteps, 'setLimit' | 'changeLimit' | 'removeLimit'> = {
  *setLimit({ resource, span, amount, keyId, accountId, tier, model, per, author, isNew }, { nowMs }) {
    const key = keyId === null ? undefined : yield* findKey.get(keyId)
    if (keyId !== null && key === undefined) return { done: 'key_unknown' }
    if (accountId !== null && ((yield* readAccount(accountId))?.kind ?? 'operator') === 'operator') {
      return { done: 'account_unknown' }
    }
    if (tier !== null && !(yield* hasTier(tier))) return { done: 'tier_unknown' }
    if (key !== undefined && isOutside(key, { accountId, tier })) return { done: 'for_nobody' }
    const subject = [resource, span, keyId, accountId, tier, model, per.join()] as const
    const existing = yield* findLimit.get(...subject)
    if (existing !== undefined && isNew) return { done: 'exists', id: Number(existing.id) }
    if (existing !== undefined) {
      yield* updateLimit.run(existing.id, amount, author, nowMs())
      return { done: 'changed', id: Number(existing.id) }
    }
    if ((yield* countLimits.get())!.n >= bounds.limitRulesMax) return { done: 'too_many' }
    const inserted = yield* insertLimit.get(...subject, amount, author, nowMs())
    return { done: 'added', id: Number(inserted!.id) }
  },
  *changeLimit({ id, amount, author }, { nowMs }) {
    const changed = yield* updateLimit.run(id, amount, author, nowMs())
    return { done: changed === 1 ? 'changed' : 'unknown' }
  },
  *removeLimit({ id }) {
    return { done: (yield* deleteLimit.run(id)) === 1 ? 'removed' : 'unknown' }
  },
}

/** Whether the key belongs to another account or tier than the limit, so that the limit would match no call. */
const isOutside = (key: LimitedKey, { accountId, tier }: Pick<LimitRow, 'accountId' | 'tier'>): boolean =>
  (accountId !== null && Number(key.account_id) !== accountId) || (tier !== null && key.tier !== tier)

// A new route is inserted only while the table is below its limit.
const writeRoute = query(
  `INSERT INTO model_route (name, policy, members, author, changed_ms, version)
   SELECT CAST(?1 AS TEXT), CAST(?2 AS TEXT), CAST(?3 AS TEXT), CAST(?4 AS TEXT), CAST(?5 AS BIGINT), ${FIRST_VERSION}
   WHERE (SELECT count(*) FROM model_route) < ?6 OR EXISTS (SELECT 1 FROM model_route WHERE name = ?1)
   ON CONFLICT (name) DO UPDATE SET policy = excluded.policy, members = excluded.members, author = excluded.author,
     changed_ms = excluded.changed_ms`,
)
const findOtherRoutes = query<{ name: string; policy: PolicyName; members: string }>(
  'SELECT name, policy, members FROM model_route WHERE name <> ?1 ORDER BY name',
)
const deleteRoute = query('DELETE FROM model_route WHERE name = ?1')

function* readOtherRoutes(name: string): Steps<readonly RouteRow[]> {
  const rows = yield* findOtherRoutes.all(name)
  return rows.map(row => ({ ...row, members: JSON.parse(row.members) as RouteRow['members'] }))
}

const routeOperations: Pick<RuleSteps, 'setRoute' | 'removeRoute'> = {
  *setRoute({ name, policy, members, author, others }, { nowMs }) {
    if (others !== undefined && others !== textOfRoutes(yield* readOtherRoutes(name))) return { done: 'raced' }
    const written = yield* writeRoute.run(name, policy, JSON.stringify(members), author, nowMs(), bounds.modelRoutesMax)
    return { done: written === 1 ? 'set' : 'too_many' }
  },
  *removeRoute({ name }) {
    return { done: (yield* deleteRoute.run(name)) === 1 ? 'removed' : 'unknown' }
  },
}

export const ruleOperations: RuleSteps = { ...limitOperations, ...routeOperations, ...channelOperations }
