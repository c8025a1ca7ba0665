// The attached statistics file is the one that has the name of the file now.

import { expect, test } from 'bun:test'
import { mkdtempSync, renameSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openReader, openWriter } from '../engine/database.ts'
import { sqliteSnapshots } from '../engine/sqlite-steps.ts'
import { query } from '../engine/steps.ts'
import { AttachedStatistics } from './attached-statistics.ts'
import { StatisticsFile } from './statistics-file.ts'

const findNames = query<{ text: string }>('SELECT text FROM stats.name ORDER BY text')

test('a file that is missing is an error, and one that replaces another is read', () => {
  const folder = mkdtempSync(join(tmpdir(), 'weir-attached-'))
  const path = join(folder, 'stats.db')
  const writeFile = (...names: string[]): void => {
    const file = new StatisticsFile(path)
    for (const name of names) file.numberOf(name)
    file.close()
  }
  openWriter(join(folder, 'weir.db')).close()
  const db = openReader(join(folder, 'weir.db'))
  const statistics = new AttachedStatistics(db)
  const runSteps = sqliteSnapshots(db)
  const names = (): string[] => {
    statistics.refresh()
    return runSteps(findNames.all()).map(({ text }) => text)
  }
  expect(names).toThrow('unable to open')
  writeFile('a')
  expect(names()).toEqual(['a'])
  writeFile('b')
  expect(names()).toEqual(['a', 'b'])
  renameSync(path, `${path}.damaged`)
  expect(names).toThrow('unable to open')
  writeFile('c')
  expect(names()).toEqual(['c'])
  db.close()
  rmSync(folder, { recursive: true, force: true })
})
