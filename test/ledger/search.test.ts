// Searches in records: the right rows, page after page; and statements and records are always read by an index.

import type { Database } from 'bun:sqlite'
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { rmSync } from 'node:fs'
import { sqliteSteps } from '../../src/store/engine/sqlite-steps.ts'
import { buildIndexWriter } from '../../src/store/ledger/late-indexes.ts'
import { accountStatementSql, revenueStatementSql } from '../../src/store/ledger/statement.ts'
import type { RecordFilter, RecordQuery } from '../../src/store/records/record-search.ts'
import { findRecords, ROWS_SCANNED_MAX, recordScanNames, recordScanSql } from '../../src/store/records/record-search.ts'
import { recordColumns } from '../../src/store/tables/records.ts'
import type { SampleBooks } from './sample-books.ts'
import { alice, aliceKey, bob, bobKey, openSampleBooks, recordOf } from './sample-books.ts'

let books: SampleBooks
let db: Database

beforeAll(() => {
  books = openSampleBooks()
  db = books.db
})
afterAll(() => {
  db.close()
  rmSync(books.folder, { recursive: true, force: true })
})

const search = (ask: RecordQuery) => sqliteSteps(db)(findRecords(recordColumns, ask))

const planOf = (sql: string, count: number): string => {
  const values = new Array<number>(count).fill(1)
  return (db.query('EXPLAIN QUERY PLAN '.concat(sql)).all(...values) as { detail: string }[])
    .map(({ detail }) => detail)
    .join('; ')
}

describe('the query plan', () => {
  /** The rows of one page are few and in memory; everything else is an index or a range of ids. */
  const scansTable = /SCAN (record|record_log|record_index|transfer|transfer_index|l|r|t)\b/

  test.each(recordScanNames)('of a page of records by %s reads an index', walk => {
    for (const oldestFirst of [false, true]) {
      for (const valueCount of walk === 'none' ? [1] : [1, 3]) {
        const values = new Array<string>(walk === 'none' ? 0 : valueCount).fill('1')
        const plan = planOf(recordScanSql(walk, { values, from: '1', before: '1' }, oldestFirst).sqlite, 0)
        expect(plan).not.toMatch(scansTable)
        const isById = walk === 'none' || walk === 'callId'
        const wanted = isById
          ? /SEARCH record USING INTEGER PRIMARY/
          : /SEARCH record_index USING PRIMARY KEY \(kind=\? AND value=\? AND call_id>\? AND call_id<\?\)/
        expect(plan).toMatch(wanted)
        // Only the newest rows, which have no entries yet, are sorted.
        expect(plan.match(/TEMP B-TREE/g) ?? []).toHaveLength(isById ? 0 : 1)
        if (!isById)
          expect(plan).toMatch(/SEARCH l USING INTEGER PRIMARY[^]*SEARCH r USING INTEGER PRIMARY[^]*TEMP B-TREE/)
      }
    }
  })

  const statements = [
    [accountStatementSql.sqlite, 3, /SEARCH transfer_index USING PRIMARY KEY[^]*transfer_to/],
    [revenueStatementSql, 3, /SEARCH transfer USING INTEGER PRIMARY/],
  ] as const
  test.each(statements)('of a statement reads its indexes', (sql, count, indexes) => {
    const plan = planOf(sql, count)
    expect(plan).not.toMatch(scansTable)
    expect(plan).toMatch(indexes)
    expect(plan).not.toContain('TEMP B-TREE')
  })
})

