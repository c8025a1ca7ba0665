// The file of statistics: sums of records, and how far they go. It is made from the records, and can be made again from
// those that are still there. What is added and how far that goes are written in one transaction.

import type { Database } from 'bun:sqlite'
import { renameSync, rmSync } from 'node:fs'
import { addEncoded, encodeHistogram } from '../../base/collections/latency-histogram.ts'
import { openWriter } from '../engine/database.ts'
import type { Figures, Share } from './figures.ts'
import type { Cut, Span } from './plan.ts'
import {
  counts,
  cutNames,
  cuts,
  END_USERS_A_SPAN_MAX,
  endUserKeepMs,
  failureKeepMs,
  keepMs,
  spanAt,
  spanNumber,
  spans,
  sums,
} from './plan.ts'

/** How far the sums go. */
export interface Mark {
  /** The last row of the log that is in them, and what stood in it: of another database it says something else. */
  readonly seq: bigint
  readonly callId: bigint
  /** Of the records from before that, those below this id are still to be read; 0: none. */
  readonly scanBefore: bigint
  /** Where that began, and the first of all. */
  readonly scanTop: bigint
  readonly scanBottom: bigint
}

/** Calls of one kind that went wrong. */
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

export interface Added {
  readonly shares: readonly Share[]
  readonly failures: readonly FailureShare[]
  readonly endUsers: readonly EndUserShare[]
  /** Of records that the scan would else count again. */
  readonly late: readonly bigint[]
  readonly mark: Mark
}

const SCHEMA = 1

const FIGURES = [...counts, ...sums] as const

/** What is known of the calls of an end user. */
export const endUserFigures = ['calls', 'errors', 'input_tokens', 'output_tokens', 'cost'] as const

const integers = (names: readonly string[]): string => names.map(name => `${name} INTEGER NOT NULL`).join(', ')

const tables = [
  `CREATE TABLE mark (only INTEGER PRIMARY KEY CHECK (only = 0), seq INTEGER NOT NULL, call_id INTEGER NOT NULL,
     scan_before INTEGER NOT NULL, scan_top INTEGER NOT NULL, scan_bottom INTEGER NOT NULL) STRICT`,
  'CREATE TABLE late (id INTEGER PRIMARY KEY) STRICT',
  'CREATE TABLE name (id INTEGER PRIMARY KEY, text TEXT NOT NULL UNIQUE) STRICT',
  `CREATE TABLE figure (cut INTEGER NOT NULL, span INTEGER NOT NULL, one INTEGER NOT NULL, other INTEGER NOT NULL,
     at INTEGER NOT NULL, `.concat(
    integers(FIGURES),
    `, first_steps BLOB NOT NULL, took_steps BLOB NOT NULL, PRIMARY KEY (cut, span, one, other, at))
     STRICT, WITHOUT ROWID`,
  ),
  `CREATE TABLE failure (cut INTEGER NOT NULL, span INTEGER NOT NULL, one INTEGER NOT NULL, outcome TEXT NOT NULL,
     error TEXT NOT NULL, at INTEGER NOT NULL, calls INTEGER NOT NULL,
     PRIMARY KEY (cut, span, one, outcome, error, at)) STRICT, WITHOUT ROWID`,
  `CREATE TABLE end_user (account_id INTEGER NOT NULL, span INTEGER NOT NULL, at INTEGER NOT NULL, name TEXT NOT NULL,
     `.concat(integers(endUserFigures), ', PRIMARY KEY (account_id, span, at, name)) STRICT, WITHOUT ROWID'),
]

const contents = ['mark', 'late', 'name', 'figure', 'failure', 'end_user']

/** Opens it, or makes it anew where it is none of ours. A disk that is full, or a file in use, is no damage. */
function openFile(path: string): Database {
  try {
    return openChecked(path)
  } catch (fault) {
    const { code = '' } = fault as { code?: string }
    if (!(isDamage(fault) || code === 'SQLITE_ERROR' || fault instanceof LaterError)) throw fault
    putAside(path)
    return openChecked(path)
  }
}

const isDamage = (fault: unknown): boolean => /^SQLITE_(NOTADB|CORRUPT)/.test((fault as { code?: string }).code ?? '')

/** It can be made again; what it was is kept for whoever wants to know. */
function putAside(path: string): void {
  for (const end of ['-wal', '-shm']) rmSync(path + end, { force: true })
  renameSync(path, `${path}.damaged`)
}

class LaterError extends Error {}

