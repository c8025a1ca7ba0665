// Audits the ledger: every balance must be the sum of its transfers, held money must be the sum of the open holds,
// every charge must have its record and every record its charge. It only reads, and reports what does not agree.
//
// The first pass reads everything. Each later pass reads only new rows (`seq` grows in the order of commits) and
// compares the sums with the balances of the same snapshot, so that ten million old rows cost nothing. A snapshot keeps
// SQLite from checkpointing the WAL file, so it is never held for longer than one slice takes.

import { Database } from 'bun:sqlite'
import { idAtMs } from '../../base/ids.ts'
import { openReader } from '../engine/database.ts'
import { schemaFindings } from '../engine/schema-check.ts'
import { AuditBalances } from './balances.ts'
import type { AuditFinding, AuditReport } from './findings.ts'
import { createFinding } from './findings.ts'
import { AuditSuspects } from './suspects.ts'

export interface AuditOptions {
  readonly path: string
  /** How long a call may take from its id to its hold. Younger records are left to a later pass; 0: none are. */
  readonly lagMs: number
  /** Rest after each slice for as long as it took, so that calls are not slowed down. */
  readonly rests: boolean
  /** Also run SQLite's integrity check without a break: for a copy that nobody writes to. */
  readonly deep: boolean
}

const SLICE_ROWS = 50_000

interface SliceSum {
  readonly debit: bigint
  readonly credit: bigint
  readonly high: bigint
  readonly low: bigint
  readonly n: bigint
}

export class LedgerAudit {
  readonly #db: Database
  readonly #options: AuditOptions
  readonly #dataVersion
  readonly #sliceEnd
  readonly #sliceSums
  readonly #findWrongParties
  readonly #recordsEnd
  readonly #findNewer
  readonly #codesEnd
  #balances: AuditBalances
  readonly #suspects: AuditSuspects
  #seq = 0n
  #record = 0n
  #missingTransfers = 0n
  #rowsRead = { transfers: 0, records: 0 }
  #lastPass: { readonly version: bigint; readonly report: AuditReport } | undefined

