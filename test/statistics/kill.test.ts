// Killed at any moment, the ledger and its roller lose nothing and count nothing twice; and a statistics file is used
// for its own database only.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { copyFileSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { copyDatabase, migrate, openWriter } from '../../src/store/engine/database.ts'
import { buildOperations } from '../../src/store/engine/operation-runner.ts'
import { openBooks } from '../../src/store/ledger/books.ts'
import { buildIndexWriter, recordIndexes } from '../../src/store/ledger/late-indexes.ts'
import { recoverHolds } from '../../src/store/ledger/recovery.ts'
import { StatisticsAggregator } from '../../src/store/statistics/aggregator.ts'
import { recordOf } from '../ledger/sample-books.ts'
import { openDatabase } from '../support/database.ts'
import { recount, written } from './recount.ts'

let folder: string
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'weir-killed-'))
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const KILLS = 8

/** Runs until so many calls are settled, and is killed in the middle of the next ones. */
async function runAndKill(calls: number): Promise<void> {
  const child = Bun.spawn([process.execPath, join(import.meta.dir, 'rolling-child.ts'), folder], {
    stdout: 'pipe',
    stderr: 'inherit',
  })
  const reader = child.stdout.getReader()
  for (let settled = 0; settled < calls; ) {
    const { value } = await reader.read()
    if (value === undefined) throw new Error('the process ended by itself')
    settled += value.length
  }
  child.kill('SIGKILL')
  await child.exited
}

function rollAll(place: string): void {
  const paths = { database: join(place, 'weir.db'), statistics: join(place, 'stats.db') }
  const roller = new StatisticsAggregator({ ...paths, dateMs: Date.now })
  while (!roller.step().upToDate);
  roller.close()
}

function expectEqual(place: string): number {
  const [db, statistics] = ['weir.db', 'stats.db'].map(name =>
    openDatabase(join(place, name), { readonly: true, safeIntegers: true }),
  )
  const figures = written(statistics!)
  expect(figures).toEqual(recount(db!, Date.now(), new Map()))
  db!.close()
  statistics!.close()
  // Of all months, because a month may end meanwhile.
  const months = [...figures].filter(([name]) => name.startsWith('all|month|'))
  return months.reduce((sum, [, [calls]]) => sum + Number(calls), 0)
}

test('whenever it is killed, the sums are those of the records', async () => {
  let calls = 0
  for (let at = 0; at < KILLS; at++) {
    await runAndKill(1 + at * 40)
    const db = openWriter(join(folder, 'weir.db'))
    recoverHolds(openBooks(db))
    db.close()
    rollAll(folder)
    const now = expectEqual(folder)
    expect(now).toBeGreaterThanOrEqual(calls)
    calls = now
  }
  expect(calls).toBeGreaterThan(100)
}, 120_000)

describe('statistics', () => {
  /** A ledger in a folder of its own, to which records are added. */
  function openFolder(name: string) {
    const ledgerFolder = mkdtempSync(join(folder, name))
    const db = openWriter(join(ledgerFolder, 'weir.db'))
    migrate(db)
    const { run } = buildOperations(openBooks(db))
    const add = (from: number, count: number): void =>
      db
        .transaction(() => {
          for (let id = from; id < from + count; id++) run.record({ record: recordOf(id, { accountId: 5, keyId: 6 }) })
        })
        .immediate()
    return { ledgerFolder, db, add, run }
  }
  const copy = (from: string, to: string): void => copyFileSync(join(from, 'stats.db'), join(to, 'stats.db'))

  test('of another database are not used', () => {
    const [first, second] = [openFolder('one'), openFolder('other')]
    first.add(1_000, 20)
    rollAll(first.ledgerFolder)
    second.add(1_000, 7)
    copy(first.ledgerFolder, second.ledgerFolder)
    rollAll(second.ledgerFolder)
    expectEqual(second.ledgerFolder)
  })

  test('that are ahead of a database, or of another continuation of it, are not used either', () => {
    const now = openFolder('now')
    now.add(1_000, 20)
    const earlier = mkdtempSync(join(folder, 'then'))
    copyDatabase(now.db, join(earlier, 'weir.db'))
    now.add(1_100, 20)
    rollAll(now.ledgerFolder)
    copy(now.ledgerFolder, earlier)
    const db = openWriter(join(earlier, 'weir.db'))
    const { run } = buildOperations(openBooks(db))
    for (let id = 1_200; id < 1_260; id++) run.record({ record: recordOf(id, { accountId: 7, keyId: 8 }) })
    db.close()
    rollAll(earlier)
    expectEqual(earlier)
  })

  test('that are older than a copy of the database continue with it, although records were deleted meanwhile', () => {
    const now = openFolder('before')
    now.add(1_000, 20)
    rollAll(now.ledgerFolder)
    const copied = mkdtempSync(join(folder, 'copied'))
    copyDatabase(openDatabase(join(now.ledgerFolder, 'stats.db'), { readonly: true }), join(copied, 'stats.db'))
    now.db.run('DELETE FROM record WHERE call_id < 1010')
    now.add(1_100, 5)
    copyDatabase(now.db, join(copied, 'weir.db'))
    rollAll(copied)
    const statistics = openDatabase(join(copied, 'stats.db'), { readonly: true })
    expect(statistics.query('SELECT calls FROM figure WHERE cut = 0 AND span = 3').values()).toEqual([[25]])
    statistics.close()
  })

  test('never get a number of the log twice, however much of the log is trimmed', () => {
    const { ledgerFolder, db, add, run } = openFolder('log')
    add(1_000, 20)
    rollAll(ledgerFolder)
    // What is not in every index yet is found by the log.
    const addEntries = buildIndexWriter(db, { tailRows: 1, rowsPerStep: 1_000 })
    for (const kind of Object.keys(recordIndexes)) {
      expect([kind, run.trimLog({ below: 1_000_000 }).count]).toEqual([kind, kind === 'keyId' ? 1 : 0])
      addEntries()
    }
    run.trimLog({ below: 1_000_000 })
    add(1_100, 3)
    rollAll(ledgerFolder)
    expectEqual(ledgerFolder)
    expect(db.query('SELECT count(*), max(seq) FROM record_log').values()).toEqual([[4n, 23n]])
  })
})
