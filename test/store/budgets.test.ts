// Budgets and redemption codes on a real file: they apply in the same transaction as the money.

import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { periodOf } from '../../src/store/ledger/budgets.ts'
import type { BudgetSpan } from '../../src/store/ledger/hold-types.ts'
import type { MoneyText } from '../../src/store/ledger/money-text.ts'
import type { TestBooks } from '../support/books.ts'
import { bookFaults, holdOf, openTestBooks, recordOf } from '../support/books.ts'

let books: TestBooks
const DAY_MS = 86_400_000

beforeEach(() => {
  books = openTestBooks()
  books.account(11, '100000')
})
afterEach(() => {
  expect(bookFaults(books.db)).toEqual([])
  books.close()
})

const hold = (callId: number, amount: MoneyText) => books.run.hold(holdOf(callId, 11, amount))
const settle = (callId: number, cost: MoneyText) => books.run.settle({ record: recordOf(callId, 11), cost })
const setBudget = (scopeId: number, span: BudgetSpan, cap: MoneyText | null) =>
  books.run.setBudget({ scopeId, span, cap })
const KEY = 1_011

describe.each([
  ['key', KEY],
  ['account', 11],
] as const)('a budget of a %s', (owner, scopeId) => {
  test('is held and spent with the money', () => {
    setBudget(scopeId, 'total', '500')
    expect(hold(7, '501')).toEqual({ done: 'budget_too_low', available: '500', budget: `${owner}, total` })
    expect(hold(7, '300')).toEqual({ done: 'held' })
    expect(hold(8, '201')).toMatchObject({ done: 'budget_too_low', available: '200' })
    settle(7, '100')
    expect(hold(8, '400')).toEqual({ done: 'held' })
    settle(8, '400')
    expect(hold(9, '1')).toMatchObject({ done: 'budget_too_low', available: '0' })
    expect(hold(10, '0')).toEqual({ done: 'held' }) // a free call needs no budget
  })

  test('bounds a cost beyond the hold, too', () => {
    setBudget(scopeId, 'day', '500')
    hold(7, '300')
    expect(settle(7, '900')).toEqual({ done: 'settled', charged: '500', shortfall: '400' })
  })

  test.each(['day', 'month'] as const)('by the %s starts again, and holds carry over', span => {
    setBudget(scopeId, span, '500')
    hold(7, '100')
    hold(8, '400')
    settle(8, '400')
    expect(hold(9, '1')).toMatchObject({ done: 'budget_too_low' })
    books.nowMs += span === 'day' ? DAY_MS : 31 * DAY_MS
    expect(hold(9, '401')).toMatchObject({ done: 'budget_too_low', available: '400' })
    expect(hold(9, '400')).toEqual({ done: 'held' })
    settle(7, '100')
    expect(hold(10, '1')).toMatchObject({ done: 'budget_too_low', available: '0' })
  })

  test('does not start again when the clock goes back', () => {
    setBudget(scopeId, 'day', '500')
    hold(7, '500')
    settle(7, '500')
    books.nowMs -= 3 * DAY_MS
    expect(hold(8, '1')).toMatchObject({ done: 'budget_too_low' })
    books.nowMs += 3 * DAY_MS
    expect(hold(8, '1')).toMatchObject({ done: 'budget_too_low' })
  })

  test('may be lowered below what is spent, and then refuses everything', () => {
    setBudget(scopeId, 'month', '500')
    hold(7, '300')
    expect(setBudget(scopeId, 'month', '100')).toEqual({ done: 'set' })
    expect(hold(8, '1')).toMatchObject({ done: 'budget_too_low', available: '-200' })
    expect(settle(7, '350')).toEqual({ done: 'settled', charged: '300', shortfall: '50' })
    books.nowMs += 31 * DAY_MS
    expect(hold(9, '100')).toEqual({ done: 'held' })
    expect(hold(10, '1')).toMatchObject({ done: 'budget_too_low', available: '0' })
  })

  test('that is set while calls run counts their holds, and a removed one refuses nothing', () => {
    hold(7, '300')
    setBudget(scopeId, 'total', '350')
    expect(hold(8, '51')).toMatchObject({ done: 'budget_too_low', available: '50' })
    expect(setBudget(scopeId, 'total', null)).toEqual({ done: 'removed' })
    expect(hold(8, '51')).toEqual({ done: 'held' })
    settle(7, '10')
  })
})

test('the tightest of several budgets decides', () => {
  setBudget(KEY, 'total', '500')
  setBudget(KEY, 'day', '300')
  setBudget(11, 'month', '200')
  expect(hold(7, '201')).toEqual({ done: 'budget_too_low', available: '200', budget: 'account, month' })
  setBudget(11, 'month', '400')
  expect(hold(7, '301')).toEqual({ done: 'budget_too_low', available: '300', budget: 'key, day' })
})

test('a budget needs a key or an account of a customer', () => {
  for (const scopeId of [1, 2, 3, 4, 99]) {
    expect(setBudget(scopeId, 'total', '5')).toEqual({ done: 'scope_unknown' })
  }
})

test('a refused hold leaves no trace in any budget', () => {
  setBudget(KEY, 'total', '500')
  setBudget(11, 'total', '600')
  books.run.setAccount({ id: 11, frozen: true })
  expect(hold(7, '400')).toEqual({ done: 'account_frozen' })
  books.run.setAccount({ id: 11, frozen: false })
  expect(hold(8, '500')).toEqual({ done: 'held' })
})

test('days and months are those of UTC', () => {
  const lastMoment = Date.UTC(2026, 11, 31, 23, 59, 59, 999)
  expect(periodOf('day', lastMoment + 1) - periodOf('day', lastMoment)).toBe(1n)
  expect(periodOf('month', lastMoment + 1) - periodOf('month', lastMoment)).toBe(1n)
  expect(periodOf('month', lastMoment) - periodOf('month', Date.UTC(2026, 11, 1))).toBe(0n)
  expect(periodOf('total', lastMoment)).toBe(periodOf('total', 0))
})

describe('a code', () => {
  const digest = 'ab'.repeat(32)
  const digests = ['ef'.repeat(32), digest]
  const batch = { pepper: 'aabbccdd', batch: 'spring', amount: '700', author: 'x' } as const
  const create = (expiresMs: number | null = null) =>
    books.run.createCodes({ ...batch, codes: [{ id: 5, digest }], expiresMs })

  test('is redeemed once, into one account', () => {
    books.account(12, '0')
    create()
    expect(books.run.redeemCode({ digests: ['cd'.repeat(32)], accountId: 11 })).toEqual({ done: 'code_unknown' })
    expect(books.run.redeemCode({ digests, accountId: 99 })).toEqual({ done: 'account_unknown' })
    expect(books.run.redeemCode({ digests, accountId: 1 })).toEqual({ done: 'account_unknown' })
    expect(books.run.redeemCode({ digests, accountId: 12 })).toMatchObject({ done: 'redeemed', amount: '700' })
    expect(books.run.redeemCode({ digests, accountId: 11 })).toMatchObject({ done: 'code_used' })
    expect(books.row(12).balance).toBe(700n)
    expect(books.row(2).balance).toBe(-100_700n)
  })

  test('expires', () => {
    create(books.nowMs + 10)
    books.nowMs += 10
    expect(books.run.redeemCode({ digests, accountId: 11 })).toEqual({ done: 'code_expired' })
  })
})
