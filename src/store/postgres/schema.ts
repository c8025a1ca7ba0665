// Creates and changes the tables, functions and triggers. Several processes may start at the same time: a lock lets one of
// them do it, and the others find it done. All migrations run in one transaction, so that a start that fails has changed
// nothing.
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

interface InfoRow extends Pick<SchemaInfo, 'mark' | 'state'> {
  readonly min_version: bigint
}

const lock = postgresQuery(`SELECT pg_advisory_xact_lock(${SCHEMA_LOCK})`)
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

/** Throws a StoreError where the database is not one of this Weir. */
export const createSchema = (pool: PostgresPool, migrations = readSchemaMigrations()): Promise<SchemaInfo> =>
  pool.transact(createSchemaSteps(migrations))

/** The same as a part of a transaction. */
export function* createSchemaSteps(migrations = readSchemaMigrations()): Steps<SchemaInfo> {
  yield* lock.get()
  const { missing } = yield* inspectSchema(migrations)
  for (const { sql } of missing) yield { text: { sqlite: '', postgres: sql }, values: [], want: 'changes' }
  for (const { version, name } of missing) yield* noteDone.run(version, name)
  yield* raiseMin.run(MIN_VERSION)
  const { mark, state } = (yield* findInfo.get())!
  return { mark, state, made: missing.map(({ name }) => name) }
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
  const done = new Set((yield* findDone.all()).map(({ version }) => Number(version)))
  return { state: info.state, missing: migrations.filter(({ version }) => !done.has(version)) }
}

function checkVersion({ min_version }: InfoRow, migrations: readonly SchemaMigration[]): void {
  const known = migrations.at(-1)!.version
  if (Number(min_version) <= known) return
  throw new StoreError(
    `The database was changed by a later version of Weir (it needs schema ${min_version}, this one knows ${known}). ` +
      'Start that version.',
  )
}
