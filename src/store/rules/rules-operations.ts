// The operations on rules: limits and model routes here, channels and providers in channel-operations.ts.

import { bounds } from '../../base/bounds.ts'
import type { OperationHandlers } from '../engine/operations.ts'
import type { Books } from '../ledger/books.ts'
import { buildAccountReader } from '../ledger/ledger-operations.ts'
import { channelOperations } from './channel-operations.ts'
import type { LimitRow, RuleOperations } from './rules.ts'

type RuleHandlers = Pick<OperationHandlers, keyof RuleOperations>
type RawRow = Record<string, bigint | string | Uint8Array | null>

const removalResult = ({ changes }: { readonly changes: number }): { done: 'removed' | 'unknown' } => ({
  done: changes === 1 ? 'removed' : 'unknown',
})

export const ruleOperations = (books: Books): RuleHandlers => ({
  ...limitOperations(books),
  ...routeOperations(books),
  ...channelOperations(books),
})

function limitOperations({ db, nowMs }: Books): Pick<RuleHandlers, 'setLimit' | 'changeLimit' | 'removeLimit'> {
  const findTier = db.query('SELECT 1 FROM tier WHERE name = ?1')
  const findKey = db.query('SELECT account_id, tier FROM api_key WHERE id = ?1')
  const readAccount = buildAccountReader(db)
  const find = db.query(
    `SELECT id FROM limit_rule WHERE resource = ?1 AND span IS ?2 AND key_id IS ?3 AND account_id IS ?4
       AND tier IS ?5 AND model IS ?6 AND per = ?7`,
  )
  const count = db.query('SELECT count(*) AS n FROM limit_rule')
  const insert = db.query(
    `INSERT INTO limit_rule (resource, span, key_id, account_id, tier, model, per, amount, author, changed_ms)
     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10) RETURNING id`,
  )
  const update = db.query('UPDATE limit_rule SET amount = ?2, author = ?3, changed_ms = ?4 WHERE id = ?1')
  const remove = db.query('DELETE FROM limit_rule WHERE id = ?1')
  return {
    setLimit({ resource, span, amount, keyId, accountId, tier, model, per, author, isNew }) {
      const key = keyId === null ? undefined : (findKey.get(keyId) as RawRow | null)
      if (key === null) return { done: 'key_unknown' }
      if (accountId !== null && (readAccount(accountId)?.kind ?? 'operator') === 'operator') {
        return { done: 'account_unknown' }
      }
      if (tier !== null && findTier.get(tier) === null) return { done: 'tier_unknown' }
      if (key && isOutside(key, { accountId, tier })) return { done: 'for_nobody' }
      const subject = [resource, span, keyId, accountId, tier, model, per.join()] as const
      const existing = find.get(...subject) as RawRow | null
      if (existing !== null && isNew) return { done: 'exists', id: Number(existing.id) }
      if (existing !== null) {
        update.run(existing.id!, amount, author, nowMs())
        return { done: 'changed', id: Number(existing.id) }
      }
      if (Number((count.get() as RawRow).n) >= bounds.limitRulesMax) return { done: 'too_many' }
      const { id } = insert.get(...subject, amount, author, nowMs()) as RawRow
      return { done: 'added', id: Number(id) }
    },
    changeLimit: ({ id, amount, author }) => ({
      done: update.run(id, amount, author, nowMs()).changes === 1 ? 'changed' : 'unknown',
    }),
    removeLimit: ({ id }) => removalResult(remove.run(id)),
  }
}

/** Whether the key belongs to another account or tier than the limit, so that the limit would match no call. */
const isOutside = (key: RawRow, { accountId, tier }: Pick<LimitRow, 'accountId' | 'tier'>): boolean =>
  (accountId !== null && Number(key.account_id) !== accountId) || (tier !== null && key.tier !== tier)

function routeOperations({ db, nowMs }: Books): Pick<RuleHandlers, 'setRoute' | 'removeRoute'> {
  // A new route is inserted only while the table is below its limit.
  const write = db.query(
    `INSERT INTO model_route (name, policy, members, author, changed_ms) SELECT ?1, ?2, ?3, ?4, ?5
     WHERE (SELECT count(*) FROM model_route) < ?6 OR EXISTS (SELECT 1 FROM model_route WHERE name = ?1)
     ON CONFLICT (name) DO UPDATE SET policy = excluded.policy, members = excluded.members, author = excluded.author,
       changed_ms = excluded.changed_ms`,
  )
  const remove = db.query('DELETE FROM model_route WHERE name = ?1')
  return {
    setRoute({ name, policy, members, author }) {
      const written = write.run(name, policy, JSON.stringify(members), author, nowMs(), bounds.modelRoutesMax)
      return { done: written.changes === 1 ? 'set' : 'too_many' }
    },
    removeRoute: ({ name }) => removalResult(remove.run(name)),
  }
}
