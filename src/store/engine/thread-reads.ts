// The connection of a thread that only reads: on a SQLite file, or on PostgreSQL.

import type { PostgresAddress } from '../postgres/pools.ts'
import { PostgresPool } from '../postgres/pools.ts'
import { openReader } from './database.ts'
import { sqliteSteps } from './sqlite-steps.ts'
import type { Steps } from './steps.ts'

/** Where the tables are. It can be sent to a thread. */
export type DataPlace = { readonly path: string } | PostgresAddress

export interface ThreadReads {
  /** Each statement sees the state of the database at its own time. */
  read<T>(steps: Steps<T>): T | Promise<T>
  close(): void
}

/** A statement that reads a whole table may take some time. */
const DEADLINE_MS = 60_000

/** Tables of both schemas are found by their names. */
export const BOTH_SCHEMAS = { search_path: 'public, bodies' } as const

export function openThreadReads(place: DataPlace): ThreadReads {
  if ('path' in place) {
    const db = openReader(place.path)
    return { read: sqliteSteps(db), close: () => db.close() }
  }
  const pool = new PostgresPool({ address: place, connections: 1, deadlineMs: DEADLINE_MS, settings: BOTH_SCHEMAS })
  return { read: steps => pool.readPoint(steps), close: () => void pool.close() }
}
