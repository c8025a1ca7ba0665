// What a crash cut off: calls whose holds are still open when the gateway starts. Each is charged at most what had
// been delivered at its last checkpoint, the rest is given back, and its record is written. Done in one transaction
// before anybody is served, so it may itself be killed and run again. Tasks outlive a crash and stay. A response that
// was still being made for later, here and not at its upstream, has failed.

import type { Books } from './books.ts'
import type { RecordDraft, RecordRow, RecordUsage } from './hold-types.ts'
import { buildSettle } from './ledger-operations.ts'

interface OpenHold {
  readonly call_id: bigint
  readonly account_id: bigint
  readonly key_id: bigint
  readonly used: bigint
  readonly draft: string
}

const crashOutcome = 'gateway_crash'
/** As the table of who pays names them. */
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

/** A draft that was added to has lost what is null. */
const nothingKnown = { provider: null, model: null, priceVersion: null, endUser: null, tags: null }

/** Gives how many calls were ended. */
export function recoverHolds(books: Books): number {
  const { db } = books
  const settle = buildSettle(books)
  const open = db.query("SELECT call_id, account_id, key_id, used, draft FROM hold WHERE kind = 'call'")
  const failResponses = db.query(
    `UPDATE kept_response SET status = 'failed' WHERE status IN ('queued', 'in_progress') AND upstream_id IS NULL`,
  )
  return db
    .transaction(() => {
      failResponses.run()
      const holds = open.all() as OpenHold[]
      for (const hold of holds) {
        // The caller may ask again with the same idempotency key, and must not pay twice.
        const freed = books.idempotency.release(Number(hold.call_id))
        settle({ record: recordOf(hold, freed), cost: freed ? 0n : hold.used })
      }
      books.operators.write()
      return holds.length
    })
    .immediate()
}

function recordOf(hold: OpenHold, freed: boolean): RecordRow {
  const draft = JSON.parse(hold.draft) as RecordDraft & Partial<RecordUsage>
  const charged = hold.used > 0n && !freed
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
    firstMs: null,
    durationMs: 0,
  }
}
