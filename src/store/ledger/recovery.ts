// Ends the calls that a crash interrupted: those whose holds are still open at the start. Each is charged at most what
// had been delivered at its last checkpoint, the rest of the hold is released, and the record is written. All of this
// is one transaction before the first call, so it can be killed and run again. Tasks survive a crash and stay open.
// A background response that the gateway itself was producing is marked as failed.

import type { Books } from './books.ts'
import type { RecordDraft, RecordRow, RecordUsage } from './hold-types.ts'
import { buildSettle } from './ledger-operations.ts'

export interface OpenHold {
  readonly call_id: bigint
  readonly account_id: bigint
  readonly key_id: bigint
  readonly used: bigint
  readonly draft: string
}

const crashOutcome = 'gateway_crash'
/** The names of these rules in `billing/who-pays.ts`. */
export const crashRules = { delivered: 'crash_delivered', undelivered: 'crash_undelivered' } as const
const CRASH_STATUS = 500

const nothingUsed: RecordUsage = {
  inputTokens: 0,
  cacheReadTokens: 0,
  cacheWriteTokens: 0,
  outputTokens: 0,
  reasoningTokens: 0,
  lines: null,
}

/** Default values: json_patch at a checkpoint removes the fields of a draft that are null. */
const nothingKnown = { provider: null, model: null, priceVersion: null, endUser: null, tags: null }

/** Ends all interrupted calls and returns their number. */
export function recoverHolds(books: Books): number {
  const { db } = books
  const settle = buildSettle(books)
  const findOpenHolds = db.query("SELECT call_id, account_id, key_id, used, draft FROM hold WHERE kind = 'call'")
  const failResponses = db.query(
    `UPDATE kept_response SET status = 'failed' WHERE status IN ('queued', 'in_progress') AND upstream_id IS NULL`,
  )
  return db
    .transaction(() => {
      failResponses.run()
      const holds = findOpenHolds.all() as OpenHold[]
      for (const hold of holds) {
        // The caller may retry with the same idempotency key, and must not pay twice.
        const isKeyReleased = books.idempotency.release(Number(hold.call_id))
        settle({ record: recordOf(hold, isKeyReleased), cost: isKeyReleased ? 0n : hold.used })
      }
      books.operators.write()
      return holds.length
    })
    .immediate()
}

/** The record of a call that ended because its gateway did. `isKeyReleased`: its caller may try again, and pays nothing. */
export function recordOf(hold: OpenHold, isKeyReleased: boolean): RecordRow {
  const draft = JSON.parse(hold.draft) as RecordDraft & Partial<RecordUsage>
  const charged = hold.used > 0n && !isKeyReleased
  return {
    ...nothingKnown,
    ...nothingUsed,
    ...(charged ? draft : { ...draft, ...nothingUsed }),
    callId: Number(hold.call_id),
    keyId: Number(hold.key_id),
    accountId: Number(hold.account_id),
    channel: null,
    status: CRASH_STATUS,
    error: null,
    outcome: crashOutcome,
    rule: charged ? crashRules.delivered : crashRules.undelivered,
    usageSource: charged ? 'estimated' : 'none',
    attempts: null,
    timings: null,
    firstContentMs: null,
    durationMs: 0,
  }
}
