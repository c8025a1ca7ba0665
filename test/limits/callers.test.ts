// Five hundred callers on real sockets at once, against a limit of each scope: exactly as many as the limit are
// admitted, and each of the others gets the reason.

import { afterAll, afterEach, beforeAll, expect, test } from 'bun:test'
import { closedGate } from '../support/closed-gate.ts'
import type { Harness } from '../support/gateway.ts'
import { hello, startHarness, until } from '../support/gateway.ts'
import type { RawAnswer } from '../support/raw.ts'
import { post, rawRequest } from '../support/raw.ts'

const CALLERS = 500
const MODEL = 'gpt-4o-mini'
const MS_MAX = 300_000

const body = JSON.stringify({ model: `openai/${MODEL}`, messages: hello, max_tokens: 50 })
/** The tokens that the limits count for one such call. */
const TOKENS = Math.ceil(body.length / 4) + 50

let harness: Harness
beforeAll(async () => {
  // No time passes: a limit of one call a minute would admit another one after a minute.
  const clock = { nowMs: () => 1_000, dateMs: Date.now }
  harness = await startHarness({ env: { LOG_LEVEL: 'error' }, world: { clock } })
})
afterAll(() => harness.stop())

afterEach(async () => {
  await harness.idle()
  const { data: limits } = await harness.weir('limits list')
  for (const { id } of limits as { id: number }[]) await harness.weir('limits remove', { id: String(id) })
})

/** Retries while the gateway is too busy to check its limits. */
async function callUntilDecided(key: string): Promise<RawAnswer> {
  const headers = { 'authorization': `Bearer ${key}`, 'content-type': 'application/json' }
  for (;;) {
    const answer = await rawRequest(harness.url, post('/v1/chat/completions', headers, body))
    if (answer.status !== 503) return answer
    await new Promise(resolve => setTimeout(resolve, Number(answer.header('retry-after-ms'))))
  }
}

interface LimitedRun {
  readonly keys: readonly string[]
  readonly enough: number
  readonly reason: string
}

async function callAtOnce({ keys, enough: admitted, reason }: LimitedRun): Promise<void> {
  const closed = closedGate()
  harness.upstream.planModel(MODEL, closed.script)
  const answers: RawAnswer[] = []
  const pending = Array.from({ length: CALLERS }, async (_, at) =>
    answers.push(await callUntilDecided(keys[at % keys.length]!)),
  )
  await until(() => answers.length + closed.taken() >= CALLERS, 'all are decided')
  expect({ served: closed.taken(), refused: answers.length }).toEqual({ served: admitted, refused: CALLERS - admitted })
  for (const answer of answers) {
    expect(answer.status).toBe(429)
    expect(answer.header('x-pipeline-ratelimit')).toContain(`reason=${reason}`)
    expect(Number(answer.header('retry-after'))).toBeWithin(1, 61)
  }
  closed.open()
  await Promise.all(pending)
  expect(answers.filter(({ status }) => status === 200)).toHaveLength(admitted)
}

const fresh = (count: number, tier = 'pro'): Promise<string[]> =>
  Promise.all(Array.from({ length: count }, () => harness.key({ tier, qpm: 100_000 })))

test(
  "a limit of the key's own calls per minute admits exactly its amount",
  async () => {
    const key = await harness.key({ qpm: 1 })
    await callAtOnce({ keys: [key], enough: 1, reason: 'qpm_exceeded' })
  },
  MS_MAX,
)

test(
  'a limit of a key admits exactly its amount',
  async () => {
    const [key] = await fresh(1)
    await harness.weir('limits set', { resource: 'requests', amount: '37/day', per: 'key' })
    await callAtOnce({ keys: [key!], enough: 37, reason: 'qpm_exceeded' })
  },
  MS_MAX,
)

test(
  'a limit of an account admits exactly its amount for all of its keys',
  async () => {
    const [key] = await fresh(1)
    const { account } = (await harness.weir('keys create', { credit: '100' })) as { account: string }
    const both = await Promise.all([0, 1].map(() => harness.weir('keys create', { account, qpm: '100000' })))
    await harness.weir('limits set', { resource: 'concurrency', amount: '23', account })
    const keys = both.map(created => created.key as string)
    await callAtOnce({ keys, enough: 23, reason: 'concurrency_exceeded' })
    expect((await callUntilDecided(key!)).status).toBe(200)
  },
  MS_MAX,
)

test(
  'a limit of a tier admits exactly its amount for all of its keys',
  async () => {
    const keys = await fresh(5, 'standard')
    await harness.weir('limits set', { resource: 'requests', amount: '41/day', tier: 'standard' })
    await callAtOnce({ keys, enough: 41, reason: 'qpm_exceeded' })
    expect((await callUntilDecided((await fresh(1))[0]!)).status).toBe(200)
  },
  MS_MAX,
)

test(
  'a limit of a model admits exactly its amount for all of its callers',
  async () => {
    const keys = await fresh(4)
    const admitted = 29
    const amount = `${admitted * TOKENS + TOKENS - 1}/day`
    await harness.weir('limits set', { resource: 'tokens', amount, model: 'openai/gpt-4o*', per: 'model' })
    await callAtOnce({ keys, enough: admitted, reason: 'tpm_exceeded' })
  },
  MS_MAX,
)

test(
  'a limit of each key with each model admits exactly its amount',
  async () => {
    const keys = await fresh(5)
    await harness.weir('limits set', { resource: 'concurrency', amount: '7', per: 'key,model' })
    await callAtOnce({ keys, enough: 35, reason: 'concurrency_exceeded' })
  },
  MS_MAX,
)

test(
  'of several limits the tightest decides',
  async () => {
    const keys = await fresh(2)
    await harness.weir('limits set', { resource: 'concurrency', amount: '60' })
    await harness.weir('limits set', { resource: 'requests', amount: '31/day', per: 'key' })
    await harness.weir('limits set', { resource: 'requests', amount: '53/day' })
    await callAtOnce({ keys, enough: 53, reason: 'qpm_exceeded' })
  },
  MS_MAX,
)
