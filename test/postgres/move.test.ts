// The data of a gateway moves from SQLite to PostgreSQL and back without a loss, also when a move is killed.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { cpSync, existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { idAtMs } from '../../src/base/ids.ts'
import { openReader } from '../../src/store/engine/database.ts'
import { buildOperations } from '../../src/store/engine/operation-runner.ts'
import { postgresQuery } from '../../src/store/engine/steps.ts'
import { auditDatabase } from '../../src/store/ledger-audit/audit-worker.ts'
import { moveToPostgres } from '../../src/store/postgres/move.ts'
import { moveToSqlite } from '../../src/store/postgres/move-back.ts'
import type { PostgresPool } from '../../src/store/postgres/pools.ts'
import type { TestBooks } from '../support/books.ts'
import { holdOf, openTestBooks, recordOf } from '../support/books.ts'
import type { TestPostgres } from '../support/postgres.ts'
import { hasPostgres, startPostgres, tellMissingPostgres } from '../support/postgres.ts'
import { randomOperations } from './random-inputs.ts'

const OPERATIONS = 1_500
const CALLS = 300
const OPEN_CALLS = 30

tellMissingPostgres()

describe.skipIf(!hasPostgres)('a move', () => {
  let original: string
  let server: TestPostgres
  const folders: string[] = []

  beforeAll(async () => {
    original = newFolder()
    const books = openTestBooks({ sync: false })
    fill(books)
    books.db.run('PRAGMA wal_checkpoint(TRUNCATE)')
    cpSync(join(dirname(books.db.filename), 'weir.db'), join(original, 'weir.db'))
    books.close()
    server = await startPostgres()
  })
  afterAll(async () => {
    for (const folder of folders) rmSync(folder, { recursive: true })
    await server.stop()
  })

  function newFolder(): string {
    const folder = mkdtempSync(join(tmpdir(), 'weir-move-'))
    folders.push(folder)
    return folder
  }
  function copyFolder(): string {
    const folder = newFolder()
    cpSync(join(original, 'weir.db'), join(folder, 'weir.db'))
    return folder
  }
  const openTarget = (): Promise<PostgresPool> => server.open({ deadlineMs: 60_000 })
  const stateOf = async (pool: PostgresPool): Promise<string | undefined> =>
    (await pool.transact(postgresQuery<{ state: string }>('SELECT state FROM move_state').get()))?.state

  test('to PostgreSQL and back leaves the same rows in all tables', async () => {
    const [folder, back, pool] = [copyFolder(), newFolder(), await openTarget()]
    const report = await moveToPostgres({ folder, pool })
    expect(report).toMatchObject({ settled: OPEN_CALLS, replacedCount: 0, isContinued: false })
    expect(report.rows).toBeGreaterThan(600)
    expect(existsSync(join(folder, 'weir.db'))).toBe(false)
    expect(await stateOf(pool)).toBe('ready')

    const returned = await moveToSqlite({ folder: back, pool })
    expect(returned).toEqual({ rows: report.rows, tables: report.tables + 1, isContinued: false })
    expect(await stateOf(pool)).toBe('left')
    const before = rowsOf(join(folder, 'weir.db.moved'))
    const after = rowsOf(join(back, 'weir.db'))
    expect([...after.keys()]).toEqual([...before.keys()])
    for (const [table, rows] of before) expect([table, ...after.get(table)!]).toEqual([table, ...rows])
    expect((await auditDatabase(join(back, 'weir.db'), { deep: true })).findings).toEqual([])
    expect(existsSync(join(back, 'moving'))).toBe(false)
  })
})

/** All rows of all tables as texts. Entries of indexes are left out, and the log, whose first row is random. */
function rowsOf(path: string): ReadonlyMap<string, readonly string[]> {
  const db = openReader(path)
  const names = db
    .query(
      `SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT IN
         ('record_log', 'record_index', 'transfer_index', 'index_progress') ORDER BY name`,
    )
    .values()
    .flat() as string[]
  const tables = names.map(name => [name, db.query(`SELECT * FROM "${name}"`).values()] as const)
  const rows = new Map(tables.map(([name, values]) => [name, values.map(row => Bun.inspect(row)).toSorted()]))
  db.close()
  return rows
}

/** Random rows in many tables, with calls that are still open. */
function fill(books: TestBooks): void {
  const runner = buildOperations(books.books)
  const next = randomOperations(7, () => books.nowMs)
  for (let count = 0; count < OPERATIONS; count++) {
    const { name, input } = next()
    const run = runner.run[name] as (input: unknown) => unknown
    try {
      books.db
        .transaction(() => {
          run(input)
          runner.writeOperatorBalances()
        })
        .immediate()
    } catch {
      runner.reset()
    }
    books.nowMs += 20
  }
  books.account(900, '50000000000')
  const firstCall = idAtMs(books.nowMs)
  for (let at = 0; at < CALLS; at++) {
    const callId = firstCall + at
    books.run.hold(holdOf(callId, 900, '5000'))
    if (at >= OPEN_CALLS)
      books.run.settle({ record: recordOf(callId, 900, { endUser: `user ${at % 7}` }), cost: '3000' })
  }
}
