// Daily limits outlive the process: what was used before a start is not granted again, even if the system clock was
// changed in between.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { systemClock } from '../../src/base/clock.ts'
import { RateMeter, rateOf, spansMs } from '../../src/base/collections/gcra.ts'
import { DayUsageWriter, restoreDayUsage } from '../../src/limits/day-usage.ts'
import type { LimitAdmission } from '../../src/limits/limits.ts'
import { Limits } from '../../src/limits/limits.ts'
import { SharedLimits } from '../../src/limits/shared-limits.ts'
import { bindReads } from '../../src/store/engine/reads.ts'
import { sqliteSteps } from '../../src/store/engine/sqlite-steps.ts'
import type { LimitDebt } from '../../src/store/ledger/limit-debts.ts'
import { vaultReads } from '../../src/store/vault/vault-reader.ts'
import type { TestBooks } from '../support/books.ts'
import { openTestBooks } from '../support/books.ts'
import { chat, hello, startHarness } from '../support/gateway.ts'
import { howMany, leaseOf, requests, row, subject, tokens } from './rows.ts'

const TEN_MINUTES_MS = 600_000
const DAY_S = 86_400

describe('after a start', () => {
  const run = fc.record({
    /** By how much the system clock is wrong. */
    offMs: fc.integer({ min: -TEN_MINUTES_MS / 2, max: TEN_MINUTES_MS / 2 }),
    stoppedS: fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 2_000 }), fc.integer({ min: 0, max: 90_000 })),
    calls: fc.array(fc.record({ afterS: fc.nat(1_500), tries: fc.nat(30) }), { maxLength: 12 }),
  })

  test('daily limits admit no more than B + r·W, whatever ran before it, with a system clock that is ten minutes off', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 400 }), fc.array(run, { minLength: 2, maxLength: 6 }), (amount, runs) => {
        const written = new Map<string, LimitDebt>()
        const admittedS: number[] = []
        let trueS = 1_000_000
        for (const { offMs, stoppedS, calls } of runs) {
          trueS += stoppedS
          const startS = trueS
          const dateMs = (): number => trueS * 1_000 + offMs
          const limits = new Limits(restoreDayUsage([...written.values()], { nowMs: 0, dateMs: dateMs() }))
          limits.setRules([row(1, { ...requests(amount, 'day'), per: ['key'] })])
          for (const { afterS, tries } of calls) {
            trueS += afterS
            const nowMs = (trueS - startS) * 1_000
            const count = howMany(limits, subject(), { nowMs, most: tries })
            for (let call = 0; call < count; call++) admittedS.push(trueS)
          }
          const notes = limits.takeDayUsage((trueS - startS) * 1_000, dateMs())
          for (const note of notes) written.set(note.name, note)
        }
        const over = admittedS.some((from, first) =>
          admittedS.slice(first).some((to, count) => (count + 1) * DAY_S > amount * (DAY_S + to - from)),
        )
        expect(over).toBe(false)
      }),
      { numRuns: 300 },
    )
  })

  const left = (notedMs: number, dateMs: number): number => {
    const debts = [{ name: '1 1', paidMs: notedMs + 30_000_000, notedMs }]
    const limits = new Limits(restoreDayUsage(debts, { nowMs: 7_000, dateMs }))
    limits.setRules([row(1, { ...requests(86_400, 'day'), per: ['key'] })])
    expect(limits.quotasOfCall(subject({ keyId: 2 }), 7_000)[1]).toMatchObject({ resetMs: 0 })
    return limits.quotasOfCall(subject(), 7_000)[1]!.resetMs
  }

  test('daily limits ignore at most ten minutes of the time that has passed, and never owe more for it', () => {
    expect(left(1e12, 1e12)).toBe(30_000_000)
    expect(left(1e12, 1e12 + TEN_MINUTES_MS)).toBe(30_000_000)
    expect(left(1e12, 1e12 + 2 * TEN_MINUTES_MS)).toBe(30_000_000 - TEN_MINUTES_MS)
    expect(left(1e12, 1e12 + 30_000_000 + TEN_MINUTES_MS)).toBe(0)
  })

  test('with a system clock that is years off daily limits owe what was owed, or nothing', () => {
    expect(left(1.8e12, 0)).toBe(30_000_000)
    expect(left(1.8e12, 4e12)).toBe(0)
  })
})

