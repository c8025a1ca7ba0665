import { Database } from 'bun:sqlite'
import { openOnPostgres } from './harness-databases.ts'

interface OpenOptions {
  readonly readonly?: boolean
  readonly readwrite?: boolean
  readonly create?: boolean
  readonly safeIntegers?: boolean
}

/**
 * A connection of the test's own. It waits for the gateway's writer instead of failing with "database is locked". Where
 * the gateway of the folder has its data in PostgreSQL, that is asked instead.
 */
export function openDatabase(path: string, options?: OpenOptions): Database {
  const onPostgres = openOnPostgres(path, options?.safeIntegers ?? false)
  if (onPostgres !== undefined) return onPostgres
  const db = options === undefined ? new Database(path) : new Database(path, options)
  db.run('PRAGMA busy_timeout = 60000')
  return db
}
