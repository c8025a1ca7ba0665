// Reads, writes and compares rows for a move between SQLite and PostgreSQL.

import type { Database } from 'bun:sqlite'
import type { SqlText, SqlValue, Steps } from '../engine/steps.ts'
import { postgresQuery } from '../engine/steps.ts'
import { MoveError } from './move-state.ts'
import type { MovedFile, MovedTable } from './move-tables.ts'
import { columnList, rowText, TableSum } from './move-tables.ts'

const ROWS_PER_PAGE = 1_000
/** Rows with bytes may be large. */
const ROWS_WITH_BYTES_PER_PAGE = 20
const CHARACTERS_PER_PAGE = 1024 * 1024

export interface MoveProgress {
  readonly phase: 'copying' | 'comparing'
  /** The table and the file of SQLite. */
  readonly table: string
  /** The rows of all tables so far, both copied and compared, and the number of them at the end. */
  readonly done: number
  readonly total: number
}

/** Counts rows and reports them. */
export class MoveCounter {
  readonly #total: number
  readonly #report: (progress: MoveProgress) => void
  #done = 0

  constructor(total: number, report: (progress: MoveProgress) => void) {
    this.#total = total
    this.#report = report
  }

  add(rows: number, phase: MoveProgress['phase'], { name, file }: MovedTable): void {
    this.#done += rows
    this.#report({ phase, table: `${name} (${file})`, done: this.#done, total: this.#total })
  }
}

/** Runs a statement that is built from names. All of them come from catalogs and from constants. */
export const runText = (text: string): Steps<number> => postgresQuery(text).run()

/** Reads rows of SQLite as texts. */
export function* readSqlite(db: Database, table: MovedTable, select: string): Generator<string> {
  for (const row of db.query(select).iterate()) yield rowText(table, row as Record<string, SqlValue>)
}

/** Reads rows of PostgreSQL page by page, so that a large table needs little memory. */
export function* readPostgres(
  table: MovedTable,
  select: string,
  use: (rows: readonly Readonly<Record<string, SqlValue>>[]) => void,
): Steps<void> {
  const hasBytes = table.columns.some(({ type }) => type === 'bytea')
  yield* runText(`DECLARE move_rows NO SCROLL CURSOR FOR ${select}`)
  const next = `FETCH ${hasBytes ? ROWS_WITH_BYTES_PER_PAGE : ROWS_PER_PAGE} FROM move_rows`
  const fetch = postgresQuery<Record<string, SqlValue>>(next)
  for (;;) {
    const rows = yield* fetch.all()
    if (rows.length === 0) break
    use(rows)
  }
  yield* runText('CLOSE move_rows')
}

/** Writes rows to PostgreSQL. `onPage` gets the number of rows of each page. */
export function* insertIntoPostgres(
  table: MovedTable,
  texts: Iterable<string>,
  onPage: (rows: number) => void,
): Steps<void> {
  const values = table.columns.map(({ type }, at) => `CAST(e ->> ${at} AS ${type})`)
  const text = `INSERT INTO ${table.target} (${columnList(table)}) SELECT ${values.join(', ')}
    FROM jsonb_array_elements(CAST(CAST($1 AS TEXT) AS JSONB)) e`
  const insert = postgresQuery(text)
  let [page, characters] = [[] as string[], 0]
  function* flush(): Steps<void> {
    yield* insert.run('['.concat(page.join(), ']'))
    onPage(page.length)
    page = []
    characters = 0
  }
  for (const row of texts) {
    page.push(row)
    characters += row.length
    if (page.length === ROWS_PER_PAGE || characters > CHARACTERS_PER_PAGE) yield* flush()
  }
  if (page.length > 0) yield* flush()
}

export const sumOf = (texts: Iterable<string>): TableSum => {
  const sum = new TableSum()
  for (const text of texts) sum.add(text)
  return sum
}

export function requireEqual(table: MovedTable, expected: TableSum, found: TableSum): void {
  if (found.equals(expected)) return
  const counts = found.rows === expected.rows ? `all ${found.rows} rows` : `${found.rows} of ${expected.rows} rows`
  throw new MoveError(`The copy of ${table.name} differs from the original (${counts} are there). Nothing was moved.`)
}

/** Texts with two halves, because a sum may not fit into 64 bits. */
const halves = (column: string): string =>
  ['>> 32', '& 4294967295'].map(half => `CAST(coalesce(sum(${column} ${half}), 0) AS TEXT)`).join(` || ' ' || `)

/** On PostgreSQL the balances of the operator's accounts are in parts. */
const accounts: SqlText = {
  sqlite: 'account',
  postgres: `(SELECT a.id, a.held, CAST(a.balance + coalesce((SELECT sum(p.balance) FROM operator_part p
    WHERE p.account_id = a.id), 0) AS BIGINT) AS balance FROM account a) x`,
}

const sumText = (column: string, from: SqlText | string, where = '1 = 1'): SqlText => {
  const textFor = (table: string): string =>
    `SELECT ${halves(column)} || ' of ' || count(*) AS text FROM ${table} WHERE ${where}`
  return typeof from === 'string'
    ? { sqlite: textFor(from), postgres: textFor(from) }
    : { sqlite: textFor(from.sqlite), postgres: textFor(from.postgres) }
}

const lastAudit = (hash: string): string =>
  `SELECT CAST(seq AS TEXT) || ' ' || ${hash} AS text FROM audit ORDER BY seq DESC LIMIT 1`

/** What must be the same on both sides. Both read it by statements of their own, beside the comparison of rows. */
const figures: readonly (readonly [name: string, file: MovedFile, text: SqlText])[] = [
  ['the balances of customers', 'weir.db', sumText('balance', accounts, 'id > 4')],
  ['the balance of revenue', 'weir.db', sumText('balance', accounts, 'id = 1')],
  ['the balance of promo', 'weir.db', sumText('balance', accounts, 'id = 2')],
  ['the balance of shortfall', 'weir.db', sumText('balance', accounts, 'id = 3')],
  ['the balance of clearing', 'weir.db', sumText('balance', accounts, 'id = 4')],
  ['the money that is held', 'weir.db', sumText('held', accounts)],
  ['the open holds', 'weir.db', sumText('amount', 'hold')],
  ['what budgets have spent', 'weir.db', sumText('spent', 'budget')],
  ['the transfers', 'weir.db', sumText('amount', 'transfer')],
  ['the costs of records', 'weir.db', sumText('cost', 'record')],
  [
    'the last row of the audit log',
    'weir.db',
    { sqlite: lastAudit('lower(hex(hash))'), postgres: lastAudit("encode(hash, 'hex')") },
  ],
  ['the calls in the statistics', 'stats.db', { ...sumText('calls', { sqlite: 'figure', postgres: 'stats.figure' }) }],
  ['the costs in the statistics', 'stats.db', { ...sumText('cost', { sqlite: 'figure', postgres: 'stats.figure' }) }],
]

/** Compares what the money comes to on both sides. */
export function* compareFigures(files: ReadonlyMap<MovedFile, Database>): Steps<void> {
  for (const [name, file, text] of figures) {
    const db = files.get(file)
    if (db === undefined) continue
    const onSqlite = (db.query(text.sqlite).get() as { text: string } | null)?.text
    const onPostgres = (yield* postgresQuery<{ text: string }>(text.postgres).get())?.text
    if (onSqlite !== onPostgres)
      throw new MoveError(`After the copy, ${name} differ: ${onSqlite} on SQLite, ${onPostgres} on PostgreSQL.`)
  }
}
