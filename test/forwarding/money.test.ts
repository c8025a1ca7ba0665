// What a call costs, to the last nano-dollar; what is held before the call and who can see it; and that a balance never
// becomes negative.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { channelId } from '../../src/upstreams/channels.ts'
import { parseProvider } from '../../src/upstreams/provider.ts'
import { answer, fail, plain, silence } from '../../tools/fake-upstream/answers.ts'
import type { Counts } from '../../tools/fake-upstream/dialect.ts'
import { openDatabase } from '../support/database.ts'
import type { Harness } from '../support/gateway.ts'
import { chat, hello, until, upstreamKey } from '../support/gateway.ts'
import { errorOf, model, openCall, startHasty } from './caller.ts'
import { after } from './wire.ts'

let harness: Harness

beforeAll(async () => {
  harness = await startHasty()
})
afterAll(() => harness.stop())

/** Reads one number from the database on a connection of its own. */
function readNumber(sql: string, ...values: readonly number[]): bigint {
  const db = openDatabase(join(harness.folder, 'weir.db'), { readonly: true, safeIntegers: true })
  try {
    return (db.query(sql).get(...values) as { n: bigint }).n
  } finally {
    db.close()
  }
}

const nanosOf = (usd: string): bigint => BigInt(usd.split('.')[0]! + usd.split('.')[1]!.padEnd(9, '0'))

async function balanceOf(key: string): Promise<{ balance: bigint; held: bigint }> {
  const { balance, held } = await harness.balance(key)
  return { balance: nanosOf(balance), held: nanosOf(held) }
}

describe('a call costs its usage times its price', () => {
  // openai/gpt-4o-mini: $0.15 in, $0.075 cached, $0.60 out per million tokens.
  const rows: readonly (readonly [string, Counts, bigint])[] = [
    ['tokens in and out', { input: 1_000, output: 500 }, 1_000n * 150n + 500n * 600n],
    ['one token each', { input: 1, output: 1 }, 750n],
    ['a cached part', { input: 1_000, output: 10, cached: 400 }, 600n * 150n + 400n * 75n + 10n * 600n],
    ['everything cached', { input: 1_000, output: 1, cached: 1_000 }, 75_600n],
    ['many tokens', { input: 234_567, output: 98_765 }, 234_567n * 150n + 98_765n * 600n],
  ]

  test.each(rows)('%s', async (_name, usage, cost) => {
    for (const stream of [false, true]) {
      const key = await harness.key({ credit: '100' })
      harness.upstream.plan(answer('Hello', { usage }))
      expect((await openCall(harness, key, { stream }).whole()).status).toBe(200)
      expect(await balanceOf(key)).toEqual({ balance: 100_000_000_000n - cost, held: 0n })
      const { input, output, cached = 0 } = usage as { input: number; output: number; cached?: number }
      expect(harness.lastRecord()).toMatchObject({
        provider: 'openai',
        model: 'gpt-4o-mini',
        channel: channelId('openai', upstreamKey),
        status: 200,
        outcome: 'completed',
        usage_source: 'reported',
        input_tokens: input,
        cache_read_tokens: cached,
        output_tokens: output,
        cost: Number(cost),
        attempts: 1,
        streamed: stream ? 1 : 0,
      })
    }
  })

  test.each([false, true])('content that the usage report leaves out is counted, streamed: %p', async stream => {
    const key = await harness.key({ credit: '100' })
    harness.upstream.plan(answer('Hello', { usage: { input: 10, output: 0 } }))
    expect((await openCall(harness, key, { stream }).whole()).status).toBe(200)
    const cost = 10 * 150 + 2 * 600 // five bytes
    expect(harness.lastRecord()).toMatchObject({ usage_source: 'estimated', output_tokens: 2, cost })
    expect((await balanceOf(key)).balance).toBe(100_000_000_000n - BigInt(cost))
  })

  test('a provider that reports more than the call could cost is charged up to the balance', async () => {
    const key = await harness.key({ credit: '0.1' })
    harness.upstream.plan(answer('x', { usage: { input: 300_000, output: 300_000 } }))
    expect((await openCall(harness, key, { max_tokens: 10 }).whole()).status).toBe(200)
    expect(await balanceOf(key)).toEqual({ balance: 0n, held: 0n })
    expect(harness.lastRecord()).toMatchObject({ cost: 100_000_000 })
  })
})

