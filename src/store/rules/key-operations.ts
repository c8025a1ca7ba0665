// API keys: make, set, renew, revoke. What callers do with them is looked up elsewhere; here nothing is in their way.

import { bounds } from '../../base/bounds.ts'
import type { Runs } from '../engine/operation.ts'
import type { Scoped } from '../engine/reach.ts'
import { buildReaches } from '../engine/reach.ts'
import type { Books } from '../ledger/books.ts'
import { buildGive } from '../ledger/give-credit.ts'
import { accountReader } from '../ledger/ledger-operations.ts'
import type { MoneyText } from '../ledger/money-text.ts'
import { amountOf } from '../ledger/money-text.ts'

/** What is not given stays as it is; null takes it away. Lists have commas between. */
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
  /** Patterns of names of models. */
  readonly allows?: string | null | undefined
  readonly denies?: string | null | undefined
  /** Tags that a channel must have. */
  readonly requires?: string | null | undefined
  /** Kinds of endpoints. */
  readonly endpoints?: string | null | undefined
  /** Ranges of addresses. */
  readonly addresses?: string | null | undefined
}

export interface KeyInsert extends Omit<KeyChange, 'tier' | 'disabled'>, Scoped {
  readonly id: number
  readonly accountId: number
  /** The account exists; else one is made. */
  readonly existing: boolean
  /** Hex. */
  readonly digest: string
  /** The mark of the pepper in it. */
  readonly pepper: string
  readonly suffix: string
  readonly name: string
  /** Null: its account's, or else the usual one. */
  readonly tier: string | null
  readonly qpm: number | null
  readonly credit: MoneyText
  /** Of the credit's transfer. */
  readonly creditRef: number
}

export interface KeyOperations {
  createKey: {
    input: KeyInsert
    result: { done: 'created' | 'tier_unknown' | 'account_unknown' | 'name_taken' | 'too_many' }
  }
  setKey: {
    input: KeyChange & Scoped & { readonly id: number }
    result: { done: 'set' | 'unknown' | 'revoked' | 'tier_unknown' | 'name_taken' }
  }
  /** Another text for the same key. The old one works until then; null: not any more. */
  rotateKey: {
    input: Scoped & {
      readonly id: number
      /** Hex. */
      readonly digest: string
      readonly pepper: string
      readonly suffix: string
      readonly untilMs: number | null
    }
    result: { done: 'rotated' | 'unknown' | 'revoked' }
  }
  revokeKey: { input: Scoped & { readonly id: number }; result: { done: 'revoked' | 'unknown' } }
}

type KeyRun = Runs<KeyOperations>
type Raw = Record<string, bigint | string | null>

export const USUAL_TIER = 'standard'

export const keyOperations = (books: Books): KeyRun => ({
  createKey: buildCreate(books),
  setKey: buildSet(books),
  ...endingOperations(books),
})

/** Of those that are not revoked: what people call a key must tell it from the others of its account. */
function nameFinder({ db }: Books): (accountId: number, name: string, exceptId: number) => boolean {
  const find = db.query(
    'SELECT 1 FROM api_key WHERE account_id = ?1 AND name = ?2 AND id <> ?3 AND revoked_ms IS NULL LIMIT 1',
  )
  return (accountId, name, exceptId) => find.get(accountId, name, exceptId) !== null
}

function buildCreate(books: Books): KeyRun['createKey'] {
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
  const [readAccount, reaches, hasName] = [accountReader(db), buildReaches(db), nameFinder(books)]
  const give = buildGive(books)

  /** Why not; undefined where it can be made. */
  function problem(key: KeyInsert): 'account_unknown' | 'name_taken' | 'too_many' | undefined {
    if (!key.existing) return undefined
    const kind = readAccount(key.accountId)?.kind
    if (kind === undefined || kind === 'operator' || !reaches(key.scope, key.accountId)) return 'account_unknown'
    if (hasName(key.accountId, key.name, key.id)) return 'name_taken'
    const most = bounds.keysOfAccountMax
    const isFull = key.scope && Number((countKeys.get(key.accountId, most) as Raw).n) >= most
    return isFull ? 'too_many' : undefined
  }

  return function createKey(key) {
    const credit = amountOf(key.credit)
    const done = problem(key)
    if (done !== undefined) return { done }
    const usual = (findAccountTier.get(key.accountId) as Raw | null)?.tier ?? USUAL_TIER
    const tier = key.tier ?? usual
    if (findTier.get(tier) === null) return { done: 'tier_unknown' }
    if (!key.existing) insertAccount.run(key.accountId, key.name, nowMs())
    const digest = Buffer.from(key.digest, 'hex')
    const lists = [key.allows ?? null, key.denies ?? null, key.requires ?? null]
    const switches = [key.explains, key.clamps, key.keepsBodies, key.strict].map(on => Number(on ?? false))
    const bounded = [key.expiresMs ?? null, key.endpoints ?? null, key.addresses ?? null]
    const named = [key.id, digest, key.suffix, key.name, key.accountId, tier, key.qpm, nowMs()]
    const isSelfMade = Number(key.scope !== undefined && key.scope !== null)
    insertKey.run(...named, ...lists, ...switches, ...bounded, key.pepper, isSelfMade)
    if (credit > 0n) give({ kind: 'gift', ref: key.creditRef, accountId: key.accountId, amount: credit })
    return { done: 'created' }
  }
}

