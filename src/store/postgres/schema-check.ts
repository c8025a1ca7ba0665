// Compares the schema of a database with what the migrations create. A missing trigger, index or check would no longer
// protect the ledger. The server writes definitions in its own words, so that the bodies of functions are compared, and
// of all else the names and numbers.
//
// During a rolling deploy, processes of the earlier version audit a database that a later version has migrated. What they
// would find different may be right: then they compare nothing, and leave it to processes of the later version.

import { hintOf } from '../../base/hints.ts'
import type { Steps } from '../engine/steps.ts'
import { postgresQuery } from '../engine/steps.ts'
import type { AuditFinding } from '../ledger-audit/findings.ts'
import { createFinding } from '../ledger-audit/findings.ts'
import { readDoneVersions, readSchemaMigrations } from './schema.ts'

/** What should be there, or is: `trigger name`, `function name` … and something to compare. */
type SchemaParts = Map<string, string>

/** What makes a constraint of a table, by the letter that PostgreSQL has for its kind. */
const constraints = { c: /\bCHECK \(/g, f: /\bREFERENCES\b/g, p: /\bPRIMARY KEY\b/g, u: /\bUNIQUE\b/g } as const

const withoutComments = (sql: string): string => sql.replace(/^\s*--.*$/gm, '')

const STATEMENT =
  /\b(?<verb>CREATE|DROP) (?:OR REPLACE )?(?:UNIQUE )?(?<type>TRIGGER|INDEX|FUNCTION|TABLE) (?:IF (?:NOT )?EXISTS )?(?<name>[\w.]+)(?<rest>[^;]*?(?:AS \$\$(?<body>.*?)\$\$|;))/gs
const ALTERATION = /\bALTER TABLE (?<name>[\w.]+) (?<rest>ADD [^;]*);/g

/** Migrations must write their statements out: what a statement builds as a text and executes is not seen here. */
export function partsOfScripts(scripts: readonly string[]): SchemaParts {
  const parts: SchemaParts = new Map()
  for (const script of scripts.map(withoutComments)) {
    for (const { groups } of script.matchAll(STATEMENT)) {
      const { verb, type, name, rest, body } = groups as Record<string, string>
      const part = `${type!.toLowerCase()} ${name}`
      if (verb === 'DROP') parts.delete(part)
      else if (type === 'TABLE') addConstraints(parts, name!, rest!)
      else parts.set(part, body ?? '')
    }
    for (const { groups } of script.matchAll(ALTERATION)) addConstraints(parts, groups!.name!, groups!.rest!)
  }
  return parts
}

function addConstraints(parts: SchemaParts, table: string, sql: string): void {
  for (const [letter, pattern] of Object.entries(constraints)) {
    const count = sql.match(pattern)?.length ?? 0
    const part = `table ${table}, constraints of kind ${letter}`
    if (count > 0) parts.set(part, String(Number(parts.get(part) ?? 0) + count))
  }
}

interface KnownSchema {
  readonly versions: ReadonlySet<number>
  readonly parts: SchemaParts
}

let known: KnownSchema | undefined

function readKnown(): KnownSchema {
  if (known === undefined) {
    const migrations = readSchemaMigrations()
    const versions = new Set(migrations.map(({ version }) => version))
    known = { versions, parts: partsOfScripts(migrations.map(({ sql }) => sql)) }
  }
  return known
}

const NAME = (relation: string): string =>
  `CASE n.nspname WHEN 'public' THEN '' ELSE n.nspname || '.' END || ${relation}`
const OURS = "n.nspname NOT LIKE 'pg\\_%' AND n.nspname <> 'information_schema'"

// Partitions repeat what their table has. A check that is not validated is one all the same: it counts for new rows.
const readParts = postgresQuery<{ part: string; value: string }>(
  `SELECT 'trigger ' || t.tgname AS part, CASE t.tgenabled WHEN 'D' THEN 'disabled' ELSE '' END AS value
     FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid JOIN pg_namespace n ON n.oid = c.relnamespace
     WHERE NOT t.tgisinternal AND NOT c.relispartition AND ${OURS}
   UNION ALL
   -- CREATE INDEX names no schema: an index is in that of its table.
   SELECT 'index ' || c.relname, CASE WHEN i.indisvalid THEN '' ELSE 'invalid' END
     FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_namespace n ON n.oid = c.relnamespace
     WHERE NOT c.relispartition AND ${OURS}
   UNION ALL
   SELECT 'function ' || ${NAME('p.proname')}, p.prosrc
     FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace WHERE ${OURS}
   UNION ALL
   SELECT 'table ' || ${NAME('c.relname')} || ', constraints of kind ' || CAST(k.contype AS TEXT), CAST(count(*) AS TEXT)
     FROM pg_constraint k JOIN pg_class c ON c.oid = k.conrelid JOIN pg_namespace n ON n.oid = c.relnamespace
     WHERE NOT c.relispartition AND ${OURS} GROUP BY n.nspname, c.relname, k.contype`,
)

/** What is missing or differs, and triggers that no migration has created. */
export function* postgresSchemaFindings(): Steps<readonly AuditFinding[]> {
  const { versions, parts: expected } = readKnown()
  if (!(yield* readDoneVersions()).isSubsetOf(versions)) return []
  const actual: SchemaParts = new Map((yield* readParts.all()).map(({ part, value }) => [part, withoutComments(value)]))
  const findings: AuditFinding[] = []
  const add = (part: string, code: 'found_object_missing' | 'found_object_differs' | 'found_object_foreign'): void =>
    void findings.push(createFinding({ check: 'schema', key: part, hint: hintOf(code, { object: part }) }))
  for (const [part, value] of expected) {
    const found = actual.get(part)
    if (found === undefined) add(part, 'found_object_missing')
    else if (found !== value) add(part, 'found_object_differs')
  }
  for (const part of actual.keys()) {
    if (part.startsWith('trigger ') && !expected.has(part)) add(part, 'found_object_foreign')
  }
  return findings
}
