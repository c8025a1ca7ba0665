// The audit of a ledger in PostgreSQL.
//
// Transactions of several writers are not committed in the order of any number. But all transactions before the oldest
// one that runs are over: transfers of those are read once. Transfers of later transactions that the snapshot sees are
// added only for the comparison with its balances, and are read again by the next pass.

import type { Steps } from '../engine/steps.ts'
import { postgresQuery } from '../engine/steps.ts'
import type { LedgerAuditSource } from '../engine/store-engine.ts'
import type { AuditDatabase, TransferCursor, TransferRange } from '../ledger-audit/audit-database.ts'
import type { AuditReport } from '../ledger-audit/findings.ts'
import type { AuditPassOptions } from '../ledger-audit/passes.ts'
import { AuditPasses } from '../ledger-audit/passes.ts'
import type { PostgresPool } from './pools.ts'
import { postgresSchemaFindings } from './schema-check.ts'

/** Far less than a statement may take, also on a slow disk. */
const SLICE_ROWS = 10_000
const LAST_NUMBER = 2n ** 63n - 1n

interface LedgerState {
  /** The oldest transaction that runs. */
  readonly oldest: bigint
  readonly last_seq: bigint
  /** The number of transfers that were made. */
  readonly made: bigint
}

const readState = postgresQuery<LedgerState>(
  `SELECT CAST(CAST(pg_snapshot_xmin(pg_current_snapshot()) AS TEXT) AS BIGINT) AS oldest,
     coalesce((SELECT max(seq) FROM transfer), 0) AS last_seq,
     CAST(coalesce((SELECT sum(transfers) FROM transfer_count), 0) AS BIGINT) AS made`,
)
const findSliceEnd = postgresQuery<{ xid: bigint; seq: bigint }>(
  `SELECT xid, seq FROM transfer WHERE (xid, seq) > ($1, $2) AND xid < $3 ORDER BY xid, seq LIMIT 1 OFFSET $4`,
)

type Place = readonly [xid: bigint, seq: bigint]

class XidCursor implements TransferCursor {
  readonly #sliceRows: number
  #place: Place = [0n, 0n]
  #state: LedgerState = { oldest: 0n, last_seq: 0n, made: 0n }

  constructor(sliceRows: number) {
    this.#sliceRows = sliceRows
  }

  *next(): ReturnType<TransferCursor['next']> {
    const before = this.#state
    this.#state = (yield* readState.get())!
    const { oldest, last_seq: lastSeq, made } = this.#state
    // For example, a standby that had not received everything has taken over.
    if (oldest < before.oldest || lastSeq < before.last_seq || made < before.made) return 'isLost'
    const from = this.#place
    const end = yield* this.#sliceEnd(from, oldest)
    this.#place = end ?? [oldest - 1n, LAST_NUMBER]
    return { range: [...from, ...this.#place], isLast: end === undefined }
  }

  *unsettled(): Steps<readonly TransferRange[]> {
    const ranges: TransferRange[] = []
    let from = this.#place
    for (;;) {
      const end = yield* this.#sliceEnd(from, LAST_NUMBER)
      ranges.push([...from, ...(end ?? [LAST_NUMBER, LAST_NUMBER])])
      if (end === undefined) return ranges
      from = end
    }
  }

  missing(count: bigint): bigint {
    return this.#state.made - count
  }

  /** The last transfer of a full slice, or undefined if there are fewer. */
  *#sliceEnd(from: Place, beforeXid: bigint): Steps<Place | undefined> {
    const row = yield* findSliceEnd.get(...from, beforeXid, this.#sliceRows - 1)
    return row && [row.xid, row.seq]
  }
}

/** Passes that start with the first row of the ledger. `sliceRows` is changed only by tests. */
export function buildPostgresPasses(
  { read }: Pick<AuditDatabase, 'read'>,
  options: AuditPassOptions,
  sliceRows: number = SLICE_ROWS,
): AuditPasses {
  const database: AuditDatabase = {
    sliceRows,
    hasDeletedRecords: true,
    hasDailyHashes: true,
    read,
    dataVersion: () => undefined,
    structureFindings: () => read(postgresSchemaFindings()),
    buildCursor: () => new XidCursor(sliceRows),
  }
  return new AuditPasses(database, { ...options, servesCalls: true })
}

export class PostgresAudit implements LedgerAuditSource {
  readonly #pool: PostgresPool
  readonly #lagMs: number
  #passes: AuditPasses | undefined
  #running: Promise<AuditReport> | undefined
  #isClosed = false

  /** The pool is closed by whoever has opened it. `lagMs`: the longest time between the id of a call and its hold. */
  constructor(pool: PostgresPool, lagMs: number) {
    this.#pool = pool
    this.#lagMs = lagMs
  }

  /** A call during a pass gets the report of the running pass. */
  pass(): Promise<AuditReport> {
    this.#running ??= this.#pass().finally(() => (this.#running = undefined))
    return this.#running
  }

  auditAll(): Promise<AuditReport> {
    return this.#buildPasses({ lagMs: 0, rests: false }).pass()
  }

  /** A running pass is aborted. */
  async close(): Promise<void> {
    this.#isClosed = true
    await this.#running?.catch(() => {})
  }

  async #pass(): Promise<AuditReport> {
    this.#passes ??= this.#buildPasses({ lagMs: this.#lagMs, rests: true })
    try {
      return await this.#passes.pass()
    } catch (fault) {
      this.#passes = undefined // the sums in memory may be incomplete
      throw fault
    }
  }

  #buildPasses(options: AuditPassOptions): AuditPasses {
    const read = <T>(steps: Steps<T>): Promise<T> =>
      this.#isClosed ? Promise.reject(new Error('the audit was aborted')) : this.#pool.read(steps)
    return buildPostgresPasses({ read }, options)
  }
}
