// Opens the SQLite file for the one writer and for readers, and migrates its schema.
//
// Two traps of the driver are avoided here: integers come back as bigint (safeIntegers), and REPLACE runs the delete
// triggers (recursive_triggers). A third is avoided in operations.ts: the driver wraps integers beyond 64 bits when it
// binds them.

import { Database } from 'bun:sqlite'
import { closeSync, fsyncSync, openSync, readdirSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { assert } from '../../base/assert.ts'

const MIGRATIONS = join(import.meta.dir, '..', 'migrations')

export function openWriter(path: string): Database {
  const db = new Database(path, { create: true, readwrite: true, strict: true, safeIntegers: true })
  // First, because the log may have to be recovered, and another process may be reading the file at this moment.
  db.run('PRAGMA busy_timeout = 5000')
  db.run('PRAGMA journal_mode = WAL')
  db.run('PRAGMA synchronous = FULL')
  db.run('PRAGMA foreign_keys = ON')
  db.run('PRAGMA recursive_triggers = ON')
  // 16 MB. With more, the ledger takes as much CPU, also among ten million records, and the memory is not given back.
  db.run('PRAGMA cache_size = -16384')
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
    assert(version === index + 1, `migration ${file} must follow the one before it without a gap`)
    return { version, name: file, sql: readFileSync(join(folder, file), 'utf8') }
  })
}

export class StoreError extends Error {}

export interface MigrateOptions {
  readonly migrations?: readonly Migration[]
  /** Called before the first change to a database that already has a schema. */
  backUp?(version: number): void
}

/** Runs the missing migrations, each in its own transaction. Refuses a schema from a later version of Weir. */
export function migrate(db: Database, { migrations = readMigrations(), backUp }: MigrateOptions = {}): void {
  const row = db.query('PRAGMA user_version').get() as { user_version: bigint }
  const current = Number(row.user_version)
  if (current > migrations.length) {
    throw new StoreError(
      `The data folder was written by a later version of Weir (schema ${current}, this one knows ${migrations.length}). ` +
        'Start that version, or restore a backup made before it.',
    )
  }
  if (current > 0 && current < migrations.length) backUp?.(current)
  for (const migration of migrations.slice(current)) {
    db.transaction(() => {
      db.run(migration.sql)
      // PRAGMA takes no parameters. The number comes from the name of a migration file, so it is safe.
      db.run('PRAGMA user_version = '.concat(String(migration.version)))
    }).immediate()
  }
}

/** Makes a complete and consistent copy while others read and write. The copy is on the disk when this returns. */
export function copyDatabase(db: Database, to: string): void {
  const part = `${to}.part`
  rmSync(part, { force: true })
  try {
    db.run('VACUUM INTO ?1', [part])
    syncToDisk(part)
    renameSync(part, to)
  } catch (fault) {
    rmSync(part, { force: true }) // most likely the disk is full; a part of a copy is of no use
    throw fault
  }
  syncToDisk(dirname(to))
}

/** Forces a file, or the entries of a folder, to the disk. */
export function syncToDisk(path: string): void {
  const file = openSync(path, 'r')
  fsyncSync(file)
  closeSync(file)
}
