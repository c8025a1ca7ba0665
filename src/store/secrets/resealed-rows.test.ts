// Tests that values of all tables are encrypted again with the newest key, and that no change of another writer is lost.

import { Database } from 'bun:sqlite'
import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { fingerprintIn, Seal } from '../../base/secrets/seal.ts'
import { buildSecretRing } from '../../base/secrets/secret-ring.ts'
import { migrate } from '../engine/database.ts'
import { sqliteSteps } from '../engine/sqlite-steps.ts'
import type { ResealCursor, ResealedRow, ResealStep } from './resealed-rows.ts'
import { resealedWriter, resealReader, resealStart } from './resealed-rows.ts'
import type { SealedColumn } from './secret-marks.ts'
import { countSealed, pepperedTables, sealedColumns } from './secret-marks.ts'

const [oldSecret, newSecret] = ['o'.repeat(40), 'f'.repeat(40)]
const oldSeal = new Seal(buildSecretRing(oldSecret))
const ring = buildSecretRing(newSecret, oldSecret)
const [newest, older] = ring.fingerprints as [string, string]
const seal = new Seal(ring)
const writeResealed = resealedWriter(sealedColumns)
const resealSome = resealReader(sealedColumns)
const resealing = { seal, newest }

let db: Database
beforeEach(() => {
  db = new Database(':memory:', { strict: true, safeIntegers: true })
  migrate(db)
})
afterEach(() => db.close())

const storeAnswer = (id: number, text = `words of ${id}`, withSeal = oldSeal): void => {
  const location = { table: 'kept_answer', row: id, column: 'sealed' }
  db.query('INSERT OR REPLACE INTO kept_answer VALUES (?1, ?2)').run(id, withSeal.seal(location, Buffer.from(text)))
}
const openAnswer = (id: number): string => {
  const { sealed } = db.query('SELECT sealed FROM kept_answer WHERE call_id = ?1').get(id) as { sealed: Uint8Array }
  return `${fingerprintIn(sealed)} ${seal.open({ table: 'kept_answer', row: id, column: 'sealed' }, sealed)}`
}

/** Encrypts all values again; `between` runs between reading and writing. */
function resealAll(between: (rows: readonly ResealedRow[]) => void = () => {}): number {
  const runSteps = sqliteSteps(db)
  let count = 0
  for (let cursor: ResealCursor | undefined = resealStart; cursor !== undefined; ) {
    const { rows, next }: ResealStep = runSteps(resealSome(resealing, cursor))
    between(rows)
    count += rows.filter(row => runSteps(writeResealed(row))).length
    cursor = next
  }
  return count
}

interface Column {
  readonly table: string
  readonly name: string
  readonly type: string
}

const columns = (): readonly Column[] =>
  db
    .query(
      `SELECT t.name AS "table", c.name, c.type FROM sqlite_schema t, pragma_table_info(t.name) c
       WHERE t.type = 'table'`,
    )
    .all() as Column[]

describe('the lists of digests and encrypted columns have', () => {
  /** Digests of long random tokens, which need no pepper. */
  const opaque = [
    ...['refresh.digest', 'recovery_code.digest', 'invitation.digest'],
    ...['service_token.digest', 'service_token.old_digest', 'session.previous', 'download_ticket.digest'],
  ]
  const peppered = ['api_key.digest', 'api_key.old_digest', 'code.digest']
  /** Columns of bytes that are not encrypted values. */
  const others = [...peppered, ...opaque, 'idempotency.fingerprint', 'audit.hash', 'daily_hash.hash']

  test('every column that may have an encrypted value', () => {
    const known = sealedColumns.map(({ table, column }) => `${table}.${column}`)
    const bytes = columns()
      .filter(({ type }) => type === 'BLOB')
      .map(({ table, name }) => `${table}.${name}`)
    expect([...known, ...others].sort()).toEqual(bytes.sort())
  })

  test('the primary keys of their tables, and only existing columns', () => {
    for (const { table, column, key, row } of sealedColumns) {
      const found = db.query(`SELECT name, pk FROM pragma_table_info('${table}')`).all()
      const info = found as { name: string; pk: bigint }[]
      expect([table, info.filter(({ pk }) => pk > 0n).map(({ name }) => name)]).toEqual([table, [...key]])
      for (const name of [column, ...row]) expect(info.map(sealedColumn => sealedColumn.name)).toContain(name)
    }
  })

  test('every digest that uses a pepper', () => {
    const named = columns().map(({ table, name }) => `${table}.${name}`)
    const marked = named.filter(name => name.endsWith('pepper'))
    expect(marked.sort()).toEqual(pepperedTables.map(({ table, pepper }) => `${table}.${pepper}`).sort())
    expect(pepperedTables.map(({ table, digest }) => `${table}.${digest}`).sort()).toEqual(peppered)
  })
})

