// The operations on service tokens: create, change, rotate, revoke, note their use, and delete old ones.
//
// No actor gets a token with more rights than its own: not by creating one, and not by rotating one, which returns its
// text. A service token that expires cannot make another one last longer than itself.

import { bounds } from '../../base/bounds.ts'
import { textId } from '../../base/ids.ts'
import type { OperationContext, StepsOf } from '../engine/operation.ts'
import type { ScopedInput } from '../engine/scope-check.ts'
import { isInScope } from '../engine/scope-check.ts'
import type { Steps } from '../engine/steps.ts'
import { query } from '../engine/steps.ts'
import type { Scope } from '../queries/paging.ts'
import type { RowChange, StoredRow } from '../tables/columns.ts'
import { rowInserter, rowUpdater } from '../tables/columns.ts'
import { hiddenTokenColumns, serviceTokenColumns } from '../tables/service-tokens.ts'
import type { ActorInput, RevokedKeys, SiteRoleName } from './people.ts'
import { findActor, isAtLeast, isCustomer } from './people-rows.ts'
import { revokeLostPlaygroundKeys } from './playground-keys.ts'

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
  revokeServiceToken: {
    input: TokenInput
    result: ({ done: 'revoked' } & RevokedKeys) | { done: 'unknown' | 'forbidden' }
  }
  /** Stores the time of the last use. */
  noteTokenUse: { input: { readonly id: number; readonly usedMs: number }; result: { done: 'noted' } }
  /** Deletes tokens that were revoked or have expired long ago, a few at a time. The audit log stays. */
  forgetServiceTokens: { input: { readonly nowMs: number }; result: { done: 'forgotten'; count: number } }
}

const ROWS_PER_SWEEP = 100

const find = query<TokenRow>('SELECT * FROM service_token WHERE id = ?1')
const findName = query(
  `SELECT 1 FROM service_token
   WHERE account_id IS NOT DISTINCT FROM ?1 AND name = ?2 AND id <> ?3 AND revoked_ms IS NULL`,
)
const countValid = query<{ n: bigint }>(
  'SELECT count(*) AS n FROM service_token WHERE account_id IS NOT DISTINCT FROM ?1 AND revoked_ms IS NULL',
)
const insert = rowInserter('service_token', { ...serviceTokenColumns, ...hiddenTokenColumns })
const update = rowUpdater('service_token', serviceTokenColumns)
const rotate = query(
  `UPDATE service_token SET digest = ?2, suffix = ?3, old_until_ms = ?4,
     old_digest = CASE WHEN CAST(?4 AS BIGINT) IS NULL THEN NULL ELSE digest END WHERE id = ?1`,
)
const revoke = query(
  `UPDATE service_token SET revoked_ms = ?2, old_digest = NULL, old_until_ms = NULL
   WHERE id = ?1 AND revoked_ms IS NULL`,
)
const noteUse = query('UPDATE service_token SET used_ms = ?2 WHERE id = ?1')
const removeEnded = query(
  `DELETE FROM service_token WHERE id IN
     (SELECT id FROM service_token WHERE revoked_ms < ?1 OR expires_ms < ?1 LIMIT ?2)`,
)

function* hasName(accountId: number | null, name: string, exceptId: number): Steps<boolean> {
  return (yield* findName.get(accountId, name, exceptId)) !== undefined
}

/** The token; undefined where the actor may not see it. Only actors that see all accounts see tokens of the site. */
function* findInScope(id: number, scope: Scope | null | undefined): Steps<TokenRow | undefined> {
  const row = yield* find.get(id)
  if (row === undefined) return undefined
  const isVisible = row.account_id === null ? !scope : yield* isInScope(scope, Number(row.account_id))
  return isVisible ? row : undefined
}

interface TokenGrant {
  readonly actorId: number
  readonly role: SiteRoleName
  readonly expiresMs: number | null
}

