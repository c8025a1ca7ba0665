// Sums up records: it reads from the record log which records were written since the last step, and adds them to the
// statistics file. Each step is bounded and is written together with its progress, so that a crash neither repeats nor
// loses a record.
//
// Records from before the log, or from before the file was created, are scanned in slices from the newest on. A record
// that is logged meanwhile and lies in the range that is still to be scanned is noted as late, and the scan skips it.
// So that none is missed, a slice is scanned only in a snapshot whose log has been read to its end.

import type { Database } from 'bun:sqlite'
import { openReader } from '../engine/database.ts'
import type { RunSteps } from '../engine/sqlite-steps.ts'
import { sqliteSteps } from '../engine/sqlite-steps.ts'
import type { LoggedRecord } from './batch.ts'
import { StatisticsBatch, SUMMED_SQL } from './batch.ts'
import { RecordMoneyCalculator } from './record-money.ts'
import type { StatisticsMark } from './statistics-file.ts'
import { StatisticsFile } from './statistics-file.ts'

export interface AggregatorOptions {
  /** The path of the ledger's database. */
  readonly database: string
  readonly statistics: string
  dateMs(): number
  /** The most rows of the log that one step reads. */
  readonly rowsPerStep?: number
  /** A step scans up to this many times more old records, as long as they fall into few groups. */
  readonly olderFactor?: number
}

export interface AggregationStep {
  /** The number of records that this step has read. */
  readonly records: number
  /** All records have been read. */
  readonly upToDate: boolean
  readonly seq: number
  /** The share of the older records that has been scanned; 1: all of them. */
  readonly scanned: number
}

const ROWS_PER_STEP = 5_000
const OLDER_FACTOR = 40
const GROUPS_PER_STEP = 20_000

interface LogRow extends LoggedRecord {
  readonly seq: bigint
}

export class StatisticsAggregator {
  readonly #source: Database
  readonly #file: StatisticsFile
  readonly #money = new RecordMoneyCalculator()
  readonly #runSteps: RunSteps
  readonly #dateMs: () => number
  readonly #rowsMax: number
  readonly #olderRowsMax: number
  readonly #readLogRows
  readonly #readOlderRows
  readonly #readStart
  readonly #findLogRow
  #mark: StatisticsMark
  #late: Set<bigint>

