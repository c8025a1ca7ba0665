// Holds, settles, postings, budgets, codes and recovery on a real file: each refusal in its order, each success once,
// and a consistent ledger after every test.

import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import type { MoneyText } from '../../src/store/ledger/money-text.ts'
import type { TestBooks } from '../support/books.ts'
import { bookFaults, holdOf, openTestBooks, recordOf } from '../support/books.ts'

let books: TestBooks

beforeEach(() => {
  books = openTestBooks()
  books.account(11, '1000')
})
afterEach(() => {
  expect(bookFaults(books.db)).toEqual([])
  books.close()
})

const hold = (...args: Parameters<typeof holdOf>) => books.run.hold(holdOf(...args))
const settle = (callId: number, cost: MoneyText, accountId = 11) =>
  books.run.settle({ record: recordOf(callId, accountId), cost })
const post = (kind: 'top_up' | 'gift' | 'adjustment' | 'refund', ref: number, amount: MoneyText, reference?: string) =>
  books.run.post({ kind, ref, accountId: 11, amount, reference: reference ?? null, author: 'test' })

describe('a hold', () => {
  test('may take the whole balance, and not a nano-dollar more', () => {
    expect(hold(7, 11, '1001')).toEqual({ done: 'balance_too_low', available: '1000' })
    expect(hold(8, 11, '1000')).toEqual({ done: 'held' })
    expect(hold(9, 11, '1')).toEqual({ done: 'balance_too_low', available: '0' })
    expect(hold(10, 11, '0')).toEqual({ done: 'held' })
    expect(books.row(11)).toEqual({ balance: 1_000n, held: 1_000n })
  })

  test('is refused in this order', () => {
    expect(hold(7, 99, '5000')).toEqual({ done: 'account_unknown' })
    books.run.setAccount({ id: 11, frozen: true })
    expect(hold(7, 11, '5000')).toEqual({ done: 'account_frozen' })
    books.run.setAccount({ id: 11, frozen: false })
    expect(hold(7, 11, '5000', { wants: '9000' })).toEqual({ done: 'balance_too_low', available: '1000' })
    expect(hold(7, 11, '500', { wants: '1001' })).toEqual({ done: 'hold_less', available: '1000' })
    expect(hold(7, 11, '500', { wants: '1000' })).toEqual({ done: 'held' })
    expect(books.count('hold')).toBe(1)
  })

  test('is made once per call, and a second one changes nothing', () => {
    hold(7, 11, '400')
    expect(() => hold(7, 11, '400')).toThrow('UNIQUE')
    expect(books.row(11).held).toBe(400n)
  })

  test('of a finished call is an error: nobody would ever settle it', () => {
    settle(7, '0') // abandoned and settled, while its hold was still queued
    expect(() => hold(7, 11, '400')).toThrow('a finished call must not be held')
    expect(books.row(11).held).toBe(0n)
    expect(books.recover()).toBe(0)
  })

  test('that may be smaller gets what it needs and a twentieth of the rest', () => {
    expect(hold(7, 11, '500', { least: '200' })).toEqual({ done: 'held', granted: '240' }) // a twentieth of 800
    expect(hold(8, 11, '210', { least: '200' })).toEqual({ done: 'held', granted: '210' })
    expect(hold(9, 11, '600', { least: '551' })).toEqual({ done: 'balance_too_low', available: '550' })
    expect(hold(9, 11, '600', { least: '550' })).toEqual({ done: 'held', granted: '550' })
    expect(books.row(11)).toEqual({ balance: 1_000n, held: 1_000n })
  })

  test('may use credit, up to its limit', () => {
    books.run.setAccount({ id: 11, creditLimit: '500' })
    expect(hold(7, 11, '1501')).toEqual({ done: 'balance_too_low', available: '1500' })
    expect(hold(7, 11, '1500')).toEqual({ done: 'held' })
    expect(settle(7, '1500')).toEqual({ done: 'settled', charged: '1500', shortfall: '0' })
    expect(books.row(11)).toEqual({ balance: -500n, held: 0n })
    expect(books.run.setAccount({ id: 11, creditLimit: '499' })).toEqual({ done: 'balance_too_low' })
    expect(books.run.setAccount({ id: 11, creditLimit: '500' })).toEqual({ done: 'set' })
  })

  test('of a postpaid account has no lower bound', () => {
    books.run.setAccount({ id: 11, kind: 'postpaid' })
    expect(hold(7, 11, '5000', { wants: '90000' })).toEqual({ done: 'held' })
    expect(settle(7, '9000')).toEqual({ done: 'settled', charged: '9000', shortfall: '0' })
    expect(books.row(11)).toEqual({ balance: -8_000n, held: 0n })
    expect(books.run.setAccount({ id: 11, kind: 'prepaid' })).toEqual({ done: 'balance_too_low' })
  })

  test('is refused, and does not fail, if it exceeds the range of the column', () => {
    books.run.setAccount({ id: 11, kind: 'postpaid' })
    const billion = `${10n ** 18n}` as const
    expect([7, 8].map(callId => hold(callId, 11, billion).done)).toEqual(['held', 'held'])
    expect(hold(9, 11, billion)).toMatchObject({ done: 'balance_too_low' })
    expect(books.count('hold')).toBe(2)
  })
})