/** Why the actor may not have a token with this role and this end; undefined where the actor may. */
function* refusalOf(grant: TokenGrant, context: OperationContext): Steps<TokenRefusal | undefined> {
  const { actorId, role, expiresMs } = grant
  const actor = yield* findActor(actorId, context)
  if (actor === undefined || !isAtLeast(actor.role, role)) return 'forbidden'
  const endsBefore = actor.expiresMs !== null && (expiresMs === null || expiresMs > actor.expiresMs)
  return endsBefore ? 'outlives' : undefined
}

const grantOf = (actorId: number, { role, expires_ms: endMs }: TokenRow): TokenGrant => ({
  actorId,
  role,
  expiresMs: endMs === null ? null : Number(endMs),
})

const editOperations: Pick<StepsOf<ServiceTokenOperations>, 'createServiceToken' | 'setServiceToken'> = {
  *createServiceToken({ actorId, scope, member, ...token }, context) {
    const accountId = member?.accountId ?? null
    if (accountId === null && scope) return { done: 'forbidden' }
    const isKnown = accountId === null || ((yield* isCustomer(accountId)) && (yield* isInScope(scope, accountId)))
    if (!isKnown) return { done: 'account_unknown' }
    const refused = yield* refusalOf({ actorId, role: token.role, expiresMs: token.expiresMs }, context)
    if (refused !== undefined) return { done: refused }
    if (yield* hasName(accountId, token.name, token.id)) return { done: 'name_taken' }
    if ((yield* countValid.get(accountId))!.n >= bounds.serviceTokensMax) return { done: 'too_many' }
    const digest = Buffer.from(token.digest, 'hex')
    const creator = (yield* findActor(actorId, context))?.creator ?? token.creator
    const createdMs = context.nowMs()
    yield* insert({ ...token, creator, digest, accountId, rank: member?.rank ?? null, createdMs })
    return { done: 'created' }
  },
  *setServiceToken({ actorId, scope, id, ...change }, context) {
    const row = yield* findInScope(id, scope)
    if (row === undefined) return { done: 'unknown' }
    const { name, expiresMs } = change
    const refused =
      (yield* refusalOf(grantOf(actorId, row), context)) ??
      (expiresMs === undefined ? undefined : yield* refusalOf({ actorId, role: row.role, expiresMs }, context))
    if (refused !== undefined) return { done: refused }
    if (row.revoked_ms !== null) return { done: 'revoked' }
    const accountId = row.account_id === null ? null : Number(row.account_id)
    if (name !== undefined && (yield* hasName(accountId, name, id))) return { done: 'name_taken' }
    yield* update(id, row, change)
    return { done: 'set' }
  },
}

export const serviceTokenOperations: StepsOf<ServiceTokenOperations> = {
  ...editOperations,
  *rotateServiceToken({ digest, suffix, untilMs, ...token }, context) {
    const row = yield* findInScope(token.id, token.scope)
    if (row === undefined) return { done: 'unknown' }
    const refused = yield* refusalOf(grantOf(token.actorId, row), context)
    if (refused !== undefined) return { done: refused }
    if (row.revoked_ms !== null) return { done: 'revoked' }
    yield* rotate.run(token.id, Buffer.from(digest, 'hex'), suffix, untilMs)
    return { done: 'rotated' }
  },
  *revokeServiceToken(token, context) {
    const row = yield* findInScope(token.id, token.scope)
    if (row === undefined) return { done: 'unknown' }
    if ((yield* refusalOf(grantOf(token.actorId, row), context)) === 'forbidden') return { done: 'forbidden' }
    yield* revoke.run(token.id, context.nowMs())
    const actor = { actorId: token.id, subject: textId('tok', token.id) }
    return { done: 'revoked', revokedKeys: yield* revokeLostPlaygroundKeys(actor, context) }
  },
  *noteTokenUse({ id, usedMs }) {
    yield* noteUse.run(id, usedMs)
    return { done: 'noted' }
  },
  *forgetServiceTokens({ nowMs }) {
    return { done: 'forgotten', count: yield* removeEnded.run(nowMs - bounds.endedTokenMsMax, ROWS_PER_SWEEP) }
  },
}
