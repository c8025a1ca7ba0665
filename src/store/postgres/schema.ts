// Creates and changes the tables, functions and triggers. Several processes may start at the same time: a lock lets one of
// them do it, and the others find it done. All migrations run in one transaction, so that a start that fails has changed
// nothing.
//
// Gateways work meanwhile. Whoever waits for a table that a migration waits for, waits too: behind a backup that reads the
// table, all calls would wait. So a migration locks what it changes before it changes anything, and gives up after a short
// time; connect.ts tries again later.
//
// Processes of two versions of Weir can use a database at the same time, for a rolling deploy: a migration adds what the
// new version needs, and what the old one needs is removed by a later version. Where that is not possible, MIN_VERSION is
// raised to the number of the migration: processes that do not know it do not start any more.

import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { StoreError } from '../engine/database.ts'
import type { Steps } from '../engine/steps.ts'
import { postgresQuery } from '../engine/steps.ts'
import { SCHEMA_LOCK } from './advisory-locks.ts'
import type { PostgresPool } from './pools.ts'

export interface SchemaMigration {
  readonly version: number
  readonly name: string
  readonly sql: string
}

/** The newest migration that earlier versions of Weir cannot work with. */
const MIN_VERSION = 0

const FOLDER = join(import.meta.dir, 'migrations')

export function readSchemaMigrations(folder = FOLDER): SchemaMigration[] {
  const files = readdirSync(folder)
    .filter(file => file.endsWith('.sql'))
    .sort()
  return files.map(name => ({
    name,
    version: Number(name.slice(0, 4)),
    sql: readFileSync(join(folder, name), 'utf8'),
  }))
}

export interface SchemaInfo {
  /** Tells this database from others. */
  readonly mark: string
  readonly state: 'moving' | 'ready'
  /** The names of the migrations that were made. */
  readonly made: readonly string[]
}

export interface SchemaInspection {
  /** Undefined where the database is empty. */
  readonly state: SchemaInfo['state'] | undefined
  /** The migrations that a start would make. */
  readonly missing: readonly SchemaMigration[]
}

export interface LockLimits {
  /** The longest time that a migration waits for tables, for all of them together. */
  readonly lockMs: number
  /** Called before it waits for a table; with undefined when it has what it knows to need. */
  onLock(lock: TableLock | undefined): void
}

export interface TableLock {
  readonly table: string
  readonly mode: 'SHARE ROW EXCLUSIVE' | 'ACCESS EXCLUSIVE'
}

interface InfoRow extends Pick<SchemaInfo, 'mark' | 'state'> {
  readonly min_version: bigint
}

const lock = postgresQuery(`SELECT pg_advisory_xact_lock(${SCHEMA_LOCK})`)

/** Until the end of the transaction no other process creates or migrates the tables. */
export const lockSchema = (): Steps<unknown> => lock.get()

const findTables = postgresQuery<{ info: string | null; others: bigint }>(
  `SELECT CAST(to_regclass('public.schema_info') AS TEXT) AS info,
     -- Extensions have tables and views, too.
     (SELECT count(*) FROM pg_class c WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p', 'v', 'm')
        AND NOT EXISTS (SELECT 1 FROM pg_depend d WHERE d.objid = c.oid AND d.deptype = 'e')) AS others`,
)
const findInfo = postgresQuery<InfoRow>('SELECT mark, state, min_version FROM schema_info')
const findDone = postgresQuery<{ version: bigint }>('SELECT version FROM schema_migration')
const noteDone = postgresQuery('INSERT INTO schema_migration VALUES ($1, $2, database_ms())')
const raiseMin = postgresQuery('UPDATE schema_info SET min_version = $1 WHERE min_version < $1')
// Not a view: LOCK would lock its tables, too.
const findTable = postgresQuery<{ name: string }>(
  "SELECT CAST(oid::regclass AS TEXT) AS name FROM pg_class WHERE oid = to_regclass($1) AND relkind IN ('r', 'p')",
)
const limitLocks = postgresQuery("SELECT set_config('lock_timeout', $1, true)")

/** Throws a StoreError where the database is not one of this Weir. */
export const createSchema = (
  pool: PostgresPool,
  migrations = readSchemaMigrations(),
  limits?: LockLimits,
): Promise<SchemaInfo> =>
  pool.transact(
    (function* () {
      const { state, missing } = yield* inspectSchema(migrations)
      // Most starts find nothing to do. They need not wait for a process of a later version that migrates.
      if (state === 'ready' && missing.length === 0) return yield* readInfo([])
      return yield* createSchemaSteps(migrations, limits)
    })(),
  )