describe('an extension of a hold', () => {
  const heldBy = (callId: number): MoneyText =>
    `${(books.db.query('SELECT amount FROM hold WHERE call_id = ?1').get(callId) as { amount: bigint } | null)?.amount ?? 0n}`
  const extend = (callId: number, amount: MoneyText, least: MoneyText = amount, held = heldBy(callId)) =>
    books.run.extend({ callId, amount, least, held })

  test('reserves all of it if that is a small part of what is left, else a twentieth, but at least the least', () => {
    hold(7, 11, '200')
    expect(extend(7, '40', '1')).toEqual({ done: 'extended', granted: '40' })
    expect(extend(7, '500', '1')).toEqual({ done: 'extended', granted: '38' }) // a twentieth of 760
    expect(extend(7, '500', '100')).toEqual({ done: 'extended', granted: '100' })
    expect(books.row(11)).toEqual({ balance: 1_000n, held: 378n })
    expect(settle(7, '378')).toEqual({ done: 'settled', charged: '378', shortfall: '0' })
    expect(books.row(11)).toEqual({ balance: 622n, held: 0n })
  })

  test('may take the last of the money, and is refused after that', () => {
    hold(7, 11, '900')
    expect(extend(7, '101')).toEqual({ done: 'balance_too_low', available: '100' })
    expect(extend(7, '100')).toEqual({ done: 'extended', granted: '100' })
    expect(extend(7, '1')).toEqual({ done: 'balance_too_low', available: '0' })
    expect(books.row(11)).toEqual({ balance: 1_000n, held: 1_000n })
  })

  test('counts in the budgets of the key and of the account', () => {
    books.run.setBudget({ scopeId: 11, span: 'day', cap: '300' })
    hold(7, 11, '200')
    expect(extend(7, '101')).toEqual({ done: 'budget_too_low', available: '100', budget: 'account, day' })
    expect(extend(7, '90')).toEqual({ done: 'extended', granted: '90' })
    expect(extend(7, '11')).toMatchObject({ done: 'budget_too_low', available: '10' })
    settle(7, '250')
    expect(hold(8, 11, '51')).toMatchObject({ done: 'budget_too_low', available: '50' })
  })

  test('is refused after the settlement, and for a frozen account', () => {
    hold(7, 11, '200')
    books.run.setAccount({ id: 11, frozen: true })
    expect(extend(7, '1')).toEqual({ done: 'account_frozen' })
    books.run.setAccount({ id: 11, frozen: false })
    settle(7, '5')
    expect(extend(7, '1')).toEqual({ done: 'settled' })
    expect(books.row(11)).toEqual({ balance: 995n, held: 0n })
  })

  test('has no stop for an account that pays later, except the room of the table', () => {
    books.run.setAccount({ id: 11, kind: 'postpaid' })
    const billion = `${10n ** 18n}` as const
    hold(7, 11, billion)
    expect(extend(7, billion)).toEqual({ done: 'extended', granted: billion })
    expect(extend(7, billion)).toMatchObject({ done: 'balance_too_low' })
  })

  test('is granted once if it is repeated because its confirmation was lost', () => {
    hold(7, 11, '900')
    expect(extend(7, '100', '100', '900')).toEqual({ done: 'extended', granted: '100' })
    expect(extend(7, '100', '100', '900')).toEqual({ done: 'extended', granted: '100' })
    expect(books.row(11)).toEqual({ balance: 1_000n, held: 1_000n })
    expect(extend(7, '100', '100', '1000')).toMatchObject({ done: 'balance_too_low' })
  })

  test('is released by the recovery after a crash', () => {
    hold(7, 11, '200')
    extend(7, '40')
    expect(books.recover()).toBe(1)
    expect(books.row(11)).toEqual({ balance: 1_000n, held: 0n })
  })
})

