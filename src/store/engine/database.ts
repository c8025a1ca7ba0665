// Opens the SQLite file, the same way for the one writer and for readers, and brings its schema up to date.
//
// Two traps of the driver are closed here: integers come back as bigint (safeIntegers), and REPLACE cannot slip past
// a trigger. A third is closed in operations.ts: an integer beyond 64 bits would be wrapped when it is bound.

import { Database } from 'bun:sqlite'
import { closeSync, fsyncSync, openSync, readdirSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { assert } from '../../base/assert.ts'

const MIGRATIONS = join(import.meta.dir, '..', 'migrations')

export function openWriter(path: string): Database {
  const db = new Database(path, { create: true, readwrite: true, strict: true, safeIntegers: true })
  db.run('PRAGMA journal_mode = WAL')
  db.run('PRAGMA synchronous = FULL')
  db.run('PRAGMA foreign_keys = ON')
  db.run('PRAGMA recursive_triggers = ON')
  db.run('PRAGMA busy_timeout = 5000')
  db.run('PRAGMA cache_size = -65536')
  db.run('PRAGMA journal_size_limit = 67108864')
  return db
}

export function openReader(path: string): Database {
  const db = new Database(path, { readonly: true, strict: true, safeIntegers: true })
  db.run('PRAGMA busy_timeout = 5000')
  db.run('PRAGMA cache_size = -4096')
  return db
}

export interface Migration {
  readonly version: number
  readonly name: string
  readonly sql: string
}

export function readMigrations(folder = MIGRATIONS): readonly Migration[] {
  const files = readdirSync(folder)
    .filter(file => file.endsWith('.sql'))
    .sort()
  return files.map((file, index) => {
    const version = Number(file.slice(0, 4))
    assert(version === index + 1, `migration ${file} follows the one before it`)
    return { version, name: file, sql: readFileSync(join(folder, file), 'utf8') }
  })
}

export class StoreError extends Error {}

export interface MigrateOptions {
  readonly migrations?: readonly Migration[]
  /** Called before anything is changed in a database that holds data. */
  backUp?(version: number): void
}

/** Runs what is missing, each file in a transaction of its own. Refuses a schema from a later version of Weir. */
export function migrate(db: Database, { migrations = readMigrations(), backUp }: MigrateOptions = {}): void {
  const row = db.query('PRAGMA user_version').get() as { user_version: bigint }
  const at = Number(row.user_version)
  if (at > migrations.length) {
    throw new StoreError(
      `The data folder was written by a later version of Weir (schema ${at}, this one knows ${migrations.length}). ` +
        'Start that version, or restore a backup made before it.',
    )
  }
  if (at > 0 && at < migrations.length) backUp?.(at)
  for (const migration of migrations.slice(at)) {
    db.transaction(() => {
      db.run(migration.sql)
      // PRAGMA takes no parameters; the number is our own file's.
      db.run('PRAGMA user_version = '.concat(String(migration.version)))
    }).immediate()
  }
}

/** A whole and consistent copy, on the disk when this returns, while others read and write. */
export function copyDatabase(db: Database, to: string): void {
  const part = `${to}.part`
  rmSync(part, { force: true })
  try {
    db.run('VACUUM INTO ?1', [part])
    flush(part)
    renameSync(part, to)
  } catch (fault) {
    rmSync(part, { force: true }) // most likely the disk is full, and it is of no use to anybody
    throw fault
  }
  flush(dirname(to))
}

/** To the disk: a file, or a folder with the names in it. */
export function flush(path: string): void {
  const file = openSync(path, 'r')
  fsyncSync(file)
  closeSync(file)
}
