// The rows of one table of the vault. Each account has a quota of rows and bytes; above it, the oldest rows of the
// account are deleted. Where all accounts together have too many bytes, the oldest rows of the largest account are
// deleted. The usage of an account is kept in memory after it was summed up once, so that a write need not count rows.
// On PostgreSQL, where several processes write, triggers keep it in the table kept_share, and nothing is kept in memory
// from one operation to the next.

import type { Steps } from '../engine/steps.ts'
import { query } from '../engine/steps.ts'
import type { VaultId } from './vault-types.ts'

export interface VaultQuota {
  readonly rowsMax: number
  readonly bytesMax: number
  /** The most bytes of all accounts together; not limited if absent. */
  readonly allBytesMax?: number | undefined
  /** The bytes of all accounts are compared only when expired rows are deleted, because a write would sum them up. */
  readonly isAllSwept?: boolean
}

interface Usage {
  rows: number
  bytes: number
}

/** Few, because a row may have megabytes and settles wait while rows are deleted. */
const ROWS_PER_SWEEP = 32
/** The most accounts whose usage is in memory. Beyond this the memory is cleared and usage is summed up again. */
const ACCOUNTS_IN_MEMORY_MAX = 10_000

type KeptTable = 'kept_response' | 'kept_reasoning' | 'kept_file' | 'kept_reference'

function queriesOf(table: KeptTable) {
  const inTable = (sql: string): string => sql.replaceAll('kept_table', table)
  return {
    sum: query<{ rows: bigint; bytes: bigint }>({
      sqlite: inTable(
        'SELECT count(*) AS rows, coalesce(sum(bytes), 0) AS bytes FROM kept_table WHERE account_id = ?1',
      ),
      postgres: inTable(`SELECT rows, bytes FROM kept_share WHERE kind = 'kept_table' AND account_id = ?1`),
    }),
    sumAll: query<{ account_id: bigint; rows: bigint; bytes: bigint }>({
      sqlite: inTable('SELECT account_id, count(*) AS rows, sum(bytes) AS bytes FROM kept_table GROUP BY account_id'),
      postgres: inTable(`SELECT account_id, rows, bytes FROM kept_share WHERE kind = 'kept_table' AND rows > 0`),
    }),
    deleteRow: query<{ bytes: bigint }>(
      inTable('DELETE FROM kept_table WHERE account_id = ?1 AND id = ?2 RETURNING bytes'),
    ),
    deleteOldestRow: query<{ bytes: bigint }>(
      inTable(
        `DELETE FROM kept_table WHERE seq =
           (SELECT seq FROM kept_table WHERE account_id = ?1 ORDER BY seq LIMIT 1) RETURNING bytes`,
      ),
    ),
    deleteExpired: query<{ account_id: bigint; bytes: bigint }>(
      inTable(
        `DELETE FROM kept_table WHERE seq IN
           (SELECT seq FROM kept_table WHERE expires_ms <= ?1 ORDER BY expires_ms, seq LIMIT ?2)
         RETURNING account_id, bytes`,
      ),
    ),
  }
}

const queries = {
  kept_response: queriesOf('kept_response'),
  kept_reasoning: queriesOf('kept_reasoning'),
  kept_file: queriesOf('kept_file'),
  kept_reference: queriesOf('kept_reference'),
}

export class VaultTable {
  readonly #queries
  readonly #bounds: VaultQuota
  readonly #usage = new Map<number, Usage>()
  /** The bytes of all accounts; the usage of every account is in memory then. Undefined: not summed up. */
  #allBytes: number | undefined

  constructor(table: KeptTable, bounds: VaultQuota) {
    this.#queries = queries[table]
    this.#bounds = bounds
  }

  /** Deletes a row. Returns whether it existed. */
  *drop({ accountId, id }: VaultId): Steps<boolean> {
    const row = yield* this.#queries.deleteRow.get(accountId, id)
    if (row === undefined) return false
    this.#subtract(accountId, Number(row.bytes))
    return true
  }

  /** Must be called after a row was inserted: counts it and deletes old rows above the quota. */
  *addRow(accountId: number, bytes: number): Steps<void> {
    if (this.#mustSumUpAll && !this.#bounds.isAllSwept) yield* this.#sumUpAll()
    else yield* this.#addRow(accountId, bytes)
    const usage = this.#usage.get(accountId)!
    while (usage.rows > this.#bounds.rowsMax || usage.bytes > this.#bounds.bytesMax) {
      if (!(yield* this.#deleteOldest(accountId))) break
    }
    yield* this.#makeRoom()
  }

  *#addRow(accountId: number, bytes: number): Steps<void> {
    const usage = this.#usage.get(accountId)
    if (this.#allBytes !== undefined) this.#allBytes += bytes
    if (usage !== undefined) {
      usage.rows++
      usage.bytes += bytes
    } else if (this.#allBytes !== undefined) this.#usage.set(accountId, { rows: 1, bytes })
    else yield* this.#sumUp(accountId)
  }

  /** Deletes some rows above the total limit, because a lowered limit may leave far too many. Returns how many. */
  *#makeRoom(): Steps<number> {
    const { allBytesMax = Number.POSITIVE_INFINITY } = this.#bounds
    let count = 0
    while (this.#allBytes !== undefined && this.#allBytes > allBytesMax && count < ROWS_PER_SWEEP) {
      if (!(yield* this.#deleteOldest(this.#largestAccount()))) break
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
  *#deleteOldest(accountId: number): Steps<boolean> {
    const row = yield* this.#queries.deleteOldestRow.get(accountId)
    if (row !== undefined) this.#subtract(accountId, Number(row.bytes))
    return row !== undefined
  }

  /** Must be called after the size of a row has changed. */
  resizeRow(accountId: number, by: number): void {
    const usage = this.#usage.get(accountId)
    if (usage !== undefined) usage.bytes += by
    if (this.#allBytes !== undefined) this.#allBytes += by
  }

  /** Deletes some rows that have expired or are above the total limit. Returns how many. */
  *deleteExpired(nowMs: number): Steps<number> {
    const rows = yield* this.#queries.deleteExpired.all(nowMs, ROWS_PER_SWEEP)
    for (const row of rows) this.#subtract(Number(row.account_id), Number(row.bytes))
    if (this.#mustSumUpAll) yield* this.#sumUpAll()
    return rows.length + (yield* this.#makeRoom())
  }

  /** Forgets the usage in memory, because a rolled-back transaction may have changed it. */
  reset(): void {
    this.#usage.clear()
    this.#allBytes = undefined
  }

  *#sumUp(accountId: number): Steps<void> {
    const row = (yield* this.#queries.sum.get(accountId))!
    if (this.#usage.size >= ACCOUNTS_IN_MEMORY_MAX) this.#usage.clear()
    this.#usage.set(accountId, { rows: Number(row.rows), bytes: Number(row.bytes) })
  }

  get #mustSumUpAll(): boolean {
    return this.#bounds.allBytesMax !== undefined && this.#allBytes === undefined
  }

  *#sumUpAll(): Steps<void> {
    this.#usage.clear()
    this.#allBytes = 0
    for (const row of yield* this.#queries.sumAll.all()) {
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
