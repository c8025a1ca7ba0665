// Tests how the ledger maps the results of the writer.

import { expect, test } from 'bun:test'
import { Refusal } from '../base/errors.ts'
import { hintOf } from '../base/hints.ts'
import { nanos } from '../base/money/money.ts'
import type { RecordRow } from '../store/ledger/hold-types.ts'
import { buildLedger, refusalOfHold } from './ledger.ts'

/** A writer that returns one result and records its inputs. */
function writerOf(result: unknown) {
  const operations: unknown[] = []
  const run = (...args: readonly unknown[]): Promise<never> => {
    operations.push(args)
    return result instanceof Error ? Promise.reject(result) : Promise.resolve(result as never)
  }
  const shortfalls: unknown[] = []
  const onShortfall = (...args: readonly unknown[]): void => void shortfalls.push(args)
  return { operations, shortfalls, ledger: buildLedger({ writer: { run }, onShortfall }) }
}

const faultOf = (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => undefined,
    (fault: unknown) => fault,
  )

const draft = {
  dialect: 'd',
  provider: 'p',
  model: 'm',
  streamed: false,
  priceVersion: null,
  endUser: null,
  tags: null,
}
const holdRequest = (amount: bigint) => ({ callId: 7, accountId: 1, keyId: 2, amount: nanos(amount), draft })

test('a hold passes its amount, and how much must be available', async () => {
  const { operations, ledger } = writerOf({ done: 'held' })
  expect(await ledger.hold(holdRequest(9_007_199_254_740_993n))).toEqual({ done: 'held' })
  await ledger.hold({ ...holdRequest(5n), wants: 30n })
  const common = { callId: 7, accountId: 1, keyId: 2, kind: 'call', draft }
  expect(operations).toEqual([
    ['hold', { ...common, amount: '9007199254740993', wants: '0' }],
    ['hold', { ...common, amount: '5', wants: '30' }],
  ])
})

test.each([
  [{ done: 'balance_too_low', available: '1500000' }, 'balance_too_low', '$0.0015 is available.'],
  [{ done: 'hold_less', available: '1500000' }, 'balance_too_low', '$0.0015 is available.'],
  [
    { done: 'budget_too_low', available: '-5', budget: 'key, day' },
    'budget_too_low',
    '$0.00 of the budget (key, day) is available.',
  ],
] as const)('%p is refused with the amount that is needed and the amount that is available', (held, code, funds) => {
  const refusal = refusalOfHold(held, nanos(2_000_000_000n), hintOf('call_fits_never'))
  expect(refusal).toMatchObject({ code })
  expect(refusal!.extras.hint?.text).toBe(`It may cost up to $2.00; ${funds} No cap on its output would make it fit.`)
})

test('a frozen account is refused, and a successful hold is not', () => {
  expect(refusalOfHold({ done: 'account_frozen' }, nanos(1n))).toMatchObject({ code: 'account_frozen' })
  expect(refusalOfHold({ done: 'held' }, nanos(1n))).toBeUndefined()
})

test('an unknown account is an internal error, not a refusal', async () => {
  const { ledger } = writerOf({ done: 'account_unknown' })
  const fault = await faultOf(ledger.hold(holdRequest(1n)))
  expect(fault).toBeInstanceOf(Error)
  expect(fault).not.toBeInstanceOf(Refusal)
})

test('errors of the writer are passed on', async () => {
  const writerError = new Error('gone')
  const { ledger } = writerOf(writerError)
  expect(await faultOf(ledger.hold(holdRequest(1n)))).toBe(writerError)
  expect(await faultOf(ledger.settle({} as RecordRow, nanos(1n)))).toBe(writerError)
})

test('settle passes the record and its cost, and reports a shortfall', async () => {
  const record = { callId: 7 } as RecordRow
  const inFull = writerOf({ done: 'settled', charged: '5', shortfall: '0' })
  await inFull.ledger.settle(record, nanos(5n))
  expect(inFull.operations).toEqual([['settle', { record, cost: '5' }]])
  expect(inFull.shortfalls).toEqual([])
  const short = writerOf({ done: 'settled', charged: '5', shortfall: '3' })
  await short.ledger.settle(record, nanos(8n), { idempotency: 'release' })
  expect(short.operations).toEqual([['settle', { record, cost: '8', idempotency: 'release' }]])
  expect(short.shortfalls).toEqual([[7, nanos(3n)]])
})
