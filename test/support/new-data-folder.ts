// The data folder of a new gateway, with its secrets and an empty database. To run all migrations takes about a third of
// a start, so they are run once in a process, and each folder gets a copy. Gateways on folders that a test brings along, and
// those that tests start as processes, run the migrations themselves.

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { migrate, openWriter } from '../../src/store/engine/database.ts'
import { databaseOf, openFolder } from '../../src/store/engine/folder.ts'

let empty: Uint8Array | undefined

/** `env`: the environment of the gateway, which may have the secrets. */
export function fillNewFolder(folder: string, env: Readonly<Record<string, string>>): void {
  openFolder(folder, env) // before there is a database: in one, the start would look whether it needs other secrets
  empty ??= emptyDatabase()
  writeFileSync(databaseOf(folder), empty)
}

function emptyDatabase(): Uint8Array {
  const folder = mkdtempSync(join(tmpdir(), 'weir-empty-'))
  try {
    const path = databaseOf(folder)
    const db = openWriter(path)
    migrate(db)
    db.run('PRAGMA wal_checkpoint(TRUNCATE)')
    db.close()
    return readFileSync(path)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}
