// Ends the calls of processes that are fenced. Each is charged at most what had been delivered at its last checkpoint, as
// after a crash on SQLite. A fenced process can write nothing, so its holds do not change between reading and settling
// them; when two processes do this at the same time, the second one finds the calls settled. Responses that the dead made
// in the background have failed.

import { postgresQuery } from '../engine/steps.ts'
import type { OpenHold } from '../ledger/recovery.ts'
import { recordOf } from '../ledger/recovery.ts'
import { recoverDeadJobs } from './jobs.ts'
import type { LedgerWriter } from './ledger.ts'
import type { PostgresPool } from './pools.ts'

/** In one batch. Many locked accounts would make the calls of others wait. */
const CALLS_PER_BATCH = 200

// Fencing raises the epoch, so that holds of an earlier epoch are those of dead processes. Tasks survive their process.
const findDeadHolds = postgresQuery<OpenHold & { readonly is_claimed: bigint }>(
  `SELECT h.call_id, h.account_id, h.key_id, h.used, h.draft, CAST(CASE WHEN i.call_id IS NULL THEN 0 ELSE 1 END AS BIGINT)
     AS is_claimed
   FROM process p
     CROSS JOIN LATERAL (SELECT * FROM hold WHERE slot = p.slot AND epoch < p.epoch AND kind = 'call' AND call_id > $2
       ORDER BY call_id LIMIT $1) h
     LEFT JOIN LATERAL (SELECT call_id FROM idempotency WHERE call_id = h.call_id LIMIT 1) i ON true
   ORDER BY h.call_id LIMIT $1`,
)

export interface RecoveredCalls {
  readonly ended: number
  /** Those that could not be ended. They are tried again, and must not stop the others. */
  readonly failed: number
}

/** Ends all calls of dead processes. */
export async function recoverDeadCalls(pool: PostgresPool, writer: LedgerWriter): Promise<RecoveredCalls> {
  let [ended, failed, after] = [0, 0, 0n]
  for (;;) {
    const holds = await pool.transact(findDeadHolds.all(CALLS_PER_BATCH, after))
    if (holds.length === 0) break
    after = holds.at(-1)!.call_id
    const settles = holds.map(async hold => {
      const isKeyReleased = hold.is_claimed === 1n
      const cost = isKeyReleased ? '0' : (`${hold.used}` as const)
      // The caller may retry with the same idempotency key, and must not pay twice.
      const release = isKeyReleased ? ({ idempotency: 'release' } as const) : {}
      const result = await writer.run('settle', { record: recordOf(hold, isKeyReleased), cost, ...release })
      return result.done === 'settled' ? 1 : 0
    })
    for (const settle of await Promise.allSettled(settles)) {
      if (settle.status === 'rejected') failed++
      else ended += settle.value
    }
  }
  await recoverDeadJobs(pool)
  return { ended, failed }
}
