// Which changes of the ledger are events for webhooks: each crossing of a threshold once, whatever the history, and never
// a change that was rolled back.

import { afterEach, beforeEach, expect, test } from 'bun:test'
import fc from 'fast-check'
import type { MoneyText } from '../../src/store/ledger/money-text.ts'
import type { TestBooks } from '../support/books.ts'
import { holdOf, openTestBooks, recordOf } from '../support/books.ts'

const ACCOUNT = 11
const KEY = ACCOUNT + 1_000
const CENT = 10_000_000n

let books: TestBooks
let calls: number

beforeEach(() => {
  books = openTestBooks({ sync: false })
  books.account(ACCOUNT, '0')
  calls = 100
  const url = { url: 'https://example.com/', origin: 'https://example.com' }
  const secret = Buffer.alloc(40).toString('base64')
  const events = 'balance.low,balance.empty,budget.low'
  books.run.createWebhook({ ...url, id: 1, accountId: ACCOUNT, scope: null, events, secret, author: 'test' })
})
afterEach(() => books.close())

const eventNames = (): string[] =>
  (books.db.query('SELECT event FROM webhook_delivery ORDER BY id').all() as { event: string }[]).map(row => row.event)

const post = (amount: bigint): unknown =>
  amount !== 0n &&
  books.run.post({
    kind: 'adjustment',
    ref: calls++,
    accountId: ACCOUNT,
    amount: `${amount}` as MoneyText,
    reference: null,
    author: 'test',
  })

const steps = (most: bigint) => fc.bigInt({ min: -most, max: most }).filter(step => step !== 0n)

test('each crossing of a threshold is an event once, whatever the history of the balance', () => {
  fc.assert(
    fc.property(
      fc.array(fc.oneof(steps(60n), steps(8n), steps(8n), steps(8n)), { maxLength: 40 }),
      fc.bigInt({ min: 2n, max: 30n }),
      (changes, threshold) => {
        books.run.setAlert({ accountId: ACCOUNT, scope: null, threshold: null })
        post((threshold + 4n) * CENT - books.row(ACCOUNT).balance)
        books.db.run('DELETE FROM webhook_delivery')
        books.run.setAlert({ accountId: ACCOUNT, scope: null, threshold: `${threshold * CENT}` })
        const expected: string[] = []
        let [balance, level] = [(threshold + 4n) * CENT, 0]
        for (const step of changes) {
          const next = balance + (step * CENT) / 2n
          if (next < 0n) continue
          post((step * CENT) / 2n)
          balance = next
          const before: number = level
          const bar = threshold * CENT
          if (balance < CENT || (level === 2 && balance < (CENT * 11n) / 10n)) level = 2
          else if (balance < bar || (level > 0 && balance < bar + bar / 10n)) level = 1
          else level = 0
          if (before === 0 && level > 0) expected.push('balance.low')
          if (before < 2 && level === 2) expected.push('balance.empty')
        }
        expect(eventNames()).toEqual(expected)
      },
    ),
    { numRuns: 60 },
  )
})

test('a settled call may cross the threshold, and a call that is only held does not', () => {
  post(100n)
  books.run.setAlert({ accountId: ACCOUNT, scope: null, threshold: `${10n * CENT}` })
  expect(eventNames()).toEqual(['balance.low', 'balance.empty']) // of the balance at that time
  post(20n * CENT)
  books.run.hold(holdOf(7, ACCOUNT, `${15n * CENT}`))
  expect(eventNames()).toHaveLength(2)
  books.run.settle({ record: recordOf(7, ACCOUNT), cost: `${12n * CENT}` })
  expect(eventNames()).toEqual(['balance.low', 'balance.empty', 'balance.low'])
})

test('a change that is rolled back is no event', () => {
  post(100n * CENT)
  books.run.setAlert({ accountId: ACCOUNT, scope: null, threshold: `${10n * CENT}` })
  const fails = books.db.transaction(() => {
    books.db.query('UPDATE account SET balance = 5 WHERE id = ?1').run(ACCOUNT)
    expect(eventNames()).toHaveLength(2)
    throw new Error('no')
  })
  expect(() => fails.immediate()).toThrow('no')
  expect(eventNames()).toEqual([])
})

test('a budget is an event once in each of its periods, when nine tenths of it are spent', () => {
  post(1_000n * CENT)
  books.run.setBudget({ scopeId: KEY, span: 'day', cap: '1000' })
  const spend = (cost: MoneyText): void => {
    books.run.hold(holdOf(++calls, ACCOUNT, cost))
    books.run.settle({ record: recordOf(calls, ACCOUNT), cost })
  }
  spend('899')
  expect(eventNames()).toEqual([])
  spend('1')
  spend('50')
  expect(eventNames()).toEqual(['budget.low'])
  books.nowMs += 86_400_000
  spend('899')
  expect(eventNames()).toHaveLength(1)
  spend('101')
  expect(eventNames()).toEqual(['budget.low', 'budget.low'])
})
