// Moves the data of a gateway from SQLite to PostgreSQL, while no gateway runs.
//
// All of it is one transaction on PostgreSQL: the tables are created, the rows are copied, then read again and compared.
// A move that fails or is killed leaves the database as it was. After the transaction both databases have all rows, and
// the state of PostgreSQL (move-state.ts) forbids its use. Then the files of SQLite are renamed, and last the state
// changes. So at no time both can be used, and what a killed move has left is completed by running it again.

import type { Database } from 'bun:sqlite'
import { randomUUID } from 'node:crypto'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { openReader, openWriter } from '../engine/database.ts'
import { bodiesOf, databaseOf, STATISTICS_FILE } from '../engine/folder.ts'
import { lockFolder } from '../engine/lock.ts'
import { readMoveNote, setAside } from '../engine/moved-folder.ts'
import type { SqlValue, Steps } from '../engine/steps.ts'
import { postgresQuery } from '../engine/steps.ts'
import { Writer } from '../engine/writer.ts'
import { OPERATOR_ID_MAX } from '../ledger/operator-accounts.ts'
import { auditDatabase } from '../ledger-audit/audit-worker.ts'
import type { AuditReport } from '../ledger-audit/findings.ts'
import { createBodyTables } from '../records/body-tables.ts'
import { StatisticsAggregator } from '../statistics/aggregator.ts'
import { buildPostgresPasses } from './audit.ts'
import type { MoveProgress } from './move-rows.ts'
import { compareFigures, insertIntoPostgres, MoveCounter, readPostgres, requireEqual, runText } from './move-rows.ts'
import type { MoveTarget } from './move-state.ts'
import { advanceMoveState, inspectDatabase, MoveError, writeMoveState } from './move-state.ts'
import type { MovedFile, MovedTable } from './move-tables.ts'
import {
  derivedRows,
  movedFiles,
  planMove,
  rowText,
  schemaOfFile,
  selectOnPostgres,
  selectOnSqlite,
  TableSum,
} from './move-tables.ts'
import type { ReplacedText } from './move-text.ts'
import { TextCleaner } from './move-text.ts'
import type { PostgresPool } from './pools.ts'
import { createSchemaSteps, lockSchema } from './schema.ts'

export type MovePool = Pick<PostgresPool, 'read' | 'transact'>

/** What a move does, in this order. */
export type MoveStage = 'preparing' | 'auditing' | 'copying' | 'copied' | 'renamed' | 'ready'

export interface MoveOptions {
  readonly folder: string
  readonly pool: MovePool
  onProgress?(progress: MoveProgress): void
  /** Called at the beginning of each stage. */
  onStage?(stage: MoveStage): void
}

export interface MoveReport {
  /** The name of the database on PostgreSQL. */
  readonly place: string
  readonly rows: number
  readonly tables: number
  /** Calls that were open, and were settled as after a crash. */
  readonly settled: number
  /** The first texts that PostgreSQL would have refused, and the number of all of them. */
  readonly replaced: readonly ReplacedText[]
  readonly replacedCount: number
  /** The move was complete but for its end, which a former run did not reach. */
  readonly isContinued: boolean
}

export async function moveToPostgres({ folder, pool, onProgress, onStage }: MoveOptions): Promise<MoveReport> {
  const lock = lockFolder(folder)
  if (lock === undefined) throw new MoveError(`Weir is running on ${folder}. Stop it first.`)
  try {
    const target = await pool.read(inspectDatabase())
    if (!existsSync(databaseOf(folder))) return await finishMove(folder, pool, target)
    requireFree(target)
    onStage?.('preparing')
    const settled = await prepare(folder)
    onStage?.('auditing')
    await requireCleanAudit(databaseOf(folder))
    onStage?.('copying')
    const id = randomUUID()
    const cleaner = new TextCleaner()
    const files = openFiles(folder)
    const copied = await pool
      .transact(copyAll({ files, id, cleaner, report: onProgress ?? (() => {}) }))
      .finally(() => files.forEach(db => db.close()))
    onStage?.('copied')
    await requireCleanCopy(pool)
    setAside(folder, { id, place: target.place })
    onStage?.('renamed')
    await makeReady(pool, id)
    onStage?.('ready')
    const { listed: replaced, count: replacedCount } = cleaner
    return { ...copied, place: target.place, settled, replaced, replacedCount, isContinued: false }
  } finally {
    lock.release()
  }
}

