// Reads single rows for calls, on its own connection that never waits for the writer. It makes point look-ups only,
// because it runs on the thread that serves calls.

import type { AccountReader } from '../ledger/account-reader.ts'
import { accountReads } from '../ledger/account-reader.ts'
import type { PriceInsert } from '../ledger/hold-types.ts'
import type { PeopleReader } from '../people/people-reader.ts'
import { peopleReads } from '../people/people-reader.ts'
import type { DeletionFilter } from '../records/record-operations.ts'
import type { RulesReader } from '../rules/rules-reader.ts'
import { buildRulesReads } from '../rules/rules-reader.ts'
import { secretMarks } from '../secrets/secret-marks.ts'
import type { ColumnType, RowOf, SqlRow } from '../tables/columns.ts'
import { flag, list, nullable, number, rowReader, selectList, text } from '../tables/columns.ts'
import type { VaultReader } from '../vault/vault-reader.ts'
import { vaultReads } from '../vault/vault-reader.ts'
import type { WebhookReader } from '../webhooks/webhook-reader.ts'
import { webhookReads } from '../webhooks/webhook-reader.ts'
import { openReader } from './database.ts'
import type { AwaitedReads, BoundReads } from './reads.ts'
import { bindReads } from './reads.ts'
import { sqliteSnapshots, sqliteSteps } from './sqlite-steps.ts'
import type { Steps } from './steps.ts'
import { query } from './steps.ts'

/** A list that was put together from several. */
const distinctList: ColumnType<readonly string[] | null, string | null> = {
  ...list,
  read(value) {
    const items = list.read(value)
    return items && [...new Set(items)]
  },
}