describe('a settle', () => {
  test('posts the cost to revenue, releases the rest and writes the record', () => {
    hold(7, 11, '400')
    expect(settle(7, '150')).toEqual({ done: 'settled', charged: '150', shortfall: '0' })
    expect(books.row(11)).toEqual({ balance: 850n, held: 0n })
    expect(books.row(1)).toEqual({ balance: 150n, held: 0n })
    const [charge] = books.db.query("SELECT * FROM transfer WHERE kind = 'charge'").all()
    expect(charge).toMatchObject({ ref: 7n, debit: 11n, credit: 1n, amount: 150n })
    const [record] = books.db.query('SELECT * FROM record').all()
    expect(record).toMatchObject({ call_id: 7n, cost: 150n, shortfall: 0n, held: 400n, output_tokens: 3n })
  })

  test('happens once, however often it is repeated', () => {
    hold(7, 11, '400')
    settle(7, '150')
    for (const cost of ['150', '400', '0'] as const) expect(settle(7, cost)).toEqual({ done: 'exists' })
    expect(books.row(11)).toEqual({ balance: 850n, held: 0n })
    expect(books.count('record')).toBe(1)
  })

  test('of nothing moves nothing', () => {
    hold(7, 11, '400')
    settle(7, '0')
    expect(books.row(11)).toEqual({ balance: 1_000n, held: 0n })
    expect(books.db.query("SELECT * FROM transfer WHERE kind = 'charge'").all()).toEqual([])
  })

  test('without a hold charges nothing and is recorded', () => {
    expect(settle(7, '150')).toEqual({ done: 'settled', charged: '0', shortfall: '0' })
    expect(books.row(11)).toEqual({ balance: 1_000n, held: 0n })
    expect(books.count('record')).toBe(1)
  })

  test('beyond its hold takes the free balance; holds of other calls stay, and the rest is a shortfall', () => {
    hold(7, 11, '400')
    hold(8, 11, '500')
    expect(settle(7, '5000')).toEqual({ done: 'settled', charged: '500', shortfall: '4500' })
    expect(books.row(11)).toEqual({ balance: 500n, held: 500n })
    expect([books.row(1).balance, books.row(3).balance]).toEqual([5_000n, -4_500n])
    expect(settle(8, '500')).toEqual({ done: 'settled', charged: '500', shortfall: '0' })
  })

  test('of a frozen account succeeds', () => {
    hold(7, 11, '400')
    books.run.setAccount({ id: 11, frozen: true })
    expect(settle(7, '150')).toMatchObject({ charged: '150' })
  })
})

describe('an account', () => {
  test('is frozen since the first time that it was frozen', () => {
    const frozenMs = () => books.db.query('SELECT frozen_ms FROM account WHERE id = 11').values()
    books.run.setAccount({ id: 11, frozen: true })
    const first = frozenMs()
    books.nowMs += 60_000
    books.run.setAccount({ id: 11, frozen: true })
    expect(frozenMs()).toEqual(first)
  })
})

