// The operations on API keys: create, change, rotate and revoke.

import { bounds } from '../../base/bounds.ts'
import type { StepsOf } from '../engine/operation.ts'
import type { ScopedInput } from '../engine/scope-check.ts'
import { isInScope } from '../engine/scope-check.ts'
import type { Steps } from '../engine/steps.ts'
import { query } from '../engine/steps.ts'
import { isIdTaken, readAccount } from '../ledger/accounts.ts'
import { giveCredit, isCreditTooHigh } from '../ledger/credit.ts'
import { grantBudget } from '../ledger/funding-operations.ts'
import type { MoneyText } from '../ledger/money-text.ts'
import { readAmount } from '../ledger/money-text.ts'
import { hiddenKeyColumns, keyColumns } from '../tables/accounts.ts'
import type { RowChange, StoredRow } from '../tables/columns.ts'
import { rowInserter, rowUpdater } from '../tables/columns.ts'
import { DEFAULT_TIER, hasTier } from './tier-operations.ts'

type KeyColumns = typeof keyColumns

/** A change of a key. Undefined leaves a value as it is; null removes it. */
export interface KeyChange extends Omit<RowChange<KeyColumns>, 'disabledMs'> {
  readonly disabled?: boolean | undefined
}

export interface KeyInsert extends Omit<KeyChange, 'tier'>, ScopedInput {
  readonly id: number
  readonly accountId: number
  /** Whether the account exists; else it is created. */
  readonly existing: boolean
  /** Hex. */
  readonly digest: string
  /** The mark of the pepper that is used in the digest. */
  readonly pepper: string
  readonly suffix: string
  readonly name: string
  /** Null: the tier of its account, or else the default tier. */
  readonly tier: string | null
  /** Only for actors without a scope: the key of an actor with one is always a member's. */
  readonly madeByMember?: boolean | undefined
  readonly credit: MoneyText
  /** The id of the transfer of the credit. */
  readonly creditRef: number
}

export interface KeyOperations {
  createKey: {
    input: KeyInsert
    result: {
      done: 'created' | 'tier_unknown' | 'account_unknown' | 'name_taken' | 'id_taken' | 'too_many' | 'balance_too_high'
    }
  }
  setKey: {
    input: KeyChange & ScopedInput & { readonly id: number }
    result: { done: 'set' | 'unknown' | 'revoked' | 'playground' | 'tier_unknown' | 'name_taken' }
  }
  /** Replaces the secret of a key. The old secret works until `untilMs`; null: it stops at once. */
  rotateKey: {
    input: ScopedInput & {
      readonly id: number
      /** Hex. */
      readonly digest: string
      readonly pepper: string
      readonly suffix: string
      readonly untilMs: number | null
    }
    result: { done: 'rotated' | 'unknown' | 'revoked' | 'playground' }
  }
  /**
   * Gives the playground of an actor a key with a new text, an end and a budget: a new row, or the row that the actor has
   * already. `raced`: there is another row meanwhile, or this one has been revoked.
   */
  setPlaygroundKey: {
    input: ScopedInput & {
      readonly id: number
      readonly accountId: number
      readonly playgroundOf: string
      /** Hex. */
      readonly digest: string
      readonly pepper: string
      readonly suffix: string
      readonly expiresMs: number
      readonly budget: MoneyText
    }
    result: { done: 'set' | 'account_unknown' | 'tier_unknown' | 'too_many' | 'raced' }
  }
  revokeKey: { input: ScopedInput & { readonly id: number }; result: { done: 'revoked' | 'unknown' } }
}