/** A database with anything else in it is not used: a move would mix its rows with those of the gateway. */
function requireFree({ place, isEmpty, move }: MoveTarget): void {
  if (isEmpty || move?.state === 'copied') return
  const why = move?.state === 'left' ? 'its data was moved back to SQLite' : 'it has tables'
  throw new MoveError(`The target, ${place}, is not empty: ${why}. Create a new database for the move.`)
}

/** The end of a move that was killed after the files of SQLite had been renamed. */
async function finishMove(folder: string, pool: MovePool, { place, move }: MoveTarget): Promise<MoveReport> {
  const note = readMoveNote(folder)
  if (note === undefined) throw new MoveError(`There is no data of Weir in ${folder}.`)
  if (move === undefined || move.id !== note.id || !['copied', 'ready'].includes(move.state))
    throw new MoveError(`The data of ${folder} was moved to ${note.place} before, and not to ${place}.`)
  setAside(folder, note)
  if (move.state === 'copied') await makeReady(pool, note.id)
  return { place, rows: 0, tables: 0, settled: 0, replaced: [], replacedCount: 0, isContinued: true }
}

async function makeReady(pool: MovePool, id: string): Promise<void> {
  if (await pool.transact(advanceMoveState(id, 'copied', 'ready'))) return
  throw new MoveError(
    'Another move has written to the target. To use the data of SQLite again, rename weir.db.moved to weir.db, and ' +
      'stats.db.moved and bodies.db.moved likewise.',
  )
}

/** Migrates the data and settles open calls, as a start does, and sums up all records. Returns the number of calls. */
async function prepare(folder: string): Promise<number> {
  const [writer, { recovered }] = await Writer.open({ path: databaseOf(folder), ballastBytes: 0 }, () => {})
  await writer.close()
  const paths = { database: databaseOf(folder), statistics: join(folder, STATISTICS_FILE) }
  const aggregator = new StatisticsAggregator({ ...paths, dateMs: Date.now })
  try {
    while (!aggregator.step().upToDate) await Bun.sleep(0)
  } finally {
    aggregator.close()
  }
  if (existsSync(bodiesOf(folder))) {
    const bodies = openWriter(bodiesOf(folder))
    createBodyTables(bodies)
    bodies.close()
  }
  return recovered
}

export async function requireCleanAudit(path: string): Promise<void> {
  refuseFindings(path, await auditDatabase(path, { deep: true }))
}

async function requireCleanCopy(pool: MovePool): Promise<void> {
  const passes = buildPostgresPasses({ read: steps => pool.read(steps) }, { lagMs: 0, rests: false })
  refuseFindings('the copy', await passes.pass())
}

function refuseFindings(name: string, { findings }: AuditReport): void {
  const [first] = findings
  if (first === undefined) return
  const others = findings.length > 1 ? `, and ${findings.length - 1} more` : ''
  throw new MoveError(`The audit of ${name} found contradictions, so nothing is moved: ${first.text}${others}.`)
}

const openFiles = (folder: string): ReadonlyMap<MovedFile, Database> =>
  new Map(movedFiles.filter(file => existsSync(join(folder, file))).map(file => [file, openReader(join(folder, file))]))

interface CopyParts {
  readonly files: ReadonlyMap<MovedFile, Database>
  readonly id: string
  readonly cleaner: TextCleaner
  report(progress: MoveProgress): void
}

function* copyAll({ files, id, cleaner, report }: CopyParts): Steps<Pick<MoveReport, 'rows' | 'tables'>> {
  // A gateway may have begun to use the target during the audit.
  yield* lockSchema()
  requireFree(yield* inspectDatabase())
  yield* createSchemaSteps()
  const plan = yield* planMove(files, 'to PostgreSQL')
  if (plan.problems.length > 0) throw new MoveError(`The data cannot be moved: ${plan.problems.join('; ')}.`)
  const { tables } = plan
  const dbOf = ({ file }: MovedTable): Database => files.get(file)!
  const counts = tables.map(table => countRows(dbOf(table), table))
  const counter = new MoveCounter(2 * counts.reduce((sum, count) => sum + count, 0), report)

  const foreignKeys = yield* dropForeignKeys()
  yield* switchTriggers(tables, 'DISABLE')
  const names = tables.map(({ target: name }) => name).join(', ')
  yield* runText(`TRUNCATE operator_part, ${names}`)
  const sums = new Map<MovedTable, TableSum>()
  for (const table of tables) {
    const sum = new TableSum()
    sums.set(table, sum)
    counter.add(0, 'copying', table)
    const texts = cleanRows(dbOf(table), table, cleaner, sum)
    yield* insertIntoPostgres(table, texts, rows => counter.add(rows, 'copying', table))
  }
  yield* copyOperatorBalances(files.get('weir.db')!)
  yield* writeDerivedRows(plan.postgresTables)
  for (const table of tables) yield* setSequences(dbOf(table), table)
  yield* switchTriggers(tables, 'ENABLE')
  for (const { table, name, definition } of foreignKeys)
    yield* runText(`ALTER TABLE ${table} ADD CONSTRAINT ${name} ${definition}`)
  yield* runText(`ANALYZE operator_part, ${names}`)

  for (const table of tables) {
    counter.add(0, 'comparing', table)
    const found = new TableSum()
    yield* readPostgres(table, selectOnPostgres(table, 'as they are'), rows => {
      for (const row of rows) found.add(rowText(table, row))
      counter.add(rows.length, 'comparing', table)
    })
    requireEqual(table, sums.get(table)!, found)
  }
  yield* compareFigures(files)
  yield* writeMoveState(id, 'copied')
  return { tables: tables.length, rows: counts.reduce((sum, count) => sum + count, 0) }
}

