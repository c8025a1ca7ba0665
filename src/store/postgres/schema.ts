// Creates the tables and triggers in an empty database.

import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Steps } from '../engine/steps.ts'
import { postgresQuery } from '../engine/steps.ts'
import type { PostgresPool } from './pools.ts'

const MIGRATIONS = join(import.meta.dir, 'migrations')

export const createSchema = (pool: PostgresPool): Promise<void> => pool.transact(createSchemaSteps())

/** As a part of a transaction. */
export function* createSchemaSteps(): Steps<void> {
  const files = readdirSync(MIGRATIONS)
    .filter(file => file.endsWith('.sql'))
    .sort()
  for (const file of files) {
    // A file has many statements, which only a block can run as one.
    const script = readFileSync(join(MIGRATIONS, file), 'utf8')
    yield* postgresQuery(`DO $block$ BEGIN EXECUTE $script$${script}$script$; END $block$`).run()
  }
}
