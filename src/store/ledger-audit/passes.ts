// Audits the ledger: every balance must be the sum of its transfers, held money must be the sum of the open holds,
// every charge must have its record and every record its charge. It only reads, and reports what does not agree.
//
// The first pass reads everything. Each later pass reads only new rows and compares the sums with the balances of the
// same snapshot, so that ten million old rows cost nothing. A snapshot keeps SQLite from checkpointing the WAL file, and
// PostgreSQL from removing dead rows, so it is never held for longer than one slice takes.

import { hintOf } from '../../base/hints.ts'
import { idAtMs } from '../../base/ids.ts'
import type { Steps } from '../engine/steps.ts'
import { query } from '../engine/steps.ts'
import type { AuditDatabase, TransferCursor, TransferRange } from './audit-database.ts'
import { inSlice } from './audit-database.ts'
import { AuditBalances } from './balances.ts'
import { AuditDays, NO_LIMITS } from './days.ts'
import type { AuditFinding, AuditReport } from './findings.ts'
import { createFinding } from './findings.ts'
import { AuditSuspects } from './suspects.ts'

export interface AuditPassOptions {
  /** How long a call may take from its id to its hold. Younger records are left to a later pass; 0: none are. */
  readonly lagMs: number
  /** Rest after each slice for as long as it took, so that calls are not slowed down. */
  readonly rests: boolean
  /** The thread that runs the passes serves calls, too: then it also rests in an audit at full speed, where it computes. */
  readonly servesCalls?: boolean
}

interface SliceSum {
  readonly debit: bigint
  readonly credit: bigint
  readonly high: bigint
  readonly low: bigint
  readonly n: bigint
}

interface WrongParties {
  readonly seq: bigint
  readonly kind: string
  readonly debit: bigint
  readonly credit: bigint
}

// In two halves, because a sum of amounts may not fit into 64 bits.
const sliceSums = query<SliceSum>(
  inSlice(
    slice => `SELECT t.debit, t.credit, CAST(sum(t.amount >> 32) AS BIGINT) AS high,
      CAST(sum(t.amount & 4294967295) AS BIGINT) AS low, CAST(count(*) AS BIGINT) AS n
    FROM transfer t WHERE ${slice} GROUP BY t.debit, t.credit`,
  ),
)
const findWrongParties = query<WrongParties>(
  inSlice(
    slice => `SELECT t.seq, t.kind, t.debit, t.credit FROM transfer t WHERE ${slice} AND NOT CASE t.kind
      WHEN 'charge' THEN t.debit > 4 AND t.credit = 1
      WHEN 'shortfall' THEN t.debit = 3 AND t.credit = 1
      WHEN 'refund' THEN t.debit = 1 AND t.credit > 4
      WHEN 'adjustment' THEN (t.debit = 1 AND t.credit > 4) OR (t.debit > 4 AND t.credit = 1)
      WHEN 'gift' THEN t.debit = 2 AND t.credit > 4
      WHEN 'redemption' THEN t.debit = 2 AND t.credit > 4
      ELSE t.debit = 4 AND t.credit > 4 END`,
  ),
)
const recordsEnd = query<{ last: bigint | null; n: bigint }>(
  `SELECT max(s.call_id) AS last, CAST(count(*) AS BIGINT) AS n FROM
     (SELECT call_id FROM record WHERE call_id > ?1 AND call_id <= ?2 ORDER BY call_id LIMIT ?3) s`,
)
const findNewer = query('SELECT 1 FROM record WHERE call_id > ?1 LIMIT 1')
const codesEnd = query<{ last: bigint | null }>(
  'SELECT max(s.id) AS last FROM (SELECT id FROM code WHERE id > ?1 ORDER BY id LIMIT ?2) s',
)

/** Each suspect needs some look-ups. */
const SUSPECTS_AT_ONCE = 500

/**
 * What a regular pass compares of the closed days. With few transfers a day, the rows of many accounts take long, and the
 * report of the pass must not: it says that the ledger was audited.
 */
