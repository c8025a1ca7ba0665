// What in the database rests on which secret. Of digests a column tells it, of envelopes they tell it themselves. The
// tables here are all that there are: a column of either sort that is missing fails a test.

import type { Database } from 'bun:sqlite'
import type { SecretKind } from './secret-kinds.ts'

export interface SecretMark {
  readonly mark: string
  readonly sinceMs: number
  /** When another became the newest. */
  readonly replacedMs: number | null
  /** Also what does not tell its pepper rests on it. */
  readonly isFirst: boolean
}

export interface PepperedTable {
  readonly table: string
  /** The digest, and the mark of the pepper in it. */
  readonly digest: string
  readonly pepper: string
  /** What they are, for people. */
  readonly name: string
  /** Those that would be missed. */
  readonly live: string
}

/** Of a key that was renewed, while it still works. */
const OLD_TEXT = 'old_digest IS NOT NULL AND old_until_ms > unixepoch() * 1000'

const LIVE_CODE = 'redeemed_ms IS NULL AND voided_ms IS NULL AND coalesce(expires_ms > unixepoch() * 1000, 1)'

export const pepperedTables: readonly PepperedTable[] = [
  { table: 'api_key', digest: 'digest', pepper: 'pepper', name: 'keys', live: 'revoked_ms IS NULL' },
  { table: 'api_key', digest: 'old_digest', pepper: 'old_pepper', name: 'old texts of keys', live: OLD_TEXT },
  { table: 'code', digest: 'digest', pepper: 'pepper', name: 'codes', live: LIVE_CODE },
]

export interface SealedColumn {
  readonly table: string
  readonly column: string
  /** Its primary key. */
  readonly key: readonly string[]
  /** What its envelopes are bound to: the row of their place, with slashes between. */
  readonly row: readonly string[]
  /** The table of their place, where it has had another name. */
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

/** Those of the file of bodies. */
export const bodyColumns: readonly SealedColumn[] = [
  { table: 'body', column: 'request', key: ['call_id'], row: ['call_id'] },
  { table: 'body', column: 'answer', key: ['call_id'], row: ['call_id'] },
]

/** SQL for one of these tables: `{name}` is what it has under that name. */
export function fill(sql: string, names: Readonly<Record<string, string>>): string {
  return sql.replace(/\{(\w+)\}/g, (_, name: string) => names[name]!)
}

/** The oldest first. None where the schema is from before them. */
export function readMarks(db: Database, kind: SecretKind): readonly SecretMark[] {
  if (db.query("SELECT 1 FROM sqlite_schema WHERE name = 'secret_mark'").get() === null) return []
  const rows = db
    .query('SELECT mark, since_ms, replaced_ms, is_first FROM secret_mark WHERE kind = ?1 ORDER BY since_ms, mark')
    .all(kind) as { mark: string; since_ms: bigint; replaced_ms: bigint | null; is_first: bigint }[]
  return rows.map(({ mark, since_ms, replaced_ms, is_first }) => ({
    mark,
    sinceMs: Number(since_ms),
    replacedMs: replaced_ms === null ? null : Number(replaced_ms),
    isFirst: is_first === 1n,
  }))
}

/** How many rest on each secret, by its mark and by what they are. */
export type Resting = Readonly<Record<string, Readonly<Record<string, number>>>>

type Counted = { mark: string | null; n: bigint }[]

/** Of what is not marked, `first` is the mark. */
export function countPeppered(db: Database, first: string): Resting {
  const sql = 'SELECT {pepper} AS mark, count(*) AS n FROM {table} WHERE {live} GROUP BY {pepper}'
  return gather(
    pepperedTables.map(({ table, pepper, name, live }) => {
      const counted = db.query(fill(sql, { table, pepper, live })).all() as Counted
      return [name, counted.map(({ mark, n }) => ({ mark: mark ?? first, n }))]
    }),
  )
}

/** Reads every envelope. */
export function countSealed(db: Database, columns = sealedColumns): Resting {
  const sql = `SELECT lower(hex(substr({column}, 2, 4))) AS mark, count(*) AS n FROM {table}
    WHERE {column} IS NOT NULL GROUP BY 1`
  return gather(
    columns.map(({ table, column }) => {
      const name = columns.some(other => other.table === table && other.column !== column)
        ? `${table}.${column}`
        : table
      return [name, db.query(fill(sql, { table, column })).all() as Counted]
    }),
  )
}

function gather(counts: readonly (readonly [string, Counted])[]): Resting {
  const resting: Record<string, Record<string, number>> = {}
  for (const [name, counted] of counts) {
    for (const { mark, n } of counted) {
      const of = (resting[mark ?? ''] ??= {})
      of[name] = (of[name] ?? 0) + Number(n)
    }
  }
  return resting
}

/** Stops at the first that it finds. */
export function isPeppered(db: Database, { mark, isFirst }: SecretMark): boolean {
  const sql = 'SELECT 1 FROM {table} WHERE {live} AND ({pepper} = ?1 OR (?2 AND {pepper} IS NULL)) LIMIT 1'
  const told = [mark, Number(isFirst)] as const
  return pepperedTables.some(
    ({ table, pepper, live }) => db.query(fill(sql, { table, pepper, live })).get(...told) !== null,
  )
}

/** Stops at the first that it finds. */
export function isSealed(db: Database, mark: string, columns = sealedColumns): boolean {
  const sql = 'SELECT 1 FROM {table} WHERE {column} IS NOT NULL AND substr({column}, 2, 4) = ?1 LIMIT 1'
  const bytes = Buffer.from(mark, 'hex')
  return columns.some(({ table, column }) => db.query(fill(sql, { table, column })).get(bytes) !== null)
}

export interface RestingKey {
  readonly id: number
  readonly name: string
  readonly suffix: string
  readonly mark: string
}

/** Keys that rest on another pepper than the newest, some of them. */
export function keysOnOlder(db: Database, { newest, first, limit }: OlderKeys): readonly RestingKey[] {
  const rows = db
    .query(
      `SELECT id, name, suffix, coalesce(pepper, ?2) AS mark FROM api_key
       WHERE revoked_ms IS NULL AND coalesce(pepper, ?2) <> ?1 ORDER BY id LIMIT ?3`,
    )
    .all(newest, first, limit) as { id: bigint; name: string; suffix: string; mark: string }[]
  return rows.map(row => ({ ...row, id: Number(row.id) }))
}

export interface OlderKeys {
  readonly newest: string
  readonly first: string
  readonly limit: number
}
