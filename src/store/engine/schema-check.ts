// Whether the tables are what the migrations make of them: a trigger, an index or a check that is gone keeps nothing.

import { Database } from 'bun:sqlite'
import type { Finding } from '../ledger-audit/findings.ts'
import { finding } from '../ledger-audit/findings.ts'
import { migrate, readMigrations } from './database.ts'

type Named = { readonly name: string; readonly sql: string }

const READ = "SELECT type || ' ' || name AS name, sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY 1"

const expected = new Map<number, ReadonlyMap<string, string>>()

/** Those of a database that was made by the first migrations, up to a version. */
function expectedAt(version: number): ReadonlyMap<string, string> {
  let rows = expected.get(version)
  if (rows === undefined) {
    const db = new Database(':memory:', { safeIntegers: true })
    migrate(db, { migrations: readMigrations().slice(0, version) })
    rows = new Map((db.query(READ).all() as Named[]).map(({ name, sql }) => [name, sql]))
    db.close()
    expected.set(version, rows)
  }
  return rows
}

export const schemaVersion = (db: Database): number =>
  Number((db.query('PRAGMA user_version').get() as { user_version: bigint }).user_version)

export function schemaFindings(db: Database): readonly Finding[] {
  const there = new Map((db.query(READ).all() as Named[]).map(({ name, sql }) => [name, sql]))
  const found: Finding[] = []
  for (const [name, sql] of expectedAt(schemaVersion(db))) {
    const text = there.has(name) ? `${name} is not as Weir made it` : `${name} is missing`
    if (there.get(name) !== sql) found.push(finding({ check: 'schema', key: name, text }))
  }
  for (const name of there.keys()) {
    const stranger = name.startsWith('trigger ') && !expectedAt(schemaVersion(db)).has(name)
    if (stranger) found.push(finding({ check: 'schema', key: name, text: `${name} is not of Weir's making` }))
  }
  return found
}
