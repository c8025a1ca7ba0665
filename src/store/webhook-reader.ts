// What webhooks are to be told next. On the thread that serves calls: every look is a range of an index, and short.

import type { Database } from 'bun:sqlite'
import { bounds } from '../base/bounds.ts'

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
    this.#due = db.query<Raw, [number, number]>(
      `SELECT DISTINCT webhook_id FROM
         (SELECT webhook_id FROM webhook_delivery WHERE due_ms <= ?1 ORDER BY due_ms LIMIT ?2)`,
    )
    this.#next = db.query<Raw, [number, number]>(
      'SELECT '.concat(
        COLUMNS,
        ` WHERE d.webhook_id = ?1 AND d.due_ms IS NOT NULL AND d.due_ms <= ?2 AND w.disabled = 0
          ORDER BY d.id LIMIT 1`,
      ),
    )
    this.#one = db.query<Raw, [number]>('SELECT '.concat(COLUMNS, ' WHERE d.id = ?1'))
    this.#wants = db.query<Raw, [string]>(
      `SELECT 1 AS yes FROM webhook WHERE account_id IS NULL AND disabled = 0
         AND instr(',' || events || ',', ',' || ?1 || ',') > 0 LIMIT 1`,
    )
  }

  /** Webhooks for which something is due. */
  due(nowMs: number): readonly number[] {
    return this.#due.all(nowMs, bounds.webhookDueMax).map(row => Number(row.webhook_id))
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
