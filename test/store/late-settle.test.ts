// A settle that becomes durable after its caller got an error: the charge is refunded.

import { expect, test } from 'bun:test'
import { nanos } from '../../src/base/money/money.ts'
import { buildLedger } from '../../src/billing/ledger.ts'
import { buildDeduct } from '../../src/pipeline/70-deduct.ts'
import type { Cost } from '../../src/pipeline/settle/call-cost.ts'
import type { OperationInput, OperationName, OperationResult } from '../../src/store/engine/operations.ts'
import { bookFaults, holdOf, openTestBooks, recordOf } from '../support/books.ts'

test('a late charge is refunded once, and other repetitions change nothing', async () => {
  const books = openTestBooks()
  books.account(11, '1000')
  const run = <Name extends OperationName>(name: Name, input: OperationInput<Name>): Promise<OperationResult<Name>> =>
    Promise.resolve((books.run[name] as (input: OperationInput<Name>) => OperationResult<Name>)(input))
  const deduct = buildDeduct(buildLedger({ writer: { run }, onShortfall() {} }))
  const costs = (amount: bigint): Cost =>
    ({ amount: nanos(amount), lines: [], usage: { input: 1, output: 1 }, source: 'reported', rule: '' }) as Cost

  books.run.hold(holdOf(7, 11, '400'))
  await deduct(recordOf(7, 11), costs(150n), {}) // the slow settle
  expect(books.row(11).balance).toBe(850n)
  const failed = recordOf(7, 11, { outcome: 'gateway_fault', status: 500 })
  for (let round = 0; round < 2; round++) {
    await deduct(failed, costs(0n), {})
    expect(books.row(11)).toEqual({ balance: 1_000n, held: 0n })
  }
  expect(books.count('record')).toBe(1)
  const moved = books.db.query('SELECT kind, debit, credit, amount FROM transfer WHERE ref = 7').all()
  expect(moved).toEqual([
    { kind: 'charge', debit: 11n, credit: 1n, amount: 150n },
    { kind: 'refund', debit: 1n, credit: 11n, amount: 150n },
  ])

  const idempotency = { name: 'once', fingerprint: 'ab'.repeat(32) }
  books.run.hold(holdOf(9, 11, '400', { idempotency }))
  await deduct(recordOf(9, 11), costs(150n), { idempotency: { sealed: 'AAAA' } })
  await deduct(recordOf(9, 11, { outcome: 'gateway_fault', status: 500 }), costs(0n), { idempotency: 'release' })
  expect(books.row(11)).toEqual({ balance: 1_000n, held: 0n })
  // An answer that nobody paid for is replayed to nobody, and the call may be tried again.
  expect([books.count('idempotency'), books.count('kept_answer')]).toEqual([0, 0])

  books.run.hold(holdOf(8, 11, '400'))
  await deduct(recordOf(8, 11), costs(150n), {})
  await deduct(recordOf(8, 11), costs(150n), {}) // a delivered stream, unsettled at first and written twice
  expect(books.row(11).balance).toBe(850n)
  expect(bookFaults(books.db)).toEqual([])
  books.close()
})
