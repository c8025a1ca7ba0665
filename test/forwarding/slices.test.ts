// Calls whose money is reserved in slices: what is held while the answer arrives, when more is reserved, and how an
// answer ends whose funds are used up. Official clients of every dialect are in test/dialects/out-of-funds.test.ts.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { answer, pausedStream, plain, streamed } from '../../tools/fake-upstream/answers.ts'
import { openDatabase } from '../support/database.ts'
import type { Harness } from '../support/gateway.ts'
import { chat, hello, until } from '../support/gateway.ts'
import { dataUrl, png } from '../support/sample-media.ts'
import { model, openCall, startHasty } from './caller.ts'
import { after, counts, done, finish, piece, role, sends, usageOnly } from './wire.ts'

// openai/gpt-4o-mini: $0.15 in and $0.60 out for a million tokens, answers of up to 16,384 tokens.
const [IN, OUT] = [150, 600]
const USD = 1_000_000_000

let harness: Harness
beforeAll(async () => {
  harness = await startHasty()
})
afterAll(() => harness.stop())

const bodyOf = (more: object = {}): string => JSON.stringify({ model, messages: hello, ...more })
const nanosOf = (usd: string): number => Math.round(Number(usd) * USD)

function held(): number {
  const db = openDatabase(join(harness.folder, 'weir.db'), { readonly: true })
  try {
    return (db.query('SELECT coalesce(sum(amount), 0) AS n FROM hold').get() as { n: number }).n
  } finally {
    db.close()
  }
}

/** Texts of so many tokens by the gateway's estimate: four bytes a token. */
const textOf = (tokens: number): string => 'word'.repeat(tokens)

/** The first, and last, piece of a stream. */
const chunkWithEnd = (content: string): string =>
  piece(content).replace('"finish_reason":null', '"finish_reason":"stop"')

/** The provider bills a piece that was withheld. The caller pays for it as far as money was reserved, and not more. */
function expectAllReserved(rule: string): void {
  const record = harness.lastRecord()! as Record<string, number>
  expect(record).toMatchObject({ rule, shortfall: 0 })
  // The hold covers the bytes of the input, which are more than its tokens.
  const reserved = (record.held! - 200 * IN) / OUT
  expect(record.output_tokens! + 1).toBeGreaterThan(Math.floor(reserved))
  expect(record.cost!).toBeLessThanOrEqual(record.held!)
}

/** A stream of these pieces, each of which is sent when the test opens its gate. */
function planGated(pieces: readonly string[]): { readonly open: () => void } {
  const gates = pieces.map(() => Promise.withResolvers<void>())
  let next = 0
  harness.upstream.plan(
    pausedStream(
      ['Hi', ...pieces],
      gates.map(({ promise }) => promise),
      { usage: { input: 9, output: 9 } },
    ),
  )
  return { open: () => gates[next++]!.resolve() }
}

