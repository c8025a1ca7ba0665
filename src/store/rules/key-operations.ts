// The operations on API keys: create, change, rotate and revoke.

import { bounds } from '../../base/bounds.ts'
import type { HandlersOf } from '../engine/operation.ts'
import type { ScopedInput } from '../engine/scope-check.ts'
import { buildScopeCheck } from '../engine/scope-check.ts'
import type { Books } from '../ledger/books.ts'
import { buildGiveCredit } from '../ledger/credit.ts'
import { buildAccountReader } from '../ledger/ledger-operations.ts'
import type { MoneyText } from '../ledger/money-text.ts'
import { readAmount } from '../ledger/money-text.ts'

/** A change of a key. Undefined leaves a value as it is; null removes it. Lists are separated by commas. */
export interface KeyChange {
  readonly name?: string | undefined
  readonly tier?: string | undefined
  readonly qpm?: number | null | undefined
  readonly clamps?: boolean | undefined
  readonly keepsBodies?: boolean | undefined
  readonly strict?: boolean | undefined
  readonly explains?: boolean | undefined
  readonly disabled?: boolean | undefined
  readonly expiresMs?: number | null | undefined
  /** Patterns of model names. */
  readonly allows?: string | null | undefined
  readonly denies?: string | null | undefined
  /** Tags that a channel must have. */
  readonly requires?: string | null | undefined
  /** Kinds of endpoints. */
  readonly endpoints?: string | null | undefined
  /** Ranges of addresses. */
  readonly addresses?: string | null | undefined
}

export interface KeyInsert extends Omit<KeyChange, 'tier' | 'disabled'>, ScopedInput {
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
  readonly qpm: number | null
  readonly credit: MoneyText
  /** The id of the transfer of the credit. */
  readonly creditRef: number
}

export interface KeyOperations {
  createKey: {
    input: KeyInsert
    result: { done: 'created' | 'tier_unknown' | 'account_unknown' | 'name_taken' | 'too_many' }
  }
  setKey: {
    input: KeyChange & ScopedInput & { readonly id: number }
    result: { done: 'set' | 'unknown' | 'revoked' | 'tier_unknown' | 'name_taken' }
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
    result: { done: 'rotated' | 'unknown' | 'revoked' }
  }
  revokeKey: { input: ScopedInput & { readonly id: number }; result: { done: 'revoked' | 'unknown' } }
}

type KeyHandlers = HandlersOf<KeyOperations>
type RawRow = Record<string, bigint | string | null>

export const DEFAULT_TIER = 'standard'

export const keyOperations = (books: Books): KeyHandlers => ({
  createKey: buildCreateKey(books),
  setKey: buildSetKey(books),
  ...rotateAndRevokeOperations(books),
})

/** Checks whether another key of the account has this name. Revoked keys do not count. */
function nameFinder({ db }: Books): (accountId: number, name: string, exceptId: number) => boolean {
  const find = db.query(
    'SELECT 1 FROM api_key WHERE account_id = ?1 AND name = ?2 AND id <> ?3 AND revoked_ms IS NULL LIMIT 1',
  )
  return (accountId, name, exceptId) => find.get(accountId, name, exceptId) !== null
}

function buildCreateKey(books: Books): KeyHandlers['createKey'] {
  const { db, nowMs } = books
  const findTier = db.query('SELECT 1 FROM tier WHERE name = ?1')
  const findAccountTier = db.query('SELECT tier FROM account WHERE id = ?1')
  const countKeys = db.query('SELECT count(*) AS n FROM (SELECT 1 FROM api_key WHERE account_id = ?1 LIMIT ?2)')
  const insertAccount = db.query("INSERT INTO account (id, name, kind, created_ms) VALUES (?1, ?2, 'prepaid', ?3)")
  const insertKey = db.query(
    `INSERT INTO api_key (id, digest, suffix, name, account_id, tier, qpm, created_ms, allows, denies, requires,
       explains, clamps, keeps_bodies, strict, expires_ms, endpoints, addresses, pepper, self_made)
     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20)`,
  )
  const readAccount = buildAccountReader(db)
  const isInScope = buildScopeCheck(db)
  const hasName = nameFinder(books)
  const giveCredit = buildGiveCredit(books)

  /** Why the key cannot be created; undefined where it can. */
  function problem(key: KeyInsert): 'account_unknown' | 'name_taken' | 'too_many' | undefined {
    if (!key.existing) return undefined
    const kind = readAccount(key.accountId)?.kind
    if (kind === undefined || kind === 'operator' || !isInScope(key.scope, key.accountId)) return 'account_unknown'
    if (hasName(key.accountId, key.name, key.id)) return 'name_taken'
    const countMax = bounds.keysOfAccountMax
    const isFull = key.scope && Number((countKeys.get(key.accountId, countMax) as RawRow).n) >= countMax
    return isFull ? 'too_many' : undefined
  }

  return function createKey(key) {
    const credit = readAmount(key.credit)
    const done = problem(key)
    if (done !== undefined) return { done }
    const defaultTier = (findAccountTier.get(key.accountId) as RawRow | null)?.tier ?? DEFAULT_TIER
    const tier = key.tier ?? defaultTier
    if (findTier.get(tier) === null) return { done: 'tier_unknown' }
    if (!key.existing) insertAccount.run(key.accountId, key.name, nowMs())
    const isSelfMade = Number(key.scope !== undefined && key.scope !== null)
    insertKey.run(
      key.id,
      Buffer.from(key.digest, 'hex'),
      key.suffix,
      key.name,
      key.accountId,
      tier,
      key.qpm,
      nowMs(),
      key.allows ?? null,
      key.denies ?? null,
      key.requires ?? null,
      Number(key.explains ?? false),
      Number(key.clamps ?? false),
      Number(key.keepsBodies ?? false),
      Number(key.strict ?? false),
      key.expiresMs ?? null,
      key.endpoints ?? null,
      key.addresses ?? null,
      key.pepper,
      isSelfMade,
    )
    if (credit > 0n) giveCredit({ kind: 'gift', ref: key.creditRef, accountId: key.accountId, amount: credit })
    return { done: 'created' }
  }
}

