// The rows of one kind that accounts have kept. Each account has a share, in rows and in bytes; beyond it, its oldest
// go. How much an account has is remembered once it was summed up, so that no write counts what is there already.

import type { Database } from 'bun:sqlite'
import type { KeptId } from './kept.ts'

export interface ShareBounds {
  readonly rowsMax: number
  readonly bytesMax: number
}

interface Share {
  rows: number
  bytes: number
}

type Gone = { account_id: bigint; bytes: bigint }

/** Few: one may have megabytes, and settles wait meanwhile. */
const FORGET_AT_ONCE = 32
/** Beyond that all are summed up anew: a moment for each account. */
const SHARES_MAX = 10_000

type KeptTable = 'kept_response' | 'kept_reasoning' | 'kept_file' | 'kept_reference'

export class KeptRows {
  readonly #bounds: ShareBounds
  readonly #sum
  readonly #drop
  readonly #dropOldest
  readonly #forget
  readonly #shares = new Map<number, Share>()

  constructor(db: Database, table: KeptTable, bounds: ShareBounds) {
    const inTable = (sql: string): string => sql.replaceAll('kept_table', table)
    this.#bounds = bounds
    this.#sum = db.query(
      inTable('SELECT count(*) AS rows, coalesce(sum(bytes), 0) AS bytes FROM kept_table WHERE account_id = ?1'),
    )
    this.#drop = db.query(inTable('DELETE FROM kept_table WHERE account_id = ?1 AND id = ?2 RETURNING bytes'))
    this.#dropOldest = db.query(
      inTable(
        `DELETE FROM kept_table WHERE seq =
           (SELECT seq FROM kept_table WHERE account_id = ?1 ORDER BY seq LIMIT 1) RETURNING bytes`,
      ),
    )
    this.#forget = db.query(
      inTable(
        `DELETE FROM kept_table WHERE seq IN
           (SELECT seq FROM kept_table WHERE expires_ms <= ?1 ORDER BY expires_ms, seq LIMIT ?2)
         RETURNING account_id, bytes`,
      ),
    )
  }

  /** Whether there was one. */
  drop({ accountId, id }: KeptId): boolean {
    const row = this.#drop.get(accountId, id) as Gone | null
    if (row === null) return false
    this.#leave(accountId, Number(row.bytes))
    return true
  }

  /** Call after a row was written: makes room for it. */
  came(accountId: number, bytes: number): void {
    const known = this.#shares.get(accountId)
    const share = known ?? this.#summed(accountId)
    if (known !== undefined) {
      share.rows++
      share.bytes += bytes
    }
    while (share.rows > this.#bounds.rowsMax || share.bytes > this.#bounds.bytesMax) {
      const row = this.#dropOldest.get(accountId) as Gone | null
      if (row === null) return
      this.#leave(accountId, Number(row.bytes))
    }
  }

  /** Call after a row has another size. */
  resized(accountId: number, by: number): void {
    const share = this.#shares.get(accountId)
    if (share !== undefined) share.bytes += by
  }

  /** How many have had their time and are gone now. */
  forget(nowMs: number): number {
    const rows = this.#forget.all(nowMs, FORGET_AT_ONCE) as Gone[]
    for (const row of rows) this.#leave(Number(row.account_id), Number(row.bytes))
    return rows.length
  }

  /** What a rolled-back transaction had counted was never there. */
  reset(): void {
    this.#shares.clear()
  }

  #summed(accountId: number): Share {
    const row = this.#sum.get(accountId) as { rows: bigint; bytes: bigint }
    const share = { rows: Number(row.rows), bytes: Number(row.bytes) }
    if (this.#shares.size >= SHARES_MAX) this.#shares.clear()
    this.#shares.set(accountId, share)
    return share
  }

  #leave(accountId: number, bytes: number): void {
    const share = this.#shares.get(accountId)
    if (share === undefined) return
    share.rows--
    share.bytes -= bytes
  }
}