describe('a stream whose highest cost is more than a twentieth of the funds', () => {
  test('holds its input and a slice, reserves the next slice in time, and is charged what it used', async () => {
    const key = await harness.key({ credit: '0.02' }) // a twentieth is 1,666 tokens of output
    const { open } = planGated([textOf(1_000), textOf(1_000)])
    const body = bodyOf({ stream: true })
    const caller = openCall(harness, key, body)
    await caller.until(({ text }) => text.includes('Hi'), 'the first piece is there')
    const first = held()
    expect(first).toBeWithin(body.length * IN + 1_600 * OUT, body.length * IN + 1_750 * OUT)
    open()
    await until(() => held() > first, 'the next slice is reserved')
    expect(held()).toBeLessThan(0.003 * USD)
    open()
    await caller.whole()
    expect(caller.text).toEndWith('data: [DONE]\n\n')
    expect(caller.text).not.toContain('weir_stop')
    await harness.idle()
    expect(harness.lastRecord()).toMatchObject({ outcome: 'completed', cost: 9 * IN + 9 * OUT, shortfall: 0 })
    expect(await harness.balance(key)).toMatchObject({ held: '0.00' })
  })

  test('passes the upstream’s bytes unchanged', async () => {
    const key = await harness.key({ credit: '0.02' })
    const own =
      role({ vendor: { a: 1 } }) + piece('Hel', { 'x-extra': [1] }) + piece('lo') + finish() + usageOnly(7, 5) + done
    harness.upstream.plan(sends(own))
    const response = await chat(harness, key, bodyOf({ stream: true, stream_options: { include_usage: true } }))
    expect(await response.text()).toBe(own)
  })

  test('ends where the money ends: legally, with the reason, and never below zero', async () => {
    const key = await harness.key({ credit: '0.001' })
    harness.upstream.plan(streamed(Array.from({ length: 3_000 }, (_, at) => `w${at} `)))
    const response = await chat(harness, key, bodyOf({ stream: true, stream_options: { include_usage: true } }))
    const text = await response.text()
    expect(text).toEndWith('data: [DONE]\n\n')
    const events = text
      .split('\n\n')
      .filter(one => one.startsWith('data: {'))
      .map(one => JSON.parse(one.slice(6)))
    const last = events.findLast(one => one.choices.length > 0)
    expect(last).toMatchObject({ weir_stop: 'balance_too_low', choices: [{ finish_reason: 'length' }] })
    const { usage } = events.at(-1)
    await harness.idle()
    const record = harness.lastRecord()!
    expect(record).toMatchObject({ outcome: 'out_of_funds', rule: 'out_of_funds', status: 200, shortfall: 0 })
    expect(record).toMatchObject({ output_tokens: usage.completion_tokens, usage_source: 'estimated' })
    const { balance } = await harness.balance(key)
    // Within the smallest slice: less than 64 tokens are left.
    expect(nanosOf(balance)).toBeWithin(0, 500 * OUT)
  })

  test('stops the upstream', async () => {
    const key = await harness.key({ credit: '0.0005' })
    const gates = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    harness.upstream.plan(
      pausedStream(
        ['Hi', textOf(4_000), 'never'],
        gates.map(({ promise }) => promise),
      ),
    )
    const caller = openCall(harness, key, bodyOf({ stream: true }))
    await caller.until(({ text }) => text.includes('Hi'), 'the first piece is there')
    gates[0]!.resolve()
    await caller.whole()
    await until(() => harness.upstream.openSockets === 0, 'the connection to the upstream is closed')
    expect(caller.text).toContain('"weir_stop":"balance_too_low"')
    expect(caller.text).not.toContain('wordword')
    gates[1]!.resolve()
    await harness.idle()
    // The piece that was not passed on is charged as far as money was reserved for it.
    expectAllReserved('out_of_funds')
  })

  test('pays no more than was reserved, whatever the upstream reports', async () => {
    const key = await harness.key({ credit: '0.0005' })
    const usage = { prompt_tokens: 9, completion_tokens: 4_050, completion_tokens_details: { reasoning_tokens: 50 } }
    harness.upstream.plan(sends(role() + piece('Hi') + piece(textOf(4_000), { usage }) + finish() + done))
    const text = await (await chat(harness, key, bodyOf({ stream: true }))).text()
    expect(text).toContain('"weir_stop":"balance_too_low"')
    await harness.idle()
    expectAllReserved('out_of_funds')
    expect(harness.lastRecord()).toMatchObject({ input_tokens: 9, reasoning_tokens: 50 })
  })

  test('pays for the input, also if the upstream reports that only at the end', async () => {
    const key = await harness.key({ credit: '0.0005' })
    const body = bodyOf({ stream: true })
    harness.upstream.plan(sends(role() + piece('Hi', counts(0, 1)) + piece(textOf(4_000)) + finish() + done))
    await (await chat(harness, key, body)).text()
    await harness.idle()
    const input = Math.ceil(body.length / 4)
    expect(harness.lastRecord()).toMatchObject({ rule: 'out_of_funds', input_tokens: input })
    expectAllReserved('out_of_funds')
  })

  test('pays for an image by the rules of its model, also if only its URL is known', async () => {
    const key = await harness.key({ credit: '0.0085' })
    const image = { type: 'image_url', image_url: { url: 'https://example.com/large.png' } }
    const messages = [{ role: 'user', content: [{ type: 'text', text: 'What is this?' }, image] }]
    const body = bodyOf({ messages, stream: true })
    harness.upstream.plan(streamed(Array.from({ length: 3_000 }, (_, at) => `w${at} `)))
    expect(await (await chat(harness, key, body)).text()).toContain('"weir_stop":"balance_too_low"')
    await harness.idle()
    const [base, tile, tiles] = [2_833, 5_667, 8] // the largest image
    const input = base + tile * tiles + Math.ceil(body.length / 4)
    expect(harness.lastRecord()).toMatchObject({ rule: 'out_of_funds', input_tokens: input, shortfall: 0 })
  })

  test('is ended by a budget as well, with its own code', async () => {
    const key = await harness.key({ credit: '100' })
    await harness.weir('budgets set', { scope: key, span: 'month', amount: '0.001' })
    harness.upstream.plan(streamed(Array.from({ length: 3_000 }, (_, at) => `w${at} `)))
    const response = await chat(harness, key, bodyOf({ stream: true }))
    expect(await response.text()).toContain('"weir_stop":"budget_too_low"')
  })

  test('is refused for a key with strictCap', async () => {
    const key = await harness.key({ credit: '0.001' })
    await harness.weir('keys set', { key, 'strict-cap': 'on' })
    expect((await chat(harness, key, bodyOf({ stream: true }))).status).toBe(402)
  })

  test('is refused if not even sixteen tokens are covered', async () => {
    const body = bodyOf({ stream: true })
    const key = await harness.key({ credit: ((body.length * IN + 15 * OUT) / USD).toFixed(9) })
    expect((await chat(harness, key, body)).status).toBe(402)
    const enough = await harness.key({ credit: ((body.length * IN + 16 * OUT) / USD).toFixed(9) })
    harness.upstream.plan(answer('Hello', { usage: { input: 2, output: 2 } }))
    expect((await chat(harness, enough, body)).status).toBe(200)
  })
})

