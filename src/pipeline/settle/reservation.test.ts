// When the next slice of a call is reserved, how much is extensions for, and when the call is stopped.

import { describe, expect, test } from 'bun:test'
import { Refusal } from '../../base/errors.ts'
import { nanos } from '../../base/money/money.ts'
import { parsePrice } from '../../base/money/price.ts'
import { Stop } from '../../base/stop.ts'
import type { ExtendOutcome, Ledger } from '../../billing/ledger.ts'
import type { Candidate, Exchange, Hold, StopReason } from '../exchange.ts'
import { newCallParts } from '../exchange.ts'
import { LargeAnswers } from './large-answers.ts'
import { buildReservations, LAST_TOKENS_MIN, sliceTokens } from './reservation.ts'
import { newMeter, noteDelivered, noteUsage, resumeReading, stopReading } from './usage-meter.ts'

/** 1,000 nanos for a token of input, 2,000 for one of output. */
const price = parsePrice({ input: '1', output: '2' }, problem => {
  throw new Error(problem)
})
const OUT = 2_000n
const INPUT = 1_000n * 1_000n

interface Scene {
  /** What the ledger answers; by default all that is extensions for. */
  readonly extend?: (amount: bigint, least: bigint) => Promise<ExtendOutcome>
  readonly tokens?: number
  readonly traits?: object
  readonly perMille?: bigint
}

function scene({ extend, tokens = 1_000, traits = { thinking: 'none' }, perMille = 1_000n }: Scene = {}) {
  let nowMs = 0
  const extensions: (readonly [amount: bigint, least: bigint])[] = []
  const known: bigint[] = []
  const ledger: Pick<Ledger, 'extend'> = {
    async extend({ amount, least, held }) {
      extensions.push([amount, least])
      known.push(held)
      return extend === undefined ? { done: 'extended', granted: `${amount}` } : await extend(amount, least)
    },
  }
  const largeAnswers = new LargeAnswers(() => nowMs)
  const reservations = buildReservations({ ledger, largeAnswers, pause: async () => {} })
  const meter = newMeter()
  const candidate = {
    provider: { id: 'far', traits },
    model: { id: 'echo', traits },
    upstreamProtocol: { name: 'openai-chat', codec: {} },
    price: { price, version: 1, perMille, serviceClass: undefined, atMs: 0 },
    size: { inputTokensMax: 1_000, outputTokensMax: 10_000, choices: 1, searchesMax: 0, textOnly: true },
  }
  const stop = new Stop<StopReason>()
  const route = { permit: { caller: { accountId: 3 } } }
  const hold = { amount: nanos(INPUT + BigInt(tokens) * OUT), slices: 'streamed', route } as unknown as Hold
  const exchange = {
    ...newCallParts(),
    callId: 7,
    attempts: [],
    attempt: { candidate, meter, reasoningOff: false },
    call: { inputBytes: 40, choices: 1 },
    hold,
    lifetime: { stop },
    timings: { nowMs: () => nowMs },
  } as unknown as Exchange
  reservations.begin(hold, exchange)
  return {
    extensions,
    known,
    exchange,
    meter,
    isLarge: () => largeAnswers.has(3, candidate as unknown as Candidate),
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
    const { extensions, arrive, exchange } = scene()
    expect(arrive(399)).toBeUndefined()
    expect(extensions).toEqual([])
    expect(arrive(400)).toBeUndefined()
    const least = BigInt(LAST_TOKENS_MIN) * OUT
    expect(extensions).toEqual([[BigInt(sliceTokens.most) * OUT, least]])
    await settle()
    expect(exchange.settlement.reservation).toMatchObject({ tokens: 1_000 + sliceTokens.most })
    expect(arrive(400)).toBeUndefined()
    expect(extensions).toHaveLength(1)
  })

  test('is waited for by what it must cover, and includes that', async () => {
    const { extensions, arrive } = scene()
    const waiting = arrive(2_000)
    expect(waiting).toBeInstanceOf(Promise)
    expect(extensions).toEqual([[(2_500n - 1_000n + BigInt(sliceTokens.most)) * OUT, (1_500n + 16n) * OUT]])
    await waiting
    expect(arrive(2_000)).toBeUndefined()
  })

  test('is extensions for once at a time', async () => {
    const answered = Promise.withResolvers<ExtendOutcome>()
    const { extensions, arrive } = scene({ extend: () => answered.promise })
    arrive(500)
    const waiting = arrive(900)
    expect([extensions.length, waiting instanceof Promise]).toEqual([1, true])
    answered.resolve({ done: 'extended', granted: `${5_000n * OUT}` })
    await waiting
    expect(arrive(900)).toBeUndefined()
  })

  test('ends at the most that the call may use', async () => {
    const { extensions, arrive, exchange } = scene({ tokens: 9_900 })
    expect(arrive(5_000)).toBeUndefined()
    expect(extensions).toEqual([[100n * OUT, 16n * OUT]])
    await settle()
    expect(exchange.settlement.reservation).toMatchObject({ tokens: 10_000 })
    expect(arrive(9_999_999)).toBeUndefined()
    expect(extensions).toHaveLength(1)
  })

  test('counts with the price of the candidate that answers', () => {
    const { exchange, reservations, extensions, arrive } = scene({ tokens: 1_000, perMille: 2_000n })
    expect(exchange.settlement.reservation).toMatchObject({ tokens: 250 })
    const { candidate } = exchange.attempt
    Object.assign(exchange.attempt, { candidate: { ...candidate, price: { ...candidate!.price, perMille: 500n } } })
    reservations.begin(exchange.hold!, exchange)
    expect(exchange.settlement.reservation).toMatchObject({ tokens: 2_500 })
    expect([arrive(500), extensions]).toEqual([undefined, []])
  })

  test('covers reasoning that is not shown, by the time that it takes', () => {
    const { extensions, pass, meter, reservations, exchange } = scene({
      traits: { thinking: 'effort', hidesThinking: true, tokensPerSecondMax: 100 },
    })
    meter.forwarded = true
    pass(5_000)
    reservations.check(exchange)
    expect(extensions).toEqual([])
    pass(2_000)
    reservations.check(exchange)
    expect(extensions).toHaveLength(1)
  })

  test('covers what the upstream reports, where that is more than what has arrived', () => {
    const { extensions, meter, reservations, exchange } = scene()
    meter.usage = { input: 5, output: 0 }
    expect(reservations.cover(exchange)).toBeUndefined()
    expect(extensions).toEqual([])
    meter.usage = { input: 5, output: 100, reasoning: 450 }
    expect(reservations.cover(exchange)).toBeUndefined()
    expect(extensions).toHaveLength(1)
  })
})

