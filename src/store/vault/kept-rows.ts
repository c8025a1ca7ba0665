// The rows of one kind that accounts have kept. Each account has a share, in rows and in bytes; beyond it, its oldest
// go. Where all accounts together have too much, the oldest go of the account that has the most. How much an account
// has is remembered once it was summed up, so that no write counts what is there already.

import type { Database } from 'bun:sqlite'
import type { KeptId } from './kept.ts'

export interface ShareBounds {
  readonly rowsMax: number
  readonly bytesMax: number
  /** Of all accounts together; not counted if absent. */
  readonly allBytesMax?: number | undefined
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
  readonly #sumAll
  readonly #drop
  readonly #dropOldest
  readonly #forget
  readonly #shares = new Map<number, Share>()
  /** Of all accounts, whose shares are then all known; undefined: not summed up yet, or never. */
  #allBytes: number | undefined

  constructor(db: Database, table: KeptTable, bounds: ShareBounds) {
    const inTable = (sql: string): string => sql.replaceAll('kept_table', table)
    this.#bounds = bounds
    this.#sum = db.query(
      inTable('SELECT count(*) AS rows, coalesce(sum(bytes), 0) AS bytes FROM kept_table WHERE account_id = ?1'),
    )
    this.#sumAll = db.query(
      inTable('SELECT account_id, count(*) AS rows, sum(bytes) AS bytes FROM kept_table GROUP BY account_id'),
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
    if (this.#isToSumUp) this.#sumUpAll()
    else this.#grown(accountId, bytes)
    const share = this.#shares.get(accountId)!
    while (share.rows > this.#bounds.rowsMax || share.bytes > this.#bounds.bytesMax) {
      if (!this.#leavesOldest(accountId)) break
    }
    this.#makeRoom()
  }

  #grown(accountId: number, bytes: number): void {
    const share = this.#shares.get(accountId)
    if (this.#allBytes !== undefined) this.#allBytes += bytes
    if (share !== undefined) {
      share.rows++
      share.bytes += bytes
    } else if (this.#allBytes !== undefined) this.#shares.set(accountId, { rows: 1, bytes })
    else this.#sumUp(accountId)
  }

  /** Some at a time: a bound that an operator has made narrower may leave far too many. Returns how many are gone. */
  #makeRoom(): number {
    const { allBytesMax = Number.POSITIVE_INFINITY } = this.#bounds
    let count = 0
    while (this.#allBytes !== undefined && this.#allBytes > allBytesMax && count < FORGET_AT_ONCE) {
      if (!this.#leavesOldest(this.#largest())) break
      count++
    }
    return count
  }

  #largest(): number {
    let [largest, most] = [0, -1]
    for (const [accountId, { bytes }] of this.#shares) if (bytes > most) [largest, most] = [accountId, bytes]
    return largest
  }

  /** Whether there was one. */
  #leavesOldest(accountId: number): boolean {
    const row = this.#dropOldest.get(accountId) as Gone | null
    if (row !== null) this.#leave(accountId, Number(row.bytes))
    return row !== null
  }

  /** Call after a row has another size. */
  resized(accountId: number, by: number): void {
    const share = this.#shares.get(accountId)
    if (share !== undefined) share.bytes += by
    if (this.#allBytes !== undefined) this.#allBytes += by
  }

  /** How many are gone now that have had their time, or for which there is no room. */
  forget(nowMs: number): number {
    const rows = this.#forget.all(nowMs, FORGET_AT_ONCE) as Gone[]
    for (const row of rows) this.#leave(Number(row.account_id), Number(row.bytes))
    if (this.#isToSumUp) this.#sumUpAll()
    return rows.length + this.#makeRoom()
  }

  /** What a rolled-back transaction had counted was never there. */
  reset(): void {
    this.#shares.clear()
    this.#allBytes = undefined
  }

  #sumUp(accountId: number): void {
    const row = this.#sum.get(accountId) as { rows: bigint; bytes: bigint }
    if (this.#shares.size >= SHARES_MAX) this.#shares.clear()
    this.#shares.set(accountId, { rows: Number(row.rows), bytes: Number(row.bytes) })
  }

  get #isToSumUp(): boolean {
    return this.#bounds.allBytesMax !== undefined && this.#allBytes === undefined
  }

  #sumUpAll(): void {
    this.#shares.clear()
    this.#allBytes = 0
    for (const row of this.#sumAll.all() as (Gone & { rows: bigint })[]) {
      this.#shares.set(Number(row.account_id), { rows: Number(row.rows), bytes: Number(row.bytes) })
      this.#allBytes += Number(row.bytes)
    }
  }

  #leave(accountId: number, bytes: number): void {
    if (this.#allBytes !== undefined) this.#allBytes -= bytes
    const share = this.#shares.get(accountId)
    if (share === undefined) return
    share.rows--
    share.bytes -= bytes
    if (share.rows === 0) this.#shares.delete(accountId)
  }
}
