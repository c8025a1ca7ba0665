// Moves the data of a gateway from PostgreSQL back to files of SQLite, while no process uses it.
//
// First the state of PostgreSQL forbids its use. The files are made in a folder of their own, compared and audited. Then
// the state says that the data has left, and last the files come into their places. So at no time both can be used, and
// a move that was killed is run again.

import type { Database } from 'bun:sqlite'
import { randomUUID } from 'node:crypto'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { migrate, openWriter } from '../engine/database.ts'
import { createFolder, databaseOf } from '../engine/folder.ts'
import { lockFolder } from '../engine/lock.ts'
import {
  closeStaging,
  dataFilesOf,
  openStaging,
  readStagingNote,
  stagingOf,
  takeStaged,
} from '../engine/moved-folder.ts'
import type { SqlValue, Steps } from '../engine/steps.ts'
import { postgresQuery } from '../engine/steps.ts'
import { rebuildIndexes } from '../ledger/late-indexes.ts'
import { createBodyTables } from '../records/body-tables.ts'
import { StatisticsFile } from '../statistics/statistics-file.ts'
import { REGISTER_LOCK } from './advisory-locks.ts'
import { excludeOperations } from './cold-operations.ts'
import type { MovePool } from './move.ts'
import { requireCleanAudit } from './move.ts'
import type { MoveProgress } from './move-rows.ts'
import { compareFigures, MoveCounter, readPostgres, readSqlite, requireEqual, sumOf } from './move-rows.ts'
import { advanceMoveState, findMoveState, inspectDatabase, MoveError, writeMoveState } from './move-state.ts'
import type { MovedFile, MovedTable } from './move-tables.ts'
import {
  columnList,
  planMove,
  rowText,
  schemaOfFile,
  selectOnPostgres,
  selectOnSqlite,
  TableSum,
} from './move-tables.ts'

/** What a move does, in this order. */
export type MoveBackStage = 'copying' | 'auditing' | 'copied' | 'left' | 'ready'

export interface MoveBackOptions {
  readonly folder: string
  readonly pool: MovePool
  onProgress?(progress: MoveProgress): void
  /** Called at the beginning of each stage. */
  onStage?(stage: MoveBackStage): void
}

export interface MoveBackReport {
  readonly rows: number
  readonly tables: number
  /** The move was complete but for its end, which a former run did not reach. */
  readonly isContinued: boolean
}

export async function moveToSqlite({
  pool,
  onProgress,
  onStage,
  ...options
}: MoveBackOptions): Promise<MoveBackReport> {
  const folder = createFolder(options.folder)
  const lock = lockFolder(folder)
  if (lock === undefined) throw new MoveError(`Weir is running on ${folder}. Stop it first.`)
  try {
    const { place, isEmpty, move } = await pool.read(inspectDatabase())
    if (isEmpty) throw new MoveError(`There is no data of Weir in ${place}.`)
    if (move?.state === 'left' && move.id === readStagingNote(folder)?.id) {
      takeStaged(folder)
      return { rows: 0, tables: 0, isContinued: true }
    }
    const present = dataFilesOf(folder).find(file => existsSync(file))
    if (present !== undefined) throw new MoveError(`${present} is there already. Name a folder without data of Weir.`)
    const id = randomUUID()
    await pool.transact(beginLeaving(id))
    try {
      onStage?.('copying')
      const copied = await copyToFiles(openStaging(folder), pool, onProgress ?? (() => {}))
      onStage?.('auditing')
      await requireCleanAudit(databaseOf(stagingOf(folder)))
      closeStaging(folder, { id, place })
      onStage?.('copied')
      if (!(await pool.transact(advanceMoveState(id, 'leaving', 'left'))))
        throw new MoveError('Another move of the same data has begun.')
      onStage?.('left')
      takeStaged(folder)
      onStage?.('ready')
      return { ...copied, isContinued: false }
    } catch (fault) {
      // Where the state is `left` already, the next run takes the files.
      await pool.transact(advanceMoveState(id, 'leaving', 'ready')).catch(() => {})
      throw fault
    }
  } finally {
    lock.release()
  }
}

