// The operations on service tokens: create, change, rotate, revoke, note their use, and delete old ones.
//
// No actor gets a token with more rights than its own: not by creating one, and not by rotating one, which returns its
// text. A service token that expires cannot make another one last longer than itself.

import { bounds } from '../../base/bounds.ts'
import type { HandlersOf } from '../engine/operation.ts'
import type { ScopedInput } from '../engine/scope-check.ts'
import { buildScopeCheck } from '../engine/scope-check.ts'
import type { Books } from '../ledger/books.ts'
import type { Scope } from '../queries/paging.ts'
import type { RowChange, StoredRow } from '../tables/columns.ts'
import { rowInserter, rowUpdater } from '../tables/columns.ts'
import { hiddenTokenColumns, serviceTokenColumns } from '../tables/service-tokens.ts'
import type { ActorInput, SiteRoleName } from './people.ts'
import type { PeopleRows } from './people-rows.ts'

type TokenColumns = typeof serviceTokenColumns
type TokenRow = StoredRow<TokenColumns>

export interface ServiceTokenInsert {
  readonly id: number
  /** Hex. */
  readonly digest: string
  readonly suffix: string
  readonly name: string
  /** `member` for the token of an account. */
  readonly role: SiteRoleName
  readonly member: { readonly accountId: number; readonly rank: number } | null
  readonly expiresMs: number | null
  /** The actor, as in the audit log. If that is a service token, its own creator is stored: who is responsible. */
  readonly creator: string
}

interface TokenInput extends ActorInput, ScopedInput {
  readonly id: number
}

/** `forbidden`: the token has a higher role than the actor. `outlives`: it is valid for longer than the actor. */
type TokenRefusal = 'forbidden' | 'outlives'

export interface ServiceTokenOperations {
  createServiceToken: {
    input: ActorInput & ScopedInput & ServiceTokenInsert
    result: { done: 'created' | 'account_unknown' | 'name_taken' | 'too_many' | TokenRefusal }
  }
  setServiceToken: {
    input: TokenInput & RowChange<TokenColumns>
    result: { done: 'set' | 'unknown' | 'revoked' | 'name_taken' | TokenRefusal }
  }
  /** Replaces the text of a token. The old text works until `untilMs`; null: it stops at once. */
  rotateServiceToken: {
    input: TokenInput & Pick<ServiceTokenInsert, 'digest' | 'suffix'> & { readonly untilMs: number | null }
    result: { done: 'rotated' | 'unknown' | 'revoked' | TokenRefusal }
  }
  revokeServiceToken: { input: TokenInput; result: { done: 'revoked' | 'unknown' | 'forbidden' } }
  /** Stores the time of the last use. */
  noteTokenUse: { input: { readonly id: number; readonly usedMs: number }; result: { done: 'noted' } }
  /** Deletes tokens that were revoked or have expired long ago, a few at a time. The audit log stays. */
  forgetServiceTokens: { input: { readonly nowMs: number }; result: { done: 'forgotten'; count: number } }
}

const ROWS_PER_SWEEP = 100

type TokenHandlers = HandlersOf<ServiceTokenOperations>

