import { Database } from 'bun:sqlite'

interface OpenOptions {
  readonly readonly?: boolean
  readonly readwrite?: boolean
  readonly create?: boolean
  readonly safeIntegers?: boolean
}

/** A connection of the test's own. It waits for the gateway's writer instead of failing with "database is locked". */
export function openDatabase(path: string, options?: OpenOptions): Database {
  const db = options === undefined ? new Database(path) : new Database(path, options)
  db.run('PRAGMA busy_timeout = 60000')
  return db
}
