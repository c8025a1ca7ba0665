// The statistics file: sums of records, and the progress of summing up. It can be rebuilt from the records that still
// exist. Sums and progress are written in one transaction.

import type { Database } from 'bun:sqlite'
import { renameSync, rmSync } from 'node:fs'
import { addEncodedHistogram, encodeHistogram } from '../../base/collections/latency-histogram.ts'
import { openWriter } from '../engine/database.ts'
import type { FigureShare, Figures } from './figures.ts'
import { endUserFigures, figureColumns, figureOf } from './figures.ts'
import type { Cut, Span } from './plan.ts'
import {
  cutNames,
  cuts,
  END_USERS_PER_SPAN_MAX,
  endUserKeepMs,
  expiredBefore,
  failureKeepMs,
  keepMs,
  spanNumber,
  spans,
} from './plan.ts'

/** The progress of summing up. */
export interface StatisticsMark {
  /** The last row of the log that is summed up. */
  readonly seq: bigint
  /** The call of that row. In another database the row has another call, so the sums do not belong to it. */
  readonly callId: bigint
  /** Older records with ids below this one are still to be scanned; 0: none. */
  readonly scanBefore: bigint
  /** The id at which the scan began, and the id of the oldest record. */
  readonly scanTop: bigint
  readonly scanBottom: bigint
}

/** The number of failed calls to add to one row. */
export interface FailureShare {
  readonly cut: Cut
  readonly span: Span
  readonly one: number
  readonly at: number
  readonly outcome: string
  readonly error: string
  readonly calls: number
}

export interface EndUserShare {
  readonly accountId: number
  readonly span: Span
  readonly at: number
  readonly endUser: string
  readonly figures: Figures
}

export interface StatisticsAddition {
  readonly shares: readonly FigureShare[]
  readonly failures: readonly FailureShare[]
  readonly endUsers: readonly EndUserShare[]
  /** Records that the scan must skip, because the log has counted them. */
  readonly late: readonly bigint[]
  readonly mark: StatisticsMark
}

const SCHEMA = 1

const integers = (names: readonly string[]): string => names.map(name => `${name} INTEGER NOT NULL`).join(', ')

const tables = [
  `CREATE TABLE mark (only INTEGER PRIMARY KEY CHECK (only = 0), seq INTEGER NOT NULL, call_id INTEGER NOT NULL,
     scan_before INTEGER NOT NULL, scan_top INTEGER NOT NULL, scan_bottom INTEGER NOT NULL) STRICT`,
  'CREATE TABLE late (id INTEGER PRIMARY KEY) STRICT',
  'CREATE TABLE name (id INTEGER PRIMARY KEY, text TEXT NOT NULL UNIQUE) STRICT',
  `CREATE TABLE figure (cut INTEGER NOT NULL, span INTEGER NOT NULL, one INTEGER NOT NULL, other INTEGER NOT NULL,
     at INTEGER NOT NULL, `.concat(
    integers(figureColumns),
    `, first_steps BLOB NOT NULL, took_steps BLOB NOT NULL, PRIMARY KEY (cut, span, one, other, at))
     STRICT, WITHOUT ROWID`,
  ),
  `CREATE TABLE failure (cut INTEGER NOT NULL, span INTEGER NOT NULL, one INTEGER NOT NULL, outcome TEXT NOT NULL,
     error TEXT NOT NULL, at INTEGER NOT NULL, calls INTEGER NOT NULL,
     PRIMARY KEY (cut, span, one, outcome, error, at)) STRICT, WITHOUT ROWID`,
  `CREATE TABLE end_user (account_id INTEGER NOT NULL, span INTEGER NOT NULL, at INTEGER NOT NULL, name TEXT NOT NULL,
     `.concat(integers(endUserFigures), ', PRIMARY KEY (account_id, span, at, name)) STRICT, WITHOUT ROWID'),
]

const tableNames = ['mark', 'late', 'name', 'figure', 'failure', 'end_user']

/** Opens the file, and replaces it where it is damaged or not ours. A full disk or a locked file is not damage. */
function openFile(path: string): Database {
  try {
    return openChecked(path)
  } catch (fault) {
    const { code = '' } = fault as { code?: string }
    if (!(isDamage(fault) || code === 'SQLITE_ERROR' || fault instanceof LaterVersionError)) throw fault
    renameDamaged(path)
    return openChecked(path)
  }
}

const isDamage = (fault: unknown): boolean => /^SQLITE_(NOTADB|CORRUPT)/.test((fault as { code?: string }).code ?? '')

