// What a start does after a crash: calls are ended at their last checkpoint, tasks stay, idempotency keys are free
// again.

import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import type { MoneyText } from '../../src/store/ledger/money-text.ts'
import type { TestBooks } from '../support/books.ts'
import { bookFaults, draft, holdOf, openTestBooks, recordOf } from '../support/books.ts'

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
const usage = {
  inputTokens: 30,
  cacheReadTokens: 0,
  cacheWriteTokens: 0,
  outputTokens: 40,
  reasoningTokens: 0,
  lines: '[]',
}
const checkpoint = (callId: number, used: MoneyText) => books.run.checkpoint({ callId, used, known: usage })
const idempotency = { name: 'once', fingerprint: 'ab'.repeat(32) }

describe('recovery', () => {
  test('releases holds, writes a record for each, and does nothing the second time', () => {
    hold(7, 11, '400')
    hold(8, 11, '600')
    books.run.settle({ record: recordOf(8, 11), cost: '100' })
    for (const recovered of [1, 0]) {
      expect(books.recover()).toBe(recovered)
      expect(books.row(11)).toEqual({ balance: 900n, held: 0n })
      expect(books.count('record')).toBe(2)
    }
    expect(books.db.query('SELECT * FROM record WHERE call_id = 7').get()).toMatchObject({
      outcome: 'gateway_crash',
      rule: 'crash_undelivered',
      usage_source: 'none',
      cost: 0n,
      held: 400n,
      provider: 'p',
      model: 'm',
      streamed: 1n,
      output_tokens: 0n,
    })
  })

  test('charges what had been delivered at the last checkpoint, and never more than the hold', () => {
    hold(7, 11, '400')
    hold(8, 11, '300')
    expect(checkpoint(7, '20')).toEqual({ done: 'noted' })
    expect(checkpoint(7, '55')).toEqual({ done: 'noted' })
    expect(checkpoint(8, '5000')).toEqual({ done: 'noted' })
    expect(checkpoint(9, '5')).toEqual({ done: 'unknown' })
    books.recover()
    expect(books.row(11)).toEqual({ balance: 645n, held: 0n })
    expect(books.db.query('SELECT * FROM record WHERE call_id = 7').get()).toMatchObject({
      outcome: 'gateway_crash',
      rule: 'crash_delivered',
      usage_source: 'estimated',
      cost: 55n,
      input_tokens: 30n,
      output_tokens: 40n,
    })
  })

  test('keeps the conversation of a call, which its hold has', () => {
    hold(7, 11, '400', { draft: { ...draft, conversation: '0123456789abcdef' } })
    checkpoint(7, '20')
    books.recover()
    expect(books.db.query('SELECT conversation FROM record WHERE call_id = 7').get()).toEqual({
      conversation: '0123456789abcdef',
    })
  })

  test('keeps tasks, which the task watcher settles', () => {
    hold(7, 11, '400', { kind: 'task' })
    expect(books.recover()).toBe(0)
    expect(books.row(11)).toEqual({ balance: 1_000n, held: 400n })
    expect(books.run.settle({ record: recordOf(7, 11), cost: '150' })).toMatchObject({ charged: '150' })
  })

  test('makes a late settle a mere repetition', () => {
    hold(7, 11, '400')
    books.recover()
    expect(books.run.settle({ record: recordOf(7, 11), cost: '100' })).toEqual({ done: 'exists' })
    expect(books.row(11)).toEqual({ balance: 1_000n, held: 0n })
  })

  test('frees an idempotency key, whose call then costs nothing', () => {
    hold(7, 11, '400', { idempotency })
    checkpoint(7, '55')
    expect(hold(8, 11, '1', { idempotency })).toEqual({ done: 'running', callId: 7 })
    books.recover()
    expect(books.row(11).balance).toBe(1_000n)
    expect(books.db.query('SELECT * FROM record WHERE call_id = 7').get()).toMatchObject({
      rule: 'crash_undelivered',
      usage_source: 'none',
      cost: 0n,
      input_tokens: 0n,
      output_tokens: 0n,
      lines: null,
    })
    expect(hold(8, 11, '1', { idempotency })).toEqual({ done: 'held' })
  })
})

describe('an idempotency key', () => {
  beforeEach(() => {
    books.nowMs = Date.UTC(2026, 0, 1) // when small ids were new
  })

  test('stands for one call, then for its answer', () => {
    hold(7, 11, '400', { idempotency })
    const otherRequest = { ...idempotency, fingerprint: 'cd'.repeat(32) }
    expect(hold(8, 11, '400', { idempotency: otherRequest })).toEqual({ done: 'other_body', callId: 7 })
    expect(hold(8, 11, '400', { idempotency })).toEqual({ done: 'running', callId: 7 })
    const sealed = Buffer.from('answer').toString('base64')
    books.run.settle({ record: recordOf(7, 11), cost: '10', idempotency: { sealed } })
    expect(hold(8, 11, '400', { idempotency })).toEqual({ done: 'finished', callId: 7 })
    expect(hold(8, 11, '400', { idempotency: otherRequest })).toEqual({ done: 'other_body', callId: 7 })
    expect(books.db.query('SELECT * FROM kept_answer').get()).toMatchObject({ call_id: 7n })
    expect(books.row(11)).toEqual({ balance: 990n, held: 0n })
  })

  test('of another API key is another one', () => {
    hold(7, 11, '400', { idempotency })
    expect(hold(8, 11, '400', { idempotency, keyId: 5 })).toEqual({ done: 'held' })
  })

  test('is released, or stays without an answer that was too large', () => {
    hold(7, 11, '400', { idempotency })
    books.run.settle({ record: recordOf(7, 11), cost: '0', idempotency: 'release' })
    hold(8, 11, '400', { idempotency })
    books.run.settle({ record: recordOf(8, 11), cost: '0', idempotency: { sealed: null } })
    expect(hold(9, 11, '1', { idempotency })).toEqual({ done: 'finished', callId: 8 })
    expect(books.count('kept_answer')).toBe(0)
  })

  test('is not taken by a refused hold', () => {
    hold(7, 11, '4000', { idempotency })
    expect(books.count('idempotency')).toBe(0)
  })

  test('is deleted by age, but not while its call runs', () => {
    for (const callId of [7, 8, 9]) hold(callId, 11, '1', { idempotency: { ...idempotency, name: `n${callId}` } })
    for (const callId of [7, 9]) {
      const sealed = Buffer.from('x').toString('base64')
      books.run.settle({ record: recordOf(callId, 11), cost: '0', idempotency: { sealed } })
    }
    expect(books.run.forgetAnswers({ before: 9 })).toEqual({ done: 'forgotten', count: 1 })
    expect([books.count('idempotency'), books.count('kept_answer')]).toEqual([2, 1])
  })
})