describe('records', () => {
  const MANY = 50_000
  const models = ['a', 'b', 'c']
  beforeAll(() => {
    books.run(run => {
      for (let at = 0; at < MANY; at++) {
        const owner = at % 2 === 0 ? { accountId: alice, keyId: aliceKey } : { accountId: bob, keyId: bobKey }
        const failed = at % 5 === 0 ? { outcome: 'refused', error: 'e5', status: 429 } : undefined
        const crashed = at % 11 === 0 ? { outcome: 'gateway_crash', error: null, status: 500 } : undefined
        const more = { model: models[at % 3]!, channel: `p#${at % 4}`, streamed: at % 2 === 0, ...failed, ...crashed }
        const endUser = at % 7 === 0 ? 'u7' : null
        run.record({ record: { ...recordOf(100_000 + at, owner), ...more, endUser } })
      }
    })
  })

  const allOf = (filter: RecordFilter, { limit, oldestFirst = false }: { limit: number; oldestFirst?: boolean }) => {
    const callIds: number[] = []
    const query = { scope: null, filter, limit, oldestFirst }
    let page = search(query)
    for (;;) {
      callIds.push(...page.rows.map(row => row.callId))
      if (page.next === null) return callIds
      page = search({ ...query, after: page.next })
    }
  }
  const expected = (fits: (at: number) => boolean): number[] =>
    Array.from({ length: MANY }, (_, at) => at)
      .filter(fits)
      .map(at => 100_000 + at)
      .reverse()

  const from = 100_000
  const modelA = { name: 'a', provider: 'p' }
  const filters: readonly (readonly [string, RecordFilter, (at: number) => boolean])[] = [
    ['all', { from }, () => true],
    ['an account', { from, accountId: alice }, at => at % 2 === 0],
    ['a key', { from, keyId: bobKey }, at => at % 2 === 1],
    ['a model', { from, model: { name: 'b', provider: 'p' } }, at => at % 3 === 1],
    ['a model of another provider', { from, model: { name: 'b', provider: 'q' } }, () => false],
    ['failures', { from, outcome: ['refused'] }, at => at % 5 === 0 && at % 11 !== 0],
    ['what went well', { from, outcome: ['completed'] }, at => at % 5 !== 0 && at % 11 !== 0],
    ['an error', { from, error: 'e5' }, at => at % 5 === 0 && at % 11 !== 0],
    ['a status', { from, status: 500 }, at => at % 11 === 0],
    ['a channel', { from, channel: 'p#3' }, at => at % 4 === 3],
    ['a provider', { from, provider: 'q' }, () => false],
    ['streams', { from, streamed: true, channel: 'p#2' }, at => at % 4 === 2],
    ['one call', { callId: 100_007 }, at => at === 7],
    ['what cost something', { from, costMin: '1' }, () => false],
    ['what cost no more', { from, costMax: '0', channel: 'p#1' }, at => at % 4 === 1],
    ['an end user', { from, endUser: 'u7' }, at => at % 7 === 0],
    ['a time', { from: 101_000, before: 102_000 }, at => at >= 1_000 && at < 2_000],
    [
      'everything at once',
      { from, accountId: alice, keyId: aliceKey, model: modelA, outcome: ['refused'], endUser: 'u7' },
      at => at % 210 === 0 && at % 11 !== 0,
    ],
    ['nothing at all', { from, accountId: alice, keyId: bobKey }, () => false],
  ]
  const states = [
    ['of which each index has some', 30],
    ['of which each index has all but the newest', 100],
  ] as const
  describe.each(states)('%s', (_state, steps) => {
    beforeAll(() => {
      const writeIndexes = buildIndexWriter(db)
      for (let step = 0; step < steps; step++) writeIndexes()
    })
    test.each(filters)(
      'by %s are all found, in the order of time, whatever the length of a page',
      (_, filter, fits) => {
        const wanted = expected(fits)
        for (const limit of [700, 5_000]) expect(allOf(filter, { limit })).toEqual(wanted)
        expect(allOf(filter, { limit: 900, oldestFirst: true })).toEqual(wanted.toReversed())
      },
    )
  })

  test('are searched a bounded number of rows for each page, and the page says where to go on', () => {
    const query = { scope: null, filter: { keyId: aliceKey, outcome: ['none such'] }, limit: 10 }
    const next = 100_000 + MANY - 2 - 2 * (ROWS_SCANNED_MAX - 1)
    expect(search(query)).toEqual({ rows: [], next, early: true })
  })

  test("are paged for a member without a cursor that points to other accounts' records", () => {
    const person = 3_001
    db.run(`INSERT INTO person (id, email, name, role, created_ms) VALUES (${person}, 'm@x', 'm', 'member', 0)`)
    const emptyPage = { rows: [], next: null, early: false }
    const find = (filter: RecordFilter, rank = 1) => search({ scope: { actorId: person, rank }, filter, limit: 10 })
    const foreign: readonly RecordFilter[] = [{ keyId: aliceKey }, { accountId: alice }, { endUser: 'u7' }, {}]
    for (const filter of foreign) expect(find({ ...filter, outcome: ['none such'] })).toEqual(emptyPage)
    db.run(`INSERT INTO member (account_id, person_id, rank, added_ms) VALUES (${bob}, ${person}, 1, 0)`)
    for (const filter of foreign.slice(0, 2)) expect(find({ ...filter, outcome: ['none such'] })).toEqual(emptyPage)
    expect(find({ keyId: bobKey, outcome: ['none such'] }, 2)).toEqual(emptyPage)
    expect(find({ keyId: bobKey }).rows).toHaveLength(10)
    const last = find({ endUser: 'u7', outcome: ['none such'] }).next!
    expect((last - 100_000) % 2).toBe(1) // a record of bob
    expect(find({ endUser: 'u7' }).rows.every(row => row.accountId === bob && row.endUser === 'u7')).toBe(true)
  })

  const odd = ['%', '_', "' OR 1=1 --", '"', '\\', '\u0000', '$walk0', 'ü'.repeat(100_000), '; DROP TABLE record']
  test.each(odd)('are filtered by %j as by any text that does not occur', text => {
    for (const name of ['endUser', 'provider', 'channel', 'outcome', 'error'] as const) {
      const value = name === 'outcome' ? [text] : text
      expect(search({ scope: null, filter: { [name]: value }, limit: 5 }).rows).toEqual([])
    }
    const model = { name: text, provider: text }
    expect(search({ scope: null, filter: { model }, limit: 5 }).rows).toEqual([])
  })

  test('are visible to members of their account alone', () => {
    db.run(`INSERT INTO person (id, email, name, role, created_ms) VALUES (9, 'a@b', 'a', 'member', 0),
      (10, 'c@d', 'c', 'member', 0), (11, 'e@f', 'e', 'member', 0)`)
    const join = db.query('INSERT INTO member (account_id, person_id, rank, added_ms) VALUES (?1, ?2, ?3, 0)')
    for (const row of [
      [alice, 9, 2],
      [alice, 11, 2],
      [bob, 11, 1],
    ] as const)
      join.run(...row)
    const visibleAccounts = (personId: number, rank: number, filter: RecordFilter = {}): readonly number[] => {
      const { rows } = search({ scope: { actorId: personId, rank }, filter, limit: 400 })
      return [...new Set(rows.map(row => row.accountId))].sort()
    }
    expect(visibleAccounts(9, 1)).toEqual([alice])
    expect(visibleAccounts(9, 3)).toEqual([])
    expect(visibleAccounts(11, 1)).toEqual([alice, bob])
    expect(visibleAccounts(11, 2)).toEqual([alice])
    expect(visibleAccounts(10, 1)).toEqual([])
    for (const filter of [{ accountId: bob }, { keyId: bobKey }, { callId: 100_001 }]) {
      expect(visibleAccounts(9, 1, filter)).toEqual([])
      expect(visibleAccounts(11, 1, filter)).toEqual([bob])
    }
    expect(visibleAccounts(9, 1, { endUser: 'u7' })).toEqual([alice])
    expect(visibleAccounts(9, 1, { outcome: ['refused'] })).toEqual([alice])
    expect(visibleAccounts(9, 1, { model: modelA })).toEqual([alice])
  })
})
