// Counts what a move would copy, and changes nothing.

import { existsSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { openReader } from '../engine/database.ts'
import { postgresQuery } from '../engine/steps.ts'
import { countRows } from './move.ts'
import type { MoveTarget } from './move-state.ts'
import { movedFiles, schemaOfFile } from './move-tables.ts'
import type { PostgresPool } from './pools.ts'

/** For copying and comparing. Two busy cores with PostgreSQL on the same machine reached 3,500 records per second. */
const ROWS_PER_SECOND = 5_000
const BYTES_PER_SECOND = 10_000_000

export interface MoveEstimate {
  readonly tables: readonly { readonly table: string; readonly rows: number }[]
  readonly rows: number
  readonly seconds: number
  /** What would stop the move. */
  readonly problems: readonly string[]
}

export interface EstimateParts {
  readonly folder: string
  readonly pool: PostgresPool
  readonly target: MoveTarget
  readonly isBack: boolean
}

export async function estimateMove({ folder, pool, target, isBack }: EstimateParts): Promise<MoveEstimate> {
  const counted = isBack ? await countOnPostgres(pool, target) : countOnSqlite(folder)
  const rows = counted.tables.reduce((sum, table) => sum + table.rows, 0)
  const seconds = Math.ceil(rows / ROWS_PER_SECOND + counted.bytes / BYTES_PER_SECOND)
  const hasData = existsSync(join(folder, 'weir.db'))
  const problems = isBack
    ? [...(hasData ? [`There is data of Weir in ${folder} already.`] : [])]
    : [
        ...(hasData ? [] : [`There is no data of Weir in ${folder}.`]),
        ...(target.isEmpty || target.move?.state === 'copied' ? [] : [`The target, ${target.place}, is not empty.`]),
      ]
  return { tables: counted.tables, rows, seconds, problems }
}

interface CountedTables {
  readonly tables: MoveEstimate['tables']
  readonly bytes: number
}

function countOnSqlite(folder: string): CountedTables {
  const present = movedFiles.filter(file => existsSync(join(folder, file)))
  const tables = present.flatMap(file => {
    const db = openReader(join(folder, file))
    try {
      const names = db
        .query("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY 1")
        .values()
        .flat() as string[]
      return names.map(name => {
        return { table: `${name} (${file})`, rows: countRows(db, { name }) }
      })
    } finally {
      db.close()
    }
  })
  return { tables, bytes: present.reduce((sum, file) => sum + statSync(join(folder, file)).size, 0) }
}

async function countOnPostgres(pool: PostgresPool, { isEmpty }: MoveTarget): Promise<CountedTables> {
  if (isEmpty) return { tables: [], bytes: 0 }
  const schemas = Object.values(schemaOfFile).map(schema => `'${schema}'`)
  // What the last ANALYZE has counted is exact enough, and costs nothing.
  const text = `SELECT n.nspname || '.' || c.relname AS name, CAST(greatest(c.reltuples, 0) AS BIGINT) AS rows,
         pg_table_size(c.oid) AS bytes FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
       WHERE c.relkind = 'r' AND n.nspname IN (${schemas.join(', ')}) ORDER BY 1`
  const rows = await pool.read(postgresQuery<{ name: string; rows: bigint; bytes: bigint }>(text).all())
  return {
    tables: rows.map(row => ({ table: row.name, rows: Number(row.rows) })),
    bytes: rows.reduce((sum, row) => sum + Number(row.bytes), 0),
  }
}
