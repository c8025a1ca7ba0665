// Opening the database file, and migrating its schema.

import { Database } from 'bun:sqlite'
import { afterEach, beforeEach, describe, expect, spyOn, test } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { copyDatabase, migrate, openReader, openWriter, readMigrations, StoreError } from './database.ts'
import { schemaFindings } from './schema-check.ts'

let folder: string
let db: Database

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'weir-schema-'))
  db = openWriter(join(folder, 'weir.db'))
})
afterEach(() => {
  db.close()
  rmSync(folder, { recursive: true, force: true })
})

const pragma = (name: string): unknown => Object.values(db.query('PRAGMA '.concat(name)).get() as object)[0]
const tables = (): unknown[] =>
  db.query("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name").values().flat()

describe('the writer', () => {
  test('commits durably and waits at most five seconds for a lock', () => {
    expect(pragma('journal_mode')).toBe('wal')
    expect(pragma('synchronous')).toBe(2n) // FULL: a commit is on the disk when it returns
    expect(pragma('foreign_keys')).toBe(1n)
    expect(pragma('recursive_triggers')).toBe(1n)
    expect(pragma('busy_timeout')).toBe(5_000n)
  })

  test('waits for a lock from its first statement on', () => {
    const run = spyOn(Database.prototype, 'run')
    openWriter(join(folder, 'other.db')).close()
    // SQLite locks the file to recover its log. Somebody who reads the file at this moment must not end the start.
    expect(run.mock.calls[0]).toEqual(['PRAGMA busy_timeout = 5000'])
    run.mockRestore()
  })

  test('returns integers as bigint', () => {
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
    expect(() => reader.run("INSERT INTO setting (name, value) VALUES ('a', 'b')")).toThrow('readonly')
  } finally {
    reader.close()
  }
})

describe('migrations', () => {
  test('create the schema in an empty file, and change nothing when run again', () => {
    migrate(db)
    const created = tables()
    expect(created).toEqual(expect.arrayContaining(['account', 'api_key', 'hold', 'record', 'setting', 'tier']))
    expect(pragma('user_version')).toBe(BigInt(readMigrations().length))
    db.run("UPDATE tier SET qpm = 7 WHERE name = 'free'")
    migrate(db)
    expect(tables()).toEqual(created)
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

  test('refuse a schema of a later version, and do not change it', () => {
    migrate(db)
    db.run('PRAGMA user_version = 999')
    expect(() => migrate(db)).toThrow(StoreError)
    expect(() => migrate(db)).toThrow(/schema 999.*Start that version, or restore a backup/)
    expect(pragma('user_version')).toBe(999n)
  })

  test('that are missing run in order, and no others', () => {
    const sqlOf = (version: number): string => 'CREATE TABLE t'.concat(String(version), ' (id INTEGER)')
    const steps = [1, 2, 3].map(version => ({ version, name: String(version), sql: sqlOf(version) }))
    migrate(db, { migrations: steps.slice(0, 1) })
    migrate(db, { migrations: steps })
    expect(tables()).toEqual(['t1', 't2', 't3'])
    expect(pragma('user_version')).toBe(3n)
  })

  test('are preceded by a backup, but not of an empty file, nor when no migration is missing', () => {
    const sql = 'CREATE TABLE first (id INTEGER)'
    const steps = [
      { version: 1, name: 'first', sql },
      { version: 2, name: 'second', sql: 'DROP TABLE first' },
    ]
    const copies: string[] = []
    const backUp = (version: number): void => {
      copies.push(join(folder, `${version}.db`))
      copyDatabase(db, copies.at(-1)!)
    }
    migrate(db, { migrations: steps.slice(0, 1), backUp })
    expect(copies).toEqual([])
    db.run('INSERT INTO first VALUES (7)')
    migrate(db, { migrations: steps, backUp })
    migrate(db, { migrations: steps, backUp })
    expect(copies).toEqual([join(folder, '1.db')])
    const copy = openReader(copies[0]!)
    expect(copy.query('SELECT id FROM first').get()).toEqual({ id: 7n })
    expect(copy.query('PRAGMA user_version').get()).toEqual({ user_version: 1n })
    copy.close()
  })

  test('carry the ledger of the first schema over, with balances that still sum up', () => {
    migrate(db, { migrations: readMigrations().slice(0, 1) })
    db.run("INSERT INTO account VALUES (11, 'a', 700, 100, 5), (12, 'b', 0, 0, 6)")
    db.run("INSERT INTO api_key VALUES (21, zeroblob(32), 'x', 'k', 11, 'pro', NULL, 7, NULL)")
    db.run('INSERT INTO hold VALUES (31, 11, 100)')
    db.run(
      `INSERT INTO record VALUES
         (30, 21, 11, 'p', 'm', 'p#1', 200, 'completed', 'reported', 1, 2, 3, 50, 1, 0, 9)`,
    )
    migrate(db)
    expect(db.query('SELECT id, balance, held FROM account WHERE id > 4').values()).toEqual([
      [11n, 700n, 0n],
      [12n, 0n, 0n],
    ])
    expect(db.query('SELECT sum(balance) AS off FROM account').get()).toEqual({ off: 0n })
    expect(db.query('SELECT ref, kind, debit, credit, amount FROM transfer').values()).toEqual([
      [11n, 'opening', 4n, 11n, 700n],
    ])
    expect(db.query('SELECT id, account_id FROM api_key').values()).toEqual([[21n, 11n]])
    expect(db.query('SELECT call_id, cost, rule FROM record').values()).toEqual([[30n, 50n, 'house']])
    expect(db.query('PRAGMA foreign_key_check').all()).toEqual([])
  })

  test('leave records and holds of the second schema as they were, without losses or hashes', () => {
    migrate(db, { migrations: readMigrations().slice(0, 2) })
    db.run("INSERT INTO account (id, name, kind, balance, created_ms) VALUES (11, 'a', 'prepaid', 70, 5)")
    db.run("INSERT INTO hold VALUES (31, 'task', 11, 21, 40, 3, '{}')")
    const values = [30, 21, 11, 'd', 'p', 'm', 'p#1', 200, null, 'completed', 'house', 'reported', 0, 1, 2, 3, 4, 5]
    const more = [50, 0, 60, 1, '[]', '[]', '{}', 7, 9, 'u', 't']
    const placeholders = [...values, ...more].map((_, index) => `?${index + 1}`).join()
    db.run('INSERT INTO record VALUES ('.concat(placeholders, ')'), [...values, ...more])
    const old = db.query('SELECT * FROM record').get() as object
    migrate(db)
    const newColumns = { loss: null, came_hash: null, went_hash: null, asked: null, why: null, conversation: null }
    expect(db.query('SELECT * FROM record').get()).toEqual({ ...old, ...newColumns })
    expect(db.query('SELECT * FROM hold').values()).toEqual([[31n, 'task', 11n, 21n, 40n, 3n, '{}']])
    expect(db.query('SELECT id, balance FROM account WHERE id > 4').values()).toEqual([[11n, 70n]])
    expect(schemaFindings(db)).toEqual([])
  })

  test('to the third schema that fail halfway leave the second schema', () => {
    const [first, second, third] = readMigrations()
    migrate(db, { migrations: [first!, second!] })
    const before = tables()
    const half = { ...third!, sql: third!.sql.concat('\nSELECT no_such_column') }
    expect(() => migrate(db, { migrations: [first!, second!, half] })).toThrow('no_such_column')
    expect([tables(), pragma('user_version')]).toEqual([before, 2n])
    migrate(db)
    expect(tables()).toEqual(expect.arrayContaining(['kept_response', 'kept_reasoning', 'kept_file', 'task']))
  })

  test('that fail are rolled back completely', () => {
    const good = { version: 1, name: 'good', sql: 'CREATE TABLE good (id INTEGER)' }
    const bad = { version: 2, name: 'bad', sql: 'CREATE TABLE half (id INTEGER); CREATE TABLE half (id INTEGER)' }
    expect(() => migrate(db, { migrations: [good, bad] })).toThrow('already exists')
    expect(tables()).toEqual(['good'])
    expect(pragma('user_version')).toBe(1n)
  })

  test('must have numbers without a gap', () => {
    writeFileSync(join(folder, '0001-a.sql'), 'SELECT 1')
    writeFileSync(join(folder, '0003-c.sql'), 'SELECT 1')
    expect(() => readMigrations(folder)).toThrow('0003-c.sql must follow the one before it')
    expect(readMigrations().map(({ version }) => version)).toEqual(readMigrations().map((_, index) => index + 1))
  })
})
