// Looking at records and statements: the right rows, page after page, and always by an index.

import type { Database } from 'bun:sqlite'
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { rmSync } from 'node:fs'
import { BooksReader } from '../../src/store/books-reader.ts'
import { CLEARING, REVENUE } from '../../src/store/operator-accounts.ts'
import type { RecordFilter } from '../../src/store/record-search.ts'
import { endSql, findRecords, pageSql, ROWS_A_PAGE, walkNames } from '../../src/store/record-search.ts'
import { chargesSql, othersSql, revenueSql, walkedSql } from '../../src/store/statement.ts'
import type { SampleBooks } from './sample-books.ts'
import { alice, aliceKey, bob, bobKey, calls, holdOf, openSampleBooks, recordOf } from './sample-books.ts'

let books: SampleBooks
let db: Database

beforeAll(() => {
  books = openSampleBooks()
  db = books.db
})
afterAll(() => {
  db.close()
  rmSync(books.folder, { recursive: true })
})

const planOf = (sql: string, count: number): string => {
  const values = new Array<number>(count).fill(1)
  return (db.query('EXPLAIN QUERY PLAN '.concat(sql)).all(...values) as { detail: string }[])
    .map(({ detail }) => detail)
    .join('; ')
}

describe('the plan', () => {
  /** The rows of one page are few and in memory; everything else is an index or a range of ids. */
  const scansTable = /SCAN (record|transfer|t)\b/

  test.each(walkNames)('of a page of records by %s reads an index', walk => {
    for (const sql of [pageSql(walk), endSql(walk)]) {
      const plan = planOf(sql, 10)
      expect(plan).not.toMatch(scansTable)
      expect(plan).toMatch(walk === 'none' ? /SEARCH record USING INTEGER PRIMARY/ : /USING .*INDEX record_/)
      expect(plan).not.toContain('TEMP B-TREE')
    }
  })

  const others = [
    [othersSql, 7, /transfer_to[^]*transfer_from/],
    [chargesSql, 6, /record_account[^]*transfer_once/],
    [walkedSql, 4, /record_account/],
    [revenueSql, 8, /SEARCH transfer USING INTEGER PRIMARY/],
  ] as const
  test.each(others)('of a statement reads its indexes', (sql, count, indexes) => {
    const plan = planOf(sql, count)
    expect(plan).not.toMatch(scansTable)
    expect(plan).toMatch(indexes)
    expect(plan).not.toContain('TEMP B-TREE')
  })
})