describe.each([true, false])('the funds do not cover the beginning of the answer (streamed %p)', stream => {
  test.each([
    ['its first piece', () => streamed([textOf(4_000), 'more'])],
    ['a piece that is also the last', () => sends(chunkWithEnd(textOf(4_000)) + done)],
    ['a whole answer, sent in spite of "stream"', () => plain(textOf(4_000), { usage: { input: 9, output: 4_000 } })],
  ])('%s: the call is refused with 402, and pays what was reserved', async (_name, script) => {
    const key = await harness.key({ credit: '0.0005' })
    const body = bodyOf({ stream })
    harness.upstream.plan(script())
    const response = await chat(harness, key, body)
    const text = await response.text()
    expect([response.status, text]).toEqual([402, expect.stringContaining('insufficient_balance')])
    expect(text).not.toContain('wordword')
    await harness.idle()
    const record = harness.lastRecord()!
    expect(record).toMatchObject({ status: 402 })
    expect(record.input_tokens as number).toBeWithin(1, Math.ceil(body.length / 4) + 1)
    expectAllReserved('out_of_funds_withheld')
    expect(await harness.balance(key)).toMatchObject({ held: '0.00' })
    // The same money must not make the operator pay for such an answer again and again: all of the next one is reserved.
    harness.upstream.plan(answer('Hi', { usage: { input: 2, output: 2 } }))
    const next = await chat(harness, key, body)
    expect([next.status, Number(next.headers.get('x-weir-cap')) > 0]).toEqual([200, true])
    await next.text()
  })

  test('a whole answer that the funds cover is delivered and charged', async () => {
    const key = await harness.key({ credit: '0.02' })
    harness.upstream.plan(plain('Hello, river', { usage: { input: 9, output: 20_000 } }))
    const response = await chat(harness, key, bodyOf({ stream }))
    expect([response.status, await response.text()]).toEqual([200, expect.stringContaining('Hello, river')])
    await harness.idle()
    const record = harness.lastRecord()!
    const cost = 9 * IN + 20_000 * OUT
    expect(record).toMatchObject({ outcome: 'completed', cost, shortfall: 0 })
    expect(record.held as number).toBeWithin(cost, cost + 1)
  })
})

