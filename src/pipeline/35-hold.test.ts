// The hold stage with a scripted ledger: which amounts it requests, in which order, and when it stops.

import { describe, expect, test } from 'bun:test'
import { Refusal } from '../base/errors.ts'
import type { NanosPerMillion } from '../base/money/money.ts'
import { Stop } from '../base/stop.ts'
import type { HoldOutcome, HoldRequest } from '../billing/ledger.ts'
import type { TokenCount } from '../billing/token-counter-thread.ts'
import type { Call } from '../protocols/neutral/call.ts'
import { readCall } from '../protocols/openai-chat/request.ts'
import type { Protocol } from '../protocols/protocol.ts'
import type { MoneyText } from '../store/ledger/money-text.ts'
import type { Model } from '../upstreams/provider.ts'
import { buildHold } from './35-hold.ts'
import type { Exchange, Hold, Route, StopReason } from './exchange.ts'
import { callerLeft, newAttempt, newCallParts } from './exchange.ts'
import { sizeOf, translatedBounds } from './route/call-size.ts'
import { LargeAnswers } from './settle/large-answers.ts'

/** One nano-dollar per token of input and output. */
const rate = 1_000_000n as NanosPerMillion
const price = { rates: { input: rate, output: rate }, cases: [] }

function chatOf(bytes: number, more: object = {}) {
  const messages = [{ role: 'u', content: 'x'.repeat(bytes) }]
  return readCall(Buffer.from(JSON.stringify({ model: 'a/b', messages, ...more })))
}

interface HoldScript {
  readonly held: readonly (HoldOutcome | Error)[]
  readonly count?: TokenCount | undefined | Promise<undefined>
  /** The key lets its answers be cut. */
  readonly cuts?: boolean
  readonly call?: ReturnType<typeof chatOf>
  readonly stop?: Stop<StopReason>
}

interface StageRun {
  readonly requests: readonly HoldRequest[]
  readonly counted: number
  readonly hold: Hold | undefined
  readonly fault: unknown
  readonly mayHold: boolean
}

const insufficient = (done: 'balance_too_low' | 'hold_less', available: bigint): HoldOutcome => ({
  done,
  available: `${available}` as MoneyText,
})
const held: HoldOutcome = { done: 'held' }
const alreadyRunning: HoldOutcome = { done: 'running', callId: 1 }

/** Runs the stage. The ledger returns the results of the script in order, and a further request fails the test. */
async function runStage(script: HoldScript): Promise<StageRun> {
  const requests: HoldRequest[] = []
  let counted = 0
  const stage = buildHold({
    largeAnswers: new LargeAnswers(() => 0),
    ledger: {
      async hold(request) {
        const result = script.held[requests.length]
        requests.push(request)
        if (result === undefined) throw new Error('too many hold requests')
        if (result instanceof Error) throw result
        return result
      },
    },
    countTokens: async () => {
      counted++
      return await script.count
    },
  })
  const caller = { keyId: 1, accountId: 2, strictCap: script.cuts !== true }
  const priced = { price, version: 1, perMille: 1_000n, serviceClass: undefined, atMs: 0 }
  const model: Model = { id: 'b', outputTokensMax: 1_000 }
  const call = script.call ?? chatOf(10_000)
  const candidate = { provider: { id: 'a', can }, model, price: priced, size: sizeOf(call, model, can) }
  const route = { permit: { caller }, candidates: [candidate] } as unknown as Route
  const basics = { ...newCallParts(), callId: 9, protocol: { name: 'x' }, attempt: newAttempt() }
  const exchange = { ...basics, lifetime: { stop: script.stop ?? new Stop() } } as unknown as Exchange
  let [hold, fault]: [Hold | undefined, unknown] = [undefined, undefined]
  try {
    hold = await stage(route, call, exchange)
  } catch (thrown) {
    fault = thrown
  }
  return { requests, counted, hold, fault, mayHold: exchange.settlement.mayHaveHold }
}

const can = { capsThought: true }
const amounts = ({ requests }: StageRun): readonly bigint[] => requests.map(({ amount }) => amount)
const bytes = BigInt(chatOf(10_000).bodyBytes)

