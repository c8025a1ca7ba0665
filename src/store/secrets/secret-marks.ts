// Finds which digests and encrypted values of the database need which secret. The mark of the secret is a column beside
// a digest, and is part of an encrypted value itself. The lists of columns here are complete: a test fails if one of
// them is missing.

import type { Database } from 'bun:sqlite'
import { sqliteSteps } from '../engine/sqlite-steps.ts'
import type { Steps } from '../engine/steps.ts'
import { query } from '../engine/steps.ts'
import type { SecretKind } from './secret-kinds.ts'

export interface SecretMark {
  readonly mark: string
  readonly sinceMs: number
  /** When a newer secret replaced it; null: it is the newest. */
  readonly replacedMs: number | null
  /** Digests without a mark were made with this secret. */
  readonly isFirst: boolean
}

export interface PepperedTable {
  readonly table: string
  /** The column of the digest, and the column of the mark of its pepper. */
  readonly digest: string
  readonly pepper: string
  /** The name of the rows for people. */
  readonly name: string
  /** The condition for rows that are still in use. `{nowMs}` is the time. */
  readonly live: string
}

/** The old secret of a rotated key, while it still works. */
const LIVE_OLD_SECRET = 'old_digest IS NOT NULL AND old_until_ms > {nowMs}'

const LIVE_CODE = 'redeemed_ms IS NULL AND voided_ms IS NULL AND (expires_ms IS NULL OR expires_ms > {nowMs})'

export const pepperedTables: readonly PepperedTable[] = [
  { table: 'api_key', digest: 'digest', pepper: 'pepper', name: 'keys', live: 'revoked_ms IS NULL' },
  { table: 'api_key', digest: 'old_digest', pepper: 'old_pepper', name: 'old texts of keys', live: LIVE_OLD_SECRET },
  { table: 'code', digest: 'digest', pepper: 'pepper', name: 'codes', live: LIVE_CODE },
]

export interface SealedColumn {
  readonly table: string
  readonly column: string
  /** The primary key of the table. */
  readonly key: readonly string[]
  /** The columns that identify the row in the encrypted value, joined with slashes. */
  readonly row: readonly string[]
  /** The table name in the encrypted value, where the table has been renamed. */
  readonly sealedIn?: string
}

export const sealedColumns: readonly SealedColumn[] = [
  { table: 'kept_answer', column: 'sealed', key: ['call_id'], row: ['call_id'] },
  { table: 'kept_response', column: 'sealed', key: ['seq'], row: ['account_id', 'id'] },
  { table: 'kept_reasoning', column: 'sealed', key: ['seq'], row: ['account_id', 'id'] },
  { table: 'task', column: 'sealed', key: ['call_id'], row: ['call_id'] },
  { table: 'totp', column: 'sealed', key: ['person_id'], row: ['person_id'] },
  { table: 'session', column: 'next', key: ['id'], row: ['id'] },
  { table: 'channel', column: 'proxy', key: ['id'], row: ['id'], sealedIn: 'channel_rule' },
  { table: 'channel', column: 'credential', key: ['id'], row: ['id'] },
  { table: 'webhook', column: 'secret', key: ['id'], row: ['id'] },
]

/** The encrypted columns in the file of bodies. */
export const bodyColumns: readonly SealedColumn[] = [
  { table: 'body', column: 'request', key: ['call_id'], row: ['call_id'] },
  { table: 'body', column: 'answer', key: ['call_id'], row: ['call_id'] },
]

const NOW = { sqlite: 'unixepoch() * 1000', postgres: 'CAST(extract(epoch FROM now()) * 1000 AS BIGINT)' } as const

/** Fills an SQL template: replaces each `{name}`. */
export function fillSql(sql: string, names: Readonly<Record<string, string>>): string {
  return sql.replace(/\{(\w+)\}/g, (_, name: string) => names[name]!)
}

/** The noted marks of a kind, oldest first. Empty where the schema has no marks yet. */
export function readSecretMarks(db: Database, kind: SecretKind): readonly SecretMark[] {
  if (db.query("SELECT 1 FROM sqlite_schema WHERE name = 'secret_mark'").get() === null) return []
  const runSteps = sqliteSteps(db)
  return runSteps(secretMarks(kind))
}

const findMarks = query<{ mark: string; since_ms: bigint; replaced_ms: bigint | null; is_first: bigint }>(
  'SELECT mark, since_ms, replaced_ms, is_first FROM secret_mark WHERE kind = ?1 ORDER BY since_ms, mark',
)

export function* secretMarks(kind: SecretKind): Steps<readonly SecretMark[]> {
  return (yield* findMarks.all(kind)).map(({ mark, since_ms, replaced_ms, is_first }) => ({
    mark,
    sinceMs: Number(since_ms),
    replacedMs: replaced_ms === null ? null : Number(replaced_ms),
    isFirst: is_first === 1n,
  }))
}