describe('when the funds are used up', () => {
  test('the call goes on until it has used what is reserved, and is stopped then', async () => {
    const { extensions, arrive, stop } = scene({ extend: refusing })
    expect(arrive(500)).toBeUndefined()
    await settle()
    expect(arrive(800)).toBeUndefined()
    expect(stop.reason).toBeUndefined()
    await settle()
    await expect(arrive(801)!).rejects.toThrow('balance_too_low')
    expect(stop.reason).toMatchObject({ outcome: 'out_of_funds', refusal: { code: 'balance_too_low' } })
    expect(extensions.length).toBeWithin(2, 12)
  })

  test('money is extensions for again before the call is stopped, because some may have come in', async () => {
    let funds = 0n
    const { extensions, arrive, stop } = scene({
      extend: async (_amount, least) =>
        least <= funds ? { done: 'extended', granted: `${funds}` } : { done: 'balance_too_low', available: `${funds}` },
    })
    arrive(500)
    await settle()
    arrive(700)
    await settle()
    expect([extensions.length, stop.reason]).toEqual([2, undefined])
    funds = 1_000n * OUT
    await arrive(801)
    expect(stop.reason).toBeUndefined()
  })

  test('a refused slice is not extensions for with every piece that arrives', async () => {
    const { extensions, arrive } = scene({ extend: refusing })
    for (let tokens = 400; tokens <= 800; tokens++) {
      arrive(tokens)
      await settle()
    }
    expect(extensions.length).toBeWithin(2, 12)
  })

  test('content that comes with the end of the answer is not passed on uncovered', async () => {
    const { arrive, meter, stop } = scene({ extend: refusing })
    meter.finished = true
    await expect(arrive(5_000)!).rejects.toThrow('balance_too_low')
    expect(stop.reason).toMatchObject({ outcome: 'out_of_funds' })
  })

  test('the end of an answer whose content was passed on is delivered, whatever it reports', () => {
    const { arrive, meter, extensions } = scene({ extend: refusing })
    arrive(100)
    noteDelivered(meter)
    noteUsage(meter, { input: 5, output: 50_000 })
    meter.finished = true
    expect([arrive(100), extensions]).toEqual([undefined, []])
  })

  test('a frozen account ends its calls in the same way', async () => {
    const { arrive, stop } = scene({ extend: async () => ({ done: 'account_frozen' }) })
    await expect(arrive(5_000)!).rejects.toThrow('account_frozen')
    expect(stop.reason).toMatchObject({ outcome: 'out_of_funds' })
  })

  test('the timer stops a model that reasons unseen, which pays with all that is left', async () => {
    const { pass, meter, reservations, exchange, stop, extensions } = scene({
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
    expect(extensions.at(-1)).toEqual([50n * OUT, 50n * OUT])
    expect(exchange.settlement.reservation).toMatchObject({ tokens: 1_050 })
  })
})

describe('an answer that arrives whole', () => {
  const wholeOf = (scene: ReturnType<typeof sceneOfWhole>): Promise<void> =>
    scene.reservations.coverWhole(scene.exchange)!
  function sceneOfWhole(output: number, extend?: Scene['extend']) {
    const opened = scene(extend === undefined ? {} : { extend })
    opened.meter.outputBytes = 40
    opened.meter.finished = true
    noteUsage(opened.meter, { input: 1_000, output })
    return opened
  }

  test('is covered by what is reserved, or by one extension for exactly the rest', async () => {
    const small = sceneOfWhole(1_000)
    await wholeOf(small)
    expect(small.extensions).toEqual([])
    const large = sceneOfWhole(9_000)
    await wholeOf(large)
    expect(large.extensions).toEqual([[8_000n * OUT, 8_000n * OUT]])
  })

  test('stops the call if it cannot be paid', async () => {
    const { stop, ...rest } = sceneOfWhole(9_000, refusing)
    await expect(wholeOf({ stop, ...rest })).rejects.toThrow('balance_too_low')
    expect(stop.reason).toMatchObject({ outcome: 'out_of_funds' })
  })
})

describe('reasoning by time', () => {
  const traits = { thinking: 'effort', hidesThinking: true, tokensPerSecondMax: 100 }

  test('does not count the time in which the gateway does not read', () => {
    const { extensions, pass, meter, reservations, exchange } = scene({ traits })
    meter.forwarded = true
    pass(1_500)
    stopReading(meter, 1_500) // a caller that does not read, or no memory
    pass(3_600_000)
    reservations.check(exchange)
    expect(extensions).toEqual([])
    resumeReading(meter, 3_601_500)
    pass(4_000)
    reservations.check(exchange)
    expect(extensions).toEqual([])
    pass(1_500)
    reservations.check(exchange)
    expect(extensions).toHaveLength(1)
  })
})

test('an extension whose confirmation was lost is repeated, and says how much the call has', async () => {
  let tries = 0
  const { arrive, extensions, known, stop } = scene({
    async extend(amount) {
      if (++tries < 3) throw new Refusal('storage_away', 'x')
      return { done: 'extended', granted: `${amount}` }
    },
  })
  await arrive(2_000)
  expect([extensions.length, stop.reason]).toEqual([3, undefined])
  expect(new Set(known)).toEqual(new Set([INPUT + 1_000n * OUT]))
  await arrive(5_000)
  expect(known.at(-1)).toBe(INPUT + (2_500n + BigInt(sliceTokens.most)) * OUT)
})

test('a ledger that fails in time does not end the call', async () => {
  let tries = 0
  const { arrive, stop } = scene({
    async extend(amount) {
      if (++tries < 3) throw new Refusal('storage_away', 'x')
      return { done: 'extended', granted: `${amount}` }
    },
  })
  arrive(500)
  await settle()
  arrive(700)
  await settle()
  await arrive(900)
  expect([tries, stop.reason]).toEqual([3, undefined])
})

test('a ledger that does not answer ends the call as a fault of the gateway', async () => {
  const { arrive, stop } = scene({ extend: () => Promise.reject(new Refusal('storage_away', 'x')) })
  await expect(arrive(5_000)!).rejects.toThrow('storage_away')
  expect(stop.reason).toMatchObject({ outcome: 'gateway_fault', refusal: { code: 'storage_away' } })
})

test('a call that holds its highest possible cost reserves nothing more', () => {
  const { reservations, exchange, extensions } = scene()
  const { settlement, ...rest } = exchange
  const whole = { ...rest, settlement: { mayHaveHold: true } } as unknown as Exchange
  reservations.begin({ amount: nanos(1n) } as Hold, whole)
  expect([reservations.cover(whole), whole.settlement.reservation, extensions]).toEqual([undefined, undefined, []])
  expect(settlement.reservation).toBeDefined()
})

describe('an answer in pieces larger than a slice', () => {
  test('is remembered for an hour, because it could not be stopped in time', async () => {
    const { arrive, isLarge, pass } = scene({ extend: refusing })
    await expect(arrive(9_000)!).rejects.toThrow('balance_too_low')
    expect(isLarge()).toBe(true)
    pass(3_600_000)
    expect(isLarge()).toBe(false)
  })

  test('is not one whose last piece was small', async () => {
    const { arrive, isLarge } = scene({ extend: refusing })
    await expect(arrive(801)!).rejects.toThrow('balance_too_low')
    expect(isLarge()).toBe(false)
  })

  test('is not one that ended because the ledger did not answer', async () => {
    const { arrive, isLarge } = scene({ extend: () => Promise.reject(new Refusal('storage_away', 'x')) })
    await expect(arrive(9_000)!).rejects.toThrow('storage_away')
    expect(isLarge()).toBe(false)
  })
})