/** Renames a damaged file, so that a new one can be created and the old one can be examined. */
function renameDamaged(path: string): void {
  for (const end of ['-wal', '-shm']) rmSync(path + end, { force: true })
  renameSync(path, `${path}.damaged`)
}

class LaterVersionError extends Error {}

function openChecked(path: string): Database {
  const db = openWriter(path)
  try {
    db.run('PRAGMA cache_size = -8192')
    const { user_version: schema } = db.query('PRAGMA user_version').get() as { user_version: bigint }
    if (schema > SCHEMA) throw new LaterVersionError('The file of statistics was written by a later version of Weir.')
    if (schema === 0n) {
      db.transaction(() => {
        for (const sql of tables) db.run(sql)
        db.run('PRAGMA user_version = 1')
      }).immediate()
    }
    db.query('SELECT seq FROM mark').get()
    return db
  } catch (fault) {
    db.close()
    throw fault
  }
}

export class StatisticsFile {
  readonly #path: string
  readonly #db: Database
  readonly #names = new Map<string, number>()
  readonly #statements

  constructor(path: string) {
    this.#path = path
    this.#db = openFile(path)
    this.#statements = prepare(this.#db)
  }

  /** The progress; undefined for a new file. */
  mark(): StatisticsMark | undefined {
    const row = this.#statements.mark.get() as Record<string, bigint> | null
    if (row === null) return undefined
    return {
      seq: row.seq!,
      callId: row.call_id!,
      scanBefore: row.scan_before!,
      scanTop: row.scan_top!,
      scanBottom: row.scan_bottom!,
    }
  }

  lateIds(): Set<bigint> {
    return new Set((this.#statements.late.all() as { id: bigint }[]).map(({ id }) => id))
  }

  /** Deletes all sums and starts again for the database of this mark. */
  startOver(mark: StatisticsMark): void {
    this.#db
      .transaction(() => {
        for (const table of tableNames) this.#db.run('DELETE FROM '.concat(table))
        this.#writeMark(mark)
      })
      .immediate()
    this.#names.clear()
  }

  /** The number of the name of a model or channel. It is written at once: a name without figures does no harm. */
  numberOf(name: string): number {
    let id = this.#names.get(name)
    if (id === undefined) {
      const { addName, findName } = this.#statements
      addName.run(name)
      id = Number((findName.get(name) as { id: bigint }).id)
      this.#names.set(name, id)
    }
    return id
  }

  /** Adds sums. A damaged file is renamed, and the next opening creates a new one. */
  add(added: StatisticsAddition): void {
    try {
      this.#add(added)
    } catch (fault) {
      if (isDamage(fault)) {
        this.#db.close()
        renameDamaged(this.#path)
      }
      throw fault
    }
  }

  #add({ shares, failures, endUsers, late, mark }: StatisticsAddition): void {
    const { addLate, dropLate, addFailure } = this.#statements
    this.#db
      .transaction(() => {
        for (const share of shares) this.#addShare(share)
        for (const { cut, span, one, outcome, error, at, calls } of failures) {
          addFailure.run(cuts[cut], spanNumber[span], one, outcome, error, at, calls)
        }
        for (const share of endUsers) this.#addEndUser(share)
        for (const id of late) addLate.run(id)
        if (mark.scanBefore === 0n) dropLate.run()
        this.#writeMark(mark)
      })
      .immediate()
  }

  /** Deletes expired sums. */
  prune(nowMs: number): void {
    const { pruneFigures, pruneFailures, pruneEndUsers } = this.#statements
    for (const span of spans) {
      const number = spanNumber[span]
      for (const cut of cutNames) pruneFigures.run(cuts[cut], number, expiredBefore(keepMs[cut], span, nowMs))
      pruneFailures.run(number, expiredBefore(failureKeepMs, span, nowMs))
      pruneEndUsers.run(number, expiredBefore(endUserKeepMs, span, nowMs))
    }
  }

  /** Moves the sums of an end user to the row without a name. */
  eraseEndUser(endUser: string, accountId: number | undefined): void {
    this.#db
      .transaction(() => {
        const account = accountId ?? null
        const rows = this.#statements.endUserRows.all(endUser, account) as Record<string, bigint>[]
        for (const row of rows) {
          const values = endUserFigures.map(name => row[name]!)
          this.#statements.addEndUser.run(row.account_id!, row.span!, row.at!, '', ...values)
        }
        this.#statements.dropEndUser.run(endUser, account)
      })
      .immediate()
  }

  close(): void {
    this.#db.close()
  }

  #addShare({ cut, span, one, other, at, figures }: FigureShare): void {
    const key = [cuts[cut], spanNumber[span], one, other, at] as const
    const existing = this.#statements.findSteps.get(...key) as Record<string, Uint8Array> | null
    if (existing !== null) {
      addEncodedHistogram(figures.first, existing.first_steps!)
      addEncodedHistogram(figures.duration, existing.took_steps!)
    }
    const steps = [encodeHistogram(figures.first), encodeHistogram(figures.duration)] as const
    this.#statements.addFigures.run(...key, ...figures.counts, ...figures.sums, ...steps)
  }

  #addEndUser({ accountId, span, at, endUser, figures }: EndUserShare): void {
    const { countEndUsers, addEndUser, findEndUser } = this.#statements
    const number = spanNumber[span]
    let name = endUser
    if (findEndUser.get(accountId, number, at, name) === null) {
      const { n } = countEndUsers.get(accountId, number, at, END_USERS_PER_SPAN_MAX) as { n: bigint }
      if (n >= BigInt(END_USERS_PER_SPAN_MAX)) name = ''
    }
    const values = endUserFigures.map(column => figureOf(figures, column))
    addEndUser.run(accountId, number, at, name, ...values)
  }

