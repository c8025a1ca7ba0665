// The hold stage with a scripted ledger: which amounts it requests, in which order, and when it stops.

import { describe, expect, test } from 'bun:test'
import { Refusal } from '../base/errors.ts'
import type { NanosPerMillion } from '../base/money/money.ts'
import { Stop } from '../base/stop.ts'
import type { HoldOutcome, HoldRequest } from '../billing/ledger.ts'
import type { TokenCount } from '../billing/token-counter-thread.ts'
import { readCall } from '../protocols/openai-chat/request.ts'
import type { MoneyText } from '../store/ledger/money-text.ts'
import type { Model } from '../upstreams/provider.ts'
import { buildHold } from './35-hold.ts'
import type { Exchange, Hold, Route, StopReason } from './exchange.ts'
import { callerLeft, newAttempt, newCallParts } from './exchange.ts'
import { sizeOf } from './route/call-size.ts'

/** One nano-dollar per token of input and output. */
const rate = 1_000_000n as NanosPerMillion
const price = { rates: { input: rate, output: rate }, cases: [] }

function chatOf(bytes: number, more: object = {}) {
  const messages = [{ role: 'u', content: 'x'.repeat(bytes) }]
  return readCall(Buffer.from(JSON.stringify({ model: 'a/b', messages, ...more })))
}

interface Scene {
  readonly held: readonly (HoldOutcome | Error)[]
  readonly count?: TokenCount | undefined | Promise<undefined>
  /** The key lets its answers be cut. */
  readonly cuts?: boolean
  readonly call?: ReturnType<typeof chatOf>
  readonly stop?: Stop<StopReason>
}

interface Played {
  readonly asked: readonly HoldRequest[]
  readonly counted: number
  readonly hold: Hold | undefined
  readonly fault: unknown
  readonly mayHold: boolean
}

const room = (done: 'balance_too_low' | 'hold_less', available: bigint): HoldOutcome => ({
  done,
  available: `${available}` as MoneyText,
})
const held: HoldOutcome = { done: 'held' }
const taken: HoldOutcome = { done: 'running', callId: 1 }

/** Runs the stage. The ledger returns the answers in order, and a further request fails the test. */
async function play(scene: Scene): Promise<Played> {
  const asked: HoldRequest[] = []
  let counted = 0
  const stage = buildHold({
    ledger: {
      async hold(request) {
        const result = scene.held[asked.length]
        asked.push(request)
        if (result === undefined) throw new Error('asked too often')
        if (result instanceof Error) throw result
        return result
      },
    },
    countTokens: async () => {
      counted++
      return await scene.count
    },
  })
  const caller = { keyId: 1, accountId: 2, strictCap: scene.cuts !== true }
  const priced = { price, version: 1, perMille: 1_000n, serviceClass: undefined, atMs: 0 }
  const model: Model = { id: 'b', outputTokensMax: 1_000 }
  const call = scene.call ?? chatOf(10_000)
  const candidate = { provider: { id: 'a', can }, model, price: priced, size: sizeOf(call, model, can) }
  const route = { permit: { caller }, candidates: [candidate] } as unknown as Route
  const basics = { ...newCallParts(), callId: 9, protocol: { name: 'x' }, attempt: newAttempt() }
  const exchange = { ...basics, lifetime: { stop: scene.stop ?? new Stop() } } as unknown as Exchange
  let [hold, fault]: [Hold | undefined, unknown] = [undefined, undefined]
  try {
    hold = await stage(route, call, exchange)
  } catch (thrown) {
    fault = thrown
  }
  return { asked, counted, hold, fault, mayHold: exchange.settlement.mayHaveHold }
}

const can = { capsThought: true }
const amounts = ({ asked }: Played): readonly bigint[] => asked.map(({ amount }) => amount)
const bytes = BigInt(chatOf(10_000).bodyBytes)

describe('a hold', () => {
  test('that fits is requested once, if ten times the part that a count could reduce is available', async () => {
    const played = await play({ held: [held] })
    expect(played).toMatchObject({ counted: 0, mayHold: true, hold: { amount: bytes + 1_000n } })
    expect(played.asked).toMatchObject([
      { callId: 9, keyId: 1, accountId: 2, amount: bytes + 1_000n, wants: bytes * 10n },
    ])
    expect(played.hold).not.toHaveProperty('cap')
    expect(played.hold).not.toHaveProperty('inputTokens')
  })

  test('of a short text, or of more than text, is not counted', async () => {
    const image = [{ role: 'u', content: [{ type: 'image_url', image_url: { url: 'x'.repeat(9_000) } }] }]
    for (const call of [chatOf(10), chatOf(0, { messages: image })]) {
      const played = await play({ held: [room('balance_too_low', 500n)], call })
      expect(played).toMatchObject({ counted: 0, mayHold: false, fault: { code: 'balance_too_low' } })
      expect(played.asked).toMatchObject([{ wants: 0n }])
    }
  })

  test('that is refused is counted with a margin and requested again', async () => {
    const count = { tokens: 1_000, extraTokens: 6, uncountedBytes: 40 }
    const played = await play({ held: [room('hold_less', 20_000n), held], count })
    expect(amounts(played)).toEqual([bytes + 1_000n, 1_346n + 1_000n])
    expect(played.asked[1]!.wants).toBe(0n)
    expect(played).toMatchObject({ counted: 1, mayHold: true, hold: { amount: 2_346n, inputTokens: 1_010 } })
  })

  test('still uses bytes if the count fails or is larger', async () => {
    for (const count of [undefined, { tokens: 1_000_000, extraTokens: 0, uncountedBytes: 0 }]) {
      const played = await play({ held: [room('hold_less', 20_000n), held], count })
      expect(amounts(played)).toEqual([bytes + 1_000n, bytes + 1_000n])
      expect(played.hold!.amount).toBe((bytes + 1_000n) as never)
    }
  })

  test('is not counted if the funds do not cover one token of output', async () => {
    const played = await play({ held: [room('balance_too_low', 0n)], cuts: true })
    expect(played).toMatchObject({ counted: 0, fault: { code: 'balance_too_low' } })
  })

  test('ends when the caller disconnects, without waiting for a count', async () => {
    const stop = new Stop<StopReason>()
    const playing = play({ held: [room('hold_less', 20_000n)], count: new Promise(() => {}), stop })
    await Promise.resolve()
    stop.stop(callerLeft)
    expect(await playing).toMatchObject({ counted: 1, fault: callerLeft, mayHold: false, asked: [{}] })
  })
})

