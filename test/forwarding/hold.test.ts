// How much is held for a call: by bytes, by the context, by counted tokens; what a 402 says; and a call whose answer
// cannot be stopped and is capped by the funds. Slices of the output are in slices.test.ts.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { countTokens } from 'gpt-tokenizer/encoding/o200k_base'
import { answer, jsonAnswer, pausedStream } from '../../tools/fake-upstream/answers.ts'
import { script } from '../../tools/fake-upstream/script.ts'
import { openDatabase } from '../support/database.ts'
import type { Funded } from '../support/funds.ts'
import { fundKeys } from '../support/funds.ts'
import type { Harness } from '../support/gateway.ts'
import { chat, hello, until } from '../support/gateway.ts'
import { dataUrl, png } from '../support/sample-media.ts'
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

/** A legacy completion: its dialect has no codec, so that its answer cannot be ended early in the caller's dialect. */
const completion = (more: object = {}): string =>
  JSON.stringify({ model: 'openai/gpt-3.5-turbo-instruct', prompt: 'Hello, river', ...more })
const completionBytes = BigInt(completion().length)

const funds = {
  rich: { credit: '100' },
  tenth: { credit: usd(byBytes * 5n), strictCap: true },
  short: { credit: usd(byBytes / 2n), strictCap: true },
  shorter: { credit: usd(byCount / 2n), strictCap: true },
  budgeted: { credit: '100', strictCap: true, budgets: [{ of: 'account', span: 'day', cap: byBytes / 2n }] },
  capped: { credit: usd(smallBytes * IN + 1_234n * OUT + 599n), strictCap: true },
  cappedBudget: {
    credit: '100',
    strictCap: true,
    budgets: [{ of: 'key', span: 'total', cap: smallBytes * IN + 777n * OUT }],
  },
  inputless: { credit: usd(smallBytes * IN - 1n), strictCap: true },
  cut: { credit: usd(completionBytes * 1_500n + 1_000n * 2_000n) },
  cutBudget: { credit: '100', budgets: [{ of: 'key', span: 'month', cap: 800_000n }] },
  cutLittle: { credit: usd(completionBytes * 1_500n + 255n * 2_000n) },
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

  test('covers the largest image that the model accepts for an image at a URL', async () => {
    const messages = [{ role: 'user', content: [{ type: 'image_url', image_url: { url: 'http://x' } }] }]
    const { held } = await callWithHold(funded.keys.rich, bodyOf({ max_tokens: 1, messages }))
    expect(Number(held)).toBeWithin(Number(10_000n * IN), Number(CONTEXT * IN) / 2)
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

describe('an answer that cannot be stopped', () => {
  const post = (key: string, body: string): Promise<Response> =>
    fetch(`${harness.url}/v1/completions`, {
      method: 'POST',
      headers: { 'authorization': `Bearer ${key}`, 'content-type': 'application/json' },
      body,
    })

  async function complete(key: string, body: string): Promise<{ response: Response; sent: Record<string, unknown> }> {
    const choices = [{ index: 0, text: 'x', finish_reason: 'stop' }]
    const usage = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 }
    harness.upstream.plan(script(...jsonAnswer(200, JSON.stringify({ choices, usage }))))
    const response = await post(key, body)
    return { response, sent: JSON.parse(harness.upstream.requests.at(-1)!.body.toString()) as Record<string, unknown> }
  }

  test('is capped at what the balance covers, and a header says so', async () => {
    const { response, sent } = await complete(funded.keys.cut, completion())
    expect([response.status, response.headers.get('x-weir-cap')]).toEqual([200, '1000'])
    expect(sent).toMatchObject({ max_tokens: 1_000 })
  })

  test('is capped at what the budget covers', async () => {
    const { response, sent } = await complete(funded.keys.cutBudget, completion({ max_tokens: 9_000 }))
    const cap = Number(response.headers.get('x-weir-cap'))
    expect(cap).toBeWithin(256, 400)
    expect(sent).toMatchObject({ max_tokens: cap })
  })

  test('is not capped if the funds cover it', async () => {
    const { response, sent } = await complete(funded.keys.rich, completion())
    expect(response.headers.get('x-weir-cap')).toBeNull()
    expect(sent).not.toHaveProperty('max_tokens')
  })

  test('is refused if fewer than 256 tokens would be left, or if the key has strictCap', async () => {
    for (const key of [funded.keys.cutLittle, funded.keys.capped]) {
      const before = harness.upstream.requests.length
      const response = await post(key, completion())
      expect(response.status).toBe(402)
      expect(await response.text()).toMatch(/With max_tokens of at most \d+ it would fit/)
      expect(harness.upstream.requests.length).toBe(before)
    }
  })
})

describe('a record', () => {
  test('has the end user and the tags, with the header before the body', async () => {
    const body = bodyOf({ user: 'u-7', metadata: { team: 'search', run: '7' } })
    const response = await chat(harness, funded.keys.rich, body, { 'X-Weir-Tags': 'team=ads, beta' })
    expect(response.status).toBe(200)
    const record = harness.lastRecord()!
    expect(record).toMatchObject({ end_user: 'u-7', tags: '{"team":"ads","beta":"","run":"7"}' })
    expect(harness.upstream.requests.at(-1)!.body.toString()).toBe(body.replace('openai/', ''))
  })

  test('is written although the header of tags is malformed', async () => {
    const response = await chat(harness, funded.keys.rich, small, { 'X-Weir-Tags': '=;=,,,===' })
    expect(response.status).toBe(200)
    expect(JSON.parse((harness.lastRecord()!.tags as string | null) ?? '{}')).toEqual({})
    expect(harness.lastRecord()).toMatchObject({ end_user: null })
  })

  /** The record of a streamed call whose caller leaves after the first content, so that no usage is reported. */
  async function leftRecord(key: string, body: string): Promise<Record<string, unknown>> {
    harness.upstream.plan(pausedStream(['Hello', ' river'], new Promise(() => {})))
    const caller = openCall(harness, key, body)
    await caller.until(({ text }) => text.includes('Hello'), 'the first word is there')
    caller.leave()
    await harness.idle()
    return harness.lastRecord()!
  }

  test('estimates an image as an image, and not as the text of its encoding', async () => {
    const url = dataUrl('image/png', Buffer.concat([png(512, 512), Buffer.alloc(300_000)]))
    const messages = [{ role: 'user', content: [{ type: 'image_url', image_url: { url } }] }]
    const record = await leftRecord(funded.keys.rich, bodyOf({ messages, stream: true, max_tokens: 10 }))
    expect(record).toMatchObject({ outcome: 'client_left', usage_source: 'estimated' })
    expect(record.input_tokens).toBeWithin(25_501, 25_600) // 2,833 and at most four tiles of 5,667
  })

  test('uses the count of the hold as its estimate', async () => {
    const body = prose(100_000, { max_tokens: 100, stream: true })
    const record = await leftRecord(funded.keys.tenth, body)
    expect(record).toMatchObject({ outcome: 'client_left', usage_source: 'estimated' })
    expect((record.input_tokens as number) / countTokens(body)).toBeWithin(1, 1.05)
  })
})