function buildSet(books: Books): KeyRun['setKey'] {
  const { db, nowMs } = books
  const findTier = db.query('SELECT 1 FROM tier WHERE name = ?1')
  const find = db.query('SELECT * FROM api_key WHERE id = ?1')
  const update = db.query(
    `UPDATE api_key SET name = ?2, tier = ?3, qpm = ?4, clamps = ?5, keeps_bodies = ?6, strict = ?7, explains = ?8,
       disabled_ms = ?9, expires_ms = ?10, allows = ?11, denies = ?12, requires = ?13, endpoints = ?14, addresses = ?15
     WHERE id = ?1`,
  )
  const [reaches, hasName] = [buildReaches(db), nameFinder(books)]
  return function setKey({ id, scope, name, tier, disabled, ...change }) {
    const row = find.get(id) as Raw | null
    if (row === null || !reaches(scope, Number(row.account_id))) return { done: 'unknown' }
    if (row.revoked_ms !== null) return { done: 'revoked' }
    if (tier !== undefined && findTier.get(tier) === null) return { done: 'tier_unknown' }
    if (name !== undefined && hasName(Number(row.account_id), name, id)) return { done: 'name_taken' }
    const or = (
      given: string | number | boolean | null | undefined,
      column: string,
    ): bigint | string | number | null =>
      given === undefined ? row[column]! : typeof given === 'boolean' ? Number(given) : given
    const { clamps, keepsBodies, strict, explains, qpm, expiresMs } = change
    const disabledMs = disabled === undefined ? undefined : disabled ? (row.disabled_ms ?? nowMs()) : null
    update.run(
      ...[id, or(name, 'name'), or(tier, 'tier'), or(qpm, 'qpm'), or(clamps, 'clamps')],
      ...[or(keepsBodies, 'keeps_bodies'), or(strict, 'strict'), or(explains, 'explains')],
      disabledMs === undefined ? row.disabled_ms! : disabledMs,
      ...[or(expiresMs, 'expires_ms'), or(change.allows, 'allows'), or(change.denies, 'denies')],
      ...[or(change.requires, 'requires'), or(change.endpoints, 'endpoints'), or(change.addresses, 'addresses')],
    )
    return { done: 'set' }
  }
}

function endingOperations({ db, nowMs }: Books): Pick<KeyRun, 'rotateKey' | 'revokeKey'> {
  const find = db.query('SELECT account_id, digest, revoked_ms FROM api_key WHERE id = ?1')
  const revoke = db.query(
    `UPDATE api_key SET revoked_ms = ?2, old_digest = NULL, old_until_ms = NULL, old_pepper = NULL
     WHERE id = ?1 AND revoked_ms IS NULL`,
  )
  const rotate = db.query(
    `UPDATE api_key SET digest = ?2, pepper = ?3, suffix = ?4, old_until_ms = ?5,
       old_digest = iif(?5 IS NULL, NULL, digest), old_pepper = iif(?5 IS NULL, NULL, pepper) WHERE id = ?1`,
  )
  const reaches = buildReaches(db)
  const reached = ({ id, scope }: Scoped & { readonly id: number }): Raw | undefined => {
    const row = find.get(id) as Raw | null
    return row !== null && reaches(scope, Number(row.account_id)) ? row : undefined
  }
  return {
    rotateKey({ digest, pepper, suffix, untilMs, ...key }) {
      const row = reached(key)
      if (row === undefined) return { done: 'unknown' }
      if (row.revoked_ms !== null) return { done: 'revoked' }
      rotate.run(key.id, Buffer.from(digest, 'hex'), pepper, suffix, untilMs)
      return { done: 'rotated' }
    },
    revokeKey(key) {
      if (reached(key) === undefined) return { done: 'unknown' }
      revoke.run(key.id, nowMs())
      return { done: 'revoked' }
    },
  }
}