describe('a hold', () => {
  test('that fits is requested once, if ten times the part that a count could reduce is available', async () => {
    const run = await runStage({ held: [held] })
    expect(run).toMatchObject({ counted: 0, mayHold: true, hold: { amount: bytes + 1_000n } })
    expect(run.requests).toMatchObject([
      { callId: 9, keyId: 1, accountId: 2, amount: bytes + 1_000n, wants: bytes * 10n },
    ])
    expect(run.hold).not.toHaveProperty('cap')
    expect(run.hold).not.toHaveProperty('inputTokens')
  })

  test('for a short text, or for an image, is refused without a token count', async () => {
    const image = [{ role: 'u', content: [{ type: 'image_url', image_url: { url: 'x'.repeat(9_000) } }] }]
    for (const call of [chatOf(10), chatOf(0, { messages: image })]) {
      const run = await runStage({ held: [insufficient('balance_too_low', 500n)], call })
      expect(run).toMatchObject({ counted: 0, mayHold: false, fault: { code: 'balance_too_low' } })
      expect(run.requests).toMatchObject([{ wants: 0n }])
    }
  })

  test('that is refused is requested again with a token count and a margin', async () => {
    const count = { tokens: 1_000, extraTokens: 6, uncountedBytes: 40 }
    const run = await runStage({ held: [insufficient('hold_less', 20_000n), held], count })
    expect(amounts(run)).toEqual([bytes + 1_000n, 1_346n + 1_000n])
    expect(run.requests[1]!.wants).toBe(0n)
    expect(run).toMatchObject({ counted: 1, mayHold: true, hold: { amount: 2_346n, inputTokens: 1_010 } })
  })

  test('is still computed from bytes if the token count fails or is larger', async () => {
    for (const count of [undefined, { tokens: 1_000_000, extraTokens: 0, uncountedBytes: 0 }]) {
      const run = await runStage({ held: [insufficient('hold_less', 20_000n), held], count })
      expect(amounts(run)).toEqual([bytes + 1_000n, bytes + 1_000n])
      expect(run.hold!.amount).toBe((bytes + 1_000n) as never)
    }
  })

  test('is refused without a token count if the funds do not cover one token of output', async () => {
    const run = await runStage({ held: [insufficient('balance_too_low', 0n)], cuts: true })
    expect(run).toMatchObject({ counted: 0, fault: { code: 'balance_too_low' } })
  })

  test('ends when the caller disconnects, without waiting for a count', async () => {
    const stop = new Stop<StopReason>()
    const running = runStage({ held: [insufficient('hold_less', 20_000n)], count: new Promise(() => {}), stop })
    await Promise.resolve()
    stop.stop(callerLeft)
    expect(await running).toMatchObject({ counted: 1, fault: callerLeft, mayHold: false, requests: [{}] })
  })
})

describe('a cap by the funds', () => {
  const short = chatOf(10)
  const inputCost = BigInt(short.bodyBytes)

  test('requests what the funds cover, and follows changing funds at most three times', async () => {
    const fallingFunds = [900n, 800n, 700n, 600n].map(more => insufficient('balance_too_low', inputCost + more))
    const run = await runStage({ held: fallingFunds, cuts: true, call: short })
    expect(amounts(run)).toEqual([inputCost + 1_000n, inputCost + 900n, inputCost + 800n, inputCost + 700n])
    expect(run).toMatchObject({ mayHold: false, fault: { code: 'balance_too_low' } })
    expect((run.fault as Refusal).extras.hint?.text).toContain('With max_tokens of at most 600 it would fit.')
  })

  test('puts the cap into the hold', async () => {
    const results = [
      insufficient('balance_too_low', inputCost + 900n),
      insufficient('balance_too_low', inputCost + 800n),
      held,
    ]
    const run = await runStage({ held: results, cuts: true, call: short })
    expect(run.hold).toMatchObject({ cap: 800, amount: inputCost + 800n })
  })

  test('does not apply to a key with strictCap, nor below the minimum', async () => {
    expect(await runStage({ held: [insufficient('balance_too_low', inputCost + 900n)], call: short })).toMatchObject({
      requests: [{}],
    })
    const tooLittle = insufficient('balance_too_low', inputCost + 255n)
    expect(await runStage({ held: [tooLittle], cuts: true, call: short })).toMatchObject({
      requests: [{}],
      hold: undefined,
    })
    const least = insufficient('balance_too_low', inputCost + 256n)
    expect(await runStage({ held: [least, held], cuts: true, call: short })).toMatchObject({ hold: { cap: 256 } })
  })
})