/** How many rows need each secret, by the mark of the secret and the name of the rows. */
export type SecretUseCounts = Readonly<Record<string, Readonly<Record<string, number>>>>

interface CountedMark {
  readonly mark: string | null
  readonly n: bigint
}

const PEPPERED = 'SELECT {pepper} AS mark, count(*) AS n FROM {table} WHERE {live} GROUP BY {pepper}'

const pepperCounts = pepperedTables.map(({ table, pepper, name, live }) => {
  const textFor = (nowMs: string): string => fillSql(PEPPERED, { table, pepper, live: fillSql(live, { nowMs }) })
  return { name, count: query<CountedMark>({ sqlite: textFor(NOW.sqlite), postgres: textFor(NOW.postgres) }) }
})

/** Counts digests by pepper. `first` is the mark for digests without a mark. */
export function* countPeppered(first: string): Steps<SecretUseCounts> {
  const counts: [string, CountedMark[]][] = []
  for (const { name, count } of pepperCounts) {
    counts.push([name, (yield* count.all()).map(({ mark, n }) => ({ mark: mark ?? first, n }))])
  }
  return countByMark(counts)
}

/** Makes the statements that count encrypted values by secret. They read every encrypted value. */
export function sealedCounter(columns: readonly SealedColumn[]): () => Steps<SecretUseCounts> {
  const counters = columns.map(({ table, column }) => {
    const hasOthers = columns.some(other => other.table === table && other.column !== column)
    const textFor = (mark: string): string =>
      fillSql('SELECT {mark} AS mark, count(*) AS n FROM {table} WHERE {column} IS NOT NULL GROUP BY 1', {
        ...{ table, column, mark: fillSql(mark, { column }) },
      })
    const count = query<CountedMark>({
      sqlite: textFor('lower(hex(substr({column}, 2, 4)))'),
      postgres: textFor("encode(substr({column}, 2, 4), 'hex')"),
    })
    return { name: hasOthers ? `${table}.${column}` : table, count }
  })
  return function* countSealed() {
    const counts: [string, CountedMark[]][] = []
    for (const { name, count } of counters) counts.push([name, yield* count.all()])
    return countByMark(counts)
  }
}

export const countSealed = sealedCounter(sealedColumns)

function countByMark(counts: readonly (readonly [string, readonly CountedMark[]])[]): SecretUseCounts {
  const resting: Record<string, Record<string, number>> = {}
  for (const [name, counted] of counts) {
    for (const { mark, n } of counted) {
      const ofMark = (resting[mark ?? ''] ??= {})
      ofMark[name] = (ofMark[name] ?? 0) + Number(n)
    }
  }
  return resting
}

/** Whether any digest needs this pepper. Stops at the first one. */
export function isPepperUsed(db: Database, { mark, isFirst }: SecretMark): boolean {
  const sql = 'SELECT 1 FROM {table} WHERE {live} AND ({pepper} = ?1 OR (?2 AND {pepper} IS NULL)) LIMIT 1'
  const values = [mark, Number(isFirst)] as const
  return pepperedTables.some(
    ({ table, pepper, live }) =>
      db.query(fillSql(sql, { table, pepper, live: fillSql(live, { nowMs: NOW.sqlite }) })).get(...values) !== null,
  )
}

/** Whether any encrypted value needs this secret. Stops at the first one. */
export function isEncryptionKeyUsed(db: Database, mark: string, columns = sealedColumns): boolean {
  const sql = 'SELECT 1 FROM {table} WHERE {column} IS NOT NULL AND substr({column}, 2, 4) = ?1 LIMIT 1'
  const bytes = Buffer.from(mark, 'hex')
  return columns.some(({ table, column }) => db.query(fillSql(sql, { table, column })).get(bytes) !== null)
}

export interface KeyOnOldPepper {
  readonly id: number
  readonly name: string
  readonly suffix: string
  readonly mark: string
}

const findOnOlder = query<{ id: bigint; name: string; suffix: string; mark: string }>(
  `SELECT id, name, suffix, coalesce(pepper, ?2) AS mark FROM api_key
   WHERE revoked_ms IS NULL AND coalesce(pepper, ?2) <> ?1 ORDER BY id LIMIT ?3`,
)

/** Some of the keys whose digest was made with an older pepper. */
export function* findKeysOnOldPeppers({ newest, first, limit }: OldPepperQuery): Steps<readonly KeyOnOldPepper[]> {
  const rows = yield* findOnOlder.all(newest, first, limit)
  return rows.map(row => ({ ...row, id: Number(row.id) }))
}

export interface OldPepperQuery {
  readonly newest: string
  readonly first: string
  readonly limit: number
}
