// Tests a statistics file that cannot be opened: it is replaced only if it is damaged, because the sums of deleted records
// exist nowhere else.

import { Database } from 'bun:sqlite'
import { afterEach, beforeEach, expect, test } from 'bun:test'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openWriter } from '../engine/database.ts'
import { StatisticsFile } from './statistics-file.ts'

const mark = { seq: 5n, callId: 7n, scanBefore: 0n, scanTop: 0n, scanBottom: 0n }
const failure = { cut: 'all', span: 'day', one: 0, outcome: 'x', error: '', at: 0, calls: 1 } as const

let folder: string
let path: string

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'weir-statistics-'))
  path = join(folder, 'statistics.db')
  const file = new StatisticsFile(path)
  file.startOver(mark)
  file.close()
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

test('a locked file is left as it is', () => {
  const other = openWriter(path)
  other.run('PRAGMA locking_mode = EXCLUSIVE')
  other.run('UPDATE mark SET seq = seq')
  expect(() => new StatisticsFile(path)).toThrow()
  expect(existsSync(`${path}.damaged`)).toBeFalse()
  other.close()
  const file = new StatisticsFile(path)
  expect(file.mark()).toEqual(mark)
  file.close()
})

test('a file that is not a database is renamed', () => {
  const content = 'no database at all, '.repeat(100)
  writeFileSync(path, content)
  const file = new StatisticsFile(path)
  expect(file.mark()).toBeUndefined()
  file.close()
  expect(readFileSync(`${path}.damaged`, 'utf8')).toBe(content)
})

test('a file that turns out to be damaged is renamed, and a new one is created', () => {
  const db = new Database(path)
  const found = db.query("SELECT rootpage FROM sqlite_schema WHERE name = 'failure'").get()
  const { rootpage } = found as { rootpage: number }
  db.run('PRAGMA wal_checkpoint(TRUNCATE)')
  db.close()
  const bytes = readFileSync(path)
  bytes.fill(0xff, (rootpage - 1) * 4_096, rootpage * 4_096)
  writeFileSync(path, bytes)
  const damaged = new StatisticsFile(path)
  expect(damaged.mark()).toEqual(mark)
  const added = { shares: [], failures: [failure], endUsers: [], late: [], mark }
  expect(() => damaged.add(added)).toThrow()
  damaged.close()
  const file = new StatisticsFile(path)
  expect(file.mark()).toBeUndefined()
  file.add(added)
  file.close()
})
