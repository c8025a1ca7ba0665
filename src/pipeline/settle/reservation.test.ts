// When the next slice of a call is reserved, how much is asked for, and when the call is stopped.

import { describe, expect, test } from 'bun:test'
import { Refusal } from '../../base/errors.ts'
import { nanos } from '../../base/money/money.ts'
import { parsePrice } from '../../base/money/price.ts'
import { Stop } from '../../base/stop.ts'
import type { ExtendOutcome } from '../../billing/ledger.ts'
import type { Exchange, Hold, StopReason } from '../exchange.ts'
import { newCallParts } from '../exchange.ts'
import { buildReservations, LAST_TOKENS_MIN, sliceTokens } from './reservation.ts'
import { newMeter } from './usage-meter.ts'

/** 1,000 nanos for a token of input, 2,000 for one of output. */
const price = parsePrice({ input: '1', output: '2' }, problem => {
  throw new Error(problem)
})
const OUT = 2_000n
const INPUT = 1_000n * 1_000n

interface Scene {
  /** What the ledger answers; by default all that is asked for. */
  readonly extend?: (amount: bigint, least: bigint) => Promise<ExtendOutcome>
  readonly tokens?: number
  readonly traits?: object
  readonly perMille?: bigint
}

function scene({ extend, tokens = 1_000, traits = { thinking: 'none' }, perMille = 1_000n }: Scene = {}) {
  let nowMs = 0
  const asked: (readonly [amount: bigint, least: bigint])[] = []
  const reservations = buildReservations({
    async extend(_callId, amount, least) {
      asked.push([amount, least])
      return extend === undefined ? { done: 'extended', granted: `${amount}` } : await extend(amount, least)
    },
  })
  const meter = newMeter()
  const candidate = {
    provider: { id: 'far', traits },
    model: { id: 'echo', traits },
    upstreamProtocol: { name: 'openai-chat', codec: {} },
    price: { price, version: 1, perMille, serviceClass: undefined, atMs: 0 },
    size: { inputTokensMax: 1_000, outputTokensMax: 10_000, choices: 1, searchesMax: 0, textOnly: true },
  }
  const stop = new Stop<StopReason>()
  const hold = { amount: nanos(INPUT + BigInt(tokens) * OUT), slices: 'streamed' } as Hold
  const exchange = {
    ...newCallParts(),
    callId: 7,
    attempt: { candidate, meter, reasoningOff: false },
    call: { inputBytes: 40, choices: 1 },
    hold,
    lifetime: { stop },
    timings: { nowMs: () => nowMs },
  } as unknown as Exchange
  reservations.begin(hold, exchange)
  return {
    asked,
    exchange,
    meter,
    stop,
    reservations,
    /** So many tokens of text have arrived in all. The gateway reckons with a quarter more. */
    arrive(arrived: number): Promise<void> | undefined {
      meter.outputBytes = arrived * 4
      return reservations.cover(exchange)
    },
    pass(ms: number): void {
      nowMs += ms
    },
  }
}

const refusing = async (): Promise<ExtendOutcome> => ({ done: 'balance_too_low', available: '5' })
const settle = (): Promise<void> => new Promise(resolve => setImmediate(resolve))

