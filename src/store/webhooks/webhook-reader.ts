// What webhooks are to be told next. On the thread that serves calls: every look is a range of an index, and short.

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
  /** Sealed. */
  readonly secret: Uint8Array
}

type Raw = Record<string, bigint | string | Uint8Array | null>

const COLUMNS = `d.id, d.webhook_id, d.event, d.account_id, d.data, d.made_ms, d.attempts, w.url, w.secret
  FROM webhook_delivery d JOIN webhook w ON w.id = d.webhook_id`

export class WebhookReader {
  readonly #due
  readonly #next
  readonly #one
  readonly #wants

  constructor(db: Database) {
    // From one webhook to the next, however much waits for each.
    this.#due = db.query<Raw, [number, number, number]>(
      `WITH RECURSIVE waiting (id, place) AS (
         SELECT min(webhook_id), 1 FROM webhook_delivery WHERE due_ms IS NOT NULL AND webhook_id > ?2
         UNION ALL SELECT (SELECT min(webhook_id) FROM webhook_delivery
           WHERE due_ms IS NOT NULL AND webhook_id > waiting.id), place + 1 FROM waiting
         WHERE id IS NOT NULL AND place < ?3)
       SELECT w.id, w.disabled = 0 AND EXISTS (SELECT 1 FROM webhook_delivery d
         WHERE d.webhook_id = w.id AND d.due_ms IS NOT NULL AND d.due_ms <= ?1) AS is_due
       FROM waiting JOIN webhook w ON w.id = waiting.id ORDER BY w.id`,
    )
    this.#next = db.query<Raw, [number, number]>(
      'SELECT '.concat(
        COLUMNS,
        // The sign keeps it off the index of what is due, whose rows would have to be sorted.
        ' WHERE d.webhook_id = ?1 AND +d.due_ms <= ?2 AND w.disabled = 0 ORDER BY d.id LIMIT 1',
      ),
    )
    this.#one = db.query<Raw, [number]>('SELECT '.concat(COLUMNS, ' WHERE d.id = ?1'))
    this.#wants = db.query<Raw, [string]>(
      `SELECT 1 AS yes FROM webhook WHERE account_id IS NULL AND disabled = 0
         AND instr(',' || events || ',', ',' || ?1 || ',') > 0 LIMIT 1`,
    )
  }

  /** Webhooks for which something is due, behind this one, in the order of their ids; and where to look on. */
  due(nowMs: number, after: number): { readonly ids: readonly number[]; readonly last: number } {
    const rows = this.#due.all(nowMs, after, bounds.webhooksLookedAtMax)
    const ids = rows.filter(row => row.is_due !== 0n).map(row => Number(row.id))
    return { ids, last: rows.length < bounds.webhooksLookedAtMax ? 0 : Number(rows.at(-1)!.id) }
  }

  /** The oldest that is due for one of them. */
  next(webhookId: number, nowMs: number): DueDelivery | undefined {
    return rowOf(this.#next.get(webhookId, nowMs))
  }

  delivery(id: number): DueDelivery | undefined {
    return rowOf(this.#one.get(id))
  }

  /** Whether anybody of the site wants to be told of it. */
  wants(event: string): boolean {
    return this.#wants.get(event) !== null
  }
}

function rowOf(row: Raw | null): DueDelivery | undefined {
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