describe('whether a hold may exist', () => {
  test('it may not, after a clear refusal', async () => {
    const frozen = await runStage({ held: [{ done: 'account_frozen' }], cuts: true })
    expect(frozen).toMatchObject({ mayHold: false, fault: { code: 'account_frozen' }, requests: [{}] })
    const overloaded = await runStage({ held: [new Refusal('overloaded', 'x')] })
    expect(overloaded).toMatchObject({ mayHold: false, fault: { code: 'overloaded' } })
  })

  test('it may, if the ledger did not answer', async () => {
    expect(await runStage({ held: [new Refusal('storage_away', 'x')] })).toMatchObject({ mayHold: true })
    expect(await runStage({ held: [insufficient('hold_less', 9n), new Error('gone')] })).toMatchObject({
      mayHold: true,
    })
  })

  test('an unexpected answer of the ledger is never taken for a hold', async () => {
    expect(await runStage({ held: [alreadyRunning], cuts: true })).toMatchObject({
      hold: undefined,
      mayHold: false,
      requests: [{}],
    })
  })
})

describe('the size of a call', () => {
  const text = chatOf(10_000)
  const image = chatOf(0, { messages: [{ role: 'u', content: [{ type: 'image_url' }] }] })
  const sizeWith = (inputTokensMax: number, outputTokensMax = 131_072) => ({ inputTokensMax, outputTokensMax })
  const capped = (cap: number) => chatOf(1, { max_tokens: cap })
  const limited = { outputTokensMax: 500 }
  const rows: Readonly<Record<string, readonly [call: typeof text, limits: Partial<Model>, size: object]>> = {
    'text, no known limits': [text, {}, sizeWith(text.bodyBytes)],
    'text, a larger context': [text, { contextTokens: 100_000 }, sizeWith(text.bodyBytes, 100_000)],
    'text, a smaller context': [text, { contextTokens: 5_000 }, sizeWith(5_000, 5_000)],
    'an image, no known limits': [image, {}, sizeWith(131_072)],
    'an image, a context': [image, { contextTokens: 5_000 }, sizeWith(5_000, 5_000)],
    'no cap, a limit': [text, limited, sizeWith(text.bodyBytes, 500)],
    'a cap below the limit': [capped(7), limited, sizeWith(capped(7).bodyBytes, 7)],
    'a cap above the limit': [capped(999), limited, sizeWith(capped(999).bodyBytes, 500)],
    'a cap, no limit': [capped(99_999), {}, sizeWith(capped(99_999).bodyBytes, 99_999)],
  }

  test.each(Object.entries(rows))('%s', (_name, [call, limits, size]) => {
    const found = sizeOf(call, { id: 'b', ...limits }, can)
    expect(found).toMatchObject({ ...size, choices: 1, searchesMax: 0, thoughtTokensMax: 0 })
  })

  test('includes reasoning tokens where the cap does not cover them', () => {
    const thinking = (limits: Partial<Model>) => sizeOf(capped(7), { id: 'b', ...limits }, { capsThought: false })
    expect(thinking({})).toMatchObject({ outputTokensMax: 7, thoughtTokensMax: 131_065 })
    expect(thinking(limited)).toMatchObject({ outputTokensMax: 7, thoughtTokensMax: 131_065 })
    expect(thinking({ traits: { budgetMax: 600 } })).toMatchObject({ thoughtTokensMax: 600 })
    expect(thinking({ contextTokens: 100, traits: { budgetMax: 600 } })).toMatchObject({ thoughtTokensMax: 93 })
    expect(thinking({ contextTokens: 5 })).toMatchObject({ outputTokensMax: 7, thoughtTokensMax: 0 })
  })

  test('includes what a translated request may ask for beyond the caller', () => {
    const speaks = (least: number) => ({ codec: { outputTokensMin: least } }) as Protocol
    const boundsWith = (call: Call, least: number, others?: readonly number[]) =>
      translatedBounds(call, { upstreamProtocol: speaks(least), ...(others && { otherProtocols: others.map(speaks) }) })
    expect([7, 8, 16].map(least => boundsWith(capped(7), least).outputTokensMax)).toEqual([7, 8, 16])
    expect(boundsWith(capped(7), 1, [1, 16]).outputTokensMax).toBe(16)
    expect(boundsWith(capped(16), 16)).toEqual(capped(16))
    expect(boundsWith(text, 16)).toBe(text)
    expect(boundsWith({ ...text, searchesMax: 1 }, 16)).toEqual({ ...text, searchesMax: 10 })
  })

  test('includes every choice and every search', () => {
    expect(sizeOf(chatOf(1, { n: 3, web_search_options: {} }), { id: 'b' }, can)).toMatchObject({
      choices: 3,
      searchesMax: 10,
      textOnly: false,
    })
  })
})
