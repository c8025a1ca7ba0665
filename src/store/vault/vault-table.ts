// The rows of one table of the vault. Each account has a quota of rows and bytes; above it, the oldest rows of the
// account are deleted. Where all accounts together have too many bytes, the oldest rows of the largest account are
// deleted. The usage of an account is kept in memory after it was summed up once, so that a write need not count rows.

import type { Database } from 'bun:sqlite'
import type { VaultId } from './vault-types.ts'

export interface VaultQuota {
  readonly rowsMax: number
  readonly bytesMax: number
  /** The most bytes of all accounts together; not limited if absent. */
  readonly allBytesMax?: number | undefined
}

interface Usage {
  rows: number
  bytes: number
}

type DeletedRow = { account_id: bigint; bytes: bigint }

/** Few, because a row may have megabytes and settles wait while rows are deleted. */
const ROWS_PER_SWEEP = 32
/** The most accounts whose usage is in memory. Beyond this the memory is cleared and usage is summed up again. */
const ACCOUNTS_IN_MEMORY_MAX = 10_000

type KeptTable = 'kept_response' | 'kept_reasoning' | 'kept_file' | 'kept_reference'

export class VaultTable {
  readonly #bounds: VaultQuota
  readonly #sum
  readonly #sumAll
  readonly #deleteRow
  readonly #deleteOldestRow
  readonly #deleteExpired
  readonly #usage = new Map<number, Usage>()
  /** The bytes of all accounts; the usage of every account is in memory then. Undefined: not summed up. */
  #allBytes: number | undefined

  constructor(db: Database, table: KeptTable, bounds: VaultQuota) {
    const inTable = (sql: string): string => sql.replaceAll('kept_table', table)
    this.#bounds = bounds
    this.#sum = db.query(
      inTable('SELECT count(*) AS rows, coalesce(sum(bytes), 0) AS bytes FROM kept_table WHERE account_id = ?1'),
    )
    this.#sumAll = db.query(
      inTable('SELECT account_id, count(*) AS rows, sum(bytes) AS bytes FROM kept_table GROUP BY account_id'),
    )
    this.#deleteRow = db.query(inTable('DELETE FROM kept_table WHERE account_id = ?1 AND id = ?2 RETURNING bytes'))
    this.#deleteOldestRow = db.query(
      inTable(
        `DELETE FROM kept_table WHERE seq =
           (SELECT seq FROM kept_table WHERE account_id = ?1 ORDER BY seq LIMIT 1) RETURNING bytes`,
      ),
    )
    this.#deleteExpired = db.query(
      inTable(
        `DELETE FROM kept_table WHERE seq IN
           (SELECT seq FROM kept_table WHERE expires_ms <= ?1 ORDER BY expires_ms, seq LIMIT ?2)
         RETURNING account_id, bytes`,
      ),
    )
  }

  /** Deletes a row. Returns whether it existed. */
  drop({ accountId, id }: VaultId): boolean {
    const row = this.#deleteRow.get(accountId, id) as DeletedRow | null
    if (row === null) return false
    this.#subtract(accountId, Number(row.bytes))
    return true
  }

  /** Must be called after a row was inserted: counts it and deletes old rows above the quota. */
  addRow(accountId: number, bytes: number): void {
    if (this.#mustSumUpAll) this.#sumUpAll()
    else this.#addRow(accountId, bytes)
    const usage = this.#usage.get(accountId)!
    while (usage.rows > this.#bounds.rowsMax || usage.bytes > this.#bounds.bytesMax) {
      if (!this.#deleteOldest(accountId)) break
    }
    this.#makeRoom()
  }

  #addRow(accountId: number, bytes: number): void {
    const usage = this.#usage.get(accountId)
    if (this.#allBytes !== undefined) this.#allBytes += bytes
    if (usage !== undefined) {
      usage.rows++
      usage.bytes += bytes
    } else if (this.#allBytes !== undefined) this.#usage.set(accountId, { rows: 1, bytes })
    else this.#sumUp(accountId)
  }

  /** Deletes some rows above the total limit, because a lowered limit may leave far too many. Returns how many. */
  #makeRoom(): number {
    const { allBytesMax = Number.POSITIVE_INFINITY } = this.#bounds
    let count = 0
    while (this.#allBytes !== undefined && this.#allBytes > allBytesMax && count < ROWS_PER_SWEEP) {
      if (!this.#deleteOldest(this.#largestAccount())) break
      count++
    }
    return count
  }

  #largestAccount(): number {
    let [largestId, bytesMax] = [0, -1]
    for (const [accountId, { bytes }] of this.#usage) if (bytes > bytesMax) [largestId, bytesMax] = [accountId, bytes]
    return largestId
  }

  /** Deletes the oldest row of an account. Returns whether there was one. */
  #deleteOldest(accountId: number): boolean {
    const row = this.#deleteOldestRow.get(accountId) as DeletedRow | null
    if (row !== null) this.#subtract(accountId, Number(row.bytes))
    return row !== null
  }

  /** Must be called after the size of a row has changed. */
  resizeRow(accountId: number, by: number): void {
    const usage = this.#usage.get(accountId)
    if (usage !== undefined) usage.bytes += by
    if (this.#allBytes !== undefined) this.#allBytes += by
  }

  /** Deletes some rows that have expired or are above the total limit. Returns how many. */
  deleteExpired(nowMs: number): number {
    const rows = this.#deleteExpired.all(nowMs, ROWS_PER_SWEEP) as DeletedRow[]
    for (const row of rows) this.#subtract(Number(row.account_id), Number(row.bytes))
    if (this.#mustSumUpAll) this.#sumUpAll()
    return rows.length + this.#makeRoom()
  }

  /** Forgets the usage in memory, because a rolled-back transaction may have changed it. */
  reset(): void {
    this.#usage.clear()
    this.#allBytes = undefined
  }

  #sumUp(accountId: number): void {
    const row = this.#sum.get(accountId) as { rows: bigint; bytes: bigint }
    if (this.#usage.size >= ACCOUNTS_IN_MEMORY_MAX) this.#usage.clear()
    this.#usage.set(accountId, { rows: Number(row.rows), bytes: Number(row.bytes) })
  }

  get #mustSumUpAll(): boolean {
    return this.#bounds.allBytesMax !== undefined && this.#allBytes === undefined
  }

  #sumUpAll(): void {
    this.#usage.clear()
    this.#allBytes = 0
    for (const row of this.#sumAll.all() as (DeletedRow & { rows: bigint })[]) {
      this.#usage.set(Number(row.account_id), { rows: Number(row.rows), bytes: Number(row.bytes) })
      this.#allBytes += Number(row.bytes)
    }
  }

  #subtract(accountId: number, bytes: number): void {
    if (this.#allBytes !== undefined) this.#allBytes -= bytes
    const usage = this.#usage.get(accountId)
    if (usage === undefined) return
    usage.rows--
    usage.bytes -= bytes
    if (usage.rows === 0) this.#usage.delete(accountId)
  }
}
