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
  books.db.transaction(() => runSteps(debts.save(many)))()
  runSteps(debts.save([debt('5', 2), debt('new', 2)]))
  const stored = reader.limitDebts()
  expect(stored).toHaveLength(bounds.storedLimitUsesMax - 1)
  expect(stored.find(({ name }) => name === '5')).toEqual(debt('5', 2))
})