  #writeMark({ seq, callId, scanBefore, scanTop, scanBottom }: StatisticsMark): void {
    this.#statements.writeMark.run(seq, callId, scanBefore, scanTop, scanBottom)
  }
}

const placeholders = (count: number): string => Array.from({ length: count }, () => '?').join(', ')
const sumUpdates = (names: readonly string[]): string =>
  names.map(name => `${name} = ${name} + excluded.${name}`).join()

function prepare(db: Database) {
  return {
    mark: db.query('SELECT seq, call_id, scan_before, scan_top, scan_bottom FROM mark'),
    writeMark: db.query(
      `INSERT INTO mark VALUES (0, ?1, ?2, ?3, ?4, ?5) ON CONFLICT DO UPDATE SET seq = ?1, call_id = ?2,
         scan_before = ?3, scan_top = ?4, scan_bottom = ?5`,
    ),
    late: db.query('SELECT id FROM late'),
    addLate: db.query('INSERT INTO late VALUES (?1) ON CONFLICT DO NOTHING'),
    dropLate: db.query('DELETE FROM late'),
    addName: db.query('INSERT INTO name (text) VALUES (?1) ON CONFLICT DO NOTHING'),
    findName: db.query('SELECT id FROM name WHERE text = ?1'),
    findSteps: db.query(
      `SELECT first_steps, took_steps FROM figure
       WHERE cut = ?1 AND span = ?2 AND one = ?3 AND other = ?4 AND at = ?5`,
    ),
    addFigures: db.query(
      'INSERT INTO figure VALUES ('.concat(
        placeholders(5 + figureColumns.length + 2),
        ') ON CONFLICT DO UPDATE SET ',
        sumUpdates(figureColumns),
        ', first_steps = excluded.first_steps, took_steps = excluded.took_steps',
      ),
    ),
    addFailure: db.query(
      `INSERT INTO failure VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
       ON CONFLICT DO UPDATE SET calls = calls + excluded.calls`,
    ),
    countEndUsers: db.query(
      `SELECT count(*) AS n FROM
         (SELECT 1 FROM end_user WHERE account_id = ?1 AND span = ?2 AND at = ?3 AND name <> '' LIMIT ?4)`,
    ),
    findEndUser: db.query('SELECT 1 FROM end_user WHERE account_id = ?1 AND span = ?2 AND at = ?3 AND name = ?4'),
    addEndUser: db.query(
      'INSERT INTO end_user VALUES ('.concat(
        placeholders(4 + endUserFigures.length),
        ') ON CONFLICT DO UPDATE SET ',
        sumUpdates(endUserFigures),
      ),
    ),
    endUserRows: db.query('SELECT * FROM end_user WHERE name = ?1 AND (?2 IS NULL OR account_id = ?2)'),
    dropEndUser: db.query('DELETE FROM end_user WHERE name = ?1 AND (?2 IS NULL OR account_id = ?2)'),
    pruneFigures: db.query('DELETE FROM figure WHERE cut = ?1 AND span = ?2 AND at < ?3'),
    pruneFailures: db.query('DELETE FROM failure WHERE span = ?1 AND at < ?2'),
    pruneEndUsers: db.query('DELETE FROM end_user WHERE span = ?1 AND at < ?2'),
  }
}
