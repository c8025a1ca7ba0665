// The same races through the whole gateway: five hundred callers on real sockets, with money for some of them.

import { afterAll, afterEach, beforeAll, expect, test } from 'bun:test'
import { join } from 'node:path'
import { streamed } from '../../tools/fake-upstream/answers.ts'
import { readBooks } from '../crash/books.ts'
import { judgeBooks } from '../crash/laws.ts'
import { closedGate } from '../support/closed-gate.ts'
import { openDatabase } from '../support/database.ts'
import type { Harness } from '../support/gateway.ts'
import { hello, startHarness, until } from '../support/gateway.ts'
import type { RawAnswer } from '../support/raw.ts'
import { post, rawRequest } from '../support/raw.ts'

const CALLERS = 500
const NAMESAKES = 200
const ROUNDS = 4
/** The test runner allows 256 concurrent requests, which include the gateway's upstream calls. */
const SERVED_MAX = 200
const MODEL = 'gpt-4o-mini'
const NANOS_PER_USD = 1_000_000_000n
const MS_MAX = 180_000

const body = { model: `openai/${MODEL}`, messages: hello, max_tokens: 50 }

let harness: Harness
beforeAll(async () => {
  harness = await startHarness({ env: { LOG_LEVEL: 'error' } })
})
afterAll(() => harness.stop())

/** After every race the ledger is consistent, and no hold is left. */
afterEach(async () => {
  await harness.idle()
  expect(judgeBooks(readBooks(join(harness.folder, 'weir.db'), { call: 0, seq: 0 }))).toEqual([])
})

const asUsd = (nanos: bigint): string => `${nanos / NANOS_PER_USD}.${String(nanos % NANOS_PER_USD).padStart(9, '0')}`

function query(sql: string): bigint[] {
  const db = openDatabase(join(harness.folder, 'weir.db'), { readonly: true, safeIntegers: true })
  try {
    return (db.query(sql).values() as [bigint][]).map(([value]) => value)
  } finally {
    db.close()
  }
}

/**
 * Calls on a socket of its own. On a busy machine the gateway refuses some calls for overload; those are sent again.
 */
async function callUntilDecided(key: string, headers: Record<string, string> = {}): Promise<RawAnswer> {
  const allHeaders = { 'authorization': `Bearer ${key}`, 'content-type': 'application/json', ...headers }
  for (;;) {
    const answer = await rawRequest(harness.url, post('/v1/chat/completions', allHeaders, JSON.stringify(body)))
    if (answer.status !== 503) return answer
    await Bun.sleep(100)
  }
}

/** The hold of one such call. */
async function holdOfOneCall(): Promise<bigint> {
  const closed = closedGate()
  harness.upstream.planModel(MODEL, closed.script)
  const pending = callUntilDecided(await harness.key())
  await until(() => closed.taken() === 1, 'the call went upstream')
  const [amount] = query('SELECT amount FROM hold')
  closed.open()
  expect((await pending).status).toBe(200)
  return amount!
}

interface FundedRun {
  readonly key: string
  readonly enough: number
}

/** All callers call at once; as many as the money covers are served, and all others are refused with 402. */
async function callAtOnce({ key, enough: covered }: FundedRun): Promise<void> {
  const closed = closedGate()
  harness.upstream.planModel(MODEL, closed.script)
  const statuses: number[] = []
  const pending = Array.from({ length: CALLERS }, async () => statuses.push((await callUntilDecided(key)).status))
  await until(() => statuses.length + closed.taken() >= CALLERS, 'all are decided')
  const refused = statuses.filter(status => status === 402).length
  expect({ enough: covered, refused, served: closed.taken() }).toEqual({
    enough: covered,
    refused: CALLERS - covered,
    served: covered,
  })
  expect(query('SELECT count(*) FROM hold')).toEqual([BigInt(covered)])
  closed.open()
  await Promise.all(pending)
  expect(statuses.filter(status => status === 200)).toHaveLength(covered)
  await harness.idle()
}

/** A key whose calls hold their highest possible cost, or are refused. */
async function strictKey(options: Parameters<Harness['key']>[0]): Promise<string> {
  const key = await harness.key(options)
  await harness.weir('keys set', { key, 'strict-cap': 'on' })
  return key
}