function buildSetKey(books: Books): KeyHandlers['setKey'] {
  const { db, nowMs } = books
  const findTier = db.query('SELECT 1 FROM tier WHERE name = ?1')
  const find = db.query('SELECT * FROM api_key WHERE id = ?1')
  const update = db.query(
    `UPDATE api_key SET name = ?2, tier = ?3, qpm = ?4, clamps = ?5, keeps_bodies = ?6, strict = ?7, explains = ?8,
       disabled_ms = ?9, expires_ms = ?10, allows = ?11, denies = ?12, requires = ?13, endpoints = ?14, addresses = ?15
     WHERE id = ?1`,
  )
  const isInScope = buildScopeCheck(db)
  const hasName = nameFinder(books)
  return function setKey({ id, scope, name, tier, disabled, ...change }) {
    const row = find.get(id) as RawRow | null
    if (row === null || !isInScope(scope, Number(row.account_id))) return { done: 'unknown' }
    if (row.revoked_ms !== null) return { done: 'revoked' }
    if (tier !== undefined && findTier.get(tier) === null) return { done: 'tier_unknown' }
    if (name !== undefined && hasName(Number(row.account_id), name, id)) return { done: 'name_taken' }
    /** The new value of a column, or its present value where the change has none. */
    const valueOr = (
      value: string | number | boolean | null | undefined,
      column: string,
    ): bigint | string | number | null =>
      value === undefined ? row[column]! : typeof value === 'boolean' ? Number(value) : value
    const { clamps, keepsBodies, strict, explains, qpm, expiresMs } = change
    const disabledMs = disabled === undefined ? undefined : disabled ? (row.disabled_ms ?? nowMs()) : null
    update.run(
      id,
      valueOr(name, 'name'),
      valueOr(tier, 'tier'),
      valueOr(qpm, 'qpm'),
      valueOr(clamps, 'clamps'),
      valueOr(keepsBodies, 'keeps_bodies'),
      valueOr(strict, 'strict'),
      valueOr(explains, 'explains'),
      disabledMs === undefined ? row.disabled_ms! : disabledMs,
      valueOr(expiresMs, 'expires_ms'),
      valueOr(change.allows, 'allows'),
      valueOr(change.denies, 'denies'),
      valueOr(change.requires, 'requires'),
      valueOr(change.endpoints, 'endpoints'),
      valueOr(change.addresses, 'addresses'),
    )
    return { done: 'set' }
  }
}

function rotateAndRevokeOperations({ db, nowMs }: Books): Pick<KeyHandlers, 'rotateKey' | 'revokeKey'> {
  const find = db.query('SELECT account_id, digest, revoked_ms FROM api_key WHERE id = ?1')
  const revoke = db.query(
    `UPDATE api_key SET revoked_ms = ?2, old_digest = NULL, old_until_ms = NULL, old_pepper = NULL
     WHERE id = ?1 AND revoked_ms IS NULL`,
  )
  const rotate = db.query(
    `UPDATE api_key SET digest = ?2, pepper = ?3, suffix = ?4, old_until_ms = ?5,
       old_digest = iif(?5 IS NULL, NULL, digest), old_pepper = iif(?5 IS NULL, NULL, pepper) WHERE id = ?1`,
  )
  const isInScope = buildScopeCheck(db)
  const findInScope = ({ id, scope }: ScopedInput & { readonly id: number }): RawRow | undefined => {
    const row = find.get(id) as RawRow | null
    return row !== null && isInScope(scope, Number(row.account_id)) ? row : undefined
  }
  return {
    rotateKey({ digest, pepper, suffix, untilMs, ...key }) {
      const row = findInScope(key)
      if (row === undefined) return { done: 'unknown' }
      if (row.revoked_ms !== null) return { done: 'revoked' }
      rotate.run(key.id, Buffer.from(digest, 'hex'), pepper, suffix, untilMs)
      return { done: 'rotated' }
    },
    revokeKey(key) {
      if (findInScope(key) === undefined) return { done: 'unknown' }
      revoke.run(key.id, nowMs())
      return { done: 'revoked' }
    },
  }
}
