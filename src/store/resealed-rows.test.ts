// Envelopes are brought to the newest key wherever they lie, and nobody's change is lost by it.

import { Database } from 'bun:sqlite'
import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { markIn, Seal } from '../base/seal.ts'
import { ringOf } from '../base/secret-ring.ts'
import { migrate } from './database.ts'
import type { ResealCursor, ResealedRow } from './resealed-rows.ts'
import { fromTheStart, resealedWriter, resealSome } from './resealed-rows.ts'
import { countSealed, pepperedTables, sealedColumns } from './secret-marks.ts'

const [old, fresh] = ['o'.repeat(40), 'f'.repeat(40)]
const before = new Seal(ringOf(old))
const both = ringOf(fresh, old)
const [newest, older] = both.marks as [string, string]
const seal = new Seal(both)
const resealing = { columns: sealedColumns, seal, newest }

let db: Database
beforeEach(() => {
  db = new Database(':memory:', { strict: true, safeIntegers: true })
  migrate(db)
})
afterEach(() => db.close())

const keep = (id: number, text = `words of ${id}`, by = before): void => {
  const place = { table: 'kept_answer', row: id, column: 'sealed' }
  db.query('INSERT OR REPLACE INTO kept_answer VALUES (?1, ?2)').run(id, by.close(place, Buffer.from(text)))
}
const wordsOf = (id: number): string => {
  const { sealed } = db.query('SELECT sealed FROM kept_answer WHERE call_id = ?1').get(id) as { sealed: Uint8Array }
  return `${markIn(sealed)} ${seal.open({ table: 'kept_answer', row: id, column: 'sealed' }, sealed)}`
}

/** To the end; between reading and writing something else may happen. */
function resealAll(between: (rows: readonly ResealedRow[]) => void = () => {}): number {
  const write = resealedWriter(db, sealedColumns)
  let count = 0
  for (let cursor: ResealCursor | undefined = fromTheStart; cursor !== undefined; ) {
    const { rows, next }: ReturnType<typeof resealSome> = resealSome(db, resealing, cursor)
    between(rows)
    count += rows.filter(write).length
    cursor = next
  }
  return count
}

interface Column {
  readonly table: string
  readonly name: string
  readonly type: string
}

describe('the tables of what rests on secrets have', () => {
  const columns = (): readonly Column[] =>
    db
      .query(
        `SELECT t.name AS "table", c.name, c.type FROM sqlite_schema t, pragma_table_info(t.name) c
         WHERE t.type = 'table'`,
      )
      .all() as Column[]

  /** Bytes that are no envelopes, and digests that no pepper is in. */
  const others = ['api_key.digest', 'api_key.old_digest', 'code.digest', 'idempotency.fingerprint', 'audit.hash']
  /** Of what is long and random enough to do without. */
  const unpeppered = ['invitation.digest', 'recovery_code.digest', 'refresh.digest']

  test('every column that may hold an envelope', () => {
    const known = sealedColumns.map(({ table, column }) => `${table}.${column}`)
    const bytes = columns().filter(({ type }) => type === 'BLOB').map(({ table, name }) => `${table}.${name}`)
    expect([...known, ...others, ...unpeppered].sort()).toEqual(bytes.sort())
  })

  test('the primary keys of their tables, and columns that are there', () => {
    for (const { table, column, key, row } of sealedColumns) {
      const found = db.query(`SELECT name, pk FROM pragma_table_info('${table}')`).all()
      const info = found as { name: string; pk: bigint }[]
      expect([table, info.filter(({ pk }) => pk > 0n).map(({ name }) => name)]).toEqual([table, [...key]])
      for (const name of [column, ...row]) expect(info.map(one => one.name)).toContain(name)
    }
  })

  test('every digest with a pepper in it', () => {
    const named = columns().map(({ table, name }) => `${table}.${name}`)
    const marked = named.filter(name => name.endsWith('pepper'))
    expect(marked.sort()).toEqual(pepperedTables.map(({ table, pepper }) => `${table}.${pepper}`).sort())
    const digests = pepperedTables.map(({ table, digest }) => `${table}.${digest}`)
    expect(others.filter(name => name.endsWith('digest')).sort()).toEqual(digests.sort())
  })
})

