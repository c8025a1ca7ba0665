// Creates the tables and triggers in an empty database.

import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { PostgresPool } from './pools.ts'

const MIGRATIONS = join(import.meta.dir, 'migrations')

export const readSchemaScripts = (): readonly string[] =>
  readdirSync(MIGRATIONS)
    .filter(file => file.endsWith('.sql'))
    .sort()
    .map(file => readFileSync(join(MIGRATIONS, file), 'utf8'))

export async function createSchema(pool: PostgresPool): Promise<void> {
  for (const script of readSchemaScripts()) await pool.runScript(script)
}
