// Reads the database of a data folder without changing anything, for `weir check`.

import { existsSync, statSync } from 'node:fs'
import type { RulesReader } from '../rules/rules-reader.ts'
import { buildRulesReads } from '../rules/rules-reader.ts'
import type { MissingSecret } from '../secrets/secret-check.ts'
import { findMissingSecrets } from '../secrets/secret-check.ts'
import { openReader, readMigrations } from './database.ts'
import type { GatewaySecrets } from './folder.ts'
import { bodiesOf, databaseOf } from './folder.ts'
import { bindReads } from './reads.ts'
import { schemaVersion } from './schema-check.ts'
import { sqliteSnapshots } from './sqlite-steps.ts'

export interface FolderInspection {
  readonly schema: number
  /** The schema of this version of Weir. The rules can be read only if the database has this one. */
  readonly schemaKnown: number
  openRules(): RulesReader
  findMissingSecrets(secrets: GatewaySecrets): readonly MissingSecret[]
  close(): void
}

/** Whether the first start of a gateway has created the database. */
export function hasDatabase(folder: string): boolean {
  const database = databaseOf(folder)
  return existsSync(database) && statSync(database).size > 0
}

/** Throws where the database cannot be read. */
export function inspectFolder(folder: string): FolderInspection {
  const database = databaseOf(folder)
  const db = openReader(database)
  return {
    schema: schemaVersion(db),
    schemaKnown: readMigrations().length,
    openRules: () => bindReads(buildRulesReads(), sqliteSnapshots(db)),
    findMissingSecrets: secrets => findMissingSecrets({ database, bodies: bodiesOf(folder), secrets }),
    close: () => db.close(),
  }
}
