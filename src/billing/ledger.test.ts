// What the ledger makes of the writer's verdicts.

import { expect, test } from 'bun:test'
import { Refusal } from '../base/errors.ts'
import { nanos } from '../base/money.ts'
import type { RecordRow } from '../store/operations.ts'
import { buildLedger } from './ledger.ts'

/** A writer that gives one answer and remembers what it was asked. */
function writerOf(result: unknown) {
  const asked: unknown[] = []
  const run = (...args: readonly unknown[]): Promise<never> => {
    asked.push(args)
    return result instanceof Error ? Promise.reject(result) : Promise.resolve(result as never)
  }
  return { asked, ledger: buildLedger({ run }) }
}

const faultOf = (work: Promise<unknown>): Promise<unknown> => work.then(() => undefined, (fault: unknown) => fault)

test('a hold that was made is silent', async () => {
  const { asked, ledger } = writerOf({ done: 'held' })
  await ledger.hold(7, 1, nanos(9_007_199_254_740_993n))
  expect(asked).toEqual([['hold', { callId: 7, accountId: 1, amount: '9007199254740993' }]])
})

test('one that does not fit tells what it needs and what is there', async () => {
  const { ledger } = writerOf({ done: 'balance_too_low', available: '1500000' })
  const fault = await faultOf(ledger.hold(7, 1, nanos(2_000_000_000n)))
  expect(fault).toBeInstanceOf(Refusal)
  expect(fault).toMatchObject({ code: 'balance_too_low' })
  expect((fault as Refusal).extras.hint).toBe('It may cost up to $2.00; $0.0015 is there.')
})

test('an account that is not there is our own mistake, and no refusal', async () => {
  const { ledger } = writerOf({ done: 'account_unknown' })
  const fault = await faultOf(ledger.hold(7, 1, nanos(1n)))
  expect(fault).toBeInstanceOf(Error)
  expect(fault).not.toBeInstanceOf(Refusal)
})

test('what the writer throws is passed on', async () => {
  const lost = new Error('gone')
  const { ledger } = writerOf(lost)
  expect(await faultOf(ledger.hold(7, 1, nanos(1n)))).toBe(lost)
  expect(await faultOf(ledger.settle({} as RecordRow, nanos(1n)))).toBe(lost)
})

test('a settle passes the record and its cost', async () => {
  const { asked, ledger } = writerOf({ done: 'settled', charged: '5' })
  const record = { callId: 7 } as RecordRow
  await ledger.settle(record, nanos(5n))
  expect(asked).toEqual([['settle', { record, cost: '5' }]])
})
