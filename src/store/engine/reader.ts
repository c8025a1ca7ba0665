// Reads single rows for calls, on its own connection that never waits for the writer. It makes point look-ups only,
// because it runs on the thread that serves calls.

import type { Database } from 'bun:sqlite'
import { AccountReader } from '../ledger/account-reader.ts'
import type { PriceInsert } from '../ledger/hold-types.ts'
import { PeopleReader } from '../people/people-reader.ts'
import type { DeletionFilter } from '../records/record-operations.ts'
import { RulesReader } from '../rules/rules-reader.ts'
import type { SecretKind } from '../secrets/secret-kinds.ts'
import type { SecretMark } from '../secrets/secret-marks.ts'
import { readSecretMarks } from '../secrets/secret-marks.ts'
import type { RowOf, SqlRow } from '../tables/columns.ts'
import { flag, list, nullable, number, rowReader, selectList, text } from '../tables/columns.ts'
import { VaultReader } from '../vault/vault-reader.ts'
import { WebhookReader } from '../webhooks/webhook-reader.ts'
import { openReader } from './database.ts'

/** What a call needs to know of its key `k`, with its tier `t`, its account `a` and the key `l` whose limits it shares. */
const callKeyColumns = {
  id: ['k.id', number],
  accountId: ['k.account_id', number],
  tier: ['k.tier', text],
  /** The key's own limit, or its tier's. */
  qpm: ['coalesce(k.qpm, l.qpm, t.qpm)', number],
  /** The key whose limits count: the key itself, or the key of the same account that an operator has limited. */
  limitsKeyId: ['coalesce(l.id, k.id)', number],
  /** An operator has set calls per minute for this key, or for the key whose limits it shares. */
  hasOwnLimit: ['coalesce(k.qpm, l.qpm) IS NOT NULL', flag],
  pricePerMille: ['t.price_per_mille', number],
  revoked: ['k.revoked_ms IS NOT NULL', flag],
  disabled: ['k.disabled_ms IS NOT NULL', flag],
  expiresMs: ['k.expires_ms', nullable(number)],
  /** Set when the key was found by its old secret after a rotation: until when the old secret works. */
  untilMs: ['iif(k.digest = ?1, NULL, k.old_until_ms)', nullable(number)],
  /** Kinds of endpoints that the key may use; null: all. */
  endpoints: ['k.endpoints', list],
  /** Ranges of addresses from which the key may be used; null: all. */
  addresses: ['k.addresses', list],
  /** A call that costs more than the available money is shortened to what the money covers. */
  strictCap: ['k.strict_cap', flag],
  strict: ['k.strict', flag],
  keepsBodies: ['k.keeps_bodies OR a.keeps_bodies', flag],
  /** The key may see channels and upstream requests in the explain feature. */
  explains: ['k.explains', flag],
  /** Tags that a channel must have; null: none. */
  requires: [
    `coalesce(k.requires, iif(k.self_made = 1, (SELECT requires FROM api_key WHERE id =
       (SELECT max(id) FROM api_key WHERE account_id = k.account_id AND requires IS NOT NULL)), NULL))`,
    list,
  ],
  /** Patterns of the model names that the key may use; null: all. */
  allows: ['k.allows', list],
  /** Patterns of the account. A model must match both lists. */
  accountAllows: ['a.allows', list],
  /** Patterns of refused model names, of the key and of its account. */
  denies: ["nullif(concat_ws(',', k.denies, a.denies), '')", list],
} as const

export type KeyRow = RowOf<typeof callKeyColumns>

const readKey = rowReader(callKeyColumns)

export interface IdempotencyClaim {
  readonly callId: number
  /** Digest of the request, as hex. */
  readonly fingerprint: string
  readonly finished: boolean
}

export interface TierRow {
  readonly name: string
  readonly pricePerMille: number
}

export interface PriceVersion extends PriceInsert {
  readonly version: number
}

export interface OpenDeletion extends DeletionFilter {
  readonly id: number
  /** The first record id that has not been examined yet. */
  readonly next: number
}

type RawRow = Record<string, bigint | string | null>
type RawBytesRow = Record<string, Uint8Array>

export class Reader {
  /** The only query that a call waits for. */
  static readonly findKeySql = `
    SELECT ${selectList(callKeyColumns)}
    FROM api_key k JOIN tier t ON t.name = k.tier JOIN account a ON a.id = k.account_id
      LEFT JOIN api_key l ON k.self_made = 1 AND k.qpm IS NULL
        AND NOT EXISTS (SELECT 1 FROM limit_rule WHERE key_id = k.id) AND l.id = max(
          coalesce((SELECT max(id) FROM api_key WHERE account_id = k.account_id AND qpm IS NOT NULL), 0),
          coalesce((SELECT max(x.id) FROM limit_rule r CROSS JOIN api_key x ON x.id = r.key_id
            WHERE r.key_id IS NOT NULL AND x.account_id = k.account_id), 0))
    WHERE k.id =
      (SELECT id FROM api_key WHERE digest = ?1 UNION ALL SELECT id FROM api_key WHERE old_digest = ?1 LIMIT 1)`

