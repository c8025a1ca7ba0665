// The same races through the whole gateway: five hundred callers on real sockets, and funds for some of them.

import { Database } from 'bun:sqlite'
import { afterAll, afterEach, beforeAll, expect, test } from 'bun:test'
import { join } from 'node:path'
import { answer } from '../../src/fake-upstream/answers.ts'
import type { Script, Step } from '../../src/fake-upstream/script.ts'
import { gate, scripted } from '../../src/fake-upstream/script.ts'
import { readBooks } from '../crash/books.ts'
import { judgeBooks } from '../crash/laws.ts'
import type { Harness } from '../support/gateway.ts'
import { hello, startHarness, until } from '../support/gateway.ts'
import type { RawAnswer } from '../support/raw.ts'
import { post, rawRequest } from '../support/raw.ts'

const CALLERS = 500
const ROUNDS = 10
/** The test runner's own bound on requests under way, which the gateway's upstream calls share, is 256. */
const SERVED_MAX = 200
const MODEL = 'gpt-4o-mini'
const NANOS_PER_USD = 1_000_000_000n
const WITHIN_MS = 20_000
const MS_MAX = 90_000

const body = { model: `openai/${MODEL}`, messages: hello, max_tokens: 50 }

let harness: Harness
beforeAll(async () => {
  harness = await startHarness({ env: { LOG_LEVEL: 'error' } })
})
afterAll(() => harness.stop())

/** The books agree after every race, and nobody is left holding anything. */
afterEach(async () => {
  await harness.idle()
  expect(judgeBooks(readBooks(join(harness.folder, 'weir.db'), { call: 0, seq: 0 }))).toEqual([])
})

/** Takes requests and answers none of them until it is opened. */
function closedGate(): { script: Script; taken(): number; open(): void } {
  const opened = Promise.withResolvers<void>()
  const whole = answer('It runs to the sea.')
  let taken = 0
  const script = scripted(function* steps(request): Iterable<Step> {
    taken++
    yield gate(opened.promise)
    yield* whole.steps(request)
  })
  return { script, taken: () => taken, open: () => opened.resolve() }
}

const asUsd = (nanos: bigint): string => `${nanos / NANOS_PER_USD}.${String(nanos % NANOS_PER_USD).padStart(9, '0')}`

function query(sql: string): bigint[] {
  const db = new Database(join(harness.folder, 'weir.db'), { readonly: true, safeIntegers: true })
  try {
    return (db.query(sql).values() as [bigint][]).map(([value]) => value)
  } finally {
    db.close()
  }
}

/** By a socket of its own. */
function ask(key: string, headers: Record<string, string> = {}): Promise<RawAnswer> {
  const all = { 'authorization': `Bearer ${key}`, 'content-type': 'application/json', ...headers }
  return rawRequest(harness.url, post('/v1/chat/completions', all, JSON.stringify(body)), WITHIN_MS)
}

/** What one such call sets aside. */
async function amountOfOne(): Promise<bigint> {
  const one = closedGate()
  harness.upstream.planModel(MODEL, one.script)
  const asked = ask(await harness.key())
  await until(() => one.taken() === 1, 'it went upstream')
  const [amount] = query('SELECT amount FROM hold')
  one.open()
  expect((await asked).status).toBe(200)
  return amount!
}

test('five hundred callers and funds for so many of them: so many are served, the others get 402', async () => {
  const amount = await amountOfOne()
  for (let round = 0; round < ROUNDS; round++) {
    const enough = 1 + Math.floor(Math.random() * SERVED_MAX)
    const credit = asUsd(amount * BigInt(enough) + (amount - 1n))
    const key = await harness.key({ credit, qpm: 100_000 })
    const closed = closedGate()
    harness.upstream.planModel(MODEL, closed.script)
    const statuses: number[] = []
    const asked = Array.from({ length: CALLERS }, async () => statuses.push((await ask(key)).status))
    await until(() => statuses.length + closed.taken() >= CALLERS, 'all are decided', WITHIN_MS)
    expect({ enough, refused: statuses.filter(status => status === 402).length, served: closed.taken() }).toEqual({
      enough,
      refused: CALLERS - enough,
      served: enough,
    })
    expect(query('SELECT count(*) FROM hold')).toEqual([BigInt(enough)])
    closed.open()
    await Promise.all(asked)
    expect(statuses.filter(status => status === 200)).toHaveLength(enough)
    await harness.idle()
  }
}, MS_MAX)
