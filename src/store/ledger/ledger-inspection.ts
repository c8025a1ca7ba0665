// Inspects a database for `weir doctor`, also while a gateway is using it. It only reads, runs in its own process, and
// reads only recent records.

import { idAtMs } from '../../base/ids.ts'
import { DAY_MS, HOUR_MS } from '../../base/time.ts'
import { openReader, readMigrations } from '../engine/database.ts'
import { schemaVersion } from '../engine/schema-check.ts'
import { OPERATOR_ID_MAX } from './operator-accounts.ts'

export interface LedgerFacts {
  readonly schema: number
  /** The newest schema that this version of Weir knows. */
  readonly schemaKnown: number
  /** Set only when the database has the newest schema. */
  readonly details?: LedgerInspection
}

export interface LedgerInspection {
  /** Holds of calls that should have ended long ago. */
  readonly oldHolds: number
  readonly frozenAccounts: number
  readonly hasOwner: boolean
  /** Errors of the last hour by code, most frequent first. */
  readonly errors: readonly { readonly code: string; readonly count: number }[]
  /** Calls of the last hour. */
  readonly calls: number
  /** Models that were requested in the last day and refused because they have no price. */
  readonly unpriced: readonly string[]
}

/** No call takes this long. */
const HOLD_MS_MAX = 2 * HOUR_MS
/** The most records that each query reads. */
const RECORDS_MAX = 200_000
const NAMES_MAX = 20

export function inspectLedger(path: string, dateMs: number): LedgerFacts {
  const db = openReader(path)
  try {
    const [schema, schemaKnown] = [schemaVersion(db), readMigrations().length]
    if (schema !== schemaKnown) return { schema, schemaKnown }
    const readNumber = (sql: string, ...values: number[]): bigint =>
      (db.query<{ n: bigint }, number[]>(sql).get(...values) ?? { n: 0n }).n
    const hourAgoId = idAtMs(dateMs - HOUR_MS)
    const errors = db
      .query<{ code: string; count: bigint }, [number, number]>(
        `SELECT error AS code, count(*) AS count
         FROM (SELECT error FROM record WHERE call_id >= ?1 ORDER BY call_id DESC LIMIT ?2)
         WHERE error IS NOT NULL GROUP BY error ORDER BY count DESC, code`,
      )
      .all(hourAgoId, RECORDS_MAX)
    const unpriced = db
      .query<{ asked: string }, [number, number, number]>(
        `SELECT DISTINCT coalesce(asked, provider || '/' || model) AS asked
         FROM (SELECT * FROM record WHERE call_id >= ?1 ORDER BY call_id DESC LIMIT ?2)
         WHERE error = 'price_unknown' AND asked IS NOT NULL ORDER BY asked LIMIT ?3`,
      )
      .all(idAtMs(dateMs - DAY_MS), RECORDS_MAX, NAMES_MAX)
    const seen: LedgerInspection = {
      oldHolds: Number(
        readNumber(`SELECT count(*) AS n FROM hold WHERE kind = 'call' AND call_id < ?1`, idAtMs(dateMs - HOLD_MS_MAX)),
      ),
      frozenAccounts: Number(
        readNumber('SELECT count(*) AS n FROM account WHERE frozen_ms IS NOT NULL AND id > ?1', OPERATOR_ID_MAX),
      ),
      hasOwner: readNumber(`SELECT count(*) AS n FROM person WHERE role = 'owner'`) > 0n,
      errors: errors.map(({ code, count }) => ({ code, count: Number(count) })),
      calls: Number(
        readNumber(
          'SELECT count(*) AS n FROM (SELECT 1 FROM record WHERE call_id >= ?1 LIMIT ?2)',
          hourAgoId,
          RECORDS_MAX,
        ),
      ),
      unpriced: unpriced.map(({ asked }) => asked),
    }
    return { schema, schemaKnown, details: seen }
  } finally {
    db.close()
  }
}