  readonly #db: Database
  readonly accounts: AccountReader
  /** Reads the vault: what outlives a call. */
  readonly vault: VaultReader
  readonly rules: RulesReader
  readonly webhooks: WebhookReader
  #people: PeopleReader | undefined
  readonly #findKey
  readonly #findSetting
  readonly #findTiers
  readonly #findClaim
  readonly #findKeptAnswer

  constructor(path: string) {
    this.#db = openReader(path)
    this.accounts = new AccountReader(this.#db)
    this.vault = new VaultReader(this.#db)
    this.rules = new RulesReader(this.#db)
    this.webhooks = new WebhookReader(this.#db)
    this.#findKey = this.#db.query<SqlRow, [Uint8Array]>(Reader.findKeySql)
    this.#findSetting = this.#db.query<RawRow, [string]>('SELECT value FROM setting WHERE name = ?1')
    this.#findTiers = this.#db.query<RawRow, []>('SELECT name, price_per_mille FROM tier ORDER BY name LIMIT 200')
    this.#findClaim = this.#db.query<RawRow, [number, string]>(
      'SELECT call_id, hex(fingerprint) AS fingerprint, done FROM idempotency WHERE key_id = ?1 AND name = ?2',
    )
    this.#findKeptAnswer = this.#db.query<RawBytesRow, [number]>('SELECT sealed FROM kept_answer WHERE call_id = ?1')
  }

  /** Created at the first sign-in, because calls do not need it. */
  get people(): PeopleReader {
    return (this.#people ??= new PeopleReader(this.#db))
  }

  findKey(digest: Uint8Array): KeyRow | undefined {
    const row = this.#findKey.get(digest)
    return row === null ? undefined : readKey(row)
  }

  /** Finds the first digest that belongs to a key. One transaction, so that no key changes its digest meanwhile. */
  findKeyOfAny(digests: readonly Buffer[]): { readonly row: KeyRow; readonly digest: Buffer } | undefined {
    return this.#db.transaction(() => {
      for (const digest of digests) {
        const row = this.findKey(digest)
        if (row !== undefined) return { row, digest }
      }
      return undefined
    })()
  }

  /** Finds the call that used an idempotency key. */
  findIdempotencyClaim(keyId: number, name: string): IdempotencyClaim | undefined {
    const row = this.#findClaim.get(keyId, name)
    if (row === null) return undefined
    const fingerprint = (row.fingerprint as string).toLowerCase()
    return { callId: Number(row.call_id), fingerprint, finished: row.done === 1n }
  }

  /** The encrypted answer of an idempotent call; undefined where none is stored. */
  storedAnswer(callId: number): Uint8Array | undefined {
    return this.#findKeptAnswer.get(callId)?.sealed
  }

  setting(name: string): string | undefined {
    return (this.#findSetting.get(name)?.value as string | undefined) ?? undefined
  }

  /** The marks of the known secrets of a kind, oldest first. */
  secretMarks(kind: SecretKind): readonly SecretMark[] {
    return readSecretMarks(this.#db, kind)
  }

  /** The next few unfinished orders to delete records, after the given order. */
  openDeletions(after: number): readonly OpenDeletion[] {
    const rows = this.#db.query<RawRow, [number]>(
      `SELECT id, account_id, key_id, end_user, from_id, before_id, next_id FROM record_deletion
       WHERE done_ms IS NULL AND id > ?1 ORDER BY id LIMIT 10`,
    )
    const numberOrNull = (value: RawRow[string] | undefined): number | null => (value == null ? null : Number(value))
    return rows.all(after).map(row => ({
      id: Number(row.id),
      accountId: numberOrNull(row.account_id),
      keyId: numberOrNull(row.key_id),
      endUser: row.end_user as string | null,
      from: Number(row.from_id),
      before: Number(row.before_id),
      next: Number(row.next_id),
    }))
  }

  /** All rows of the price table, oldest first. Read at the start. */
  prices(): PriceVersion[] {
    const rows = this.#db.query('SELECT version, model, origin, price, author FROM price ORDER BY version').all()
    return (rows as (PriceInsert & { version: bigint })[]).map(row => ({ ...row, version: Number(row.version) }))
  }

  /** One version of a price; versions never change. */
  price(version: number): PriceVersion | undefined {
    const found = this.#db.query('SELECT version, model, origin, price, author FROM price WHERE version = ?1')
    const row = found.get(version)
    return row === null ? undefined : { ...(row as PriceInsert), version }
  }

  /** All tiers, ordered by name. */
  tiers(): readonly TierRow[] {
    return this.#findTiers.all().map(row => ({ name: row.name as string, pricePerMille: Number(row.price_per_mille) }))
  }

  /** Runs a query, for the readiness check. */
  ping(): void {
    this.#findSetting.get('')
  }

  close(): void {
    this.#db.close()
  }
}