describe('a cap by the funds', () => {
  const short = chatOf(10)
  const own = BigInt(short.bodyBytes)

  test('requests what the funds cover, and follows changing funds at most three times', async () => {
    const falling = [900n, 800n, 700n, 600n].map(more => room('balance_too_low', own + more))
    const played = await play({ held: falling, cuts: true, call: short })
    expect(amounts(played)).toEqual([own + 1_000n, own + 900n, own + 800n, own + 700n])
    expect(played).toMatchObject({ mayHold: false, fault: { code: 'balance_too_low' } })
    expect((played.fault as Refusal).extras.hint).toContain('With max_tokens of at most 600 it would fit.')
  })

  test('puts the cap into the hold', async () => {
    const results = [room('balance_too_low', own + 900n), room('balance_too_low', own + 800n), held]
    const played = await play({ held: results, cuts: true, call: short })
    expect(played.hold).toMatchObject({ cap: 800, amount: own + 800n })
  })

  test('does not apply to a key with strictCap, nor below the minimum', async () => {
    expect(await play({ held: [room('balance_too_low', own + 900n)], call: short })).toMatchObject({ asked: [{}] })
    const stump = room('balance_too_low', own + 255n)
    expect(await play({ held: [stump], cuts: true, call: short })).toMatchObject({ asked: [{}], hold: undefined })
    const least = room('balance_too_low', own + 256n)
    expect(await play({ held: [least, held], cuts: true, call: short })).toMatchObject({ hold: { cap: 256 } })
  })
})

describe('whether a hold may exist', () => {
  test('no, after a clear refusal', async () => {
    const frozen = await play({ held: [{ done: 'account_frozen' }], cuts: true })
    expect(frozen).toMatchObject({ mayHold: false, fault: { code: 'account_frozen' }, asked: [{}] })
    const shed = await play({ held: [new Refusal('overloaded', 'x')] })
    expect(shed).toMatchObject({ mayHold: false, fault: { code: 'overloaded' } })
  })

  test('yes, if the ledger did not answer', async () => {
    expect(await play({ held: [new Refusal('storage_away', 'x')] })).toMatchObject({ mayHold: true })
    expect(await play({ held: [room('hold_less', 9n), new Error('gone')] })).toMatchObject({ mayHold: true })
  })

  test('an unexpected answer of the ledger is never taken for a hold', async () => {
    expect(await play({ held: [taken], cuts: true })).toMatchObject({ hold: undefined, mayHold: false, asked: [{}] })
  })
})

describe('the size of a call', () => {
  const text = chatOf(10_000)
  const image = chatOf(0, { messages: [{ role: 'u', content: [{ type: 'image_url' }] }] })
  const of = (inputTokensMax: number, outputTokensMax = 32_768) => ({ inputTokensMax, outputTokensMax })
  const capped = (cap: number) => chatOf(1, { max_tokens: cap })
  const limited = { outputTokensMax: 500 }
  const rows: Readonly<Record<string, readonly [call: typeof text, limits: Partial<Model>, size: object]>> = {
    'text, nothing known': [text, {}, of(text.bodyBytes)],
    'text, a larger context': [text, { contextTokens: 100_000 }, of(text.bodyBytes)],
    'text, a smaller context': [text, { contextTokens: 5_000 }, of(5_000)],
    'an image, nothing known': [image, {}, of(131_072)],
    'an image, a context': [image, { contextTokens: 5_000 }, of(5_000)],
    'no cap, a limit': [text, limited, of(text.bodyBytes, 500)],
    'a cap below the limit': [capped(7), limited, of(capped(7).bodyBytes, 7)],
    'a cap beyond it': [capped(999), limited, of(capped(999).bodyBytes, 500)],
    'a cap, no limit': [capped(99_999), {}, of(capped(99_999).bodyBytes, 99_999)],
  }

  test.each(Object.entries(rows))('%s', (_name, [call, limits, size]) => {
    const found = sizeOf(call, { id: 'b', ...limits }, can)
    expect(found).toMatchObject({ ...size, choices: 1, searchesMax: 0, thoughtTokensMax: 0 })
  })

  test('includes reasoning tokens where the cap does not cover them', () => {
    const thinking = (limits: Partial<Model>) => sizeOf(capped(7), { id: 'b', ...limits }, { capsThought: false })
    expect(thinking({})).toMatchObject({ outputTokensMax: 7, thoughtTokensMax: 32_768 })
    expect(thinking(limited)).toMatchObject({ outputTokensMax: 7, thoughtTokensMax: 500 })
  })

  test('includes every choice and every search', () => {
    expect(sizeOf(chatOf(1, { n: 3, web_search_options: {} }), { id: 'b' }, can)).toMatchObject({
      choices: 3,
      searchesMax: 10,
      textOnly: false,
    })
  })
})
