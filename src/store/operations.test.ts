// Holds and settles on a real file: what fits is held, what is over is settled once, and the books always agree.

import type { Database } from 'bun:sqlite'
import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { migrate, openWriter } from './database.ts'
import type { MoneyText, RecordRow } from './operations.ts'
import { buildOperations, recoverHolds } from './operations.ts'

let folder: string
let db: Database
let run: ReturnType<typeof buildOperations>

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'weir-store-'))
  db = openWriter(join(folder, 'weir.db'))
  migrate(db)
  run = buildOperations(db)
})
afterEach(() => {
  db.close()
  rmSync(folder, { recursive: true })
})

const usd: MoneyText = '1000000000'
const int64Max = 2n ** 63n - 1n

function createAccount(id: number, credit: MoneyText): void {
  const digest = id.toString(16).padStart(64, '0')
  const key = { id, accountId: id, digest, suffix: 'abcd', name: 'x', tier: 'pro', qpm: null, credit, nowMs: 1 }
  expect(run.createKey(key)).toEqual({ done: 'created' })
}

function recordOf(callId: number, accountId = 1, more: Partial<RecordRow> = {}): RecordRow {
  return {
    ...{ callId, keyId: accountId, accountId, provider: 'p', model: 'm', channel: 'p#1', status: 200 },
    ...{ outcome: 'completed', usageSource: 'reported', inputTokens: 1, cacheReadTokens: 2, outputTokens: 3 },
    ...{ attempts: 1, streamed: true, durationMs: 5 },
    ...more,
  }
}

function account(id = 1): { balance: bigint; held: bigint } {
  return db.query('SELECT balance, held FROM account WHERE id = ?1').get(id) as { balance: bigint; held: bigint }
}

const countOf = (table: 'hold' | 'record'): number =>
  Number((db.query(`SELECT count(*) AS n FROM ${table === 'hold' ? 'hold' : 'record'}`).get() as { n: bigint }).n)

describe('a hold', () => {
  beforeEach(() => createAccount(1, usd))

  test('is taken from what is there', () => {
    expect(run.hold({ callId: 7, accountId: 1, amount: '400' })).toEqual({ done: 'held' })
    expect(account()).toEqual({ balance: 1_000_000_000n, held: 400n })
    expect(countOf('hold')).toBe(1)
  })

  test('may take everything, and not a nano-dollar more', () => {
    const tooMuch = run.hold({ callId: 7, accountId: 1, amount: '1000000001' })
    expect(tooMuch).toEqual({ done: 'balance_too_low', available: usd })
    expect(run.hold({ callId: 8, accountId: 1, amount: usd })).toEqual({ done: 'held' })
    expect(run.hold({ callId: 9, accountId: 1, amount: '1' })).toEqual({ done: 'balance_too_low', available: '0' })
    expect(run.hold({ callId: 10, accountId: 1, amount: '0' })).toEqual({ done: 'held' })
    expect(account().held).toBe(1_000_000_000n)
  })

  test('needs an account', () => {
    expect(run.hold({ callId: 7, accountId: 5, amount: '0' })).toEqual({ done: 'account_unknown' })
    expect(countOf('hold')).toBe(0)
  })

  test('is made once a call, and a second one changes nothing', () => {
    const once = () => db.transaction(() => run.hold({ callId: 7, accountId: 1, amount: '400' })).immediate()
    once()
    expect(once).toThrow('a call holds once')
    expect(account().held).toBe(400n)
    expect(countOf('hold')).toBe(1)
  })
})

