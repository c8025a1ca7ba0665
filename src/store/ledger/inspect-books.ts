// A look at a database, whoever has it open: what a doctor wants to know of it. It only reads, in a process of its own,
// and no more of the records than were made lately.

import { idAtMs } from '../../base/ids.ts'
import { openReader, readMigrations } from '../engine/database.ts'
import { schemaVersion } from '../engine/schema-check.ts'
import { OPERATOR_ID_MAX } from './operator-accounts.ts'

export interface BookFacts {
  readonly schema: number
  /** The newest that this version knows. */
  readonly schemaKnown: number
  /** Everything below is of a database of that schema alone. */
  readonly seen?: SeenBooks
}

export interface SeenBooks {
  /** Of calls that should long be over. */
  readonly oldHolds: number
  readonly frozenAccounts: number
  readonly hasOwner: boolean
  /** Of the last hour, by code, the most frequent first. */
  readonly errors: readonly { readonly code: string; readonly count: number }[]
  /** Calls of the last hour. */
  readonly calls: number
  /** Asked for in the last day and refused because nobody knows their price. */
  readonly unpriced: readonly string[]
}

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
/** No call takes so long. */
const HOLD_MS_MAX = 2 * HOUR_MS
/** Of each look. */
const RECORDS_MAX = 200_000
const NAMES_MAX = 20

export function lookAtBooks(path: string, dateMs: number): BookFacts {
  const db = openReader(path)
  try {
    const [schema, schemaKnown] = [schemaVersion(db), readMigrations().length]
    if (schema !== schemaKnown) return { schema, schemaKnown }
    const one = (sql: string, ...values: number[]): bigint =>
      (db.query<{ n: bigint }, number[]>(sql).get(...values) ?? { n: 0n }).n
    const hour = idAtMs(dateMs - HOUR_MS)
    const errors = db
      .query<{ code: string; count: bigint }, [number, number]>(
        `SELECT error AS code, count(*) AS count
         FROM (SELECT error FROM record WHERE call_id >= ?1 ORDER BY call_id DESC LIMIT ?2)
         WHERE error IS NOT NULL GROUP BY error ORDER BY count DESC, code`,
      )
      .all(hour, RECORDS_MAX)
    const unpriced = db
      .query<{ asked: string }, [number, number, number]>(
        `SELECT DISTINCT coalesce(asked, provider || '/' || model) AS asked
         FROM (SELECT * FROM record WHERE call_id >= ?1 ORDER BY call_id DESC LIMIT ?2)
         WHERE error = 'price_unknown' AND asked IS NOT NULL ORDER BY asked LIMIT ?3`,
      )
      .all(idAtMs(dateMs - DAY_MS), RECORDS_MAX, NAMES_MAX)
    const seen: SeenBooks = {
      oldHolds: Number(
        one(`SELECT count(*) AS n FROM hold WHERE kind = 'call' AND call_id < ?1`, idAtMs(dateMs - HOLD_MS_MAX)),
      ),
      frozenAccounts: Number(
        one('SELECT count(*) AS n FROM account WHERE frozen_ms IS NOT NULL AND id > ?1', OPERATOR_ID_MAX),
      ),
      hasOwner: one(`SELECT count(*) AS n FROM person WHERE role = 'owner'`) > 0n,
      errors: errors.map(({ code, count }) => ({ code, count: Number(count) })),
      calls: Number(
        one('SELECT count(*) AS n FROM (SELECT 1 FROM record WHERE call_id >= ?1 LIMIT ?2)', hour, RECORDS_MAX),
      ),
      unpriced: unpriced.map(({ asked }) => asked),
    }
    return { schema, schemaKnown, seen }
  } finally {
    db.close()
  }
}
