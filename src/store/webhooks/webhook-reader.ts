// Reads the deliveries that are due. It runs on the thread that serves calls, so every query reads a short range of an
// index.

import type { Database } from 'bun:sqlite'
import { bounds } from '../../base/bounds.ts'

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

export class WebhookReader {
  readonly #findDue
  readonly #findNext
  readonly #findDelivery
  readonly #findSubscriber

  constructor(db: Database) {
    // The recursion jumps from one webhook to the next, however many deliveries each of them has.
    this.#findDue = db.query<RawRow, [number, number, number]>(
      `WITH RECURSIVE waiting (id, place) AS (
         SELECT min(webhook_id), 1 FROM webhook_delivery WHERE due_ms IS NOT NULL AND webhook_id > ?2
         UNION ALL SELECT (SELECT min(webhook_id) FROM webhook_delivery
           WHERE due_ms IS NOT NULL AND webhook_id > waiting.id), place + 1 FROM waiting
         WHERE id IS NOT NULL AND place < ?3)
       SELECT w.id, w.disabled = 0 AND EXISTS (SELECT 1 FROM webhook_delivery d
         WHERE d.webhook_id = w.id AND d.due_ms IS NOT NULL AND d.due_ms <= ?1) AS is_due
       FROM waiting JOIN webhook w ON w.id = waiting.id ORDER BY w.id`,
    )
    this.#findNext = db.query<RawRow, [number, number]>(
      'SELECT '.concat(
        COLUMNS,
        // The plus sign keeps SQLite from using the index on due_ms, whose rows it would have to sort.
        ' WHERE d.webhook_id = ?1 AND +d.due_ms <= ?2 AND w.disabled = 0 ORDER BY d.id LIMIT 1',
      ),
    )
    this.#findDelivery = db.query<RawRow, [number]>('SELECT '.concat(COLUMNS, ' WHERE d.id = ?1'))
    this.#findSubscriber = db.query<RawRow, [string]>(
      `SELECT 1 AS yes FROM webhook WHERE account_id IS NULL AND disabled = 0
         AND instr(',' || events || ',', ',' || ?1 || ',') > 0 LIMIT 1`,
    )
  }

  /** The next webhooks after `after` that have a due delivery, in the order of ids; `last` is where to continue. */
  findDue(nowMs: number, after: number): { readonly ids: readonly number[]; readonly last: number } {
    const rows = this.#findDue.all(nowMs, after, bounds.dueDeliveriesMax)
    const ids = rows.filter(row => row.is_due !== 0n).map(row => Number(row.id))
    return { ids, last: rows.length < bounds.dueDeliveriesMax ? 0 : Number(rows.at(-1)!.id) }
  }

  /** The oldest due delivery of a webhook. */
  nextDelivery(webhookId: number, nowMs: number): DueDelivery | undefined {
    return rowOf(this.#findNext.get(webhookId, nowMs))
  }

  delivery(id: number): DueDelivery | undefined {
    return rowOf(this.#findDelivery.get(id))
  }

  /** Whether a webhook of the site has subscribed to the event. */
  hasSubscriber(event: string): boolean {
    return this.#findSubscriber.get(event) !== null
  }
}

function rowOf(row: RawRow | null): DueDelivery | undefined {
  if (row === null) return undefined
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