export const countRows = (db: Database, { name }: Pick<MovedTable, 'name'>): number =>
  Number((db.query('SELECT count(*) AS n FROM '.concat('"', name, '"')).get() as { n: bigint }).n)

function* cleanRows(db: Database, table: MovedTable, cleaner: TextCleaner, sum: TableSum): Generator<string> {
  for (const row of db.query(selectOnSqlite(table, 'for PostgreSQL')).iterate()) {
    const text = rowText(table, cleaner.clean(db, table, row as Record<string, SqlValue>))
    sum.add(text)
    yield text
  }
}

interface ForeignKey {
  readonly table: string
  readonly name: string
  readonly definition: string
}

/** Keys between tables are created again after the copy: PostgreSQL then checks all rows at once. */
function* dropForeignKeys(): Steps<readonly ForeignKey[]> {
  const schemas = Object.values(schemaOfFile).map(schema => `'${schema}'`)
  const text = `SELECT CAST(CAST(k.conrelid AS regclass) AS TEXT) AS "table", quote_ident(k.conname) AS name,
       pg_get_constraintdef(k.oid) AS definition FROM pg_constraint k JOIN pg_namespace n ON n.oid = k.connamespace
     WHERE k.contype = 'f' AND k.conparentid = 0 AND n.nspname IN (${schemas.join(', ')})`
  const keys = yield* postgresQuery<ForeignKey>(text).all()
  for (const { table, name } of keys) yield* runText(`ALTER TABLE ${table} DROP CONSTRAINT ${name}`)
  return keys
}

/** Without triggers a copied row changes no others. The owner of a table may switch its triggers. */
function* switchTriggers(tables: readonly MovedTable[], how: 'ENABLE' | 'DISABLE'): Steps<void> {
  for (const { target } of tables) yield* runText(`ALTER TABLE ${target} ${how} TRIGGER USER`)
}

function* copyOperatorBalances(db: Database): Steps<void> {
  const rows = db.query('SELECT id, balance FROM account WHERE id <= ?1').all(OPERATOR_ID_MAX) as {
    id: bigint
    balance: bigint
  }[]
  const insert = postgresQuery('INSERT INTO operator_part (account_id, slot, balance) VALUES ($1, 0, $2)')
  for (const { id, balance } of rows) yield* insert.run(id, balance)
}

function* writeDerivedRows(tables: readonly string[]): Steps<void> {
  for (const [table, statements] of Object.entries(derivedRows)) {
    if (!tables.includes(table)) continue
    yield* runText(`DELETE FROM ${table}`)
    for (const statement of statements) yield* runText(statement)
  }
}

/** New rows get numbers above all that were ever used. */
function* setSequences(db: Database, { name, target, columns }: MovedTable): Steps<void> {
  for (const { name: column } of columns.filter(({ isIdentity }) => isIdentity)) {
    const last = lastNumber(db, name)
    const text = `SELECT setval(pg_get_serial_sequence('${target}', '${column}'),
         greatest((SELECT max("${column}") FROM ${target}), $1, 1),
         greatest((SELECT max("${column}") FROM ${target}), $1) > 0)`
    yield* postgresQuery(text).run(last)
  }
}

/** The last number of a table that never uses a number again; 0 for other tables. */
function lastNumber(db: Database, table: string): bigint {
  if (db.query("SELECT 1 FROM sqlite_schema WHERE name = 'sqlite_sequence'").get() === null) return 0n
  const row = db.query('SELECT seq FROM sqlite_sequence WHERE name = ?1').get(table) as { seq: bigint } | null
  return row?.seq ?? 0n
}
