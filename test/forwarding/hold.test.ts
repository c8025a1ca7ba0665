// How much is held for a call: by bytes, by the context, by counted tokens; what a 402 says; and keys that ask to have
// their calls clamped instead of refused.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { countTokens } from 'gpt-tokenizer/encoding/o200k_base'
import { answer, pausedStream } from '../../tools/fake-upstream/answers.ts'
import { openDatabase } from '../support/database.ts'
import type { Funded } from '../support/funds.ts'
import { fundKeys } from '../support/funds.ts'
import type { Harness } from '../support/gateway.ts'
import { chat, hello, until } from '../support/gateway.ts'
import { errorOf, model, openCall, startHasty } from './caller.ts'
import { after } from './wire.ts'

// openai/gpt-4o-mini: $0.15 in and $0.60 out per million tokens, a context of 128,000, answers of up to 16,384.
const [IN, OUT, CONTEXT, OUTPUT] = [150n, 600n, 128_000n, 16_384n]

const sentence = 'The river rose in the night, and by the morning it had come to the mill. '
const bodyOf = (more: object = {}): string => JSON.stringify({ model, messages: hello, ...more })
const prose = (bytes: number, more: object = {}): string =>
  bodyOf({ messages: [{ role: 'user', content: sentence.repeat(Math.ceil(bytes / sentence.length)) }], ...more })
const usd = (nanos: bigint): string => `${nanos / 1_000_000_000n}.${String(nanos % 1_000_000_000n).padStart(9, '0')}`

const small = bodyOf()
const smallBytes = BigInt(small.length)
const long = prose(100_000, { max_tokens: 100 })
const longBytes = BigInt(long.length)
/** The bounds of the long call, by bytes and by counted tokens. */
const byBytes = longBytes * IN + 100n * OUT
const byCount = BigInt(Math.ceil(countTokens(long) * 1.3)) * IN + 100n * OUT

const funds = {
  rich: { credit: '100' },
  tenth: { credit: usd(byBytes * 5n) },
  short: { credit: usd(byBytes / 2n) },
  shorter: { credit: usd(byCount / 2n) },
  budgeted: { credit: '100', budgets: [{ of: 'account', span: 'day', cap: byBytes / 2n }] },
  capped: { credit: usd(smallBytes * IN + 1_234n * OUT + 599n) },
  cappedBudget: { credit: '100', budgets: [{ of: 'key', span: 'total', cap: smallBytes * IN + 777n * OUT }] },
  inputless: { credit: usd(smallBytes * IN - 1n) },
  clamps: { credit: usd((smallBytes + 50n) * IN + 1_000n * OUT), clamps: true },
  clampsOwn: { credit: usd((smallBytes + 100n) * IN + 1_000n * OUT), clamps: true },
  clampsBudget: { credit: '100', clamps: true, budgets: [{ of: 'key', span: 'month', cap: 600_000n }] },
  clampsCount: { credit: usd(byCount), clamps: true },
  clampsLittle: { credit: usd(smallBytes * IN + 255n * OUT), clamps: true },
  clampsRace: { credit: usd(smallBytes * IN * 40n + 20_000n * OUT), clamps: true, qpm: 100_000 },
  clampsRich: { credit: '100', clamps: true },
} as const

let harness: Harness
let funded: Funded<keyof typeof funds>

beforeAll(async () => {
  funded = await fundKeys(funds)
  harness = await startHasty({ folder: funded.folder })
})
afterAll(async () => {
  await harness.stop()
  rmSync(funded.folder, { recursive: true, force: true })
})

function readNumbers(sql: string): readonly bigint[] {
  const db = openDatabase(join(harness.folder, 'weir.db'), { readonly: true, safeIntegers: true })
  try {
    return (db.query(sql).all() as { n: bigint }[]).map(({ n }) => n)
  } finally {
    db.close()
  }
}

interface HeldCall {
  readonly held: bigint
  readonly sent: string
  readonly response: Response
}

