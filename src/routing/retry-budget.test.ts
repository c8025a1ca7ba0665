// Tests how many calls may be retried, and that no lease leaks.

import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { chanceOf } from '../../test/support/chance.ts'
import { bounds } from '../base/bounds.ts'
import { backoffMs } from './backoff.ts'
import type { RetryLease } from './retry-budget.ts'
import { RetryBudget } from './retry-budget.ts'

const begin = (budget: RetryBudget, times: number, nowMs = 0): RetryLease[] =>
  Array.from({ length: times }, () => budget.begin('m', nowMs))

const countRetries = (leases: readonly RetryLease[], nowMs = 0): number =>
  leases.filter(lease => lease.mayRetry(nowMs)).length

test('three calls may always be retried, and a fifth of many calls', () => {
  expect(countRetries(begin(new RetryBudget(), 1))).toBe(1)
  expect(countRetries(begin(new RetryBudget(), 10))).toBe(3)
  expect(countRetries(begin(new RetryBudget(), 100))).toBe(20)
  const budget = new RetryBudget()
  expect([countRetries(begin(budget, 10)), countRetries(['x', 'x'].map(name => budget.begin(name, 0)))]).toEqual([3, 2])
})

test('two retries of one call count twice within ten seconds', () => {
  const [lease] = begin(new RetryBudget(), 1)
  for (let attempt = 0; attempt < 30; attempt++) expect(lease!.mayRetry(0)).toBe(true)
  expect([0, 9_999, 10_000].map(nowMs => lease!.mayRetry(nowMs))).toEqual([false, false, true])
})

test('running retries count, however long ago they began', () => {
  const budget = new RetryBudget()
  const hangingLeases = begin(budget, 10)
  expect(countRetries(hangingLeases)).toBe(3)
  const later = begin(budget, 10, 20_000)
  expect(countRetries(later, 20_000)).toBe(1)
  for (const lease of hangingLeases) lease.end()
  expect(countRetries(later, 40_000)).toBe(3)
})

test('retries of hanging calls are limited by active calls, retries of quick failures by recent calls', () => {
  const hanging = new RetryBudget()
  const first = begin(hanging, 100)
  expect(countRetries(first)).toBe(20)
  expect(countRetries(first, 60_000)).toBe(20)
  const failing = new RetryBudget()
  let retried = 0
  for (let call = 0; call < 1_000; call++) {
    const lease = failing.begin('m', call * 10)
    while (lease.mayRetry(call * 10)) retried++
    lease.end()
  }
  expect(retried).toBeLessThanOrEqual(200)
  expect(retried).toBeGreaterThan(150)
})

test('no lease leaks over 100,000 random endings', () => {
  const budget = new RetryBudget()
  const chance = chanceOf(20_261_115)
  const open: RetryLease[] = []
  let nowMs = 0
  for (let call = 0; call < 100_000; call++) {
    nowMs += chance() * 20
    const lease = budget.begin(`m${Math.floor(chance() * 20)}`, nowMs)
    if (chance() < 0.5) lease.mayRetry(nowMs)
    const ending = chance()
    if (ending < 0.6) lease.end()
    else if (ending < 0.9) open.push(lease)
    // A tenth of the leases is never ended.
    while (open.length > 50) {
      const [ended] = open.splice(Math.floor(chance() * open.length), 1)
      ended!.end()
      if (chance() < 0.2) ended!.end()
      if (chance() < 0.2) expect(ended!.mayRetry(nowMs)).toBe(false)
    }
  }
  for (const lease of open) lease.end()
  nowMs += bounds.channelUseMsMax + 10_000
  for (let name = 0; name < 20; name++) {
    const fresh = budget.begin(`m${name}`, nowMs)
    for (let attempt = 0; attempt < 30; attempt++) expect(fresh.mayRetry(nowMs)).toBe(true)
    expect(fresh.mayRetry(nowMs)).toBe(false)
    fresh.end()
  }
  nowMs += 20_000
  for (let call = 0; call < 100; call++) budget.begin('last', nowMs).end()
  expect(budget.size).toBe(1)
})

test('the number of model names is bounded, whatever callers invent', () => {
  const budget = new RetryBudget()
  for (let name = 0; name < bounds.retryGroupsMax + 100; name++) budget.begin(`n${name}`, 0)
  expect(budget.size).toBe(bounds.retryGroupsMax)
  expect(budget.begin('another', 0).mayRetry(0)).toBe(true)
})

test('a pause is random between zero and a maximum that doubles, up to four seconds', () => {
  expect([1, 2, 3, 4, 50].map(attempts => backoffMs(attempts, 1))).toEqual([500, 1_000, 2_000, 4_000, 4_000])
  fc.assert(
    fc.property(fc.nat(100), fc.double({ min: 0, max: 1, noNaN: true }), (attempts, chance) => {
      const ms = backoffMs(attempts, chance)
      expect(ms >= 0 && ms <= backoffMs(attempts, 1)).toBe(true)
    }),
  )
})

test('one account has at most half of the budget while others call, and all of it alone', () => {
  const [budget, alone] = [new RetryBudget(), new RetryBudget()]
  const retried = (budgetOf: RetryBudget, accountId: number): number => {
    let count = 0
    for (let call = 0; call < 100; call++) {
      const lease = budgetOf.begin('m', 0, accountId)
      if (lease.mayRetry(0)) count++
      lease.end()
    }
    return count
  }
  expect(retried(alone, 1)).toBe(30)
  budget.begin('m', 0, 2).end()
  expect(retried(budget, 1)).toBe(15)
  const other = budget.begin('m', 0, 2)
  expect(other.mayRetry(0)).toBe(true)
})