describe('records', () => {
  const MANY = 12_000
  const models = ['a', 'b', 'c']
  beforeAll(() => {
    books.run(run => {
      for (let at = 0; at < MANY; at++) {
        const owner = at % 2 === 0 ? { accountId: alice, keyId: aliceKey } : { accountId: bob, keyId: bobKey }
        const more = { model: models[at % 3]!, outcome: at % 5 === 0 ? 'refused' : 'completed' }
        const endUser = at % 7 === 0 ? 'u7' : null
        run.record({ record: { ...recordOf(100_000 + at, owner), ...more, endUser, status: 200 } })
      }
    })
  })

  const allOf = (filter: RecordFilter, limit: number): number[] => {
    const found: number[] = []
    let page = findRecords(db, filter, limit)
    for (;;) {
      found.push(...page.rows.map(row => Number(row.call_id)))
      if (page.next === undefined) return found
      page = findRecords(db, { ...filter, before: page.next }, limit)
    }
  }
  const expected = (fits: (at: number) => boolean): number[] =>
    Array.from({ length: MANY }, (_, at) => at).filter(fits).map(at => 100_000 + at).reverse()

  const from = 100_000
  const modelA = { name: 'a', provider: 'p' }
  const filters: readonly (readonly [string, RecordFilter, (at: number) => boolean])[] = [
    ['all', { from }, () => true],
    ['an account', { from, accountId: alice }, at => at % 2 === 0],
    ['a key', { from, keyId: bobKey }, at => at % 2 === 1],
    ['a model', { from, model: { name: 'b', provider: 'p' } }, at => at % 3 === 1],
    ['a model of another provider', { from, model: { name: 'b', provider: 'q' } }, () => false],
    ['failures', { from, outcome: 'refused' }, at => at % 5 === 0],
    ['what went well', { from, outcome: 'completed' }, at => at % 5 !== 0],
    ['an end user', { from, endUser: 'u7' }, at => at % 7 === 0],
    ['a time', { from: 101_000, before: 102_000 }, at => at >= 1_000 && at < 2_000],
    [
      'everything at once',
      { from, accountId: alice, keyId: aliceKey, model: modelA, outcome: 'refused', endUser: 'u7' },
      at => at % 210 === 0,
    ],
    ['nothing at all', { from, accountId: alice, keyId: bobKey }, () => false],
  ]
  test.each(filters)('by %s are all found, newest first, however long a page is', (_, filter, fits) => {
    for (const limit of [700, 5_000]) expect(allOf(filter, limit)).toEqual(expected(fits))
  })

  test('one page looks at a bounded number of rows, and says where to go on', () => {
    const page = findRecords(db, { keyId: aliceKey, endUser: undefined, outcome: 'none such' }, 10)
    expect(page.rows).toEqual([])
    expect(page.next).toBe(100_000 + MANY - 2 - 2 * (ROWS_A_PAGE - 1))
  })
})

describe('a statement', () => {
  test('has every transfer of the account once, page by page, past thousands of free calls', () => {
    const reader = new BooksReader(books.path)
    const kinds = (limit: number): string[] => {
      const found: string[] = []
      let { lines, next } = reader.statement({ accountId: alice, limit })
      for (;;) {
        found.push(...lines.map(({ kind, amount }) => `${kind} ${amount}`))
        if (next === undefined) return found
        ;({ lines, next } = reader.statement({ accountId: alice, limit, cursor: next }))
      }
    }
    const posted = ['adjustment 300', 'gift 1000', 'refund 100', 'top_up 5000']
    const charged = ['charge 120', 'charge 150']
    for (const limit of [1, 2, 3, 50]) expect(kinds(limit).toSorted()).toEqual([...posted, ...charged].toSorted())
    // Each kind in its own order: the newest first.
    expect(kinds(2).filter(line => line.startsWith('charge'))).toEqual(charged)
    expect(calls.plain).toBeGreaterThan(calls.refunded)
    reader.close()
  })

  test('has a charge once that is the last row which a page looks at', () => {
    const own = openSampleBooks()
    const his = { accountId: alice, keyId: aliceKey }
    const last = 50_000
    own.run(run => {
      run.hold(holdOf(last, his, '400'))
      run.settle({ record: recordOf(last, his), cost: '77' })
      for (let at = 1; at < ROWS_A_PAGE; at++) run.record({ record: recordOf(last + at, his) })
    })
    const reader = new BooksReader(own.path)
    const { lines, next } = reader.statement({ accountId: alice, limit: 50 })
    const found = [...lines, ...reader.statement({ accountId: alice, limit: 50, cursor: next }).lines]
    expect(next?.beforeCall).toBe(last)
    expect(found.filter(({ kind }) => kind === 'charge').map(({ amount }) => amount)).toEqual([77n, 120n, 150n])
    reader.close()
    own.db.close()
    rmSync(own.folder, { recursive: true })
  })

  test('of an operator account has what was posted', () => {
    const reader = new BooksReader(books.path)
    const kinds = (accountId: number): string[] =>
      reader.statement({ accountId, limit: 10 }).lines.map(({ kind }) => kind)
    expect(kinds(CLEARING)).toEqual(['top_up'])
    expect(kinds(REVENUE).toSorted()).toEqual(['adjustment', 'charge', 'charge', 'charge', 'refund', 'shortfall'])
    reader.close()
  })
})
