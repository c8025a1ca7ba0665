// Reads the deliveries that are due. It runs on the thread that serves calls, so every query reads a short range of an
// index.

import { bounds } from '../../base/bounds.ts'
import type { AwaitedReads } from '../engine/reads.ts'
import type { Steps } from '../engine/steps.ts'
import { query } from '../engine/steps.ts'

export interface DueDelivery {
  readonly id: number
  readonly webhookId: number
  readonly event: string
  readonly accountId: number | null
  /** JSON, with money in nano-USD and ids as numbers. */
  readonly data: string
  readonly madeMs: number
  readonly attempts: number
  readonly url: string
  /** Encrypted. */
  readonly secret: Uint8Array
}

type RawRow = Record<string, bigint | string | Uint8Array | null>

const COLUMNS = `d.id, d.webhook_id, d.event, d.account_id, d.data, d.made_ms, d.attempts, w.url, w.secret
  FROM webhook_delivery d JOIN webhook w ON w.id = d.webhook_id`

// The recursion jumps from one webhook to the next, however many deliveries each of them has.
const findDue = query<RawRow>(
  `WITH RECURSIVE waiting (id, place) AS (
     SELECT min(webhook_id), 1 FROM webhook_delivery WHERE due_ms IS NOT NULL AND webhook_id > ?2
     UNION ALL SELECT (SELECT min(webhook_id) FROM webhook_delivery
       WHERE due_ms IS NOT NULL AND webhook_id > waiting.id), place + 1 FROM waiting
     WHERE id IS NOT NULL AND place < ?3)
   SELECT w.id, w.disabled = 0 AND EXISTS (SELECT 1 FROM webhook_delivery d
     WHERE d.webhook_id = w.id AND d.due_ms IS NOT NULL AND d.due_ms <= ?1) AS is_due
   FROM waiting JOIN webhook w ON w.id = waiting.id ORDER BY w.id`,
)
// The plus sign keeps SQLite from using the index on due_ms, whose rows it would have to sort.
const NEXT = `SELECT ${COLUMNS} WHERE d.webhook_id = ?1 AND +d.due_ms <= ?2 AND w.disabled = 0`
const findNext = query<RawRow>({
  sqlite: `${NEXT} ORDER BY d.id LIMIT 1`,
  // An event that was written at the same time as a refusal was noted does not wait as the others do. It must not
  // overtake them.
  postgres: `${NEXT} AND NOT EXISTS (SELECT 1 FROM webhook_delivery o WHERE o.webhook_id = ?1 AND o.due_ms > ?2
     AND o.id < d.id AND o.event <> 'webhook.test') ORDER BY d.id LIMIT 1`,
})
const findDelivery = query<RawRow>('SELECT '.concat(COLUMNS, ' WHERE d.id = ?1'))
const OF_SITE = 'SELECT 1 AS yes FROM webhook WHERE account_id IS NULL AND disabled = 0 AND'
const findSubscriber = query({
  sqlite: `${OF_SITE} instr(',' || events || ',', ',' || ?1 || ',') > 0 LIMIT 1`,
  postgres: `${OF_SITE} strpos(',' || events || ',', ',' || ?1 || ',') > 0 LIMIT 1`,
})

export const webhookReads = {
  /** The next webhooks after `after` that have a due delivery, in the order of ids; `last` is where to continue. */
  *findDue(nowMs: number, after: number): Steps<{ readonly ids: readonly number[]; readonly last: number }> {
    const rows = yield* findDue.all(nowMs, after, bounds.dueDeliveriesMax)
    const ids = rows.filter(row => Number(row.is_due) === 1).map(row => Number(row.id))
    return { ids, last: rows.length < bounds.dueDeliveriesMax ? 0 : Number(rows.at(-1)!.id) }
  },

  /** The oldest due delivery of a webhook. */
  *nextDelivery(webhookId: number, nowMs: number): Steps<DueDelivery | undefined> {
    return rowOf(yield* findNext.get(webhookId, nowMs))
  },

  *delivery(id: number): Steps<DueDelivery | undefined> {
    return rowOf(yield* findDelivery.get(id))
  },

  /** Whether a webhook of the site has subscribed to the event. */
  *hasSubscriber(event: string): Steps<boolean> {
    return (yield* findSubscriber.get(event)) !== undefined
  },
}

export type WebhookReader = AwaitedReads<typeof webhookReads>

function rowOf(row: RawRow | undefined): DueDelivery | undefined {
  if (row === undefined) return undefined
  return {
    id: Number(row.id),
    webhookId: Number(row.webhook_id),
    event: row.event as string,
    accountId: row.account_id === null ? null : Number(row.account_id),
    data: row.data as string,
    madeMs: Number(row.made_ms),
    attempts: Number(row.attempts),
    url: row.url as string,
    secret: row.secret as Uint8Array,
  }
}