describe('final rows', () => {
  test.each([
    'UPDATE transfer SET amount = 1',
    'DELETE FROM transfer',
    'INSERT OR REPLACE INTO transfer SELECT * FROM transfer',
    'UPDATE price SET price = 2',
    'DELETE FROM price',
  ])('cannot be changed: %s', sql => {
    books.run.addPrices({ prices: [{ model: 'p/m', origin: 'shipped', price: '{}', author: 'x' }] })
    expect(() => books.db.run(sql)).toThrow(/final|kept/)
  })

  test.each([
    'UPDATE account SET balance = balance - 1001 WHERE id = 11',
    'UPDATE account SET held = 1001 WHERE id = 11',
    'UPDATE account SET held = -1 WHERE id = 11',
    'UPDATE account SET credit_limit = -1 WHERE id = 11',
    'INSERT INTO transfer (ref, kind, debit, credit, amount, made_ms) VALUES (1, 0, 11, 1, 0, 0)',
  ])('cannot be changed even by hand: %s', sql => {
    expect(() => books.db.run(sql)).toThrow('CHECK')
  })

  test('include one charge per call, by the index', () => {
    hold(7, 11, '400')
    settle(7, '1')
    const secondCharge =
      "INSERT INTO transfer (ref, kind, debit, credit, amount, made_ms) VALUES (7, 'charge', 11, 1, 1, 0)"
    expect(() => books.db.run(secondCharge)).toThrow('UNIQUE')
  })
})

describe('amounts', () => {
  test.each(['-1', String(2n ** 63n), String(2n ** 64n + 5n)] as MoneyText[])(
    'of %s are refused before they reach the driver, which would wrap them',
    amount => {
      expect(() => hold(7, 11, amount)).toThrow('assertion failed')
      expect(() => settle(7, amount)).toThrow('assertion failed')
      expect(() => books.account(12, amount)).toThrow('assertion failed')
      expect(() => post('top_up', 5, amount)).toThrow('assertion failed')
    },
  )

  test('are stored to the last digit', () => {
    books.account(12, `${2n ** 60n - 1n}`)
    hold(7, 12, `${2n ** 60n - 2n}`)
    expect(settle(7, '9007199254740993', 12)).toMatchObject({ charged: '9007199254740993' })
    expect(books.row(12)).toEqual({ balance: 2n ** 60n - 1n - 9_007_199_254_740_993n, held: 0n })
  })
})

describe('postings', () => {
  test('come from their own accounts', () => {
    expect(post('top_up', 100, '50')).toMatchObject({ done: 'posted', balance: '1050' })
    expect(post('gift', 101, '5')).toMatchObject({ done: 'posted', balance: '1055' })
    expect(post('adjustment', 102, '-55')).toMatchObject({ done: 'posted', balance: '1000' })
    expect(post('adjustment', 103, '1')).toMatchObject({ done: 'posted', balance: '1001' })
    const ledgerBalances = [1, 2, 3, 4].map(id => books.row(id).balance)
    expect(ledgerBalances).toEqual([54n, -1_005n, 0n, -50n])
  })

  test('are refused in this order', () => {
    post('top_up', 100, '50', 'invoice 1')
    expect(post('top_up', 100, '50')).toMatchObject({ done: 'exists', same: false })
    expect(post('top_up', 101, '50', 'invoice 1')).toMatchObject({ done: 'exists' })
    const unknownAccount = { kind: 'gift', ref: 102, amount: '5', reference: null, author: 'x' } as const
    expect(books.run.post({ ...unknownAccount, accountId: 99 })).toEqual({ done: 'account_unknown' })
    expect(books.run.post({ ...unknownAccount, accountId: 1 })).toEqual({ done: 'account_unknown' })
    expect(post('adjustment', 103, '-1051')).toEqual({ done: 'balance_too_low' })
    expect(post('top_up', 104, `${2n ** 61n}`)).toEqual({ done: 'balance_too_high' })
    expect(() => post('top_up', 105, '0')).toThrow('must move money')
    expect(() => post('gift', 106, '-5')).toThrow('must move money')
  })

  test('that refund a charge do so once, and for no more than the charge', () => {
    expect(post('refund', 7, '10')).toEqual({ done: 'call_not_charged' })
    hold(7, 11, '400')
    settle(7, '150')
    expect(post('refund', 7, '151')).toEqual({ done: 'more_than_charged' })
    expect(post('refund', 7, '150')).toMatchObject({ done: 'posted', balance: '1000' })
    expect(post('refund', 7, '1')).toMatchObject({ done: 'exists', same: false })
    expect(books.row(1).balance).toBe(0n)
    books.account(12, '1')
    hold(8, 11, '5')
    settle(8, '5')
    const otherAccount = { kind: 'refund', ref: 8, accountId: 12, amount: '5', reference: null, author: 'x' } as const
    expect(books.run.post(otherAccount)).toEqual({ done: 'call_not_charged' })
  })
})