describe('the stored usage of a day', () => {
  test('is the debt of each subject that has called since, under its own name', () => {
    const limits = new Limits()
    limits.setRules([
      row(1, { ...requests(10, 'day'), per: ['key'] }),
      row(2, { ...tokens(1_000, 'day'), per: ['account', 'model'] }),
      row(3, { ...requests(100, 'day'), tier: 'pro' }),
      row(4, { ...requests(10), per: ['key'] }),
      row(5, { ...requests(10, 'day'), per: ['key', 'model'] }),
    ])
    const lease = leaseOf(limits.admit(subject(), 0))
    const names = (): readonly string[] =>
      limits
        .takeDayUsage(0, 1_000)
        .map(({ name }) => name)
        .sort()
    expect(names()).toEqual(['1 1', '2 a10/openai/gpt-x', '3 ', '5 1/openai/gpt-x'])
    expect(names()).toEqual([])
    lease.correct(0, 0)
    expect(limits.takeDayUsage(0, 1_000)).toEqual([{ name: '2 a10/openai/gpt-x', paidMs: 1_000, notedMs: 1_000 }])
  })

  test('is written in batches, and what could not be written is written later with its value of then, except for increases', async () => {
    const batches: (readonly LimitDebt[])[] = []
    let fails = false
    const debt = (name: string, paidMs = 1): LimitDebt => ({ name, paidMs, notedMs: 0 })
    let notes = Array.from({ length: 1_200 }, (_, at) => debt(`1 ${at}`))
    const failures: unknown[] = []
    const writer = new DayUsageWriter({
      limits: { takeDayUsage: () => notes.splice(0) },
      writer: {
        run: (async (_name: string, { debts }: { debts: readonly LimitDebt[] }) => {
          if (fails) throw new Error('not now')
          batches.push(debts)
        }) as never,
      },
      nowMs: () => 0,
      dateMs: () => 0,
      onTrouble: fault => failures.push(fault),
    })
    await writer.write()
    expect(batches.map(({ length }) => length)).toEqual([500, 500, 200])
    fails = true
    notes = [debt('a'), debt('b')]
    await writer.write()
    expect(failures).toHaveLength(1)
    fails = false
    notes = [debt('b', 2)]
    await writer.close()
    expect(batches.at(-1)).toEqual([debt('a'), debt('b', 2)])
    const increase = (paidMs: number): LimitDebt => ({ ...debt('c', paidMs), isIncrease: true })
    fails = true
    for (const paidMs of [5, 3]) {
      notes = [increase(paidMs)]
      await writer.write()
    }
    fails = false
    // A write that has failed may have been carried out, and an increase must not be added twice.
    notes = [increase(4)]
    await writer.write()
    expect(batches.at(-1)).toEqual([increase(4)])
  })
})

describe('several processes', () => {
  const step = fc.record({
    afterS: fc.nat(20_000),
    /** Which process gets the calls, and how many. */
    at: fc.nat(2),
    tries: fc.nat(40),
    restarts: fc.boolean(),
  })
  const NOTED_MS = 10_000

  let books: TestBooks
  beforeAll(() => {
    books = openTestBooks({ sync: false })
  })
  afterAll(() => books.close())

  test('save all that they have used together, and restart with it', () => {
    const reader = bindReads(vaultReads, sqliteSteps(books.db))
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 400 }), fc.array(step, { maxLength: 30 }), (amount, steps) => {
        books.db.run('DELETE FROM limit_debt')
        const whole = new RateMeter(rateOf(amount, spansMs.day))
        const open = (): SharedLimits => {
          const restored = restoreDayUsage(reader.limitDebts(), { nowMs: books.nowMs, dateMs: books.nowMs })
          const loadDebts = async (): Promise<readonly LimitDebt[]> => reader.limitDebts()
          const parts = { processes: () => 3, restored, loadDebts, dateMs: () => books.nowMs, onTrouble() {} }
          const limits = new SharedLimits(parts)
          limits.setRules([row(1, { ...requests(amount, 'day'), per: ['key'] })])
          return limits
        }
        const processes = [open(), open(), open()]
        for (const { afterS, at, tries, restarts } of steps) {
          books.nowMs += afterS * 1_000
          const limits = processes[at]!
          whole.refill(books.nowMs)
          for (let call = 0; call < tries; call++) {
            if ((limits.admit(subject(), books.nowMs) as LimitAdmission).admitted) whole.add(1)
          }
          books.nowMs += NOTED_MS
          whole.refill(books.nowMs)
          books.run.noteDebts({ debts: limits.takeDayUsage(books.nowMs, books.nowMs) })
          const savedMs = Math.max(0, ...reader.limitDebts().map(({ paidMs }) => paidMs - books.nowMs))
          expect(savedMs).toBeGreaterThanOrEqual(whole.resetMs - 1_000)
          expect(savedMs).toBeLessThanOrEqual(whole.resetMs + NOTED_MS + 2_000)
          if (restarts) processes[at] = open()
        }
        // After a restart of all, they admit together what is left of the limit.
        let count = 0
        for (const limits of [open(), open(), open()]) {
          while ((limits.admit(subject(), books.nowMs) as LimitAdmission).admitted) count++
        }
        expect(count).toBeLessThanOrEqual(Math.max(3, whole.remaining))
      }),
      { numRuns: 50 },
    )
  })
})

describe('a gateway', () => {
  let folder: string
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'weir-days-'))
  })
  afterAll(() => rmSync(folder, { recursive: true, force: true }))

  test('that is restarted remembers what a daily limit has granted', async () => {
    const body = { model: 'openai/gpt-4o-mini', messages: hello }
    let key = ''
    const statusesAfter = async (offMs: number, calls: number): Promise<number[]> => {
      const clock = { ...systemClock, dateMs: () => Date.now() + offMs }
      const harness = await startHarness({ folder, world: { clock } })
      try {
        if (key === '') {
          key = await harness.key()
          await harness.weir('limits set', { resource: 'requests', amount: '3/day', per: 'key' })
        }
        const statuses: number[] = []
        for (let call = 0; call < calls; call++) statuses.push((await chat(harness, key, body)).status)
        return statuses
      } finally {
        await harness.stop()
      }
    }
    expect(await statusesAfter(0, 2)).toEqual([200, 200])
    expect(await statusesAfter(-TEN_MINUTES_MS, 2)).toEqual([200, 429])
    expect(await statusesAfter(TEN_MINUTES_MS, 1)).toEqual([429])
    expect(await statusesAfter(2 * spansMs.day, 4)).toEqual([200, 200, 200, 429])
  })
})
