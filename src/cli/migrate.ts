// weir migrate: creates or upgrades the tables in PostgreSQL, without starting a gateway.

import { readConfig } from '../config.ts'
import { openDatabase } from '../store/postgres/connect.ts'
import { addressOfUrl } from '../store/postgres/pools.ts'
import type { OutputOptions } from './checks/findings.ts'
import { jsonText } from './print.ts'
import { Problem } from './problem.ts'

export async function migrate({ json }: OutputOptions, say: (line: string) => void): Promise<void> {
  const { databaseUrl } = readConfig(process.env)
  // An error and no note: a deployment that has lost the setting must not go on with empty SQLite files.
  if (databaseUrl === undefined) {
    throw new Problem(
      'WEIR_DATABASE_URL is not set. Without it the data is in files, which a start upgrades by itself.',
    )
  }
  const { made } = await openDatabase(addressOfUrl(databaseUrl))
  if (json) return say(jsonText({ made }))
  for (const name of made) say(`done: ${name}`)
  say(made.length === 0 ? 'The database is up to date.' : 'The database is up to date now.')
}