/** A row with a value of the right type in every column, and encrypted values where they belong. */
function fillRow(table: string): void {
  const sealed = sealedColumns.filter(one => one.table === table)
  const info = columns().filter(one => one.table === table)
  const plain = new Map(info.map(({ name, type }) => [name, type === 'INTEGER' ? 7 : type === 'REAL' ? 0.5 : "it's/a"]))
  const valueOf = ({ name, type }: Column): string | number | Buffer => {
    const column = sealed.find(one => one.column === name)
    if (column !== undefined)
      return oldSeal.seal(
        locationOf(
          column,
          column.row.map(one => plain.get(one)),
        ),
        plainText(column),
      )
    return type === 'BLOB' ? Buffer.alloc(32) : plain.get(name)!
  }
  const names = info.map(({ name }) => name)
  const sql = `INSERT INTO ${table} (${names.join()}) VALUES (${names.map((_, index) => `?${index + 1}`).join()})`
  db.query(sql).run(...info.map(valueOf))
}

const plainText = ({ table, column }: SealedColumn): Buffer => Buffer.from(`words of ${table}.${column}`)
const locationOf = ({ table, column, sealedIn = table }: SealedColumn, row: readonly unknown[]) => ({
  table: sealedIn,
  row: row.join('/'),
  column,
})

test('the values of every table are encrypted again, whatever its primary key is', () => {
  db.run('PRAGMA foreign_keys = OFF')
  db.run('PRAGMA ignore_check_constraints = ON')
  for (const table of new Set(sealedColumns.map(one => one.table))) fillRow(table)
  const sum = (fingerprint: string): number =>
    Object.values(sqliteSteps(db)(countSealed())[fingerprint] ?? {}).reduce((all, one) => all + one, 0)
  expect([sum(older), sum(newest)]).toEqual([sealedColumns.length, 0])
  expect(resealAll()).toBe(sealedColumns.length)
  expect([sum(older), sum(newest)]).toEqual([0, sealedColumns.length])
  for (const column of sealedColumns) {
    const [found] = db.query(`SELECT ${column.column}, ${column.row.join()} FROM ${column.table}`).values()
    const [sealed, ...row] = found as [Uint8Array, ...unknown[]]
    expect(seal.open(locationOf(column, row), sealed)).toEqual(plainText(column))
  }
  expect(resealAll()).toBe(0)
})

test('a row that changes meanwhile keeps its change', () => {
  for (let id = 1; id <= 100; id++) storeAnswer(id)
  const changed = new Set<number>()
  resealAll(rows => {
    const [id] = rows[0]?.key ?? []
    if (typeof id !== 'number') return
    storeAnswer(id, 'another answer')
    changed.add(id)
    db.query('DELETE FROM kept_answer WHERE call_id = ?1').run(id + 1)
  })
  for (const id of changed) expect(openAnswer(id)).toBe(`${older} another answer`)
  expect(changed.size).toBeGreaterThan(1)
})

test('any number of rows of any size is encrypted again, except for damaged ones', () => {
  fc.assert(
    fc.property(fc.array(fc.tuple(fc.nat(400_000), fc.boolean()), { maxLength: 80 }), sizes => {
      db.run('DELETE FROM kept_answer')
      sizes.forEach(([size], index) => storeAnswer(index + 1, 'x'.repeat(size)))
      sizes.forEach(([, isDamaged], index) => {
        if (isDamaged) damage(index + 1)
      })
      const intact = sizes.filter(([, isDamaged]) => !isDamaged).length
      expect(resealAll()).toBe(intact)
      const counted = sqliteSteps(db)(countSealed())
      expect([counted[newest]?.kept_answer ?? 0, counted[older]?.kept_answer ?? 0]).toEqual([
        intact,
        sizes.length - intact,
      ])
    }),
    { numRuns: 12 },
  )
})

function damage(id: number): void {
  const row = db.query('SELECT sealed FROM kept_answer WHERE call_id = ?1').get(id) as { sealed: Uint8Array }
  const sealed = Buffer.from(row.sealed)
  sealed[sealed.length - 1]! ^= 1
  db.query('UPDATE kept_answer SET sealed = ?2 WHERE call_id = ?1').run(id, sealed)
}