/** What a call needs to know of its key `k`, with its tier `t`, its account `a` and the key `l` whose limits it shares. */
const callKeyColumns = {
  id: ['k.id', number],
  /** The versions of the key and of its account, as a sum: it is the same only if both are, because they only grow. */
  version: ['k.version + a.version', number],
  accountId: ['k.account_id', number],
  tier: ['k.tier', text],
  /** The key's own limit, or its tier's. */
  qpm: ['coalesce(k.qpm, l.qpm, t.qpm)', number],
  /**
   * The key whose limits count: the key itself, or a key of the same account that an operator has limited. Of several, the
   * one with the fewest calls a minute; the other limits of all of them apply as well (LimitRuleSet).
   */
  limitsKeyId: ['coalesce(l.id, k.id)', number],
  /** An operator has set calls per minute for this key, or for the key whose limits it shares. */
  hasOwnLimit: ['coalesce(k.qpm, l.qpm) IS NOT NULL', flag],
  pricePerMille: ['t.price_per_mille', number],
  revoked: ['k.revoked_ms IS NOT NULL', flag],
  disabled: ['k.disabled_ms IS NOT NULL', flag],
  expiresMs: ['k.expires_ms', nullable(number)],
  /** Set when the key was found by its old secret after a rotation: until when the old secret works. */
  untilMs: ['CASE WHEN k.digest = ?1 THEN NULL ELSE k.old_until_ms END', nullable(number)],
  /** Kinds of endpoints that the key may use; null: all. */
  endpoints: ['k.endpoints', list],
  /** Ranges of addresses from which the key may be used; null: all. */
  addresses: ['k.addresses', list],
  /** A call that costs more than the available money is shortened to what the money covers. */
  strictCap: ['k.strict_cap', flag],
  strict: ['k.strict', flag],
  keepsBodies: ['k.keeps_bodies + a.keeps_bodies > 0', flag],
  /** The key may see channels and upstream requests in the explain feature. */
  explains: ['k.explains', flag],
  /** Tags that a channel must have; null: none. A key that a member created has those of all keys of the account. */
  requires: [
    `coalesce(k.requires, CASE WHEN k.self_made = 1 THEN
       (SELECT string_agg(d.requires, ',') FROM (SELECT DISTINCT requires FROM api_key
         WHERE account_id = k.account_id AND requires IS NOT NULL) d) END)`,
    distinctList,
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

/** SQLite joins the tables of a CROSS JOIN in the order in which they are written. */
const keySql = (join: string): string => `
  SELECT ${selectList(callKeyColumns)}
  FROM api_key k JOIN tier t ON t.name = k.tier JOIN account a ON a.id = k.account_id
    LEFT JOIN api_key l ON k.self_made = 1 AND k.qpm IS NULL
      AND NOT EXISTS (SELECT 1 FROM limit_rule WHERE key_id = k.id) AND l.id = coalesce(
        (SELECT id FROM api_key WHERE account_id = k.account_id AND qpm IS NOT NULL ORDER BY qpm, id DESC LIMIT 1),
        (SELECT max(x.id) FROM limit_rule r ${join} api_key x ON x.id = r.key_id
          WHERE r.key_id IS NOT NULL AND x.account_id = k.account_id))
  WHERE k.id =
    (SELECT id FROM api_key WHERE digest = ?1 UNION ALL SELECT id FROM api_key WHERE old_digest = ?1 LIMIT 1)`

/** The only query that a call waits for. */
export const findKeySql = {
  sqlite: keySql('CROSS JOIN'),
  postgres: keySql('JOIN'),
}

const findKeyRow = query<SqlRow>(findKeySql)
const findDigest = query<{ digest: Uint8Array }>('SELECT digest FROM api_key WHERE id = ?1')
const findVersions = query<{ id: bigint; version: bigint }>({
  sqlite: `SELECT k.id, k.version + a.version AS version FROM api_key k JOIN account a ON a.id = k.account_id
    WHERE k.id IN (SELECT value FROM json_each(?1)) ORDER BY k.id`,
  postgres: `SELECT k.id, k.version + a.version AS version FROM api_key k JOIN account a ON a.id = k.account_id
    WHERE k.id IN (SELECT CAST(value AS BIGINT) FROM json_array_elements_text(CAST(CAST(?1 AS TEXT) AS JSON)) AS e (value))
    ORDER BY k.id`,
})
// One statement: a newer pepper may give the same text another digest at any moment.
const findNewText = query(
  `SELECT 1 FROM api_key WHERE id = ?1 AND pepper = ?3 AND digest <> ?2
     AND (old_digest IS NULL OR old_digest <> ?2)`,
)
const findSetting = query<{ value: string }>('SELECT value FROM setting WHERE name = ?1')
const findTiers = query<RawRow>('SELECT name, price_per_mille FROM tier ORDER BY name LIMIT 200')
const findClaim = query<{ call_id: bigint; fingerprint: Uint8Array; done: bigint }>(
  'SELECT call_id, fingerprint, done FROM idempotency WHERE key_id = ?1 AND name = ?2',
)
const findKeptAnswer = query<{ sealed: Uint8Array }>('SELECT sealed FROM kept_answer WHERE call_id = ?1')
const findDeletions = query<RawRow>(
  `SELECT id, account_id, key_id, end_user, from_id, before_id, next_id FROM record_deletion
   WHERE done_ms IS NULL AND id > ?1 ORDER BY id LIMIT 10`,
)
const PRICE = 'SELECT version, model, origin, price, author FROM price'
const findPrices = query<PriceInsert & { version: bigint }>(`${PRICE} ORDER BY version`)
const findPrice = query<PriceInsert>(`${PRICE} WHERE version = ?1`)

function* findKey(digest: Uint8Array): Steps<KeyRow | undefined> {
  const row = yield* findKeyRow.get(digest)
  return row === undefined ? undefined : readKey(row)
}

const numberOrNull = (value: RawRow[string] | undefined): number | null => (value == null ? null : Number(value))

/** Point reads. */
export const callReads = {
  findKey,

  /** Finds the call that used an idempotency key. */
  *findIdempotencyClaim(keyId: number, name: string): Steps<IdempotencyClaim | undefined> {
    const row = yield* findClaim.get(keyId, name)
    if (row === undefined) return undefined
    const fingerprint = Buffer.from(row.fingerprint).toString('hex')
    return { callId: Number(row.call_id), fingerprint, finished: row.done === 1n }
  },

  /** The encrypted answer of an idempotent call; undefined where none is stored. */
  *storedAnswer(callId: number): Steps<Uint8Array | undefined> {
    return (yield* findKeptAnswer.get(callId))?.sealed
  },

  *setting(name: string): Steps<string | undefined> {
    return (yield* findSetting.get(name))?.value
  },

  /** The marks of the known secrets of a kind, oldest first. */
  secretMarks,

  /** The next few unfinished orders to delete records, after the given order. */
  *openDeletions(after: number): Steps<readonly OpenDeletion[]> {
    return (yield* findDeletions.all(after)).map(row => ({
      id: Number(row.id),
      accountId: numberOrNull(row.account_id),
      keyId: numberOrNull(row.key_id),
      endUser: row.end_user as string | null,
      from: Number(row.from_id),
      before: Number(row.before_id),
      next: Number(row.next_id),
    }))
  },

  /** All rows of the price table, oldest first. Read at the start. */
  *prices(): Steps<PriceVersion[]> {
    return (yield* findPrices.all()).map(row => ({ ...row, version: Number(row.version) }))
  },

  /** One version of a price; versions never change. */
  *price(version: number): Steps<PriceVersion | undefined> {
    const row = yield* findPrice.get(version)
    return row === undefined ? undefined : { ...row, version }
  },

  /** All tiers, ordered by name. */
  *tiers(): Steps<readonly TierRow[]> {
    const rows = yield* findTiers.all()
    return rows.map(row => ({ name: row.name as string, pricePerMille: Number(row.price_per_mille) }))
  },

  /** The versions of keys, as each call knows that of its own (`callKeyColumns`). */
  *keyVersions(ids: readonly number[]): Steps<ReadonlyMap<number, number>> {
    const rows = yield* findVersions.all(JSON.stringify(ids))
    return new Map(rows.map(({ id, version }) => [Number(id), Number(version)]))
  },

  /** Whether a key has another text than that of a digest, which was made with the pepper of this mark. */
  *hasNewText(id: number, digest: Buffer, pepper: string): Steps<boolean> {
    return (yield* findNewText.get(id, digest, pepper)) !== undefined
  },

  /** Runs a query, for the readiness check. */
  *ping(): Steps<void> {
    yield* findSetting.get('')
  },
}

/** A key, and the digest by which it was found. */
export interface FoundKey {
  readonly row: KeyRow
  readonly digest: Buffer
}

/** Snapshot reads. */
export const keySnapshotReads = {
  /** Finds the first digest that belongs to a key. No key changes its digest meanwhile. */
  *findKeyOfAny(digests: readonly Buffer[]): Steps<FoundKey | undefined> {
    for (const digest of digests) {
      const row = yield* findKey(digest)
      if (row !== undefined) return { row, digest }
    }
    return undefined
  },

  /** Finds a key by its id, for people who ask what it may do. */
  *findKeyById(id: number): Steps<FoundKey | undefined> {
    const stored = yield* findDigest.get(id)
    if (stored === undefined) return undefined
    const digest = Buffer.from(stored.digest)
    const row = yield* findKey(digest)
    return row && { row, digest }
  },
}

/** The reads of calls and of the management interface, on any database. */
export interface Reader extends AwaitedReads<typeof callReads>, AwaitedReads<typeof keySnapshotReads> {
  readonly accounts: AccountReader
  /** Reads the vault: what outlives a call. */
  readonly vault: VaultReader
  readonly rules: RulesReader
  readonly webhooks: WebhookReader
  readonly people: PeopleReader
  close(): void
}

/** A reader whose functions return their results at once. */
export interface SqliteReader extends BoundReads<typeof callReads>, BoundReads<typeof keySnapshotReads> {
  readonly accounts: BoundReads<typeof accountReads>
  readonly vault: BoundReads<typeof vaultReads>
  readonly rules: BoundReads<ReturnType<typeof buildRulesReads>>
  readonly webhooks: BoundReads<typeof webhookReads>
  readonly people: BoundReads<typeof peopleReads>
  close(): void
}

export function openCallReader(path: string): SqliteReader {
  const db = openReader(path)
  const runSteps = sqliteSteps(db)
  const runTogether = sqliteSnapshots(db, runSteps)
  return {
    ...bindReads(callReads, runSteps),
    ...bindReads(keySnapshotReads, runTogether),
    accounts: bindReads(accountReads, runTogether),
    vault: bindReads(vaultReads, runSteps),
    rules: bindReads(buildRulesReads(), runTogether),
    webhooks: bindReads(webhookReads, runSteps),
    people: bindReads(peopleReads, runSteps),
    close: () => db.close(),
  }
}