// Revoked keys do not count.
const findName = query(
  'SELECT 1 FROM api_key WHERE account_id = ?1 AND name = ?2 AND id <> ?3 AND revoked_ms IS NULL LIMIT 1',
)
const findAccountTier = query<{ tier: string | null }>('SELECT tier FROM account WHERE id = ?1')
const countKeys = query<{ n: bigint }>(
  'SELECT count(*) AS n FROM (SELECT 1 FROM api_key WHERE account_id = ?1 LIMIT ?2) k',
)
const insertAccount = query("INSERT INTO account (id, name, kind, created_ms) VALUES (?1, ?2, 'prepaid', ?3)")
const insertKey = rowInserter('api_key', { ...keyColumns, ...hiddenKeyColumns })
const findKey = query<StoredRow<KeyColumns>>('SELECT * FROM api_key WHERE id = ?1')
const updateKey = rowUpdater('api_key', keyColumns)
const revoke = query(
  `UPDATE api_key SET revoked_ms = ?2, old_digest = NULL, old_until_ms = NULL, old_pepper = NULL
   WHERE id = ?1 AND revoked_ms IS NULL`,
)
const rotate = query(
  `UPDATE api_key SET digest = ?2, pepper = ?3, suffix = ?4, old_until_ms = ?5,
     old_digest = CASE WHEN CAST(?5 AS BIGINT) IS NULL THEN NULL ELSE digest END,
     old_pepper = CASE WHEN CAST(?5 AS BIGINT) IS NULL THEN NULL ELSE pepper END WHERE id = ?1`,
)

const findPlayground = query<{ id: bigint; expires_ms: bigint }>(
  'SELECT id, expires_ms FROM api_key WHERE account_id = ?1 AND playground_of = ?2 AND revoked_ms IS NULL',
)
const renewPlayground = query(
  `UPDATE api_key SET digest = ?2, pepper = ?3, suffix = ?4, name = ?5, tier = ?6, expires_ms = ?7, old_until_ms = ?8,
     old_digest = CASE WHEN CAST(?8 AS BIGINT) IS NULL THEN NULL ELSE digest END,
     old_pepper = CASE WHEN CAST(?8 AS BIGINT) IS NULL THEN NULL ELSE pepper END WHERE id = ?1`,
)

/** The name of a playground key has the id of its actor and no name of a person, which must not outlive the person. */
export const playgroundKeyName = (playgroundOf: string): string => `playground of ${playgroundOf}`

/** Revokes a key for good, with the text before its last rotation. */
export function* revokeKeyRow(id: number, nowMs: number): Steps<void> {
  yield* revoke.run(id, nowMs)
}

/** Whether another key of the account has this name. */
function* hasName(accountId: number, name: string, exceptId: number): Steps<boolean> {
  return (yield* findName.get(accountId, name, exceptId)) !== undefined
}

/** The key; undefined where the actor may not change it. */
function* findInScope({ id, scope }: ScopedInput & { readonly id: number }): Steps<StoredRow<KeyColumns> | undefined> {
  const row = yield* findKey.get(id)
  return row !== undefined && (yield* isInScope(scope, Number(row.account_id))) ? row : undefined
}

/** Why the key cannot be created; undefined where it can. */
function* problemOf(key: KeyInsert): Steps<'account_unknown' | 'name_taken' | 'id_taken' | 'too_many' | undefined> {
  if (yield* isIdTaken(key.id)) return 'id_taken'
  if (!key.existing) return undefined
  const kind = (yield* readAccount(key.accountId))?.kind
  const isKnown = kind !== undefined && kind !== 'operator' && (yield* isInScope(key.scope, key.accountId))
  if (!isKnown) return 'account_unknown'
  if (yield* hasName(key.accountId, key.name, key.id)) return 'name_taken'
  const countMax = bounds.keysOfAccountMax
  const isFull = key.scope && (yield* countKeys.get(key.accountId, countMax))!.n >= countMax
  return isFull ? 'too_many' : undefined
}

/** Whether a change is only about what a key also means for the keys that members create, even after it was revoked. */
const boundsOnly = ({ qpm: _qpm, requires: _requires, ...others }: KeyChange): boolean =>
  Object.values(others).every(value => value === undefined)