describe('the next slice', () => {
  test('is reserved when half of the last one is used, and nobody waits for it', async () => {
    const { asked, arrive, exchange } = scene()
    expect(arrive(399)).toBeUndefined()
    expect(asked).toEqual([])
    expect(arrive(400)).toBeUndefined()
    const least = BigInt(LAST_TOKENS_MIN) * OUT
    expect(asked).toEqual([[BigInt(sliceTokens.most) * OUT, least]])
    await settle()
    expect(exchange.settlement.reservation).toMatchObject({ tokens: 1_000 + sliceTokens.most })
    expect(arrive(400)).toBeUndefined()
    expect(asked).toHaveLength(1)
  })

  test('is waited for by what it must cover, and includes that', async () => {
    const { asked, arrive } = scene()
    const waiting = arrive(2_000)
    expect(waiting).toBeInstanceOf(Promise)
    expect(asked).toEqual([[(2_500n - 1_000n + BigInt(sliceTokens.most)) * OUT, (1_500n + 16n) * OUT]])
    await waiting
    expect(arrive(2_000)).toBeUndefined()
  })

  test('is asked for once at a time', async () => {
    const answered = Promise.withResolvers<ExtendOutcome>()
    const { asked, arrive } = scene({ extend: () => answered.promise })
    arrive(500)
    const waiting = arrive(900)
    expect([asked.length, waiting instanceof Promise]).toEqual([1, true])
    answered.resolve({ done: 'extended', granted: `${5_000n * OUT}` })
    await waiting
    expect(arrive(900)).toBeUndefined()
  })

  test('ends at the most that the call may use', async () => {
    const { asked, arrive, exchange } = scene({ tokens: 9_900 })
    expect(arrive(5_000)).toBeUndefined()
    expect(asked).toEqual([[100n * OUT, 16n * OUT]])
    await settle()
    expect(exchange.settlement.reservation).toMatchObject({ tokens: 10_000 })
    expect(arrive(9_999_999)).toBeUndefined()
    expect(asked).toHaveLength(1)
  })

  test('counts with the price of the candidate that answers', () => {
    const { exchange, reservations, asked, arrive } = scene({ tokens: 1_000, perMille: 2_000n })
    expect(exchange.settlement.reservation).toMatchObject({ tokens: 250 })
    const { candidate } = exchange.attempt
    Object.assign(exchange.attempt, { candidate: { ...candidate, price: { ...candidate!.price, perMille: 500n } } })
    reservations.begin(exchange.hold!, exchange)
    expect(exchange.settlement.reservation).toMatchObject({ tokens: 2_500 })
    expect([arrive(500), asked]).toEqual([undefined, []])
  })

  test('covers reasoning that is not shown, by the time that it takes', () => {
    const { asked, pass, meter, reservations, exchange } = scene({
      traits: { thinking: 'effort', hidesThinking: true, tokensPerSecondMax: 100 },
    })
    meter.forwarded = true
    pass(5_000)
    reservations.check(exchange)
    expect(asked).toEqual([])
    pass(2_000)
    reservations.check(exchange)
    expect(asked).toHaveLength(1)
  })

  test('covers what the upstream reports, where that is more than what has arrived', () => {
    const { asked, meter, reservations, exchange } = scene()
    meter.usage = { input: 5, output: 0 }
    expect(reservations.cover(exchange)).toBeUndefined()
    expect(asked).toEqual([])
    meter.usage = { input: 5, output: 100, reasoning: 450 }
    expect(reservations.cover(exchange)).toBeUndefined()
    expect(asked).toHaveLength(1)
  })
})

describe('when the funds are used up', () => {
  test('the call goes on until it has used what is reserved, and is stopped then', async () => {
    const { asked, arrive, stop } = scene({ extend: refusing })
    expect(arrive(500)).toBeUndefined()
    await settle()
    expect(arrive(800)).toBeUndefined()
    expect(stop.reason).toBeUndefined()
    expect(() => arrive(801)).toThrow('balance_too_low')
    expect(stop.reason).toMatchObject({ outcome: 'out_of_funds', refusal: { code: 'balance_too_low' } })
    expect(asked).toHaveLength(1)
  })

  test('a frozen account ends its calls in the same way', async () => {
    const { arrive, stop } = scene({ extend: async () => ({ done: 'account_frozen' }) })
    await expect(arrive(5_000)!).rejects.toThrow('account_frozen')
    expect(stop.reason).toMatchObject({ outcome: 'out_of_funds' })
  })

  test('the timer stops a model that reasons unseen, which pays with all that is left', async () => {
    const { pass, meter, reservations, exchange, stop, asked } = scene({
      extend: async (_amount, least) =>
        least <= 50n * OUT
          ? { done: 'extended', granted: `${least}` }
          : { done: 'balance_too_low', available: `${50n * OUT}` },
      traits: { thinking: 'effort', hidesThinking: true, tokensPerSecondMax: 100 },
    })
    meter.forwarded = true
    pass(12_000)
    reservations.check(exchange)
    await settle()
    expect(stop.reason).toMatchObject({ outcome: 'out_of_funds' })
    expect(asked.at(-1)).toEqual([50n * OUT, 50n * OUT])
    expect(exchange.settlement.reservation).toMatchObject({ tokens: 1_050 })
  })
})

test('a ledger that does not answer ends the call as a fault of the gateway', async () => {
  const { arrive, stop } = scene({ extend: () => Promise.reject(new Refusal('storage_away', 'x')) })
  await expect(arrive(5_000)!).rejects.toThrow('storage_away')
  expect(stop.reason).toMatchObject({ outcome: 'gateway_fault', refusal: { code: 'storage_away' } })
})

test('a call that holds its highest possible cost reserves nothing more', () => {
  const { reservations, exchange, asked } = scene()
  const { settlement, ...rest } = exchange
  const whole = { ...rest, settlement: { mayHaveHold: true } } as unknown as Exchange
  reservations.begin({ amount: nanos(1n) } as Hold, whole)
  expect([reservations.cover(whole), whole.settlement.reservation, asked]).toEqual([undefined, undefined, []])
  expect(settlement.reservation).toBeDefined()
})