export function serviceTokenOperations(books: Books, people: PeopleRows): TokenHandlers {
  const { db, nowMs } = books
  const find = db.query<TokenRow, [number]>('SELECT * FROM service_token WHERE id = ?1')
  const findName = db.query(
    'SELECT 1 FROM service_token WHERE account_id IS ?1 AND name = ?2 AND id <> ?3 AND revoked_ms IS NULL',
  )
  const countValid = db.query<{ n: bigint }, [number | null]>(
    'SELECT count(*) AS n FROM service_token WHERE account_id IS ?1 AND revoked_ms IS NULL',
  )
  const insert = rowInserter(db, 'service_token', { ...serviceTokenColumns, ...hiddenTokenColumns })
  const update = rowUpdater(db, 'service_token', serviceTokenColumns)
  const rotate = db.query(
    `UPDATE service_token SET digest = ?2, suffix = ?3, old_until_ms = ?4, old_digest = iif(?4 IS NULL, NULL, digest)
     WHERE id = ?1`,
  )
  const revoke = db.query(
    `UPDATE service_token SET revoked_ms = ?2, old_digest = NULL, old_until_ms = NULL
     WHERE id = ?1 AND revoked_ms IS NULL`,
  )
  const noteUse = db.query('UPDATE service_token SET used_ms = ?2 WHERE id = ?1')
  const removeEnded = db.query(
    `DELETE FROM service_token WHERE id IN
       (SELECT id FROM service_token WHERE revoked_ms < ?1 OR expires_ms < ?1 LIMIT ?2)`,
  )
  const isInScope = buildScopeCheck(db)
  const hasName = (accountId: number | null, name: string, exceptId: number): boolean =>
    findName.get(accountId, name, exceptId) !== null

  /** The token; undefined where the actor may not see it. Only actors that see all accounts see tokens of the site. */
  function findInScope(id: number, scope: Scope | null | undefined): TokenRow | undefined {
    const row = find.get(id)
    if (row === null) return undefined
    const isVisible = row.account_id === null ? !scope : isInScope(scope, Number(row.account_id))
    return isVisible ? row : undefined
  }

  /** Why the actor may not have a token with this role and this end; undefined where the actor may. */
  function refusal(actorId: number, role: SiteRoleName, expiresMs: number | null): TokenRefusal | undefined {
    const actor = people.actor(actorId)
    if (actor === undefined || !people.isAtLeast(actor.role, role)) return 'forbidden'
    const endsBefore = actor.expiresMs !== null && (expiresMs === null || expiresMs > actor.expiresMs)
    return endsBefore ? 'outlives' : undefined
  }
  const refusalOf = (actorId: number, row: TokenRow): TokenRefusal | undefined =>
    refusal(actorId, row.role, row.expires_ms === null ? null : Number(row.expires_ms))

  return {
    createServiceToken({ actorId, scope, member, ...token }) {
      const accountId = member?.accountId ?? null
      if (accountId === null && scope) return { done: 'forbidden' }
      const isKnown = accountId === null || (people.isCustomer(accountId) && isInScope(scope, accountId))
      if (!isKnown) return { done: 'account_unknown' }
      const refused = refusal(actorId, token.role, token.expiresMs)
      if (refused !== undefined) return { done: refused }
      if (hasName(accountId, token.name, token.id)) return { done: 'name_taken' }
      if (countValid.get(accountId)!.n >= bounds.serviceTokensMax) return { done: 'too_many' }
      const digest = Buffer.from(token.digest, 'hex')
      const creator = people.actor(actorId)?.creator ?? token.creator
      insert({ ...token, creator, digest, accountId, rank: member?.rank ?? null, createdMs: nowMs() })
      return { done: 'created' }
    },
    setServiceToken({ actorId, scope, id, ...change }) {
      const row = findInScope(id, scope)
      if (row === undefined) return { done: 'unknown' }
      const { name, expiresMs } = change
      const refused =
        refusalOf(actorId, row) ?? (expiresMs === undefined ? undefined : refusal(actorId, row.role, expiresMs))
      if (refused !== undefined) return { done: refused }
      if (row.revoked_ms !== null) return { done: 'revoked' }
      const accountId = row.account_id === null ? null : Number(row.account_id)
      if (name !== undefined && hasName(accountId, name, id)) return { done: 'name_taken' }
      update(id, row, change)
      return { done: 'set' }
    },
    rotateServiceToken({ digest, suffix, untilMs, ...token }) {
      const row = findInScope(token.id, token.scope)
      if (row === undefined) return { done: 'unknown' }
      const refused = refusalOf(token.actorId, row)
      if (refused !== undefined) return { done: refused }
      if (row.revoked_ms !== null) return { done: 'revoked' }
      rotate.run(token.id, Buffer.from(digest, 'hex'), suffix, untilMs)
      return { done: 'rotated' }
    },
    revokeServiceToken(token) {
      const row = findInScope(token.id, token.scope)
      if (row === undefined) return { done: 'unknown' }
      if (refusalOf(token.actorId, row) === 'forbidden') return { done: 'forbidden' }
      revoke.run(token.id, nowMs())
      return { done: 'revoked' }
    },
    noteTokenUse({ id, usedMs }) {
      noteUse.run(id, usedMs)
      return { done: 'noted' }
    },
    forgetServiceTokens({ nowMs: now }) {
      const { changes } = removeEnded.run(now - bounds.endedTokenMsMax, ROWS_PER_SWEEP)
      return { done: 'forgotten', count: changes }
    },
  }
}
