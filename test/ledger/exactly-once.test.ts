// Operations that may happen once, requested many times at once; and a gateway that disappears in the middle of a
// command.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import type { RequestProblem } from '../../src/cli/problem.ts'
import { call } from '../front/asking.ts'
import { cleanUp, freshFolder, weir, weirSays } from '../front/weir-process.ts'
import type { Harness } from '../support/gateway.ts'
import { startHarness } from '../support/gateway.ts'
import { pooled } from '../support/pooled.ts'

let harness: Harness
beforeAll(async () => {
  harness = await startHarness()
})
afterAll(async () => {
  await harness.stop()
  await cleanUp()
})

/**
 * As many at the same time as a busy machine carries out in a part of the gateway's time limit. On PostgreSQL these
 * operations run one by one, and one that waited for 5 s is refused.
 */
const AT_ONCE = 10

/** Runs all of them, AT_ONCE at the same time. */
async function inLanes<T>(count: number, run: (at: number) => Promise<T>): Promise<T[]> {
  const results: T[] = []
  await pooled([...Array(count).keys()], AT_ONCE, async at => void results.push(await run(at)))
  return results
}

/** How often the operation succeeded (`done`), and how often each refusal was returned. */
async function tryAll(count: number, attempt: (at: number) => Promise<unknown>): Promise<Record<string, number>> {
  const outcome = async (at: number): Promise<string> => {
    try {
      await attempt(at)
      return 'done'
    } catch (error) {
      const { code, message } = error as RequestProblem
      return `${code}: ${message}`
    }
  }
  const outcomes = await inLanes(count, outcome)
  return Object.fromEntries([...new Set(outcomes)].map(each => [each, outcomes.filter(one => one === each).length]))
}

const balanceOf = async (key: string): Promise<string> => (await harness.balance(key)).balance

describe('exactly once happens', () => {
  test('the redemption of a code that 200 redeem', async () => {
    const keys = await Promise.all([1, 2, 3, 4].map(() => harness.key({ credit: '0' })))
    const { codes } = await harness.weir('codes create', { count: '1', amount: '7' })
    const code = (codes as string[])[0]
    const redeem = (at: number) => harness.weir('codes redeem', { code, account: keys[at % 4] })
    expect(await tryAll(200, redeem)).toEqual({
      'done': 1,
      'state_unfit: This account has redeemed this code already.': 49,
      'code_unusable: This code has been redeemed already.': 150,
    })
    const balances = await Promise.all(keys.map(balanceOf))
    expect(balances.toSorted()).toEqual(['0.00', '0.00', '0.00', '7.00'])
  })

  test('the redemption of each of more codes than are written at once, until their expiry date', async () => {
    const key = await harness.key({ credit: '0' })
    const created = await harness.weir('codes create', { count: '501', amount: '1', expires: '2' })
    const codes = created.codes as string[]
    expect(new Set(codes).size).toBe(501)
    const daysLeft = (Date.parse(created.expires as string) - Date.now()) / 86_400_000
    expect(daysLeft).toBeWithin(1.99, 2)
    for (const code of [codes[0], codes[500]]) await harness.weir('codes redeem', { code, account: key })
    expect(await balanceOf(key)).toBe('2.00')
  })

  test('a payment with a reference that 100 post', async () => {
    const key = await harness.key({ credit: '0' })
    const topUp = () => harness.weir('top-up', { account: key, amount: '3', reference: 'invoice 9' })
    const transfers = await inLanes(100, topUp)
    expect(transfers.filter(({ repeated }) => repeated === false)).toHaveLength(1)
    expect(await balanceOf(key)).toBe('3.00')
  })

  test('a refund that 50 post', async () => {
    const key = await harness.key({ credit: '1' })
    const answer = await call(harness, key)
    await harness.idle()
    const refund = () => harness.weir('refund', { call: answer.header('x-request-id') })
    const transfers = await inLanes(50, refund)
    expect(transfers.filter(({ repeated }) => repeated === false)).toHaveLength(1)
    expect(await balanceOf(key)).toBe('1.00')
  })

  test('each of these, and the ledger is consistent', async () => {
    expect((await harness.weir('audit')).findings).toEqual([])
  })
})

test('a command is not sent again to a gateway that disappears before it answers, nor carried out in its place', async () => {
  const folder = freshFolder()
  const key = await weirSays(folder, 'keys create --credit 1')
  const brokenGateway = Bun.listen({
    unix: join(folder, 'weir.sock'),
    socket: { data: socket => void socket.terminate() },
  })
  const { code, stderr } = await weir(folder, `top-up ${key} 5`)
  brokenGateway.stop(true)
  expect(code).toBe(1)
  expect(stderr).toBe(
    'weir: The gateway closed the connection before it answered. Check whether the command took effect before you repeat it.\n',
  )
  expect(await weirSays(folder, `balance ${key}`)).toMatch(/balance +1\.00/)
})
