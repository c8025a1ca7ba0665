// Entries that are written later than their rows: whenever they are written, every search finds every record once, and
// a deleted record leaves nothing behind.

import { afterEach, beforeEach, expect, test } from 'bun:test'
import fc from 'fast-check'
import type { TestBooks } from '../../../test/support/books.ts'
import { openTestBooks, recordOf } from '../../../test/support/books.ts'
import { sqliteSteps } from '../engine/sqlite-steps.ts'
import type { RecordFilter } from '../records/record-search.ts'
import { findRecords } from '../records/record-search.ts'
import { recordColumns } from '../tables/records.ts'
import { buildIndexWriter, recordIndexes } from './late-indexes.ts'

let books: TestBooks

beforeEach(() => {
  books = openTestBooks({ sync: false })
})
afterEach(() => books.close())

const found = (filter: RecordFilter): readonly number[] =>
  sqliteSteps(books.db)(findRecords(recordColumns, { scope: null, filter, limit: 1_000 })).rows.map(
    ({ callId }) => callId,
  )

const accounts = [1, 2, 3]
/** Calls of this account fail, and have an end user. */
const FAILING = 3

const filters: readonly (readonly [RecordFilter, (account: number) => boolean])[] = [
  ...accounts.map(id => [{ accountId: id }, (account: number) => account === id] as const),
  ...accounts.map(id => [{ keyId: id + 1_000 }, (account: number) => account === id] as const),
  [{ model: { provider: 'p', name: 'm1' } }, account => account === 1],
  [{ outcome: ['refused'] }, account => account === FAILING],
  [{ status: 429 }, account => account === FAILING],
  [{ endUser: 'u' }, account => account === FAILING],
]

const step = fc.oneof(
  { weight: 6, arbitrary: fc.record({ kind: fc.constant('write'), number: fc.nat(3) }) },
  { weight: 6, arbitrary: fc.record({ kind: fc.constant('index'), number: fc.nat(0) }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('delete'), number: fc.nat(40) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('trim'), number: fc.nat(0) }) },
)

test('every record is found once, and a deleted one leaves no entry', () => {
  const { db, run } = books
  const writeIndexes = buildIndexWriter(db, { tailRows: 4, rowsPerStep: 3 })
  let lastId = 0
  fc.assert(
    fc.property(fc.array(step, { minLength: 20, maxLength: 80 }), steps => {
      db.run('DELETE FROM record')
      const written = new Map<number, number>()
      for (const { kind, number } of steps) {
        if (kind === 'index') writeIndexes()
        if (kind === 'trim') run.trimLog({ below: lastId })
        if (kind === 'delete') {
          const id = lastId - number
          db.query('DELETE FROM record WHERE call_id = ?1').run(id)
          written.delete(id)
        }
        if (kind === 'write') {
          const account = accounts[number % accounts.length]!
          const failed = { outcome: 'refused', status: 429, error: 'rate_limited', endUser: 'u' }
          const more = { model: `m${account}`, ...(account === FAILING && failed) }
          run.record({ record: recordOf(++lastId, account, more) })
          written.set(lastId, account)
        }
        for (const [filter, fits] of filters) {
          const wanted = [...written].filter(([, account]) => fits(account)).map(([id]) => id)
          expect(found(filter)).toEqual(wanted.reverse())
        }
      }
      const left = db.query('SELECT count(*) AS n FROM record_index WHERE call_id NOT IN (SELECT call_id FROM record)')
      expect(left.get()).toEqual({ n: 0n })
    }),
    { numRuns: 40 },
  )
})

test('each index has an entry for each of its records in the end', () => {
  const { db, run } = books
  for (let id = 1; id <= 50; id++) run.record({ record: recordOf(id, id % 3, id % 2 === 0 ? { endUser: 'u' } : {}) })
  const writeIndexes = buildIndexWriter(db, { tailRows: 1, rowsPerStep: 7 })
  for (let at = 0; at < 100; at++) writeIndexes()
  for (const { kind, value } of Object.values(recordIndexes)) {
    const wanted = db.query(`SELECT ${value}, call_id FROM record r WHERE ${value} IS NOT NULL ORDER BY 1, 2`)
    const entries = db.query('SELECT value, call_id FROM record_index WHERE kind = ?1 ORDER BY 1, 2')
    expect(entries.values(kind)).toEqual(wanted.values())
  }
  expect(db.query('SELECT DISTINCT seq FROM index_progress WHERE kind > 0').values()).toEqual([[50n]])
})
