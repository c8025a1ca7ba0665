// Reads from the tables what may be wrong: holds that are too old, frozen accounts, recent errors. It reads only recent
// records, and a bounded number of them.

import { idAtMs } from '../../base/ids.ts'
import { DAY_MS, HOUR_MS } from '../../base/time.ts'
import type { Steps } from '../engine/steps.ts'
import { query } from '../engine/steps.ts'
import { OPERATOR_ID_MAX } from './operator-accounts.ts'

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

const countOldHolds = query<{ n: bigint }>(`SELECT count(*) AS n FROM hold WHERE kind = 'call' AND call_id < ?1`)
const countFrozen = query<{ n: bigint }>('SELECT count(*) AS n FROM account WHERE frozen_ms IS NOT NULL AND id > ?1')
const countOwners = query<{ n: bigint }>(`SELECT count(*) AS n FROM person WHERE role = 'owner'`)
const countErrors = query<{ code: string; count: bigint }>(
  `SELECT error AS code, count(*) AS count
   FROM (SELECT error FROM record WHERE call_id >= ?1 ORDER BY call_id DESC LIMIT ?2) latest
   WHERE error IS NOT NULL GROUP BY error ORDER BY count DESC, code`,
)
const countCalls = query<{ n: bigint }>(
  'SELECT count(*) AS n FROM (SELECT 1 FROM record WHERE call_id >= ?1 LIMIT ?2) latest',
)
const findUnpriced = query<{ name: string }>(
  `SELECT DISTINCT coalesce(asked, provider || '/' || model) AS name
   FROM (SELECT * FROM record WHERE call_id >= ?1 ORDER BY call_id DESC LIMIT ?2) latest
   WHERE error = 'price_unknown' AND asked IS NOT NULL ORDER BY name LIMIT ?3`,
)

/** Reads tables that have the newest schema. */
export function* inspectTables(dateMs: number): Steps<LedgerInspection> {
  const hourAgoId = idAtMs(dateMs - HOUR_MS)
  const errors = yield* countErrors.all(hourAgoId, RECORDS_MAX)
  const unpriced = yield* findUnpriced.all(idAtMs(dateMs - DAY_MS), RECORDS_MAX, NAMES_MAX)
  return {
    oldHolds: Number((yield* countOldHolds.get(idAtMs(dateMs - HOLD_MS_MAX)))!.n),
    frozenAccounts: Number((yield* countFrozen.get(OPERATOR_ID_MAX))!.n),
    hasOwner: (yield* countOwners.get())!.n > 0n,
    errors: errors.map(({ code, count }) => ({ code, count: Number(count) })),
    calls: Number((yield* countCalls.get(hourAgoId, RECORDS_MAX))!.n),
    unpriced: unpriced.map(({ name }) => name),
  }
}