const DAYS_PER_PASS = { transfersMax: 200_000, msMax: 20_000 }

export class AuditPasses {
  readonly #db: AuditDatabase
  readonly #options: AuditPassOptions
  readonly #suspects: AuditSuspects
  readonly #days: AuditDays
  #cursor: TransferCursor
  #balances = new AuditBalances()
  #record = 0n
  #rowsRead = { transfers: 0n, records: 0 }
  #lastPass: { readonly version: bigint; readonly report: AuditReport } | undefined

  constructor(db: AuditDatabase, options: AuditPassOptions) {
    this.#db = db
    this.#options = options
    this.#suspects = new AuditSuspects(db.hasDeletedRecords)
    const restsInDays = options.rests || options.servesCalls === true
    this.#days = new AuditDays({
      read: steps => db.read(steps),
      rest: tookMs => Bun.sleep(restsInDays ? tookMs : 0),
    })
    this.#cursor = db.buildCursor()
  }

  /** Runs one pass: reads all new rows, and compares every balance. */
  async pass(): Promise<AuditReport> {
    const startMs = performance.now()
    const version = this.#db.dataVersion()
    if (version !== undefined && this.#lastPass?.version === version && this.#isSettled) {
      const hasNewer = (await this.#db.read(findNewer.get(this.#record))) !== undefined
      if (!hasNewer) return { ...this.#lastPass.report, atMs: Date.now(), tookMs: 0 }
    }
    const findings: AuditFinding[] = [...(await this.#db.structureFindings())]
    // Without intact indexes these checks are skipped: each look-up would read a whole table.
    const hasIndexes = findings.length === 0
    if (hasIndexes) await this.#readRecords()
    const { findings: ofTransfers, transfers } = await this.#readTransfers(hasIndexes)
    findings.push(...ofTransfers)
    if (hasIndexes) await this.#readCodes()
    if (hasIndexes) findings.push(...(await this.#checkSuspects()))
    if (hasIndexes && this.#db.hasDailyHashes) findings.push(...(await this.#checkDays()))
    const { accounts, holds } = this.#balances.counts
    const records = hasIndexes ? this.#rowsRead.records : undefined
    const read = { transfers, records, accounts, holds }
    const report = { ...read, findings, tookMs: performance.now() - startMs, atMs: Date.now() }
    this.#lastPass = version === undefined ? undefined : { version, report }
    return report
  }

  /** Each transfer is read a second time. So a pass that must not slow down calls leaves much to the next ones. */
  #checkDays(): Promise<readonly AuditFinding[]> {
    return this.#days.check(this.#options.rests ? DAYS_PER_PASS : NO_LIMITS)
  }

  /** Whether only something new can change what a pass finds. */
  get #isSettled(): boolean {
    return this.#suspects.isEmpty && this.#days.isDone
  }

  #horizon(): bigint {
    const { lagMs } = this.#options
    return lagMs === 0 ? BigInt(Number.MAX_SAFE_INTEGER) : BigInt(idAtMs(Date.now() - lagMs))
  }

  /** Runs one slice after the other, each in its own snapshot, until one returns a result. */
  async #slices<T>(read: () => Steps<T | undefined>): Promise<T> {
    for (;;) {
      const startMs = performance.now()
      const result = await this.#db.read(read())
      if (result !== undefined) return result
      await Bun.sleep(this.#options.rests ? performance.now() - startMs : 0)
    }
  }

  async #readTransfers(hasIndexes: boolean): Promise<{ findings: readonly AuditFinding[]; transfers: number }> {
    const findings: AuditFinding[] = []
    const { compared, count } = await this.#slices(() => this.#nextSlice(hasIndexes, findings))
    return { findings: [...findings, ...compared], transfers: Number(count) }
  }

  /** The last slice is compared with the balances of its own snapshot. */
  *#nextSlice(
    hasIndexes: boolean,
    findings: AuditFinding[],
  ): Steps<{ compared: readonly AuditFinding[]; count: bigint } | undefined> {
    const slice = yield* this.#cursor.next()
    if (slice === 'isLost') {
      this.#startOver()
      return undefined
    }
    this.#rowsRead.transfers += yield* this.#addSums(slice.range)
    if (hasIndexes) yield* this.#suspects.checkTransfers(slice.range)
    findings.push(...(yield* wrongParties(slice.range)))
    return slice.isLast ? yield* this.#compare() : undefined
  }

  *#compare(): Steps<{ compared: readonly AuditFinding[]; count: bigint }> {
    const unsettled = this.#cursor.unsettled === undefined ? [] : yield* this.#cursor.unsettled()
    let count = this.#rowsRead.transfers
    for (const range of unsettled) count += yield* this.#addSums(range)
    const compared = [...(yield* this.#balances.compare()), ...missingFindings(this.#cursor.missing(count))]
    // A later pass adds them again.
    for (const range of unsettled) yield* this.#addSums(range, -1n)
    return { compared, count }
  }

  /** Adds the sums of transfers to the balances, and returns the number of transfers. */
  *#addSums(range: TransferRange, sign = 1n): Steps<bigint> {
    let count = 0n
    for (const row of yield* sliceSums.all(...range)) {
      this.#balances.move(row, sign * ((row.high << 32n) + row.low))
      count += row.n
    }
    return count
  }

  /** Discards all sums, because the newest transfers have disappeared and the sums cannot be trusted. */
  #startOver(): void {
    this.#cursor = this.#db.buildCursor()
    this.#rowsRead.transfers = 0n
    this.#balances = new AuditBalances()
  }

  async #readRecords(): Promise<void> {
    const horizon = this.#horizon()
    const { sliceRows } = this.#db
    await this.#db.read(this.#suspects.checkHolds())
    await this.#slices(() => this.#nextRecords(horizon, sliceRows))
  }

  *#nextRecords(horizon: bigint, sliceRows: number): Steps<true | undefined> {
    const { last, n } = (yield* recordsEnd.get(this.#record, horizon, sliceRows))!
    if (last !== null) {
      yield* this.#suspects.checkRecords(this.#record, last)
      this.#rowsRead.records += Number(n)
      this.#record = last
    }
    if (Number(n) === sliceRows) return undefined
    // A call before the horizon without a record was an open hold above, and is watched until the hold is closed.
    if (this.#options.lagMs > 0 && horizon > this.#record) this.#record = horizon
    return true
  }

  async #readCodes(): Promise<void> {
    let from = 0n
    const { sliceRows } = this.#db
    const suspects = this.#suspects
    await this.#slices(function* nextCodes(): Steps<true | undefined> {
      const { last } = (yield* codesEnd.get(from, sliceRows))!
      if (last === null) return true
      yield* suspects.checkCodes(from, last)
      from = last
      return undefined
    })
  }

  async #checkSuspects(): Promise<readonly AuditFinding[]> {
    const findings: AuditFinding[] = []
    const ids = this.#suspects.list()
    for (let at = 0; at < ids.length; at += SUSPECTS_AT_ONCE)
      findings.push(...(await this.#db.read(this.#suspects.check(ids.slice(at, at + SUSPECTS_AT_ONCE)))))
    return findings
  }
}

function* wrongParties(range: TransferRange): Steps<readonly AuditFinding[]> {
  const rows = yield* findWrongParties.all(...range)
  return rows.map(({ seq, kind, debit, credit }) => {
    const owner = debit > 4n ? debit : credit
    const parties = { transfer: String(seq), kind, debit: String(debit), credit: String(credit) }
    return createFinding({ check: 'parties', owner, key: String(seq), hint: hintOf('found_parties', parties) })
  })
}

function missingFindings(missing: bigint): readonly AuditFinding[] {
  if (missing === 0n) return []
  const hint =
    missing > 0n
      ? hintOf('found_transfers_missing', { count: Number(missing) })
      : hintOf('found_transfers_more', { count: Number(-missing) })
  return [createFinding({ check: 'transfers', key: String(missing), hint })]
}