/** The same as a part of a transaction. Without limits it waits for each table as long as others use it. */
export function* createSchemaSteps(migrations = readSchemaMigrations(), limits?: LockLimits): Steps<SchemaInfo> {
  yield* lockSchema()
  const { state, missing } = yield* inspectSchema(migrations)
  const lockMs = limits?.lockMs ?? 0
  const endMs = performance.now() + lockMs
  /** Lets each of the statements that follow wait for the rest of the time. Zero would mean that it waits for ever. */
  const limit = function* (leastMs: number): Steps<void> {
    const restMs = Math.ceil(Math.max(leastMs, endMs - performance.now()))
    if (limits !== undefined) yield* limitLocks.get(`${restMs}ms`)
  }
  // An empty database has no tables to wait for.
  for (const [table, mode] of state === undefined ? [] : lockedTables(missing)) {
    const found = yield* findTable.get(table)
    if (found === undefined) continue
    yield* limit(1)
    limits?.onLock({ table, mode })
    yield* runText(`LOCK TABLE ${found.name} IN ${mode} MODE`)
  }
  limits?.onLock(undefined)
  for (const { sql } of missing) {
    // Some statements lock further tables. They come late where others have taken long, and need some time all the same.
    yield* limit(lockMs / 4)
    yield* runText(sql)
  }
  for (const { version, name } of missing) yield* noteDone.run(version, name)
  return yield* readInfo(missing)
}

function* runText(sql: string): Steps<void> {
  yield { text: { sqlite: '', postgres: sql }, values: [], want: 'changes' }
}

const ALTERED = /^ALTER TABLE (?:IF EXISTS )?([\w.]+)/gm
const ADDED_TO = /^CREATE (?:OR REPLACE )?(?:UNIQUE )?(?:INDEX|TRIGGER)\b[^;]*? ON ([\w.]+)|\bREFERENCES ([\w.]+)/gm

/** The tables that migrations must have for themselves, and how. Some of these are created only by them. */
function lockedTables(missing: readonly SchemaMigration[]): ReadonlyMap<string, TableLock['mode']> {
  const tables = new Map<string, TableLock['mode']>()
  if (missing.length === 0) return tables
  // Batches of calls write to accounts before they write to records: in another order they and a migration would wait for
  // each other.
  tables.set('account', 'SHARE ROW EXCLUSIVE')
  for (const { sql } of missing) for (const [, table] of sql.matchAll(ALTERED)) tables.set(table!, 'ACCESS EXCLUSIVE')
  for (const { sql } of missing) {
    for (const [, on, referred] of sql.matchAll(ADDED_TO)) {
      const table = (on ?? referred)!
      if (!tables.has(table)) tables.set(table, 'SHARE ROW EXCLUSIVE')
    }
  }
  return tables
}

function* readInfo(made: readonly SchemaMigration[]): Steps<SchemaInfo> {
  yield* raiseMin.run(MIN_VERSION)
  const { mark, state } = (yield* findInfo.get())!
  return { mark, state, made: made.map(({ name }) => name) }
}

/** Only reads. Throws a StoreError where the database is not one of this Weir. */
export function* inspectSchema(migrations = readSchemaMigrations()): Steps<SchemaInspection> {
  const { info: infoTable, others } = (yield* findTables.get())!
  if (infoTable === null && others > 0n) {
    throw new StoreError(
      'The database in WEIR_DATABASE_URL has tables of another program. Create an empty database for Weir.',
    )
  }
  if (infoTable === null) return { state: undefined, missing: migrations }
  const info = (yield* findInfo.get())!
  checkVersion(info, migrations)
  const done = yield* readDoneVersions()
  return { state: info.state, missing: migrations.filter(({ version }) => !done.has(version)) }
}

/** The versions of all migrations that were made, also those of later versions of Weir. */
export function* readDoneVersions(): Steps<ReadonlySet<number>> {
  return new Set((yield* findDone.all()).map(({ version }) => Number(version)))
}

function checkVersion({ min_version }: InfoRow, migrations: readonly SchemaMigration[]): void {
  const known = migrations.at(-1)!.version
  if (Number(min_version) <= known) return
  throw new StoreError(
    `The database was changed by a later version of Weir (it needs schema ${min_version}, this one knows ${known}). ` +
      'Start that version.',
  )
}
