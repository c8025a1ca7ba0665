// The audit of a ledger in PostgreSQL.
//
// Transactions of several writers are not committed in the order of any number. But all transactions before the oldest
// one that runs are over: transfers of those are read once. Transfers of later transactions that the snapshot sees are
// added only for the comparison with its balances, and are read again by the next pass.
//
// A database that was restored from a dump has the numbers of transactions of another server, which may be higher than any
// of this one. No transaction that runs can have made those transfers, so they are read once, too.

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
  /** No transaction has had this number yet, nor a later one. */
  readonly next: bigint
  readonly last_seq: bigint
  /** The number of transfers that were made. */
  readonly made: bigint
}

const readState = postgresQuery<LedgerState>(
  `SELECT CAST(CAST(pg_snapshot_xmin(pg_current_snapshot()) AS TEXT) AS BIGINT) AS oldest,
     CAST(CAST(pg_snapshot_xmax(pg_current_snapshot()) AS TEXT) AS BIGINT) AS next,
     coalesce((SELECT max(seq) FROM transfer), 0) AS last_seq,
     CAST(coalesce((SELECT sum(transfers) FROM transfer_count), 0) AS BIGINT) AS made`,
)
const findRestored = postgresQuery<{ last: bigint | null }>('SELECT max(seq) AS last FROM transfer WHERE xid >= $1')
const findSliceEnd = postgresQuery<{ xid: bigint; seq: bigint }>(
  `SELECT xid, seq FROM transfer WHERE (xid, seq) > ($1, $2) AND (xid, seq) <= ($3, $4) AND seq > $5 AND seq <= $6
   ORDER BY xid, seq LIMIT 1 OFFSET $7`,
)

type Place = readonly [xid: bigint, seq: bigint]

const FIRST: Place = [0n, 0n]
const END: Place = [LAST_NUMBER, LAST_NUMBER]
const lastBefore = (xid: bigint): Place => [xid - 1n, LAST_NUMBER]
const isBefore = ([xid, seq]: Place, other: Place): boolean => xid < other[0] || (xid === other[0] && seq < other[1])

/** A part of the transfers in which a slice may be: up to a place, and with numbers above `from` up to `to`. */
interface Part {
  readonly end: Place
  readonly seqs: readonly [from: bigint, to: bigint]
}

const ALL_SEQS = [-1n, LAST_NUMBER] as const

/**
 * The transfers that were restored from another server, and whose transactions had numbers that this server had not
 * reached when the cursor began. All of them were there then. Later transactions of this server get the same numbers, but
 * their transfers have higher ones, because a restored sequence continues where it was.
 */
interface Restored {
  /** Those of earlier transactions are read with the transfers of this server. */
  readonly after: Place
  readonly lastSeq: bigint
}

class XidCursor implements TransferCursor {
  readonly #sliceRows: number
  #place: Place = FIRST
  #state: LedgerState = { oldest: 0n, next: 0n, last_seq: 0n, made: 0n }
  #restored: Restored | undefined
  /** Up to where the restored transfers were read. */
  #restoredPlace = END

  constructor(sliceRows: number) {
    this.#sliceRows = sliceRows
  }

  *next(): ReturnType<TransferCursor['next']> {
    const before = this.#state
    this.#state = (yield* readState.get())!
    const { oldest, last_seq: lastSeq, made } = this.#state
    // For example, a standby that had not received everything has taken over.
    if (oldest < before.oldest || lastSeq < before.last_seq || made < before.made) return 'isLost'
    if (before.next === 0n) yield* this.#beginRestored(this.#state.next)
    if (isBefore(this.#restoredPlace, END)) return yield* this.#nextRestored()
    const from = this.#place
    const part = this.#partAfter(from)
    const settled = lastBefore(oldest)
    const end = isBefore(part.end, settled) ? part.end : settled
    const sliceEnd = yield* this.#sliceEnd(from, { ...part, end })
    this.#place = sliceEnd ?? end
    return { range: [...from, ...this.#place, ...part.seqs], isLast: sliceEnd === undefined && end === settled }
  }

  *unsettled(): Steps<readonly TransferRange[]> {
    const ranges: TransferRange[] = []
    let from = this.#place
    while (isBefore(from, END)) {
      const part = this.#partAfter(from)
      const end = (yield* this.#sliceEnd(from, part)) ?? part.end
      ranges.push([...from, ...end, ...part.seqs])
      from = end
    }
    return ranges
  }

  missing(count: bigint): bigint {
    return this.#state.made - count
  }

  *#beginRestored(next: bigint): Steps<void> {
    const { last } = (yield* findRestored.get(next))!
    if (last === null) return
    this.#restored = { after: lastBefore(next), lastSeq: last }
    this.#restoredPlace = this.#restored.after
  }

  *#nextRestored(): Steps<{ readonly range: TransferRange; readonly isLast: boolean }> {
    const from = this.#restoredPlace
    const seqs = [ALL_SEQS[0], this.#restored!.lastSeq] as const
    this.#restoredPlace = (yield* this.#sliceEnd(from, { end: END, seqs })) ?? END
    return { range: [...from, ...this.#restoredPlace, ...seqs], isLast: false }
  }

  /** The part after a place, without the restored transfers, which are read for themselves. */
  #partAfter(place: Place): Part {
    if (this.#restored === undefined) return { end: END, seqs: ALL_SEQS }
    const { after, lastSeq } = this.#restored
    return isBefore(place, after) ? { end: after, seqs: ALL_SEQS } : { end: END, seqs: [lastSeq, LAST_NUMBER] }
  }

  /** The last transfer of a full slice, or undefined if there are fewer. */
  *#sliceEnd(from: Place, { end, seqs }: Part): Steps<Place | undefined> {
    const row = yield* findSliceEnd.get(...from, ...end, ...seqs, this.#sliceRows - 1)
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