test('money that comes in while the answer arrives lets it go on', async () => {
  const body = bodyOf({ stream: true })
  // The first pieces count as 792 tokens, so that another slice is refused before the last piece arrives.
  const key = await harness.key({ credit: ((body.length * IN + 814 * OUT) / USD).toFixed(9) })
  const { open } = planGated([textOf(631), textOf(1_000)])
  const caller = openCall(harness, key, body)
  await caller.until(({ text }) => text.includes('Hi'), 'the first piece is there')
  open()
  await caller.until(({ text }) => text.includes('wordword'), 'the second piece is there')
  await harness.weir('top-up', { account: key, amount: '1' })
  open()
  await caller.whole()
  expect(caller.text).not.toContain('weir_stop')
  expect(caller.text).toEndWith('data: [DONE]\n\n')
})

describe('a plain call', () => {
  test('has the time of its first content in its record', async () => {
    const key = await harness.key({ credit: '0.02' })
    const { open } = planGated([textOf(1_000), 'end'])
    const answered = chat(harness, key, bodyOf())
    await until(() => held() > 0, 'the call runs')
    const first = held()
    open()
    await until(() => held() > first, 'the first content is there')
    const sinceMs = performance.now()
    await until(() => performance.now() > sinceMs + 100, 'some time has passed')
    open()
    await (await answered).text()
    await harness.idle()
    const { first_ms, duration_ms } = harness.lastRecord()! as Record<string, number>
    expect(duration_ms! - first_ms!).toBeGreaterThanOrEqual(99)
  })

  test('is streamed by the upstream and collected, with the usage that was reported', async () => {
    const key = await harness.key({ credit: '0.02' })
    harness.upstream.plan(answer('Hello, river', { usage: { input: 7, output: 5 } }))
    const response = await chat(harness, key, bodyOf())
    const json = (await response.json()) as Record<string, unknown>
    expect(JSON.parse(harness.upstream.requests.at(-1)!.body.toString())).toMatchObject({
      stream: true,
      stream_options: { include_usage: true },
    })
    expect(json).toMatchObject({
      object: 'chat.completion',
      choices: [{ message: { content: 'Hello, river' }, finish_reason: 'stop' }],
      usage: { prompt_tokens: 7, completion_tokens: 5 },
    })
    await harness.idle()
    expect(harness.lastRecord()).toMatchObject({ outcome: 'completed', streamed: 0, cost: 7 * IN + 5 * OUT })
  })

  test('is sent as it is where its answer may have sound or a tool of the provider', async () => {
    const audio = { modalities: ['text', 'audio'], audio: { voice: 'ash', format: 'mp3' } }
    const cases = [
      ['0.05', audio],
      ['1', { tools: [{ type: 'web_search' }] }],
    ] as const
    for (const [credit, more] of cases) {
      const key = await harness.key({ credit })
      const before = harness.upstream.requests.length
      const response = await chat(harness, key, bodyOf({ ...more, max_tokens: 8_000 }))
      expect([response.status, harness.upstream.requests.length]).toEqual([200, before + 1])
      await response.text()
      expect(JSON.parse(harness.upstream.requests.at(-1)!.body.toString())).not.toHaveProperty('stream')
    }
  })

  test('is sent as it is where its highest cost is a small part of the funds', async () => {
    const key = await harness.key({ credit: '100' })
    await (await chat(harness, key, bodyOf())).text()
    expect(harness.upstream.requests.at(-1)!.body.toString()).toBe(bodyOf().replace('openai/', ''))
  })

  test('has what the funds cover, and a header with the reason', async () => {
    const key = await harness.key({ credit: '0.001' })
    harness.upstream.plan(streamed(Array.from({ length: 3_000 }, (_, at) => `w${at} `)))
    const response = await chat(harness, key, bodyOf())
    expect(response.headers.get('x-weir-stop')).toBe('balance_too_low')
    const json = (await response.json()) as { choices: { message: { content: string } }[] }
    expect(json).toMatchObject({ choices: [{ finish_reason: 'length' }] })
    expect(json.choices[0]!.message.content).toStartWith('w0 w1 w2 ')
    await harness.idle()
    expect(harness.lastRecord()).toMatchObject({ outcome: 'out_of_funds', status: 200, shortfall: 0, streamed: 0 })
  })

  test('can be repeated with its idempotency key and costs nothing then, also if it was cut', async () => {
    const key = await harness.key({ credit: '0.001' })
    harness.upstream.plan(streamed(Array.from({ length: 3_000 }, (_, at) => `w${at} `)))
    const send = (): Promise<Response> => chat(harness, key, bodyOf(), { 'idempotency-key': 'once' })
    const [first, second] = [await (await send()).text(), await (await send()).text()]
    expect(second).toBe(first)
    await harness.idle()
    expect(harness.lastRecord()).toMatchObject({ outcome: 'replayed', cost: 0 })
  })
})