const someOf = (most: number): number => 1 + Math.floor(Math.random() * most)

/** Money for so many calls, and not quite for one more. */
const fundsFor = (covered: number, amount: bigint): string => asUsd(amount * BigInt(covered) + (amount - 1n))

test(
  'of five hundred callers, exactly as many as the balance covers are served, and the others get 402',
  async () => {
    const amount = await holdOfOneCall()
    for (let round = 0; round < ROUNDS; round++) {
      const covered = someOf(SERVED_MAX)
      await callAtOnce({ key: await strictKey({ credit: fundsFor(covered, amount), qpm: 100_000 }), enough: covered })
    }
  },
  MS_MAX,
)

test(
  'five hundred callers that are paid in slices share what there is, and never spend more',
  async () => {
    const amount = await holdOfOneCall()
    harness.upstream.planModel(MODEL, streamed(Array.from({ length: 40 }, () => 'four more words of it ')))
    for (let round = 0; round < ROUNDS; round++) {
      const key = await harness.key({ credit: asUsd(amount + BigInt(someOf(400)) * 10_000n), qpm: 100_000 })
      const { balance: before } = await harness.balance(key)
      const spentBefore = query('SELECT coalesce(sum(cost), 0) FROM record')[0]!
      const statuses = await Promise.all(
        Array.from({ length: CALLERS }, async () => (await callUntilDecided(key)).status),
      )
      expect(statuses.filter(status => status !== 200 && status !== 402)).toEqual([])
      expect(statuses).toContain(200)
      await harness.idle()
      const { balance, held } = await harness.balance(key)
      const spent = query('SELECT coalesce(sum(cost), 0) FROM record')[0]! - spentBefore
      expect({ held, isNegative: balance.startsWith('-') }).toEqual({ held: '0.00', isNegative: false })
      expect(Math.round((Number(before) - Number(balance)) * 1e9)).toBe(Number(spent))
    }
    harness.upstream.planModel(MODEL, undefined)
  },
  MS_MAX,
)

test.each(['key', 'account'])(
  'the budget of one %s is kept, however many call at once',
  async scope => {
    const amount = await holdOfOneCall()
    for (let round = 0; round < ROUNDS; round++) {
      const covered = someOf(SERVED_MAX)
      const key = await strictKey({ qpm: 100_000 })
      const { id: account } = await harness.weir('accounts show', { account: key })
      const budget = { scope: scope === 'key' ? key : account, span: 'total', amount: fundsFor(covered, amount) }
      await harness.weir('budgets set', budget)
      await callAtOnce({ key, enough: covered })
    }
  },
  MS_MAX,
)

test(
  'one idempotency key of two hundred callers is one execution, one charge and one answer',
  async () => {
    for (let round = 0; round < ROUNDS; round++) {
      const key = await harness.key({ qpm: 100_000 })
      const closed = closedGate()
      harness.upstream.planModel(MODEL, closed.script)
      const name = { 'idempotency-key': `round-${round}` }
      const answers: RawAnswer[] = []
      const pending = Array.from({ length: NAMESAKES }, async () => answers.push(await callUntilDecided(key, name)))
      await until(() => answers.length === NAMESAKES - 1 && closed.taken() === 1, 'one runs, the others know')
      expect(answers.map(({ status }) => status)).toEqual(Array.from({ length: NAMESAKES - 1 }, () => 409))
      expect(answers.every(answer => answer.header('retry-after') !== undefined)).toBe(true)
      closed.open()
      await Promise.all(pending)
      const first = answers.at(-1)!
      const replayed = await Promise.all(Array.from({ length: NAMESAKES }, () => callUntilDecided(key, name)))
      for (const { status, body: same } of [first, ...replayed]) {
        expect({ status, body: same.toString() }).toEqual({ status: 200, body: first.body.toString() })
      }
      expect(closed.taken()).toBe(1)
      await harness.idle()
      const [charges] = query(
        "SELECT count(*) FROM transfer WHERE kind = 'charge' AND debit = (SELECT max(account_id) FROM api_key)",
      )
      expect(charges).toBe(1n)
    }
  },
  MS_MAX,
)