export const keyOperations: StepsOf<KeyOperations> = {
  *createKey(key, context) {
    const { nowMs } = context
    const credit = readAmount(key.credit)
    const done = yield* problemOf(key)
    if (done !== undefined) return { done }
    const tier = key.tier ?? (yield* findAccountTier.get(key.accountId))?.tier ?? DEFAULT_TIER
    if (!(yield* hasTier(tier))) return { done: 'tier_unknown' }
    const balance = (yield* readAccount(key.accountId))?.balance ?? 0n
    if (credit > 0n && (yield* isCreditTooHigh(credit, balance, context))) return { done: 'balance_too_high' }
    if (!key.existing) yield* insertAccount.run(key.accountId, key.name, nowMs())
    yield* insertKey({
      ...key,
      tier,
      digest: Buffer.from(key.digest, 'hex'),
      createdMs: nowMs(),
      disabledMs: key.disabled ? nowMs() : null,
      madeByMember: Boolean(key.scope ?? key.madeByMember),
      playgroundOf: null,
    })
    const gift = { kind: 'gift', ref: key.creditRef, accountId: key.accountId, amount: credit } as const
    if (credit > 0n) yield* giveCredit(gift, context)
    return { done: 'created' }
  },
  *setKey({ id, scope, disabled, ...change }, { nowMs }) {
    const row = yield* findInScope({ id, scope: scope ?? null })
    if (row === undefined) return { done: 'unknown' }
    if (row.revoked_ms !== null && !boundsOnly({ disabled, ...change })) return { done: 'revoked' }
    // Nobody would see in a list that it has become a key without an end.
    if (row.playground_of !== null) return { done: 'playground' }
    const { name, tier } = change
    if (tier !== undefined && !(yield* hasTier(tier))) return { done: 'tier_unknown' }
    if (name !== undefined && (yield* hasName(Number(row.account_id), name, id))) return { done: 'name_taken' }
    // A key that is disabled already keeps its date.
    const isSwitched = disabled !== undefined && disabled !== (row.disabled_ms !== null)
    yield* updateKey(id, row, { ...change, ...(isSwitched && { disabledMs: disabled ? nowMs() : null }) })
    return { done: 'set' }
  },
  *rotateKey({ digest, pepper, suffix, untilMs, ...key }) {
    const row = yield* findInScope(key)
    if (row === undefined) return { done: 'unknown' }
    if (row.revoked_ms !== null) return { done: 'revoked' }
    if (row.playground_of !== null) return { done: 'playground' }
    yield* rotate.run(key.id, Buffer.from(digest, 'hex'), pepper, suffix, untilMs)
    return { done: 'rotated' }
  },
  *setPlaygroundKey({ scope, budget, digest, ...key }, context) {
    const { id, accountId } = key
    const { nowMs } = context
    const kind = (yield* readAccount(accountId))?.kind
    const isKnown = kind !== undefined && kind !== 'operator' && (yield* isInScope(scope, accountId))
    if (!isKnown) return { done: 'account_unknown' }
    const row = yield* findPlayground.get(accountId, key.playgroundOf)
    if (row === undefined ? yield* isIdTaken(id) : Number(row.id) !== id) return { done: 'raced' }
    const countMax = bounds.keysOfAccountMax
    if (row === undefined && (yield* countKeys.get(accountId, countMax))!.n >= countMax) return { done: 'too_many' }
    const tier = (yield* findAccountTier.get(accountId))?.tier ?? DEFAULT_TIER
    if (!(yield* hasTier(tier))) return { done: 'tier_unknown' }
    const bytes = Buffer.from(digest, 'hex')
    const name = playgroundKeyName(key.playgroundOf)
    if (row === undefined) {
      // Like a key that a member has created, also if the actor is staff.
      yield* insertKey({ ...key, name, tier, digest: bytes, createdMs: nowMs(), disabledMs: null, madeByMember: true })
    } else {
      const { pepper, suffix, expiresMs } = key
      // The text before stays good as long as it was, for another window of the same person.
      const oldUntilMs = row.expires_ms > BigInt(Math.ceil(nowMs())) ? row.expires_ms : null
      yield* renewPlayground.run(id, bytes, pepper, suffix, name, tier, expiresMs, oldUntilMs)
    }
    yield* grantBudget(id, readAmount(budget), context)
    return { done: 'set' }
  },
  *revokeKey(key, { nowMs }) {
    if ((yield* findInScope(key)) === undefined) return { done: 'unknown' }
    yield* revokeKeyRow(key.id, nowMs())
    return { done: 'revoked' }
  },
}