test('twenty calls at once share a little money: none is refused, and the balance never falls below zero', async () => {
  const key = await harness.key({ credit: '0.02', qpm: 1_000 })
  harness.upstream.planModel('gpt-4o-mini', answer('Hello, river', { usage: { input: 7, output: 5 } }))
  const calls = Array.from({ length: 20 }, async (_, at) => {
    const response = await chat(harness, key, bodyOf({ stream: at % 2 === 0 }))
    await response.text()
    return response.status
  })
  expect(new Set(await Promise.all(calls))).toEqual(new Set([200]))
  harness.upstream.planModel('gpt-4o-mini', undefined)
  await harness.idle()
  expect(await harness.balance(key)).toMatchObject({ held: '0.00' })
  expect(nanosOf((await harness.balance(key)).balance)).toBe(0.02 * USD - 20 * (7 * IN + 5 * OUT))
})

describe('an account with one dollar, on the most expensive shipped model', () => {
  const dear = dearestModel()
  let shop: Harness
  beforeAll(async () => {
    const { provider } = dear
    const upstreamEnv = (url: string) => ({ [provider.keyEnv]: 'sk-x', [provider.baseUrlEnv]: `${url}/v1` })
    shop = await startHasty({ upstreamEnv })
  })
  afterAll(() => shop.stop())

  test('makes twenty calls at once without an output limit, half of them with an image, and none is refused', async () => {
    const key = await shop.key({ credit: '1', qpm: 1_000 })
    const answered = Promise.withResolvers<void>()
    shop.upstream.planModel(
      dear.model.id,
      after(answered.promise, answer('Hello, river', { usage: { input: 9, output: 5 } })),
    )
    const image = [
      { type: 'text', text: 'What is this?' },
      { type: 'image_url', image_url: { url: dataUrl('image/png', png(512, 512)) } },
    ]
    const calls = Array.from({ length: 20 }, async (_, at) => {
      const messages = at % 4 < 2 ? hello : [{ role: 'user', content: image }]
      const response = await chat(shop, key, {
        model: `${dear.provider.id}/${dear.model.id}`,
        messages,
        stream: at % 2 === 0,
      })
      await response.text()
      return response.status
    })
    await until(() => shop.upstream.requests.length === 20, 'all twenty are at the upstream at the same time')
    const { held } = await shop.balance(key)
    expect(Number(held)).toBeWithin(0.1, 1)
    answered.resolve()
    expect(await Promise.all(calls)).toEqual(new Array<number>(20).fill(200))
    await shop.idle()
    const { balance, held: after20 } = await shop.balance(key)
    expect([Number(after20), Number(balance) > 0.9]).toEqual([0, true])
  })
})

interface ProviderFile {
  readonly id: string
  readonly keyEnv: string
  readonly baseUrlEnv: string
  readonly speaks: Readonly<Record<string, unknown>>
  readonly models: readonly {
    readonly id: string
    readonly price?: { readonly output?: string }
    readonly traits?: { readonly reads?: readonly string[] }
  }[]
}

/** Among the models of chat that read images, by the price of output. */
function dearestModel(): { readonly provider: ProviderFile; readonly model: ProviderFile['models'][number] } {
  const folder = join(import.meta.dir, '../../providers')
  const files = readdirSync(folder).map(name => JSON.parse(readFileSync(join(folder, name), 'utf8')) as ProviderFile)
  const models = files
    .filter(({ speaks, keyEnv, baseUrlEnv }) => 'openai-chat' in speaks && keyEnv && baseUrlEnv)
    .flatMap(provider => provider.models.map(model => ({ provider, model })))
    .filter(({ model }) => model.traits?.reads?.includes('image'))
  const outputPrice = ({ model }: (typeof models)[number]): number => Number(model.price?.output ?? 0)
  return models.reduce((most, one) => (outputPrice(one) > outputPrice(most) ? one : most))
}