test('every table is walked, whatever its key is', () => {
  const put = (table: string, column: string, row: string): Buffer =>
    before.close({ table, row, column }, Buffer.from(`${table} ${row}`))
  db.run('PRAGMA foreign_keys = OFF')
  keep(7)
  const response = put('kept_response', 'sealed', '3/resp_a/b')
  db.query(
    `INSERT INTO kept_response VALUES (1, 3, 'resp_a/b', 1, 'completed', 'm', NULL, NULL, NULL, 0, 9, 1, ?1),
       (2, 3, 'none', 1, 'completed', 'm', 'c', 'u', NULL, 0, 9, 1, NULL)`,
  ).run(response)
  db.query('INSERT INTO kept_reasoning VALUES (1, 3, ?1, 9, 1, ?2)').run(
    "it's",
    put('kept_reasoning', 'sealed', "3/it's"),
  )
  db.query(
    `INSERT INTO task VALUES (5, 3, 't', 1, 'p', 'm', 'c', '{}', NULL, 'queued', 0, 0, NULL, 1, 9, ?1)`,
  ).run(put('task', 'sealed', '5'))
  db.query(
    `INSERT INTO channel (id, proxy, provider, name, origin, credential, fingerprint, author, created_ms, changed_ms,
       version) VALUES ('p#1', ?1, 'p', 'n', 'o', ?2, 'f', 'x', 0, 0, 1)`,
  ).run(put('channel_rule', 'proxy', 'p#1'), put('channel', 'credential', 'p#1'))
  const channels = { 'channel.proxy': 1, 'channel.credential': 1 }
  const counts = { kept_answer: 1, kept_response: 1, kept_reasoning: 1, task: 1, ...channels }
  expect(countSealed(db)).toEqual({ [older]: counts })
  expect(resealAll()).toBe(6)
  expect(countSealed(db)).toEqual({ [newest]: counts })
  for (const { table, column, row, sealedIn = table } of sealedColumns) {
    const [found] = db.query(`SELECT ${column}, ${row.join()} FROM ${table} WHERE ${column} IS NOT NULL`).values()
    const [sealed, ...names] = found as [Uint8Array, ...unknown[]]
    const place = { table: sealedIn, row: names.join('/'), column }
    if (table !== 'kept_answer') expect(seal.open(place, sealed).toString()).toBe(`${sealedIn} ${place.row}`)
  }
  expect(wordsOf(7)).toBe(`${newest} words of 7`)
  expect(resealAll()).toBe(0)
})

test('what changes meanwhile stays as it was changed', () => {
  for (let id = 1; id <= 100; id++) keep(id)
  const changed = new Set<number>()
  resealAll(rows => {
    const [id] = rows[0]?.key ?? []
    if (typeof id !== 'number') return
    keep(id, 'another answer')
    changed.add(id)
    db.query('DELETE FROM kept_answer WHERE call_id = ?1').run(id + 1)
  })
  for (const id of changed) expect(wordsOf(id)).toBe(`${older} another answer`)
  expect(changed.size).toBeGreaterThan(1)
})

test('any number of rows, of any size, some of them damaged', () => {
  fc.assert(
    fc.property(fc.array(fc.tuple(fc.nat(400_000), fc.boolean()), { maxLength: 80 }), sizes => {
      db.run('DELETE FROM kept_answer')
      sizes.forEach(([size], at) => keep(at + 1, 'x'.repeat(size)))
      sizes.forEach(([, isDamaged], at) => {
        if (isDamaged) damage(at + 1)
      })
      const whole = sizes.filter(([, isDamaged]) => !isDamaged).length
      expect(resealAll()).toBe(whole)
      const counted = countSealed(db)
      expect([counted[newest]?.kept_answer ?? 0, counted[older]?.kept_answer ?? 0]).toEqual([
        whole,
        sizes.length - whole,
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
