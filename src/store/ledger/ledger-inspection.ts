// Inspects a database for `weir doctor`, also while a gateway is using it. It only reads, and runs in its own process.

import { openReader, readMigrations } from '../engine/database.ts'
import { schemaVersion } from '../engine/schema-check.ts'
import { sqliteSteps } from '../engine/sqlite-steps.ts'
import type { LedgerInspection } from './inspect-tables.ts'
import { inspectTables } from './inspect-tables.ts'

export interface LedgerFacts {
  readonly schema: number
  /** The newest schema that this version of Weir knows. */
  readonly schemaKnown: number
  /** Set only when the database has the newest schema. */
  readonly details?: LedgerInspection
}

export function inspectLedger(path: string, dateMs: number): LedgerFacts {
  const db = openReader(path)
  try {
    const [schema, schemaKnown] = [schemaVersion(db), readMigrations().length]
    if (schema !== schemaKnown) return { schema, schemaKnown }
    return { schema, schemaKnown, details: sqliteSteps(db)(inspectTables(dateMs)) }
  } finally {
    db.close()
  }
}
