// Which rows a move between SQLite and PostgreSQL copies. Tables and columns come from the catalogs of both databases: a
// table that is neither on both sides nor named here as an exception stops the move.

import type { Database } from 'bun:sqlite'
import type { SqlValue, Steps } from '../engine/steps.ts'
import { postgresQuery } from '../engine/steps.ts'
import { OPERATOR_ID_MAX } from '../ledger/operator-accounts.ts'

/** The files of SQLite, and the schema of PostgreSQL that has their tables. */
export const schemaOfFile = { 'weir.db': 'public', 'stats.db': 'stats', 'bodies.db': 'bodies' } as const

export type MovedFile = keyof typeof schemaOfFile

export const movedFiles = Object.keys(schemaOfFile) as readonly MovedFile[]

/** Tables of SQLite whose rows follow from others. */
const writtenAnew: Readonly<Record<string, string>> = {
  'weir.db record_index': 'PostgreSQL has usual indexes instead',
  'weir.db transfer_index': 'PostgreSQL has usual indexes instead',
  'weir.db index_progress': 'PostgreSQL has usual indexes instead',
  'stats.db mark': 'PostgreSQL deletes what is summed up from record_log instead',
  'stats.db late': 'PostgreSQL deletes what is summed up from record_log instead',
}

/** Tables of SQLite that are not copied to PostgreSQL. */
const notToPostgres: Readonly<Record<string, string>> = {
  ...writtenAnew,
  'weir.db record_log': 'all of its records are summed up before the move',
  'bodies.db body_owner': 'its columns become columns of bodies.body',
}

/** Tables whose counterpart on PostgreSQL has another name. */
const otherTargets: Readonly<Record<string, string>> = { 'bodies.db body_owner': 'bodies.body' }

/** Tables of PostgreSQL whose rows are not copied to SQLite. */
const postgresOnly: Readonly<Record<string, string>> = {
  'public.operator_part': 'the balances are added up in `account`',
  'public.transfer_count': 'the transfers of SQLite are numbered without gaps',
  'public.cancelled_hold': 'only the audit of PostgreSQL needs it',
  'public.kept_share': 'SQLite keeps it in memory',
  'bodies.share': 'SQLite keeps it in memory',
  'public.settled_log': 'SQLite has this order in record_log',
  'public.process': 'SQLite has one process',
  'public.process_batch': 'SQLite has one process',
  'public.job_lease': 'SQLite has one process',
  'public.revision': 'SQLite has one process',
  'public.move_state': 'it is about the database itself',
  'public.schema_info': 'it is about the database itself',
  'public.schema_migration': 'it is about the database itself',
}

const KEPT_TABLES = ['kept_response', 'kept_reasoning', 'kept_file', 'kept_reference']

/** Rows that follow from others. Triggers write them, which a copy does not run. */
export const derivedRows: Readonly<Record<string, readonly string[]>> = {
  'public.transfer_count': ['INSERT INTO transfer_count SELECT 0, count(*) FROM transfer HAVING count(*) > 0'],
  'public.kept_share': KEPT_TABLES.map(
    table =>
      `INSERT INTO kept_share SELECT '${table}', account_id, count(*), sum(bytes) FROM ${table} GROUP BY account_id`,
  ),
  'bodies.share': ['INSERT INTO bodies.share SELECT account_id, sum(bytes) FROM bodies.body GROUP BY account_id'],
}

export interface MovedColumn {
  readonly name: string
  /** The type on PostgreSQL. */
  readonly type: string
  readonly isIdentity: boolean
}

export interface MovedTable {
  readonly file: MovedFile
  readonly name: string
  /** The name on PostgreSQL. */
  readonly target: string
  readonly columns: readonly MovedColumn[]
  /** The columns of the primary key. */
  readonly key: readonly string[]
}

/** Columns that have other values on PostgreSQL, or exist only there, as expressions for a row `t` of SQLite. */
const changedToPostgres: Readonly<Record<string, string>> = {
  // The other part is in operator_part.
  'public.account.balance': `CASE WHEN t.id <= ${OPERATOR_ID_MAX} THEN 0 ELSE t.balance END`,
  // Files of the first schema had no owners.
  'bodies.body.account_id': 'coalesce((SELECT o.account_id FROM body_owner o WHERE o.call_id = t.call_id), 0)',
  'bodies.body.bytes': 'length(t.request) + length(t.answer)',
}

/** The same for SQLite, for a row `t` of PostgreSQL. */
const changedToSqlite: Readonly<Record<string, string>> = {
  'public.account.balance':
    't.balance + coalesce((SELECT sum(p.balance) FROM operator_part p WHERE p.account_id = t.id), 0)',
  // On SQLite the numbers of transfers have no gaps. Rows of the log follow its first row, which is of no call.
  'public.transfer.seq': 'row_number() OVER (ORDER BY t.seq)',
  'public.record_log.seq': 'row_number() OVER (ORDER BY t.seq)',
}

const quoted = (name: string): string => `"${name}"`
export const columnList = ({ columns }: MovedTable): string => columns.map(({ name }) => quoted(name)).join(', ')

/** Reads the rows of a table on SQLite: as they are, or as they become on PostgreSQL. */
export const selectOnSqlite = (table: MovedTable, changes: 'as they are' | 'for PostgreSQL'): string =>
  `SELECT ${selectList(table, changes === 'as they are' ? {} : changedToPostgres)} FROM ${quoted(table.name)} t`.concat(
    // The first row of the log is random.
    table.target === 'public.record_log' ? ' WHERE t.seq > 0' : '',
  )