  constructor(options: AuditOptions) {
    this.#options = options
    this.#db = openReader(options.path)
    const db = this.#db
    this.#dataVersion = db.query('PRAGMA data_version')
    this.#sliceEnd = db.query('SELECT coalesce(max(seq), 0) AS last FROM transfer')
    // In two halves, because a sum of amounts may not fit into 64 bits.
    this.#sliceSums = db.query(
      `SELECT debit, credit, sum(amount >> 32) AS high, sum(amount & 4294967295) AS low, count(*) AS n
       FROM transfer WHERE seq > ?1 AND seq <= ?2 GROUP BY debit, credit`,
    )
    this.#findWrongParties = db.query(
      `SELECT seq, kind, debit, credit FROM transfer WHERE seq > ?1 AND seq <= ?2 AND NOT CASE kind
         WHEN 'charge' THEN debit > 4 AND credit = 1
         WHEN 'shortfall' THEN debit = 3 AND credit = 1
         WHEN 'refund' THEN debit = 1 AND credit > 4
         WHEN 'adjustment' THEN (debit = 1 AND credit > 4) OR (debit > 4 AND credit = 1)
         WHEN 'gift' THEN debit = 2 AND credit > 4
         WHEN 'redemption' THEN debit = 2 AND credit > 4
         ELSE debit = 4 AND credit > 4 END`,
    )
    this.#recordsEnd = db.query(
      `SELECT max(call_id) AS last, count(*) AS n FROM
         (SELECT call_id FROM record WHERE call_id > ?1 AND call_id <= ?2 ORDER BY call_id LIMIT ?3)`,
    )
    this.#findNewer = db.query('SELECT 1 FROM record WHERE call_id > ?1 LIMIT 1')
    this.#codesEnd = db.query('SELECT max(id) AS last FROM (SELECT id FROM code WHERE id > ?1 ORDER BY id LIMIT ?2)')
    this.#balances = new AuditBalances(db)
    this.#suspects = new AuditSuspects(db)
  }

  /** Runs one pass: reads all new rows, and compares every balance. */
  async pass(): Promise<AuditReport> {
    const startMs = performance.now()
    const { data_version: version } = this.#dataVersion.get() as { data_version: bigint }
    if (this.#lastPass?.version === version && this.#suspects.isEmpty && this.#findNewer.get(this.#record) === null) {
      return { ...this.#lastPass.report, atMs: Date.now(), tookMs: 0 }
    }
    const findings: AuditFinding[] = [...schemaFindings(this.#db), ...(this.#options.deep ? this.#fileFindings() : [])]
    // Without intact indexes these checks are skipped: each look-up would read a whole table.
    const hasIndexes = findings.length === 0
    if (hasIndexes) await this.#readRecords()
    findings.push(...(await this.#readTransfers(hasIndexes)))
    if (hasIndexes) await this.#readCodes()
    if (hasIndexes) findings.push(...this.#inSnapshot(() => this.#suspects.findings()))
    if (this.#missingTransfers > 0n) {
      const text = `${this.#missingTransfers} transfers are missing: their numbers have gaps`
      findings.push(createFinding({ check: 'transfers', key: String(this.#missingTransfers), text }))
    }
    const { accounts, holds } = this.#balances.counts
    const report = { ...this.#rowsRead, accounts, holds, findings, tookMs: performance.now() - startMs }
    this.#lastPass = { version, report: { ...report, atMs: Date.now() } }
    return this.#lastPass.report
  }

  close(): void {
    this.#db.close()
  }

  #horizon(): bigint {
    const { lagMs } = this.#options
    return lagMs === 0 ? BigInt(Number.MAX_SAFE_INTEGER) : BigInt(idAtMs(Date.now() - lagMs))
  }

  #inSnapshot<T>(read: () => T): T {
    return this.#db.transaction(read).deferred()
  }

  /** Runs one slice after the other until one returns a result. */
  async #slices<T>(read: () => T | undefined): Promise<T> {
    while (true) {
      const startMs = performance.now()
      const result = this.#inSnapshot(read)
      if (result !== undefined) return result
      await Bun.sleep(this.#options.rests ? performance.now() - startMs : 0)
    }
  }

  /** The last slice is compared with the balances of its own snapshot. */
  #readTransfers(hasIndexes: boolean): Promise<readonly AuditFinding[]> {
    const findings: AuditFinding[] = []
    return this.#slices(() => {
      const { last } = this.#sliceEnd.get() as { last: bigint }
      if (last < this.#seq) this.#startOver()
      const from = this.#seq
      const to = last - from > SLICE_ROWS ? from + BigInt(SLICE_ROWS) : last
      if (to > from) findings.push(...this.#readSlice(from, to, hasIndexes))
      if (to < last) return undefined
      return [...findings, ...this.#balances.compare()]
    })
  }

  #readSlice(from: bigint, to: bigint, hasIndexes: boolean): readonly AuditFinding[] {
    let count = 0n
    for (const row of this.#sliceSums.all(from, to) as SliceSum[]) {
      this.#balances.move(row, (row.high << 32n) + row.low)
      count += row.n
    }
    // Transfers are numbered without gaps and are never deleted.
    this.#missingTransfers += to - from - count
    this.#seq = to
    this.#rowsRead.transfers += Number(count)
    if (hasIndexes) this.#suspects.checkTransfers(from, to)
    const rows = this.#findWrongParties.all(from, to) as { seq: bigint; kind: string; debit: bigint; credit: bigint }[]
    return rows.map(({ seq, kind, debit, credit }) => {
      const owner = debit > 4n ? debit : credit
      const text = `transfer ${seq} (${kind}) goes from account ${debit} to account ${credit}`
      return createFinding({ check: 'parties', owner, key: String(seq), text })
    })
  }

  /** Discards all sums, because the newest transfers have disappeared and the sums cannot be trusted. */
  #startOver(): void {
    this.#seq = 0n
    this.#missingTransfers = 0n
    this.#rowsRead.transfers = 0
    this.#balances = new AuditBalances(this.#db)
  }

  async #readRecords(): Promise<void> {
    const horizon = this.#horizon()
    this.#inSnapshot(() => this.#suspects.checkHolds())
    await this.#slices(() => {
      const row = this.#recordsEnd.get(this.#record, horizon, SLICE_ROWS) as { last: bigint | null; n: bigint }
      if (row.last !== null) {
        this.#suspects.checkRecords(this.#record, row.last)
        this.#rowsRead.records += Number(row.n)
        this.#record = row.last
      }
      if (row.n === BigInt(SLICE_ROWS)) return undefined
      // A call before the horizon without a record was an open hold above, and is watched until the hold is closed.
      if (this.#options.lagMs > 0 && horizon > this.#record) this.#record = horizon
      return true
    })
  }

  async #readCodes(): Promise<void> {
    let from = 0n
    await this.#slices(() => {
      const { last } = this.#codesEnd.get(from, SLICE_ROWS) as { last: bigint | null }
      if (last === null) return true
      this.#suspects.checkCodes(from, last)
      from = last
      return undefined
    })
  }

  #fileFindings(): readonly AuditFinding[] {
    // Not on our own connection, because on a read-only one SQLite does not verify CHECK constraints.
    const db = new Database(this.#options.path, { readwrite: true })
    try {
      const rows = db.query('PRAGMA integrity_check(10)').values() as [string][]
      return rows.flatMap(([text]) => (text === 'ok' ? [] : [createFinding({ check: 'file', key: text, text })]))
    } finally {
      db.close()
    }
  }
}
