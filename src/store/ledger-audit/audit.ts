// The audit of a ledger in a SQLite file.

import { Database } from 'bun:sqlite'
import { forOperator } from '../../base/hints.ts'
import { openReader } from '../engine/database.ts'
import { schemaFindings } from '../engine/schema-check.ts'
import { sqliteSnapshots } from '../engine/sqlite-steps.ts'
import { query } from '../engine/steps.ts'
import type { TransferCursor } from './audit-database.ts'
import type { AuditFinding, AuditReport } from './findings.ts'
import { createFinding } from './findings.ts'
import type { AuditPassOptions } from './passes.ts'
import { AuditPasses } from './passes.ts'

export interface AuditOptions extends AuditPassOptions {
  readonly path: string
  /** Also run SQLite's integrity check without a break: for a copy that nobody writes to. */
  readonly deep: boolean
}

const SLICE_ROWS = 50_000

const lastSeq = query<{ last: bigint }>('SELECT coalesce(max(seq), 0) AS last FROM transfer')

/** With one writer, `seq` grows in the order of commits. Transfers are numbered without gaps and are never deleted. */
class SeqCursor implements TransferCursor {
  #seq = 0n;

  *next(): ReturnType<TransferCursor['next']> {
    const { last } = (yield* lastSeq.get())!
    if (last < this.#seq) return 'isLost'
    const from = this.#seq
    this.#seq = last - from > SLICE_ROWS ? from + BigInt(SLICE_ROWS) : last
    return { range: [from, this.#seq], isLast: this.#seq === last }
  }

  missing(count: bigint): bigint {
    return this.#seq - count
  }
}

const hasTable = (db: Database, name: string): boolean =>
  db.query('SELECT 1 FROM sqlite_schema WHERE name = ?1').get(name) !== null

export class LedgerAudit {
  readonly #db: Database
  readonly #options: AuditOptions
  readonly #passes: AuditPasses

  constructor(options: AuditOptions) {
    this.#options = options
    this.#db = openReader(options.path)
    const db = this.#db
    const dataVersion = db.query<{ data_version: bigint }, []>('PRAGMA data_version')
    const database = {
      sliceRows: SLICE_ROWS,
      hasDeletedRecords: hasTable(db, 'deleted_record'),
      hasDailyHashes: hasTable(db, 'daily_hash'),
      read: sqliteSnapshots(db),
      dataVersion: () => dataVersion.get()!.data_version,
      structureFindings: () => [...schemaFindings(db), ...(options.deep ? this.#fileFindings() : [])],
      buildCursor: () => new SeqCursor(),
    }
    this.#passes = new AuditPasses(database, options)
  }

  pass(): Promise<AuditReport> {
    return this.#passes.pass()
  }

  close(): void {
    this.#db.close()
  }

  #fileFindings(): readonly AuditFinding[] {
    // Not on our own connection, because on a read-only one SQLite does not verify CHECK constraints.
    const db = new Database(this.#options.path, { readwrite: true })
    try {
      db.run('PRAGMA busy_timeout = 5000')
      const rows = db.query('PRAGMA integrity_check(10)').values() as [string][]
      return rows.flatMap(([text]) =>
        text === 'ok' ? [] : [createFinding({ check: 'file', key: text, hint: forOperator(text) })],
      )
    } finally {
      db.close()
    }
  }
}