describe('a settle', () => {
  beforeEach(() => createAccount(1, usd))

  test('posts the cost, gives back the rest and writes the record', () => {
    run.hold({ callId: 7, accountId: 1, amount: '400' })
    expect(run.settle({ record: recordOf(7), cost: '150' })).toEqual({ done: 'settled', charged: '150' })
    expect(account()).toEqual({ balance: 999_999_850n, held: 0n })
    expect(countOf('hold')).toBe(0)
    expect(db.query('SELECT * FROM record').get()).toEqual({
      ...{ call_id: 7n, key_id: 1n, account_id: 1n, provider: 'p', model: 'm', channel: 'p#1', status: 200n },
      ...{ outcome: 'completed', usage_source: 'reported', input_tokens: 1n, cache_read_tokens: 2n, output_tokens: 3n },
      ...{ cost: 150n, attempts: 1n, streamed: 1n, duration_ms: 5n },
    })
  })

  test('happens once, whoever says it again', () => {
    run.hold({ callId: 7, accountId: 1, amount: '400' })
    run.settle({ record: recordOf(7), cost: '150' })
    for (const cost of ['150', '400', '0'] as const) {
      expect(run.settle({ record: recordOf(7, 1, { outcome: 'client_left' }), cost })).toEqual({ done: 'exists' })
    }
    expect(account()).toEqual({ balance: 999_999_850n, held: 0n })
    expect(countOf('record')).toBe(1)
    expect(db.query('SELECT outcome FROM record').get()).toEqual({ outcome: 'completed' })
  })

  test('without a hold charges nothing and is recorded', () => {
    const settled = run.settle({ record: recordOf(7, 1, { status: 402 }), cost: '150' })
    expect(settled).toEqual({ done: 'settled', charged: '0' })
    expect(account()).toEqual({ balance: 1_000_000_000n, held: 0n })
    expect(countOf('record')).toBe(1)
  })

  test('takes what is free beyond the hold, and what others hold stays theirs', () => {
    run.hold({ callId: 7, accountId: 1, amount: '400' })
    run.hold({ callId: 8, accountId: 1, amount: '999999000' })
    expect(run.settle({ record: recordOf(7), cost: '5000' })).toEqual({ done: 'settled', charged: '1000' })
    expect(account()).toEqual({ balance: 999_999_000n, held: 999_999_000n })
    expect(run.settle({ record: recordOf(8), cost: '999999000' })).toEqual({ done: 'settled', charged: '999999000' })
    expect(account()).toEqual({ balance: 0n, held: 0n })
  })
})

describe('a mere record', () => {
  beforeEach(() => createAccount(1, usd))

  test('costs nothing and is written once', () => {
    expect(run.record({ record: recordOf(7, 1, { status: 404 }) })).toEqual({ done: 'recorded' })
    expect(run.record({ record: recordOf(7) })).toEqual({ done: 'exists' })
    expect(db.query('SELECT status, cost FROM record').all()).toEqual([{ status: 404n, cost: 0n }])
    expect(account()).toEqual({ balance: 1_000_000_000n, held: 0n })
  })

  test('is not followed by a charge', () => {
    run.record({ record: recordOf(7) })
    expect(run.settle({ record: recordOf(7), cost: '150' })).toEqual({ done: 'exists' })
    expect(account().balance).toBe(1_000_000_000n)
  })
})

describe('amounts', () => {
  const wrong = ['-1', String(2n ** 63n), String(2n ** 64n), String(2n ** 64n + 5n)] as MoneyText[]

  test.each(wrong)('of %s are refused before they reach the driver, which would wrap them', amount => {
    createAccount(1, usd)
    expect(() => run.hold({ callId: 7, accountId: 1, amount })).toThrow('assertion failed')
    expect(() => run.settle({ record: recordOf(7), cost: amount })).toThrow('assertion failed')
    expect(() => createAccount(2, amount)).toThrow('assertion failed')
    expect(account()).toEqual({ balance: 1_000_000_000n, held: 0n })
  })

  test('up to 64 bits are kept to the last digit', () => {
    createAccount(1, `${int64Max}`)
    run.hold({ callId: 7, accountId: 1, amount: `${int64Max - 1n}` })
    expect(account()).toEqual({ balance: int64Max, held: int64Max - 1n })
    expect(run.settle({ record: recordOf(7), cost: '9007199254740993' })).toEqual({
      done: 'settled',
      charged: '9007199254740993',
    })
    expect(account()).toEqual({ balance: int64Max - 9_007_199_254_740_993n, held: 0n })
  })

  test('can never leave a balance below what is held, even by hand', () => {
    createAccount(1, '10')
    expect(() => db.run('UPDATE account SET balance = -1')).toThrow('CHECK')
    expect(() => db.run('UPDATE account SET held = 11')).toThrow('CHECK')
    expect(() => db.run('UPDATE account SET held = -1')).toThrow('CHECK')
  })
})