/** The lock that registering takes: no process begins meanwhile. */
const lockRegistration = postgresQuery(`SELECT pg_advisory_xact_lock(${REGISTER_LOCK})`)
const findAlive = postgresQuery<{ address: string }>(
  'SELECT address FROM process WHERE is_dead = 0 AND expires_ms >= database_ms() ORDER BY slot',
)
// Processes whose leases have run out may come back. They must not write any more. This waits for their running batches.
const lockProcesses = postgresQuery('SELECT 1 FROM process ORDER BY slot FOR UPDATE')
const fenceAll = postgresQuery('UPDATE process SET is_dead = 1, epoch = epoch + 1 WHERE is_dead = 0')

function* beginLeaving(id: string): Steps<void> {
  yield* lockRegistration.run()
  const state = (yield* findMoveState())?.state
  if (state === 'copied') throw new MoveError('The data is not on PostgreSQL: a move to it is not complete.')
  if (state === 'left') throw new MoveError('The data is not on PostgreSQL any more: it was moved to SQLite.')
  const alive = yield* findAlive.all()
  if (alive.length > 0) {
    const addresses = alive.map(({ address }) => address).join(', ')
    throw new MoveError(`Processes of the gateway use the database: ${addresses}. Stop them first.`)
  }
  yield* lockProcesses.all()
  yield* fenceAll.run()
  yield* excludeOperations()
  yield* writeMoveState(id, 'leaving')
}

async function copyToFiles(
  folder: string,
  pool: MovePool,
  report: (progress: MoveProgress) => void,
): Promise<Pick<MoveBackReport, 'rows' | 'tables'>> {
  const schemas = await pool.read(findSchemas.all())
  const files = createFiles(
    folder,
    schemas.map(({ name }) => name),
  )
  try {
    const copied = await pool.read(copyAll(files, report))
    files.forEach(db => db.run('PRAGMA wal_checkpoint(TRUNCATE)'))
    return copied
  } finally {
    files.forEach(db => db.close())
  }
}

const findSchemas = postgresQuery<{ name: string }>('SELECT nspname AS name FROM pg_namespace')

/** Creates the files with their tables. Until all rows are there, nothing needs to survive a crash. */
function createFiles(folder: string, schemas: readonly string[]): ReadonlyMap<MovedFile, Database> {
  const create: Readonly<Record<MovedFile, (db: Database) => void>> = {
    'weir.db': db => migrate(db),
    'stats.db': () => new StatisticsFile(join(folder, 'stats.db')).close(),
    'bodies.db': db => createBodyTables(db),
  }
  const names = (Object.keys(create) as MovedFile[]).filter(file => schemas.includes(schemaOfFile[file]))
  return new Map(
    names.map(file => {
      const db = openWriter(join(folder, file))
      create[file](db)
      db.run('PRAGMA synchronous = OFF')
      db.run('PRAGMA foreign_keys = OFF')
      return [file, db]
    }),
  )
}