  constructor({ database, statistics, dateMs, ...slices }: AggregatorOptions) {
    const { rowsPerStep = ROWS_PER_STEP, olderFactor = OLDER_FACTOR } = slices
    this.#rowsMax = rowsPerStep
    this.#olderRowsMax = olderFactor * rowsPerStep
    this.#dateMs = dateMs
    this.#source = openReader(database)
    const db = this.#source
    this.#readLogRows = db.query(
      'SELECT l.seq, l.call_id AS logged, '.concat(
        SUMMED_SQL,
        ` FROM record_log l LEFT JOIN record r ON r.call_id = abs(l.call_id)
           LEFT JOIN transfer t ON l.call_id < 0 AND t.ref = -l.call_id AND t.kind = 'refund'
         WHERE l.seq > ?1 ORDER BY l.seq LIMIT ?2`,
      ),
    )
    this.#readOlderRows = db.query(
      'SELECT 0 AS seq, r.call_id AS logged, '.concat(
        SUMMED_SQL,
        ` FROM record r LEFT JOIN transfer t ON t.ref = r.call_id AND t.kind = 'refund'
         WHERE r.call_id < ?1 ORDER BY r.call_id DESC LIMIT ?2`,
      ),
    )
    this.#readStart = db.query(
      `SELECT seq, call_id, (SELECT coalesce(max(call_id), 0) FROM record) AS last_id,
         (SELECT coalesce(min(call_id), 0) FROM record) AS first_id FROM record_log ORDER BY seq DESC LIMIT 1`,
    )
    this.#findLogRow = db.query('SELECT 1 FROM record_log WHERE seq = ?1 AND call_id = ?2')
    this.#runSteps = sqliteSteps(db)
    this.#file = new StatisticsFile(statistics)
    const mark = this.#file.mark()
    const isOfThisDatabase = mark !== undefined && this.#findLogRow.get(mark.seq, mark.callId) !== null
    this.#mark = isOfThisDatabase ? mark : this.#startOver()
    this.#late = this.#file.lateIds()
  }

  /** Runs one step: reads new records, and when all of them are read, scans older ones. */
  step(): AggregationStep {
    const batch = new StatisticsBatch(name => this.#file.numberOf(name), this.#money, this.#dateMs())
    const late: bigint[] = []
    const read = this.#source.transaction(() => {
      const { seq, callId, records, isWhole } = this.#readLog(batch, late)
      const scan = isWhole ? this.#readOlder(batch) : { scanBefore: this.#mark.scanBefore, records: 0 }
      const mark = { ...this.#mark, seq, callId, scanBefore: scan.scanBefore }
      return { mark, records: records + scan.records, isWhole }
    })
    const { mark, records, isWhole } = read.deferred()
    if (mark.seq !== this.#mark.seq || mark.scanBefore !== this.#mark.scanBefore) {
      this.#file.add({ ...batch.collectRows(), late, mark })
      this.#mark = mark
      if (mark.scanBefore === 0n) this.#late.clear()
    }
    const upToDate = isWhole && mark.scanBefore === 0n
    return { records, upToDate, seq: Number(mark.seq), scanned: scannedOf(mark) }
  }

  prune(): void {
    this.#file.prune(this.#dateMs())
  }

  eraseEndUser(endUser: string, accountId: number | undefined): void {
    this.#file.eraseEndUser(endUser, accountId)
  }

  close(): void {
    this.#source.close()
    this.#file.close()
  }

  #readLog(
    batch: StatisticsBatch,
    late: bigint[],
  ): Pick<StatisticsMark, 'seq' | 'callId'> & { records: number; isWhole: boolean } {
    const rows = this.#readLogRows.all(this.#mark.seq, this.#rowsMax) as LogRow[]
    this.#runSteps(this.#money.readPrices(rows))
    for (const row of rows) {
      const id = row.logged < 0n ? -row.logged : row.logged
      if (id < this.#mark.scanBefore) {
        late.push(row.logged)
        this.#late.add(row.logged)
      }
      batch.addLogged(row)
    }
    const last = rows.at(-1)
    const { seq, callId } = last === undefined ? this.#mark : { seq: last.seq, callId: last.logged }
    return { seq, callId, records: rows.length, isWhole: rows.length < this.#rowsMax }
  }

  /** Scans more records at once when they fall into few groups, because writing a group costs the same for many. */
  #readOlder(batch: StatisticsBatch): { scanBefore: bigint; records: number } {
    let { scanBefore } = this.#mark
    let records = 0
    while (scanBefore > 0n && batch.groupCount < GROUPS_PER_STEP && records < this.#olderRowsMax) {
      const rows = this.#readOlderRows.all(scanBefore, this.#rowsMax) as LogRow[]
      this.#runSteps(this.#money.readPrices(rows))
      for (const row of rows) {
        if (!this.#late.has(row.logged)) batch.addRecord(row)
        if (row.refunded !== null && !this.#late.has(-row.logged)) batch.addRefund(row, row.logged)
      }
      records += rows.length
      scanBefore = rows.length < this.#rowsMax ? 0n : rows.at(-1)!.call_id!
    }
    return { scanBefore, records }
  }

  #startOver(): StatisticsMark {
    const row = this.#readStart.get() as Record<string, bigint>
    const scanBefore = row.last_id! === 0n ? 0n : row.last_id! + 1n
    const mark = { seq: row.seq!, callId: row.call_id!, scanBefore, scanTop: scanBefore, scanBottom: row.first_id! }
    this.#file.startOver(mark)
    return mark
  }
}

function scannedOf({ scanBefore, scanTop, scanBottom }: StatisticsMark): number {
  return scanBefore === 0n ? 1 : Number(scanTop - scanBefore) / Math.max(1, Number(scanTop - scanBottom))
}