describe('recovery', () => {
  test('gives back what a crash left held, and again nothing', () => {
    createAccount(1, usd)
    createAccount(2, usd)
    run.hold({ callId: 7, accountId: 1, amount: '400' })
    run.hold({ callId: 8, accountId: 1, amount: '600' })
    run.hold({ callId: 9, accountId: 2, amount: '5' })
    run.settle({ record: recordOf(8), cost: '100' })
    for (const recovered of [2, 0]) {
      expect(recoverHolds(db)).toBe(recovered)
      expect(account(1)).toEqual({ balance: 999_999_900n, held: 0n })
      expect(account(2)).toEqual({ balance: 1_000_000_000n, held: 0n })
    }
    expect(countOf('record')).toBe(1)
  })

  test('lets a late settle be recorded without a charge', () => {
    createAccount(1, usd)
    run.hold({ callId: 7, accountId: 1, amount: '400' })
    recoverHolds(db)
    expect(run.settle({ record: recordOf(7), cost: '100' })).toEqual({ done: 'settled', charged: '0' })
    expect(account()).toEqual({ balance: 1_000_000_000n, held: 0n })
  })
})

describe('keys', () => {
  test('need a tier that exists', () => {
    const key = { id: 1, accountId: 2, digest: '00'.repeat(32), suffix: '', name: '', tier: 'gold', qpm: null }
    expect(run.createKey({ ...key, credit: '1', nowMs: 1 })).toEqual({ done: 'tier_unknown' })
    expect(db.query('SELECT * FROM account').all()).toEqual([])
  })

  test('are revoked once, and the first time stays', () => {
    createAccount(1, usd)
    expect(run.revokeKey({ id: 1, nowMs: 5 })).toEqual({ done: 'revoked' })
    expect(run.revokeKey({ id: 1, nowMs: 9 })).toEqual({ done: 'revoked' })
    expect(run.revokeKey({ id: 2, nowMs: 9 })).toEqual({ done: 'unknown' })
    expect(db.query('SELECT revoked_ms FROM api_key').get()).toEqual({ revoked_ms: 5n })
  })
})

test('in any order of holds, settles, repeats and crashes the books agree', () => {
  const op = fc.constantFrom('hold', 'hold', 'hold', 'settle', 'settle', 'settle', 'crash')
  const step = fc.record({ op, call: fc.nat(30), account: fc.nat(1), amount: fc.nat(800) })
  let next = 100
  fc.assert(
    fc.property(fc.array(step, { maxLength: 40 }), steps => {
      const ids = [next++, next++]
      for (const id of ids) createAccount(id, '1000')
      const base = next * 1_000
      const held = new Map<number, { account: number; amount: bigint }>()
      const spent = new Map<number, bigint>(ids.map(id => [id, 0n]))
      const over = new Set<number>()
      for (const { op, call, account: which, amount } of steps) {
        const callId = base + call
        const id = ids[held.has(callId) && op === 'settle' ? ids.indexOf(held.get(callId)!.account) : which]!
        if (op === 'crash') {
          recoverHolds(db)
          held.clear()
        } else if (op === 'hold' && !held.has(callId) && !over.has(callId)) {
          const { done } = run.hold({ callId, accountId: id, amount: `${BigInt(amount)}` })
          if (done === 'held') held.set(callId, { account: id, amount: BigInt(amount) })
        } else if (op === 'settle') {
          const result = run.settle({ record: recordOf(callId, id), cost: `${BigInt(amount)}` })
          expect(result.done).toBe(over.has(callId) ? 'exists' : 'settled')
          if (result.done === 'settled') spent.set(id, spent.get(id)! + BigInt(result.charged))
          over.add(callId)
          held.delete(callId)
        }
        for (const one of ids) {
          const { balance, held: kept } = account(one)
          const open = [...held.values()].filter(hold => hold.account === one)
          expect(kept).toBe(open.reduce((sum, hold) => sum + hold.amount, 0n))
          expect(balance).toBe(1_000n - spent.get(one)!)
          expect(balance - kept).toBeGreaterThanOrEqual(0n)
        }
      }
      recoverHolds(db)
    }),
    { numRuns: 120 },
  )
})