function* copyAll(
  files: ReadonlyMap<MovedFile, Database>,
  report: (progress: MoveProgress) => void,
): Steps<Pick<MoveBackReport, 'rows' | 'tables'>> {
  const plan = yield* planMove(files, 'to SQLite')
  if (plan.problems.length > 0) throw new MoveError(`The data cannot be moved: ${plan.problems.join('; ')}.`)
  const { tables } = plan
  let rows = 0
  for (const { target } of tables) {
    const text = `SELECT count(*) AS n FROM ${target}`
    rows += Number((yield* postgresQuery<{ n: bigint }>(text).get())!.n)
  }
  const counter = new MoveCounter(2 * rows, report)
  const dbOf = ({ file }: MovedTable): Database => files.get(file)!

  const triggers = new Map([...files].map(([file, db]) => [file, dropTriggers(db)]))
  files.forEach(db => db.run('BEGIN IMMEDIATE'))
  const sums = new Map<MovedTable, TableSum>()
  for (const table of tables) {
    counter.add(0, 'copying', table)
    sums.set(table, yield* copyTable(dbOf(table), table, count => counter.add(count, 'copying', table)))
    yield* setLastNumber(dbOf(table), table)
  }
  rebuildIndexes(files.get('weir.db')!)
  noteSummedUp(files)
  files.forEach(db => db.run('COMMIT'))
  files.forEach((db, file) => triggers.get(file)!.forEach(sql => db.run(sql)))

  for (const table of tables) {
    counter.add(0, 'comparing', table)
    requireEqual(table, sums.get(table)!, sumOf(readSqlite(dbOf(table), table, selectOnSqlite(table, 'as they are'))))
    counter.add(sums.get(table)!.rows, 'comparing', table)
  }
  for (const db of files.values()) requireForeignKeys(db)
  yield* compareFigures(files)
  return { rows, tables: tables.length }
}

/** Without triggers a copied row changes no others. Returns the statements that create them again. */
function dropTriggers(db: Database): readonly string[] {
  const triggers = db.query("SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'").all() as {
    name: string
    sql: string
  }[]
  for (const { name } of triggers) db.run('DROP TRIGGER '.concat('"', name, '"'))
  return triggers.map(({ sql }) => sql)
}

function* copyTable(db: Database, table: MovedTable, onPage: (rows: number) => void): Steps<TableSum> {
  // The first row of the log stays: statistics know by it whose they are.
  if (table.target !== 'public.record_log') db.run('DELETE FROM '.concat('"', table.name, '"'))
  const values = table.columns.map((_, at) => `?${at + 1}`).join(', ')
  const text = `INSERT INTO "${table.name}" (${columnList(table)}) VALUES (${values})`
  const insert = db.query<unknown, SqlValue[]>(text)
  const sum = new TableSum()
  yield* readPostgres(table, selectOnPostgres(table, 'for SQLite'), rows => {
    for (const row of rows) {
      sum.add(rowText(table, row))
      insert.run(...table.columns.map(({ name }) => row[name]!))
    }
    onPage(rows.length)
  })
  return sum
}

/** A table that never uses a number again continues after the last one of PostgreSQL. */
function* setLastNumber(db: Database, { name, target, columns }: MovedTable): Steps<void> {
  const isNumbered =
    db.query("SELECT 1 FROM sqlite_schema WHERE name = ?1 AND sql LIKE '%AUTOINCREMENT%'").get(name) !== null
  const identity = columns.find(({ isIdentity }) => isIdentity)
  if (!isNumbered || identity === undefined) return
  const text = `SELECT pg_sequence_last_value(CAST(pg_get_serial_sequence('${target}', '${identity.name}') AS regclass)) AS last`
  const last = yield* postgresQuery<{ last: bigint | null }>(text).get()
  db.query('DELETE FROM sqlite_sequence WHERE name = ?1').run(name)
  db.query('INSERT INTO sqlite_sequence (name, seq) VALUES (?1, ?2)').run(name, last!.last ?? 0n)
}

/** The statistics have all records but those in the log. */
function noteSummedUp(files: ReadonlyMap<MovedFile, Database>): void {
  const first = files.get('weir.db')!.query('SELECT call_id FROM record_log WHERE seq = 0').get() as { call_id: bigint }
  files.get('stats.db')?.query('INSERT INTO mark VALUES (0, 0, ?1, 0, 0, 0)').run(first.call_id)
}

function requireForeignKeys(db: Database): void {
  const [wrong] = db.query('PRAGMA foreign_key_check').all() as { table: string; parent: string }[]
  if (wrong !== undefined)
    throw new MoveError(`A row of ${wrong.table} refers to a row of ${wrong.parent} that does not exist.`)
}
