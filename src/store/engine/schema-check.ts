// Compares the schema of a database with the schema that the migrations create. A missing trigger, index or check would
// no longer protect the ledger.

import { Database } from 'bun:sqlite'
import { hintOf } from '../../base/hints.ts'
import type { AuditFinding } from '../ledger-audit/findings.ts'
import { createFinding } from '../ledger-audit/findings.ts'
import { migrate, openReader, readMigrations } from './database.ts'

type SchemaObject = { readonly name: string; readonly sql: string }

const READ_SCHEMA = "SELECT type || ' ' || name AS name, sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY 1"

const expected = new Map<number, ReadonlyMap<string, string>>()

/** The schema that the migrations create, up to a version: SQL text by type and name. */
function expectedAt(version: number): ReadonlyMap<string, string> {
  let rows = expected.get(version)
  if (rows === undefined) {
    const db = new Database(':memory:', { safeIntegers: true })
    migrate(db, { migrations: readMigrations().slice(0, version) })
    rows = new Map((db.query(READ_SCHEMA).all() as SchemaObject[]).map(({ name, sql }) => [name, sql]))
    db.close()
    expected.set(version, rows)
  }
  return rows
}

export const schemaVersion = (db: Database): number =>
  Number((db.query('PRAGMA user_version').get() as { user_version: bigint }).user_version)

/** The schema of a database file. */
export function schemaOf(path: string): number {
  const db = openReader(path)
  try {
    return schemaVersion(db)
  } finally {
    db.close()
  }
}

export function schemaFindings(db: Database): readonly AuditFinding[] {
  const actual = new Map((db.query(READ_SCHEMA).all() as SchemaObject[]).map(({ name, sql }) => [name, sql]))
  const findings: AuditFinding[] = []
  for (const [name, sql] of expectedAt(schemaVersion(db))) {
    const hint = hintOf(actual.has(name) ? 'found_object_differs' : 'found_object_missing', { object: name })
    if (actual.get(name) !== sql) findings.push(createFinding({ check: 'schema', key: name, hint }))
  }
  for (const name of actual.keys()) {
    const isForeign = name.startsWith('trigger ') && !expectedAt(schemaVersion(db)).has(name)
    const hint = hintOf('found_object_foreign', { object: name })
    if (isForeign) findings.push(createFinding({ check: 'schema', key: name, hint }))
  }
  return findings
}
