// Creates the tables and triggers in an empty database.

import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { PostgresPool } from './pools.ts'

const MIGRATIONS = join(import.meta.dir, 'migrations')

export async function createSchema(pool: PostgresPool): Promise<void> {
  const files = readdirSync(MIGRATIONS)
    .filter(file => file.endsWith('.sql'))
    .sort()
  for (const file of files) await pool.runScript(readFileSync(join(MIGRATIONS, file), 'utf8'))
}