function openChecked(path: string): Database {
  const db = openWriter(path)
  try {
    db.run('PRAGMA cache_size = -8192')
    const { user_version: at } = db.query('PRAGMA user_version').get() as { user_version: bigint }
    if (at > SCHEMA) throw new LaterError('The file of statistics was written by a later version of Weir.')
    if (at === 0n) {
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

  /** Undefined of a file that is new. */
  mark(): Mark | undefined {
    const row = this.#statements.mark.get() as Record<string, bigint> | null
    if (row === null) return undefined
    return {
      ...{ seq: row.seq!, callId: row.call_id!, scanBefore: row.scan_before! },
      ...{ scanTop: row.scan_top!, scanBottom: row.scan_bottom! },
    }
  }

  late(): Set<bigint> {
    return new Set((this.#statements.late.all() as { id: bigint }[]).map(({ id }) => id))
  }

  /** Forgets everything: from now on it is of the database that this mark is of. */
  begin(mark: Mark): void {
    this.#db
      .transaction(() => {
        for (const table of contents) this.#db.run('DELETE FROM '.concat(table))
        this.#writeMark(mark)
      })
      .immediate()
    this.#names.clear()
  }

  /** The number of a model's or a channel's name. Written at once: a name without figures does no harm. */
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

  /** A file that turns out to be damaged is put aside: the next to open it makes it anew. */
  add(added: Added): void {
    try {
      this.#add(added)
    } catch (fault) {
      if (isDamage(fault)) {
        this.#db.close()
        putAside(this.#path)
      }
      throw fault
    }
  }

  #add({ shares, failures, endUsers, late, mark }: Added): void {
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

  /** Lets go of what has been kept for long enough. */
  prune(nowMs: number): void {
    const { pruneFigures, pruneFailures, pruneEndUsers } = this.#statements
    const before = (keeps: Readonly<Record<Span, number>>, span: Span): number =>
      keeps[span] === Number.POSITIVE_INFINITY ? 0 : spanAt(span, nowMs - keeps[span])
    for (const span of spans) {
      for (const cut of cutNames) pruneFigures.run(cuts[cut], spanNumber[span], before(keepMs[cut], span))
      pruneFailures.run(spanNumber[span], before(failureKeepMs, span))
      pruneEndUsers.run(spanNumber[span], before(endUserKeepMs, span))
    }
  }

  /** An end user without a name is one of those that are too many to be named. */
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

  #addShare({ cut, span, one, other, at, figures }: Share): void {
    const place = [cuts[cut], spanNumber[span], one, other, at] as const
    const there = this.#statements.findSteps.get(...place) as Record<string, Uint8Array> | null
    if (there !== null) {
      addEncoded(figures.first, there.first_steps!)
      addEncoded(figures.took, there.took_steps!)
    }
    const steps = [encodeHistogram(figures.first), encodeHistogram(figures.took)] as const
    this.#statements.addFigures.run(...place, ...figures.counts, ...figures.sums, ...steps)
  }

  #addEndUser({ accountId, span, at, endUser, figures }: EndUserShare): void {
    const { countEndUsers, addEndUser, findEndUser } = this.#statements
    const number = spanNumber[span]
    let name = endUser
    if (findEndUser.get(accountId, number, at, name) === null) {
      const { n } = countEndUsers.get(accountId, number, at, END_USERS_A_SPAN_MAX) as { n: bigint }
      if (n >= BigInt(END_USERS_A_SPAN_MAX)) name = ''
    }
    const values = endUserFigures.map(one => valueOf(figures, one))
    addEndUser.run(accountId, number, at, name, ...values)
  }

  #writeMark({ seq, callId, scanBefore, scanTop, scanBottom }: Mark): void {
    this.#statements.writeMark.run(seq, callId, scanBefore, scanTop, scanBottom)
  }
}

function valueOf(figures: Figures, name: (typeof FIGURES)[number]): number | bigint {
  const at = (counts as readonly string[]).indexOf(name)
  return at >= 0 ? figures.counts[at]! : figures.sums[(sums as readonly string[]).indexOf(name)]!
}

const places = (count: number): string => Array.from({ length: count }, () => '?').join(', ')
const addedUp = (names: readonly string[]): string => names.map(name => `${name} = ${name} + excluded.${name}`).join()

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
        places(5 + FIGURES.length + 2),
        ') ON CONFLICT DO UPDATE SET ',
        addedUp(FIGURES),
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
        places(4 + endUserFigures.length),
        ') ON CONFLICT DO UPDATE SET ',
        addedUp(endUserFigures),
      ),
    ),
    endUserRows: db.query('SELECT * FROM end_user WHERE name = ?1 AND (?2 IS NULL OR account_id = ?2)'),
    dropEndUser: db.query('DELETE FROM end_user WHERE name = ?1 AND (?2 IS NULL OR account_id = ?2)'),
    pruneFigures: db.query('DELETE FROM figure WHERE cut = ?1 AND span = ?2 AND at < ?3'),
    pruneFailures: db.query('DELETE FROM failure WHERE span = ?1 AND at < ?2'),
    pruneEndUsers: db.query('DELETE FROM end_user WHERE span = ?1 AND at < ?2'),
  }
}