/** Makes the call, and reads its hold while the upstream has the request. */
async function callWithHold(key: string, body: string): Promise<HeldCall> {
  const ends = Promise.withResolvers<void>()
  harness.upstream.plan(after(ends.promise, answer('x', { usage: { input: 1, output: 1 } })))
  const received = harness.upstream.nextRequest()
  const calling = chat(harness, key, body)
  const request = await received
  const holds = readNumbers('SELECT amount AS n FROM hold')
  ends.resolve()
  const response = await calling
  expect(holds).toHaveLength(1)
  return { held: holds[0]!, sent: Buffer.from(request.body).toString(), response }
}

/** Makes a call that must be refused before it goes upstream; returns the message. */
async function refusedMessage(key: string, body: string, code = 'insufficient_balance'): Promise<string> {
  const before = harness.upstream.requests.length
  const response = await chat(harness, key, body)
  expect(response.status).toBe(402)
  const error = errorOf(Buffer.from(await response.arrayBuffer()))
  expect(error.code).toBe(code)
  expect(harness.upstream.requests.length).toBe(before)
  expect(harness.openHolds()).toBe(0)
  return error.message as string
}

describe('the hold of a call', () => {
  test("counts every byte as a token, and the output up to the caller's cap", async () => {
    const body = bodyOf({ max_tokens: 100, n: 2 })
    expect((await callWithHold(funded.keys.rich, body)).held).toBe(BigInt(body.length) * IN + 200n * OUT)
  })

  test("without a cap covers the model's longest answer, and no cap is sent", async () => {
    const { held, sent, response } = await callWithHold(funded.keys.rich, small)
    expect(held).toBe(smallBytes * IN + OUTPUT * OUT)
    expect(sent).not.toContain('max_')
    expect(response.headers.get('x-weir-cap')).toBeNull()
  })

  test('for a text never exceeds the context', async () => {
    expect((await callWithHold(funded.keys.rich, prose(500_000, { max_tokens: 1 }))).held).toBe(CONTEXT * IN + OUT)
  })

  const elsewhere: readonly (readonly [string, object])[] = [
    ['an image', { messages: [{ role: 'user', content: [{ type: 'image_url', image_url: { url: 'http://x' } }] }] }],
    ['a file', { messages: [{ role: 'user', content: [{ type: 'file', file: { file_id: 'file-1' } }] }] }],
    ['a search', { web_search_options: {} }],
    ["a tool of the provider's", { tools: [{ type: 'web_search' }] }],
  ]

  beforeAll(async () => {
    await harness.weir('channels set', { 'channel': 'openai#1', 'foreign-ids': 'on' })
  })

  test.each(elsewhere)('covers the context for content that is not in the body: %s', async (_name, more) => {
    const { held } = await callWithHold(funded.keys.rich, bodyOf({ max_tokens: 1, ...more }))
    expect(held).toBeGreaterThanOrEqual(CONTEXT * IN + OUT)
  })
})

/** Counted in pieces, a text may have a few more tokens than counted as a whole. */
function expectCounted(held: bigint): void {
  expect(held).toBeGreaterThanOrEqual(byCount)
  expect(held).toBeLessThan(byCount + byCount / 20n)
}

describe('tokens are counted', () => {
  test('not if the balance is large', async () => {
    expect((await callWithHold(funded.keys.rich, long)).held).toBe(byBytes)
  })

  test('if a hold by bytes would take more than a tenth of the balance', async () => {
    const { held, sent } = await callWithHold(funded.keys.tenth, long)
    expectCounted(held)
    expect(sent).toBe(long.replace('openai/', ''))
  })

  test('if a hold by bytes fits neither the balance nor a budget', async () => {
    for (const key of [funded.keys.short, funded.keys.budgeted]) {
      expectCounted((await callWithHold(key, long)).held)
    }
  })

  test('and a call that does not fit even then is refused with the cap that would fit', async () => {
    const message = await refusedMessage(funded.keys.shorter, prose(100_000, { max_tokens: 10_000 }))
    expect(message).toContain('No cap on its output would make it fit.')
  })

  test('and a caller that leaves meanwhile leaves no hold', async () => {
    // Counting two megabytes takes longer than leaving.
    const before = harness.upstream.requests.length
    const caller = openCall(harness, funded.keys.short, prose(2_000_000))
    await until(() => harness.gateway.activeCalls === 1, 'the call is active')
    caller.leave()
    await harness.idle()
    expect(harness.openHolds()).toBe(0)
    expect(harness.upstream.requests.length).toBe(before)
  })
})