export const selectOnPostgres = (table: MovedTable, changes: 'as they are' | 'for SQLite'): string =>
  `SELECT ${selectList(table, changes === 'as they are' ? {} : changedToSqlite, true)} FROM ${table.target} t`

const selectList = (
  { target, columns }: MovedTable,
  changed: Readonly<Record<string, string>>,
  casts = false,
): string =>
  columns
    .map(({ name, type }) => {
      const expression = changed[`${target}.${name}`]
      if (expression === undefined) return `t.${quoted(name)}`
      return `${casts ? `CAST(${expression} AS ${type})` : expression} AS ${quoted(name)}`
    })
    .join(', ')

interface SqliteColumn {
  readonly table: string
  readonly name: string
  readonly key: bigint
}

const readSqliteColumns = (db: Database): readonly SqliteColumn[] =>
  db
    .query(
      `SELECT t.name AS "table", c.name, c.pk AS key FROM sqlite_schema t, pragma_table_info(t.name) c
       WHERE t.type = 'table' AND t.name NOT LIKE 'sqlite_%' ORDER BY t.name, c.cid`,
    )
    .all() as SqliteColumn[]

interface PostgresColumn extends MovedColumn {
  readonly table: string
}

const readPostgresColumns = postgresQuery<PostgresColumn>(
  `SELECT n.nspname || '.' || c.relname AS "table", a.attname AS name, format_type(a.atttypid, a.atttypmod) AS type,
     a.attidentity <> '' AS "isIdentity"
   FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid JOIN pg_namespace n ON n.oid = c.relnamespace
   WHERE n.nspname IN ('public', 'stats', 'bodies') AND c.relkind IN ('r', 'p') AND NOT c.relispartition
     AND a.attnum > 0 AND NOT a.attisdropped ORDER BY 1, a.attnum`,
)

export interface MovePlan {
  readonly tables: readonly MovedTable[]
  /** All tables of PostgreSQL. */
  readonly postgresTables: readonly string[]
  /** Why tables or columns have no counterpart. */
  readonly problems: readonly string[]
}

/** Compares the catalogs. `direction` decides which exceptions apply. */
export function* planMove(
  files: ReadonlyMap<MovedFile, Database>,
  direction: 'to PostgreSQL' | 'to SQLite',
): Steps<MovePlan> {
  const onPostgres = Map.groupBy(yield* readPostgresColumns.all(), ({ table }) => table)
  const tables: MovedTable[] = []
  const problems: string[] = []
  const found = new Set<string>()
  for (const [file, db] of files) {
    for (const [name, columns] of Map.groupBy(readSqliteColumns(db), ({ table }) => table)) {
      const source = `${file} ${name}`
      const target = otherTargets[source] ?? `${schemaOfFile[file]}.${name}`
      const counterpart = onPostgres.get(target)
      if (counterpart !== undefined) found.add(target)
      if (source in (direction === 'to PostgreSQL' ? notToPostgres : writtenAnew)) continue
      if (counterpart === undefined) {
        problems.push(`PostgreSQL has no table for ${name} of ${file}`)
        continue
      }
      const matched: (MovedColumn | undefined)[] = columns.map(column =>
        counterpart.find(other => other.name === column.name),
      )
      columns.forEach((column, at) => {
        if (matched[at] === undefined) problems.push(`PostgreSQL has no column for ${name}.${column.name} of ${file}`)
      })
      const key = columns.filter(column => column.key > 0n).map(column => column.name)
      const isAdded = (column: MovedColumn): boolean =>
        direction === 'to PostgreSQL' && `${target}.${column.name}` in changedToPostgres && !matched.includes(column)
      const both = matched.filter(column => column !== undefined)
      tables.push({ file, name, target, key, columns: [...both, ...counterpart.filter(isAdded)] })
    }
  }
  const isOfFiles = (table: string): boolean =>
    [...files.keys()].some(file => table.startsWith(`${schemaOfFile[file]}.`))
  for (const table of onPostgres.keys()) {
    if (!found.has(table) && !(table in postgresOnly) && isOfFiles(table))
      problems.push(`SQLite has no table for ${table} of PostgreSQL`)
  }
  return { tables, problems, postgresTables: [...onPostgres.keys()] }
}

/** A row as JSON: its values as texts. Both databases have the same text for the same row. */
export function rowText(table: MovedTable, row: Readonly<Record<string, unknown>>): string {
  return JSON.stringify(table.columns.map(({ name }) => valueText(row[name] as SqlValue)))
}

function valueText(value: SqlValue): string | null {
  if (value === null) return null
  // The form in which PostgreSQL reads bytes.
  return value instanceof Uint8Array ? `\\x${value.toHex()}` : String(value)
}

/** The number of rows and the sum of their hashes, which does not depend on their order. */
export class TableSum {
  #rows = 0
  #hash = 0n

  add(text: string): void {
    this.#rows++
    this.#hash = BigInt.asUintN(64, this.#hash + Bun.hash.xxHash64(text))
  }

  get rows(): number {
    return this.#rows
  }

  equals(other: TableSum): boolean {
    return this.#rows === other.#rows && this.#hash === other.#hash
  }
}
