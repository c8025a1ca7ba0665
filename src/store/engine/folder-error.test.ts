// Errors of SQLite and of the file system, as they really are, become sentences that say what to do.

import { Database } from 'bun:sqlite'
import { afterEach, beforeEach, expect, test } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { storageMessage } from './folder-error.ts'

let folder: string

beforeEach(() => (folder = mkdtempSync(join(tmpdir(), 'weir-error-'))))
afterEach(() => rmSync(folder, { recursive: true, force: true }))

function messageOf(run: () => unknown): string | undefined {
  try {
    run()
  } catch (fault) {
    return storageMessage(fault as Error)
  }
  throw new Error('it did not fail')
}

const path = (): string => join(folder, 'x.db')

test('a database that may not grow', () => {
  const db = new Database(path())
  db.run('PRAGMA max_page_count = 2')
  db.run('CREATE TABLE a (text TEXT)')
  const fill = (): unknown => db.run('INSERT INTO a VALUES (zeroblob(100000))')
  expect(messageOf(fill)).toMatch(
    /^The disk or the database is full: .* Make room on the disk, or raise WEIR_DATABASE_MB\.$/,
  )
  db.close()
})

test.skipIf(process.platform !== 'linux')('a disk that is full', () => {
  expect(messageOf(() => writeFileSync('/dev/full', 'x'))).toMatch(/^The disk or the database is full: ENOSPC/)
})

test('a file that is no database, and one that cannot be created', () => {
  writeFileSync(path(), 'x'.repeat(5_000))
  expect(messageOf(() => new Database(path()).run('CREATE TABLE a (b)'))).toMatch(
    /^The database is damaged: .* weir restore/,
  )
  expect(messageOf(() => new Database(join(folder, 'no', 'x.db')))).toMatch(/^The data cannot be written: /)
})

test('all other errors keep their own text', () => {
  expect(storageMessage(new Error('broken'))).toBeUndefined()
  expect(messageOf(() => new Database(':memory:').run('nonsense'))).toBeUndefined()
})