describe('a 402', () => {
  test('names the largest cap that fits', async () => {
    const message = await refusedMessage(funded.keys.capped, small)
    const cap = Number(/With max_tokens of at most (\d+) it would fit\./.exec(message)![1])
    // The cap itself has bytes, too.
    const named = bodyOf({ max_tokens: cap })
    expect(cap).toBe(1_234)
    const left = Number((smallBytes * IN + 1_234n * OUT + 599n - BigInt(named.length) * IN) / OUT)
    await refusedMessage(funded.keys.capped, bodyOf({ max_tokens: left + 1 }))
    expect((await callWithHold(funded.keys.capped, bodyOf({ max_tokens: left }))).response.status).toBe(200)
  })

  test('names the cap for a budget as for a balance', async () => {
    const message = await refusedMessage(funded.keys.cappedBudget, small, 'budget_too_low')
    expect(message).toContain('of the budget (key, total) is available. With max_tokens of at most 777 it would fit.')
  })

  test('names the cap for each choice', async () => {
    const body = bodyOf({ n: 2 })
    const each = (smallBytes * IN + 777n * OUT - BigInt(body.length) * IN) / (2n * OUT)
    const message = await refusedMessage(funded.keys.cappedBudget, body, 'budget_too_low')
    expect(message).toContain(`With max_tokens of at most ${each} it would fit.`)
  })

  test('says if no cap would fit', async () => {
    expect(await refusedMessage(funded.keys.inputless, small)).toContain('No cap on its output would make it fit.')
  })
})

describe('a key that clamps', () => {
  test('has its calls clamped to what it can pay, and the answer says so', async () => {
    const { held, sent, response } = await callWithHold(funded.keys.clamps, small)
    const cap = Number(response.headers.get('x-weir-cap'))
    expect(cap).toBe(1_000 + Math.floor((50 * Number(IN)) / Number(OUT)))
    expect(held).toBe(smallBytes * IN + BigInt(cap) * OUT)
    expect(JSON.parse(sent)).toMatchObject({ max_completion_tokens: cap })
    expect(JSON.parse(sent)).not.toHaveProperty('max_tokens')
  })

  test('has its own caps lowered, and the head of a stream says so', async () => {
    const body = bodyOf({ max_tokens: 5_000, max_completion_tokens: 6_000, stream: true })
    const { sent, response } = await callWithHold(funded.keys.clampsOwn, body)
    const cap = Number(response.headers.get('x-weir-cap'))
    expect(cap).toBeWithin(900, 1_050)
    expect(JSON.parse(sent)).toMatchObject({ max_tokens: cap, max_completion_tokens: cap })
    await response.text()
  })

  test('has its calls clamped to what its budget allows', async () => {
    const { held, response } = await callWithHold(funded.keys.clampsBudget, small)
    expect(held).toBeLessThanOrEqual(600_000n)
    expect(Number(response.headers.get('x-weir-cap'))).toBeGreaterThan(256)
  })

  test('has its tokens counted first', async () => {
    const body = prose(100_000, { max_tokens: 10_000 })
    await refusedMessage(funded.keys.clampsCount, body) // too little is left for the answer
    const { response } = await callWithHold(funded.keys.clampsCount, prose(50_000, { max_tokens: 10_000 }))
    expect(Number(response.headers.get('x-weir-cap'))).toBeGreaterThan(256)
  })

  test('is refused if only a very short answer would fit', async () => {
    expect(await refusedMessage(funded.keys.clampsLittle, small)).toContain(
      'With max_tokens of at most 255 it would fit.',
    )
  })

  test('is not clamped if it can pay', async () => {
    const { sent, response } = await callWithHold(funded.keys.clampsRich, small)
    expect(sent).toBe(small.replace('openai/', ''))
    expect(response.headers.get('x-weir-cap')).toBeNull()
  })

  test('never holds more than its balance, however many calls race', async () => {
    const ends = Promise.withResolvers<void>()
    harness.upstream.planModel('gpt-4o-mini', after(ends.promise, answer('x', { usage: { input: 1, output: 1 } })))
    const calls = Array.from({ length: 30 }, () => chat(harness, funded.keys.clampsRace, small))
    const pending = Promise.all(calls.map(async call => (await call).status))
    await until(() => readNumbers('SELECT held AS n FROM account WHERE held > 10000000').length === 1, 'one has it all')
    expect(readNumbers("SELECT 1 AS n FROM account WHERE kind = 'prepaid' AND balance < held")).toEqual([])
    ends.resolve()
    const statuses = await pending
    harness.upstream.planModel('gpt-4o-mini', undefined)
    expect(new Set(statuses)).toEqual(new Set([200, 402]))
    await harness.idle()
    expect(harness.openHolds()).toBe(0)
  })
})

