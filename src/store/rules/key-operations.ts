// The operations on API keys: create, change, rotate and revoke.

import { bounds } from '../../base/bounds.ts'
import type { HandlersOf } from '../engine/operation.ts'
import type { ScopedInput } from '../engine/scope-check.ts'
import { buildScopeCheck } from '../engine/scope-check.ts'
import type { Books } from '../ledger/books.ts'
import { buildGiveCredit } from '../ledger/credit.ts'
import { buildIdCheck } from '../ledger/funding-operations.ts'
import { buildAccountReader } from '../ledger/ledger-operations.ts'
import type { MoneyText } from '../ledger/money-text.ts'
import { readAmount } from '../ledger/money-text.ts'
import { hiddenKeyColumns, keyColumns } from '../tables/accounts.ts'
import type { RowChange, StoredRow } from '../tables/columns.ts'
import { rowInserter, rowUpdater } from '../tables/columns.ts'

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
  readonly credit: MoneyText
  /** The id of the transfer of the credit. */
  readonly creditRef: number
}

export interface KeyOperations {
  createKey: {
    input: KeyInsert
    result: { done: 'created' | 'tier_unknown' | 'account_unknown' | 'name_taken' | 'id_taken' | 'too_many' }
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
  const findAccountTier = db.query<{ tier: string | null }, [number]>('SELECT tier FROM account WHERE id = ?1')
  const countKeys = db.query('SELECT count(*) AS n FROM (SELECT 1 FROM api_key WHERE account_id = ?1 LIMIT ?2)')
  const insertAccount = db.query("INSERT INTO account (id, name, kind, created_ms) VALUES (?1, ?2, 'prepaid', ?3)")
  const insertKey = rowInserter(db, 'api_key', { ...keyColumns, ...hiddenKeyColumns })
  const readAccount = buildAccountReader(db)
  const isInScope = buildScopeCheck(db)
  const hasName = nameFinder(books)
  const isTaken = buildIdCheck(db)
  const giveCredit = buildGiveCredit(books)

  /** Why the key cannot be created; undefined where it can. */
  function problem(key: KeyInsert): 'account_unknown' | 'name_taken' | 'id_taken' | 'too_many' | undefined {
    if (isTaken(key.id)) return 'id_taken'
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
    const tier = key.tier ?? findAccountTier.get(key.accountId)?.tier ?? DEFAULT_TIER
    if (findTier.get(tier) === null) return { done: 'tier_unknown' }
    if (!key.existing) insertAccount.run(key.accountId, key.name, nowMs())
    insertKey({
      ...key,
      tier,
      digest: Buffer.from(key.digest, 'hex'),
      createdMs: nowMs(),
      disabledMs: key.disabled ? nowMs() : null,
      selfMade: Boolean(key.scope),
    })
    if (credit > 0n) giveCredit({ kind: 'gift', ref: key.creditRef, accountId: key.accountId, amount: credit })
    return { done: 'created' }
  }
}

function buildSetKey(books: Books): KeyHandlers['setKey'] {
  const { db, nowMs } = books
  const findTier = db.query('SELECT 1 FROM tier WHERE name = ?1')
  const find = db.query<StoredRow<KeyColumns>, [number]>('SELECT * FROM api_key WHERE id = ?1')
  const update = rowUpdater(db, 'api_key', keyColumns)
  const isInScope = buildScopeCheck(db)
  const hasName = nameFinder(books)
  return function setKey({ id, scope, disabled, ...change }) {
    const row = find.get(id)
    if (row === null || !isInScope(scope, Number(row.account_id))) return { done: 'unknown' }
    if (row.revoked_ms !== null) return { done: 'revoked' }
    const { name, tier } = change
    if (tier !== undefined && findTier.get(tier) === null) return { done: 'tier_unknown' }
    if (name !== undefined && hasName(Number(row.account_id), name, id)) return { done: 'name_taken' }
    // A key that is disabled already keeps its date.
    const isSwitched = disabled !== undefined && disabled !== (row.disabled_ms !== null)
    update(id, row, { ...change, ...(isSwitched && { disabledMs: disabled ? nowMs() : null }) })
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