describe('a hold', () => {
  test('that the balance does not cover is a 402, and nothing goes upstream', async () => {
    const key = await harness.key({ credit: '0.00001' })
    const before = harness.upstream.requests.length
    for (const stream of [false, true]) {
      const caller = await openCall(harness, key, { stream }).whole()
      expect(caller.status).toBe(402)
      expect(errorOf(caller.body)).toMatchObject({ type: 'insufficient_quota', code: 'insufficient_balance' })
      expect(errorOf(caller.body).message).toContain('$0.00001 is available')
      expect(caller.header('x-pipeline-route')).toStartWith('pass')
      expect(caller.header('x-pipeline-adapter')).toBeUndefined()
      expect(caller.header('x-pipeline-breakdown')).toBeUndefined()
    }
    expect(harness.upstream.requests.length).toBe(before)
    expect(await balanceOf(key)).toEqual({ balance: 10_000n, held: 0n })
    await until(() => harness.lastRecord()?.status === 402, 'the refusal is recorded')
    expect(harness.lastRecord()).toMatchObject({ outcome: 'refused', cost: 0, attempts: 0 })
  })

  test('is durable before the upstream receives the first byte', async () => {
    const key = await harness.key({ credit: '1' })
    const ends = Promise.withResolvers<void>()
    const holdCounts: bigint[] = []
    harness.upstream.plan({
      starts: 'head',
      // The first bytes of the request have just arrived.
      *steps(request) {
        holdCounts.push(readNumber('SELECT count(*) AS n FROM hold'))
        yield { kind: 'gate', opens: ends.promise }
        yield* plain('x').steps(request)
      },
    })
    const body = JSON.stringify({ model, messages: hello, max_tokens: 100, n: 2 })
    const caller = openCall(harness, key, body)
    await until(() => holdCounts.length === 1, 'the upstream is reached')
    expect(holdCounts).toEqual([1n])
    const bound = BigInt(body.length) * 150n + 200n * 600n
    expect(readNumber('SELECT amount AS n FROM hold')).toBe(bound)
    expect((await balanceOf(key)).held).toBe(bound)
    expect((await balanceOf(key)).balance).toBe(1_000_000_000n)
    ends.resolve()
    await caller.whole()
    expect((await balanceOf(key)).held).toBe(0n)
  })

  test("of a call without a cap covers the model's longest answer", async () => {
    const key = await harness.key({ credit: '1' })
    const body = JSON.stringify({ model, messages: hello })
    const file = join(import.meta.dir, '../../providers/openai.json')
    const { models } = parseProvider(readFileSync(file, 'utf8'), file)
    const outputTokensMax = BigInt(models.get('gpt-4o-mini')!.outputTokensMax!)
    harness.upstream.plan(silence())
    const received = harness.upstream.nextRequest()
    const caller = openCall(harness, key, body)
    await received
    expect((await balanceOf(key)).held).toBe(BigInt(body.length) * 150n + outputTokensMax * 600n)
    caller.leave()
    await harness.idle()
    // The caller left when the upstream had its request, and pays for that.
    const input = BigInt(Math.ceil(body.length / 4)) * 150n
    expect(await balanceOf(key)).toEqual({ balance: 1_000_000_000n - input, held: 0n })
  })

  test("of a call with a cap beyond the model's longest answer covers that answer", async () => {
    const key = await harness.key({ credit: '1' })
    expect((await openCall(harness, key, { max_tokens: 999_999_999 }).whole()).status).toBe(200)
  })

  test.each([400, 500])('of a call that the upstream answers with %i is released', async status => {
    const key = await harness.key({ credit: '1' })
    harness.upstream.plan(fail(status))
    expect((await openCall(harness, key, {}).whole()).status).toBeGreaterThanOrEqual(400)
    expect(await balanceOf(key)).toEqual({ balance: 1_000_000_000n, held: 0n })
  })
})

describe('parallel calls against one balance', () => {
  test('exactly as many are admitted as the balance covers, and it is never below zero', async () => {
    const body = JSON.stringify({ model, messages: hello, max_tokens: 100 })
    const bound = BigInt(body.length) * 150n + 100n * 600n
    const covered = 37
    const funds = bound * BigInt(covered) + bound / 2n
    const key = await harness.key({ credit: `0.${String(funds).padStart(9, '0')}`, qpm: 100_000 })
    await harness.weir('keys set', { key, 'strict-cap': 'on' }) // each call holds its highest possible cost
    const ends = Promise.withResolvers<void>()
    harness.upstream.planModel('gpt-4o-mini', after(ends.promise, answer('x', { usage: { input: 1, output: 1 } })))
    const before = harness.upstream.requests.length
    let refused = 0
    const calls = Array.from({ length: 100 }, async () => {
      const response = await chat(harness, key, body)
      if (response.status === 402) refused++
      return response
    })
    await until(() => harness.upstream.requests.length === before + covered, 'those that are covered are upstream')
    // A call that came after the first settlement would find money again.
    await until(() => refused === 100 - covered, 'the others are refused')
    expect(readNumber('SELECT count(*) AS n FROM hold')).toBe(BigInt(covered))
    expect(readNumber('SELECT min(balance - held) AS n FROM account WHERE id > 4')).toBeGreaterThanOrEqual(0n)
    ends.resolve()
    const statuses = (await Promise.all(calls)).map(response => response.status)
    harness.upstream.planModel('gpt-4o-mini', undefined)
    expect(statuses.filter(status => status === 200)).toHaveLength(covered)
    expect(statuses.filter(status => status === 402)).toHaveLength(100 - covered)
    expect(harness.upstream.requests.length).toBe(before + covered)
    expect(await balanceOf(key)).toEqual({ balance: funds - BigInt(covered) * 750n, held: 0n })
  })

  test('the ledger is consistent whatever the calls cost', async () => {
    const key = await harness.key({ credit: '0.05', qpm: 100_000 })
    harness.upstream.planModel('gpt-4o-mini', answer('x', { usage: { input: 900, output: 700 } }))
    const before = harness.recordCount()
    const request = { model, messages: hello, max_tokens: 1_000 }
    const calls = Array.from({ length: 150 }, (_, at) => chat(harness, key, { ...request, stream: at % 2 === 0 }))
    for (const response of await Promise.all(calls)) await response.text()
    harness.upstream.planModel('gpt-4o-mini', undefined)
    await harness.idle()
    await until(() => harness.recordCount() === before + 150, 'every call is recorded')
    const spent = harness
      .records()
      .slice(before)
      .reduce((sum, { cost }) => sum + BigInt(cost as number), 0n)
    expect(spent).toBeGreaterThan(0n)
    expect(await balanceOf(key)).toEqual({ balance: 50_000_000n - spent, held: 0n })
    expect(readNumber('SELECT count(*) AS n FROM account WHERE id > 4 AND (balance < 0 OR held <> 0)')).toBe(0n)
  })
})
