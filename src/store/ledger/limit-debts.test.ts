// Saved use of day limits, on a real file: replaced by name, bounded in number, and deleted when paid off.

import { afterEach, beforeEach, expect, test } from 'bun:test'
import type { TestBooks } from '../../../test/support/books.ts'
import { bookFaults, openTestBooks } from '../../../test/support/books.ts'
import { bounds } from '../../base/bounds.ts'
import type { BoundReads } from '../engine/reads.ts'
import { bindReads } from '../engine/reads.ts'
import { sqliteSteps } from '../engine/sqlite-steps.ts'
import { vaultReads } from '../vault/vault-reader.ts'
import type { LimitDebt } from './limit-debts.ts'
import { LimitDebts } from './limit-debts.ts'

const HOUR_MS = 3_600_000

let books: TestBooks
let reader: BoundReads<typeof vaultReads>

beforeEach(() => {
  books = openTestBooks()
  reader = bindReads(vaultReads, sqliteSteps(books.db))
})
afterEach(() => {
  expect(bookFaults(books.db)).toEqual([])
  books.close()
})

const debt = (name: string, paidMs: number): LimitDebt => ({ name, paidMs, notedMs: 3 })
const saveDebts = (...debts: LimitDebt[]) => books.run.noteDebts({ debts })

test('a limit debt has one row per name, with the last date', () => {
  saveDebts(debt('1 7', 5), debt('2 a1/openai/gpt-x', 6))
  saveDebts(debt('1 7', 9))
  expect(reader.limitDebts()).toEqual([debt('1 7', 9), debt('2 a1/openai/gpt-x', 6)])
})

test('an increase adds to what a row has left, by one clock, and never more than was left when it was noted', () => {
  const increase = (ms: number): LimitDebt => ({ name: '1 7', paidMs: 500 + ms, notedMs: 500, isIncrease: true })
  const saved = (nowMs: number, ...debts: LimitDebt[]) => {
    books.nowMs = nowMs
    saveDebts(...debts)
    const [{ paidMs, notedMs }] = reader.limitDebts() as [LimitDebt]
    return { leftMs: paidMs - notedMs, notedMs }
  }
  expect(saved(1_000, increase(100))).toEqual({ leftMs: 100, notedMs: 1_000 })
  expect(saved(1_030, increase(50), increase(7))).toEqual({ leftMs: 127, notedMs: 1_030 })
  expect(saved(1_031, increase(-20))).toEqual({ leftMs: 106, notedMs: 1_031 })
  expect(saved(600, increase(1))).toEqual({ leftMs: 107, notedMs: 600 }) // the clock was set back
  expect(saved(2_000, increase(3))).toEqual({ leftMs: 3, notedMs: 2_000 })
  expect(saved(2_001, increase(-9))).toEqual({ leftMs: -7, notedMs: 2_001 })
  expect(saved(1_000, increase(4))).toEqual({ leftMs: 4, notedMs: 1_000 })
})

test('limit debts that have been paid off for an hour are deleted, some at a time', () => {
  const nowMs = 10 * HOUR_MS
  saveDebts(...Array.from({ length: 1_500 }, (_, index) => debt(`1 ${index}`, nowMs - HOUR_MS - 1)))
  saveDebts(debt('paid', nowMs - HOUR_MS), debt('owed', nowMs + 1))
  expect(books.run.forgetKept({ nowMs }).count).toBe(1_000)
  expect(books.run.forgetKept({ nowMs }).count).toBe(500)
  expect(books.run.forgetKept({ nowMs }).count).toBe(0)
  expect(reader.limitDebts().map(({ name }) => name)).toEqual(['owed', 'paid'])
})

test('a full table takes no new names, but its rows still change', () => {
  const debts = new LimitDebts()
  const runSteps = sqliteSteps(books.db)
  const many = Array.from({ length: bounds.storedLimitUsesMax - 1 }, (_, index) => debt(String(index), 1))
  books.db.transaction(() => runSteps(debts.save(many, 0)))()
  const increases = [debt('6', 4), debt('newer', 2)].map(row => ({ ...row, isIncrease: true }) as const)
  runSteps(debts.save([debt('5', 2), debt('new', 2), ...increases], 0))
  const stored = reader.limitDebts()
  expect(stored).toHaveLength(bounds.storedLimitUsesMax - 1)
  expect(stored.find(({ name }) => name === '5')).toEqual(debt('5', 2))
  expect(stored.find(({ name }) => name === '6')).toEqual({ name: '6', paidMs: 1, notedMs: 0 })
})