describe('a record', () => {
  test('has the end user and the tags, with the header before the body', async () => {
    const body = bodyOf({ user: 'u-7', metadata: { team: 'search', run: '7' } })
    const response = await chat(harness, funded.keys.rich, body, { 'X-Weir-Tags': 'team=ads, beta' })
    expect(response.status).toBe(200)
    const record = harness.records().at(-1)!
    expect(record).toMatchObject({ end_user: 'u-7', tags: '{"team":"ads","beta":"","run":"7"}' })
    expect(harness.upstream.requests.at(-1)!.body.toString()).toBe(body.replace('openai/', ''))
  })

  test('is written although the header of tags is malformed', async () => {
    const response = await chat(harness, funded.keys.rich, small, { 'X-Weir-Tags': '=;=,,,===' })
    expect(response.status).toBe(200)
    expect(JSON.parse((harness.records().at(-1)!.tags as string | null) ?? '{}')).toEqual({})
    expect(harness.records().at(-1)).toMatchObject({ end_user: null })
  })

  /** The record of a streamed call whose caller leaves after the first content, so that no usage is reported. */
  async function leftRecord(key: string, body: string): Promise<Record<string, unknown>> {
    harness.upstream.plan(pausedStream(['Hello', ' river'], new Promise(() => {})))
    const caller = openCall(harness, key, body)
    await caller.until(({ text }) => text.includes('Hello'), 'the first word is there')
    caller.leave()
    await harness.idle()
    return harness.records().at(-1)!
  }

  test('estimates an image as an image, and not as the text of its encoding', async () => {
    const url = `data:image/png;base64,${'A'.repeat(400_000)}`
    const messages = [{ role: 'user', content: [{ type: 'image_url', image_url: { url } }] }]
    const record = await leftRecord(funded.keys.rich, bodyOf({ messages, stream: true, max_tokens: 10 }))
    expect(record).toMatchObject({ outcome: 'client_left', usage_source: 'estimated' })
    expect(record.input_tokens).toBeWithin(1_000, 1_100)
  })

  test('uses the count of the hold as its estimate', async () => {
    const body = prose(100_000, { max_tokens: 100, stream: true })
    const record = await leftRecord(funded.keys.tenth, body)
    expect(record).toMatchObject({ outcome: 'client_left', usage_source: 'estimated' })
    expect((record.input_tokens as number) / countTokens(body)).toBeWithin(1, 1.05)
  })
})
