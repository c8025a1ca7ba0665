// Statements compared with the ledger itself: the order is the order of the transfers and the balances add up, whatever
// the clock says, however long the calls lasted, whatever a filter leaves out and however long a page is.

import type { Database } from 'bun:sqlite'
import { afterAll, describe, expect, test } from 'bun:test'
import { rmSync } from 'node:fs'
import fc from 'fast-check'
import { sqliteSteps } from '../../src/store/engine/sqlite-steps.ts'
import { buildIndexWriter } from '../../src/store/ledger/late-indexes.ts'
import { CLEARING, PROMO, REVENUE, SHORTFALL } from '../../src/store/ledger/operator-accounts.ts'
import { ROWS_READ_PER_PAGE_MAX } from '../../src/store/ledger/statement.ts'
import type { StatementQuery } from '../../src/store/queries/ledger.ts'
import { ledgerQueries } from '../../src/store/queries/ledger.ts'
import type { SampleBooks } from './sample-books.ts'
import { alice, aliceKey, bob, bobKey, holdOf, openSampleBooks, recordOf, spoil } from './sample-books.ts'

const owners = [
  { accountId: alice, keyId: aliceKey },
  { accountId: bob, keyId: bobKey },
] as const
const accounts = [alice, bob, REVENUE, PROMO, SHORTFALL, CLEARING]
const opened: SampleBooks[] = []

afterAll(() => {
  for (const { db, folder } of opened) {
    db.close()
    rmSync(folder, { recursive: true, force: true })
  }
})

function openAt(nowMs: () => number): SampleBooks {
  const books = openSampleBooks(nowMs)
  opened.push(books)
  return books
}

interface Filter {
  readonly kind?: string
  readonly from?: number
  readonly before?: number
}

interface StatementLine {
  readonly kind: string
  readonly ref: number
  readonly amount: string
  readonly balance: string
  readonly madeMs: number
}

const readerOf = (db: Database) => (ask: StatementQuery) => sqliteSteps(db)(ledgerQueries.statement(ask))

/** The lines of all pages. */
function statement(
  { db }: SampleBooks,
  accountId: number,
  filter: Filter & { limit: number },
): readonly StatementLine[] {
  const read = readerOf(db)
  const lines: StatementLine[] = []
  for (let after: string | undefined; ; ) {
    const page = read({ accountId, scope: null, ...filter, after })!
    expect(page.lines.length).toBeLessThanOrEqual(filter.limit)
    lines.push(...page.lines.map(({ kind, ref, amount, balance, madeMs }) => ({ kind, ref, amount, balance, madeMs })))
    if (page.next === null) return lines
    after = page.next
  }
}

interface TransferRow {
  readonly [column: string]: bigint | string
}

/** The same by the simplest means: all transfers one after the other, from the first. */
function expected({ db }: SampleBooks, accountId: number, { kind, from, before }: Filter): readonly StatementLine[] {
  const rows = db.query('SELECT * FROM transfer ORDER BY seq').all() as TransferRow[]
  let balance = 0n
  const lines: StatementLine[] = []
  for (const row of rows) {
    const receives = Number(row.credit) === accountId
    if (!receives && Number(row.debit) !== accountId) continue
    const amount = (receives ? 1n : -1n) * (row.amount as bigint)
    balance += amount
    const [madeMs, rowKind] = [Number(row.made_ms), String(row.kind)]
    if ((kind !== undefined && rowKind !== kind) || madeMs < (from ?? 0) || madeMs >= (before ?? Infinity)) continue
    lines.push({ kind: rowKind, ref: Number(row.ref), amount: String(amount), balance: String(balance), madeMs })
  }
  return lines.reverse()
}

const step = fc.record({
  owner: fc.constantFrom(...owners),
  kind: fc.constantFrom('top_up', 'gift', 'adjustment', 'refund', 'begin', 'end', 'end'),
  amount: fc.integer({ min: 1, max: 90 }),
  /** The clock mostly stands still, and sometimes goes back. */
  clock: fc.constantFrom(0, 0, 0, 1, 2, -1),
})

describe('a statement', () => {
  test('is in the order of the ledger, with the balance after each transfer', () => {
    fc.assert(
      fc.property(fc.array(step, { minLength: 5, maxLength: 40 }), fc.integer({ min: 1, max: 9 }), (steps, limit) => {
        let now = 1_800_000_000_000
        const start = now
        const books = openAt(() => now)
        const writeIndexes = buildIndexWriter(books.db, { tailRows: 4, rowsPerStep: 3 })
        const running: { id: number; owner: (typeof owners)[number] }[] = []
        const charged: typeof running = []
        for (const [at, { owner, kind, amount, clock }] of steps.entries()) {
          now += clock
          books.run(run => {
            const id = 700_000 + at
            const posted = { accountId: owner.accountId, reference: null, author: 'cli' }
            const money = `${BigInt(amount)}` as const
            if (kind === 'begin') {
              if (run.hold(holdOf(id, owner, '90')).done === 'held') running.push({ id, owner })
            } else if (kind === 'end') {
              // The call that started last ends first: charges are not in the order of their calls.
              const call = running.pop()
              if (call === undefined) return
              run.settle({ record: recordOf(call.id, call.owner), cost: money })
              charged.push(call)
            } else if (kind === 'refund') {
              const call = charged.pop()
              if (call !== undefined) {
                run.post({ ...posted, kind, ref: call.id, accountId: call.owner.accountId, amount: 'all' })
              }
            } else run.post({ ...posted, kind: kind as 'gift', ref: id, amount: money })
          })
          writeIndexes()
        }
        const filters: readonly Filter[] = [
          {},
          { kind: 'charge' },
          { kind: 'top_up' },
          { from: start + 1 },
          { before: start + 1 },
          { from: start, before: start + 2, kind: 'gift' },
        ]
        for (const accountId of accounts) {
          for (const filter of filters) {
            const wanted = expected(books, accountId, filter)
            expect(statement(books, accountId, { ...filter, limit })).toEqual(wanted as StatementLine[])
          }
        }
      }),
      { numRuns: 25 },
    )
  })

  test('lists every charge, even of a call whose record was deleted', () => {
    const books = openAt(() => 5)
    const before = statement(books, alice, { limit: 50 })
    spoil(books.db, 'DELETE FROM record')
    expect(statement(books, alice, { limit: 50 })).toEqual(before as StatementLine[])
    expect(before.filter(({ kind }) => kind === 'charge')).toHaveLength(2)
  })

  test('finds the lines of a filter behind more transfers than one page reads', () => {
    const books = openAt(() => 5)
    const many = ROWS_READ_PER_PAGE_MAX + 10
    books.run(run => {
      const posted = { accountId: alice, reference: null, author: 'cli' }
      for (let at = 0; at < many; at++) run.post({ ...posted, kind: 'gift', ref: 800_000 + at, amount: '1' })
    })
    const read = readerOf(books.db)
    const query = { accountId: alice, scope: null, kind: 'top_up', limit: 10 }
    const first = read(query)!
    expect(first.lines).toEqual([])
    expect(read({ ...query, after: first.next! })!.lines.map(({ amount }) => amount)).toEqual(['5000'])
    expect(statement(books, alice, { limit: 500 })).toHaveLength(expected(books, alice, {}).length)
  })
})
