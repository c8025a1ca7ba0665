// How the file is opened, and how its schema comes to be.

import type { Database } from 'bun:sqlite'
import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { migrate, openReader, openWriter, readMigrations, StoreError } from './database.ts'

let folder: string
let db: Database

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'weir-schema-'))
  db = openWriter(join(folder, 'weir.db'))
})
afterEach(() => {
  db.close()
  rmSync(folder, { recursive: true })
})

const pragma = (name: string): unknown => Object.values(db.query('PRAGMA '.concat(name)).get() as object)[0]
const tables = (): unknown[] =>
  db.query("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name").values().flat()

describe('the writer', () => {
  test('survives power loss and waits for nobody long', () => {
    expect(pragma('journal_mode')).toBe('wal')
    expect(pragma('synchronous')).toBe(2n) // FULL: a commit is on the disk when it returns
    expect(pragma('foreign_keys')).toBe(1n)
    expect(pragma('recursive_triggers')).toBe(1n)
    expect(pragma('busy_timeout')).toBe(5_000n)
  })

  test('gives integers as bigint', () => {
    expect(db.query('SELECT 9007199254740993 AS n').get()).toEqual({ n: 9_007_199_254_740_993n })
  })

  test('refuses a statement whose parameters are misspelt', () => {
    expect(() => db.query('SELECT $right AS n').get({ wrong: 1 })).toThrow()
  })
})

test('a reader cannot write', () => {
  migrate(db)
  const reader = openReader(join(folder, 'weir.db'))
  try {
    expect(reader.query('SELECT count(*) AS n FROM tier').get()).toEqual({ n: 3n })
    expect(() => reader.run("INSERT INTO setting VALUES ('a', 'b')")).toThrow('readonly')
  } finally {
    reader.close()
  }
})

describe('migrations', () => {
  test('bring an empty file up to date, and again do nothing', () => {
    migrate(db)
    const made = tables()
    expect(made).toEqual(expect.arrayContaining(['account', 'api_key', 'hold', 'record', 'setting', 'tier']))
    expect(pragma('user_version')).toBe(BigInt(readMigrations().length))
    db.run("UPDATE tier SET qpm = 7 WHERE name = 'free'")
    migrate(db)
    expect(tables()).toEqual(made)
    expect(db.query("SELECT qpm FROM tier WHERE name = 'free'").get()).toEqual({ qpm: 7n })
  })

  test('ship the three tiers', () => {
    migrate(db)
    expect(db.query('SELECT name, price_per_mille FROM tier ORDER BY name').values()).toEqual([
      ['free', 1000n],
      ['pro', 1000n],
      ['standard', 1000n],
    ])
  })

  test('refuse a schema from a later version, and leave it alone', () => {
    migrate(db)
    db.run('PRAGMA user_version = 999')
    expect(() => migrate(db)).toThrow(StoreError)
    expect(() => migrate(db)).toThrow(/schema 999.*Start that version, or restore a backup/)
    expect(pragma('user_version')).toBe(999n)
  })

  test('run only what is missing, in order', () => {
    const sqlOf = (version: number): string => 'CREATE TABLE t'.concat(String(version), ' (id INTEGER)')
    const steps = [1, 2, 3].map(version => ({ version, name: String(version), sql: sqlOf(version) }))
    migrate(db, steps.slice(0, 1))
    migrate(db, steps)
    expect(tables()).toEqual(['t1', 't2', 't3'])
    expect(pragma('user_version')).toBe(3n)
  })

  test('that fail leave nothing of themselves', () => {
    const good = { version: 1, name: 'good', sql: 'CREATE TABLE good (id INTEGER)' }
    const bad = { version: 2, name: 'bad', sql: 'CREATE TABLE half (id INTEGER); CREATE TABLE half (id INTEGER)' }
    expect(() => migrate(db, [good, bad])).toThrow('already exists')
    expect(tables()).toEqual(['good'])
    expect(pragma('user_version')).toBe(1n)
  })

  test('follow one another without a gap', () => {
    writeFileSync(join(folder, '0001-a.sql'), 'SELECT 1')
    writeFileSync(join(folder, '0003-c.sql'), 'SELECT 1')
    expect(() => readMigrations(folder)).toThrow('0003-c.sql follows the one before it')
    expect(readMigrations().map(({ version }) => version)).toEqual(readMigrations().map((_, index) => index + 1))
  })
})
