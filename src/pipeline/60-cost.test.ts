// The cost of a call from its meter: the served class, and the lines of the bill.

import { expect, test } from 'bun:test'
import { parsePrice } from '../base/money/price.ts'
import type { CallPrice } from '../billing/price.ts'
import { cost } from './60-cost.ts'
import type { Exchange } from './exchange.ts'
import { newCallParts } from './exchange.ts'
import { newMeter, noteFrame, noteUsage, noteWait } from './settle/usage-meter.ts'

const fail = (problem: string): never => {
  throw new Error(problem)
}
const cases = [{ class: 'priority', input: '2', output: '4' }]
const price = parsePrice({ input: '1', output: '2', cacheRead: '0.10', cases }, fail)
const priced: CallPrice = { price, version: 7, perMille: 1_500n, serviceClass: 'priority', atMs: 0 }

function exchangeOf(terms: object | undefined) {
  const meter = { ...newMeter(), forwarded: true, outputBytes: 40, content: true }
  const attempt = { candidate: terms && { upstreamProtocol: {}, ...terms }, meter }
  return {
    exchange: {
      ...newCallParts(),
      attempt,
      call: { inputBytes: 400 },
      attempts: [{}],
      lifetime: {},
      timings: { nowMs: () => 0 },
    } as unknown as Exchange,
    meter,
  }
}

const completed = { outcome: 'completed', status: 200 } as const

test('a bill has the rates of the class that was served, if that class is cheaper than the requested one', () => {
  const { exchange, meter } = exchangeOf({ price: priced })
  noteUsage(meter, { input: 10, cacheRead: 4, output: 3 })
  const lines = (input: bigint, output: bigint): unknown => [
    { what: 'input', count: 10, rate: input },
    { what: 'cacheRead', count: 4, rate: 100_000_000n },
    { what: 'output', count: 3, rate: output },
  ]
  const requested: unknown = cost(exchange, completed)
  expect(requested).toMatchObject({ amount: 48_600n, lines: lines(2_000_000_000n, 4_000_000_000n), rule: 'completed' })
  noteFrame(meter, { kind: 'usage', outputBytes: 0, finishes: 0, serviceClass: 'default' }, 1)
  const served: unknown = cost(exchange, completed)
  expect(served).toMatchObject({ amount: 24_600n, lines: lines(1_000_000_000n, 2_000_000_000n), source: 'reported' })
})

test('a class that was not sent upstream is not charged', () => {
  const { exchange, meter } = exchangeOf({ price: priced })
  const losses = { codes: ['service_tier'] }
  Object.assign(exchange.attempt, { translation: { source: { notes: { losses } } } })
  noteUsage(meter, { input: 10, output: 3 })
  expect(cost(exchange, completed).amount).toBe(24_000n as never)
})

test('a cheaper class that was not sent upstream makes a call no cheaper', () => {
  const cheap = parsePrice({ input: '2', output: '4', cases: [{ class: 'flex', input: '1', output: '2' }] }, fail)
  const { exchange, meter } = exchangeOf({ price: { ...priced, price: cheap, serviceClass: 'flex' } })
  noteUsage(meter, { input: 10, output: 3 })
  expect(cost(exchange, completed).amount).toBe(24_000n as never)
  const losses = { codes: ['service_tier'] }
  Object.assign(exchange.attempt, { translation: { source: { notes: { losses } } } })
  expect(cost(exchange, completed).amount).toBe(48_000n as never)
})

test('cache writes of an unknown time are those of an hour only if the upstream was asked for one', () => {
  const { exchange, meter } = exchangeOf({ price: priced, upstreamProtocol: { name: 'd' } })
  noteUsage(meter, { input: 10, cacheWrite: 7, untimedWrites: 5, output: 3 })
  const usageFor = (call: object) => {
    Object.assign(exchange, { call: { inputBytes: 400, ...call } })
    return cost(exchange, completed).usage
  }
  const asked = { dialect: 'd', cachesForHour: true }
  expect(usageFor(asked)).toEqual({ input: 10, cacheWrite: 2, cacheWrite1h: 5, output: 3 })
  for (const call of [{ dialect: 'd' }, { ...asked, dialect: 'translated' }])
    expect(usageFor(call)).toEqual({ input: 10, cacheWrite: 7, output: 3 })
})

test('usage that was not reported is estimated from bytes', () => {
  const { exchange } = exchangeOf({ price: priced })
  expect(cost(exchange, completed)).toMatchObject({ usage: { input: 100, output: 10 }, source: 'estimated' })
})

test('a failed call is free, whatever its tools did', () => {
  const withFee = { ...priced, price: parsePrice({ input: '1', output: '2', perCodeSession: '0.03' }, fail) }
  const { exchange, meter } = exchangeOf({
    price: withFee,
    upstreamProtocol: { name: 'd' },
    provider: { included: [] },
  })
  const services = [{ name: 'code_execution', unit: 'codeSessions' }]
  const timings = { nowMs: () => 0 }
  Object.assign(exchange, { call: { inputBytes: 400, dialect: 'd', services }, startedMs: 0, timings })
  meter.uses.codeSessions = 1
  expect(cost(exchange, completed).usage.codeSessions).toBe(1)
  expect(cost(exchange, { outcome: 'upstream_failed', status: 502 })).toMatchObject({ amount: 0n, source: 'none' })
})

test('an estimate never exceeds the hold', () => {
  const { exchange, meter } = exchangeOf({ price: priced })
  const size = { inputTokensMax: 90, outputTokensMax: 4, choices: 2, searchesMax: 0 }
  Object.assign(exchange, { hold: {} })
  Object.assign(exchange.attempt.candidate!, { size })
  expect(cost(exchange, completed)).toMatchObject({ usage: { input: 90, output: 8 }, source: 'estimated' })
  Object.assign(exchange, { hold: { inputTokens: 70 } })
  Object.assign(exchange.attempt.candidate!, { size: { ...size, thoughtTokensMax: 1 } })
  expect(cost(exchange, completed)).toMatchObject({ usage: { input: 70, output: 10 } })
  noteUsage(meter, { input: 500, output: 50 })
  expect(cost(exchange, completed)).toMatchObject({ usage: { input: 500, output: 50 }, source: 'reported' })
})

test('a provider that was asked to search, answered, and does not report searches has searched once', () => {
  const searchPrice = { ...priced, price: parsePrice({ input: '1', output: '2', perSearch: '0.01' }, fail) }
  const { exchange, meter } = exchangeOf({ price: { ...searchPrice, serviceClass: undefined } })
  Object.assign(exchange, { call: { inputBytes: 400, searchesMax: 10 } })
  noteUsage(meter, { input: 0, output: 3 })
  const once = { what: 'search', count: 1, rate: 10_000_000_000_000n }
  expect(cost(exchange, completed).lines as unknown).toContainEqual(once)
  noteUsage(meter, { input: 0, output: 3, searches: 4 })
  expect(cost(exchange, completed).lines as unknown).toContainEqual({ ...once, count: 4 })
  // As after an attempt that failed.
  Object.assign(exchange.attempt, { meter: { ...newMeter(), forwarded: true } })
  expect(cost(exchange, { outcome: 'refused', status: 400 }).lines).toEqual([])
})

test('where usage reports searches, no reported search means none', () => {
  const searchPrice = { ...priced, price: parsePrice({ input: '1', output: '2', perSearch: '0.01' }, fail) }
  const upstreamProtocol = { tellsSearches: true }
  const { exchange, meter } = exchangeOf({
    price: { ...searchPrice, serviceClass: undefined },
    upstreamProtocol: upstreamProtocol,
  })
  Object.assign(exchange, { call: { inputBytes: 400, searchesMax: 10 } })
  expect(cost(exchange, completed)).toMatchObject({ source: 'estimated', usage: { searches: 1 } })
  noteUsage(meter, { input: 0, output: 3 })
  expect(cost(exchange, completed).usage.searches).toBeUndefined()
})

test('a search that the translation dropped is not charged', () => {
  const searchPrice = { ...priced, price: parsePrice({ input: '1', output: '2', perSearch: '0.01' }, fail) }
  const { exchange, meter } = exchangeOf({ price: { ...searchPrice, serviceClass: undefined } })
  const translation = { source: { notes: { losses: { codes: ['web_search'] } } } }
  Object.assign(exchange, { call: { inputBytes: 400, searchesMax: 10 } })
  Object.assign(exchange.attempt, { translation })
  noteUsage(meter, { input: 0, output: 3 })
  expect(cost(exchange, completed).usage.searches).toBeUndefined()
})

test('a search that one event of a stream reports stays when later events omit it', () => {
  const { exchange, meter } = exchangeOf({ price: priced })
  noteUsage(meter, { input: 10, output: 3, searches: 2 })
  noteUsage(meter, { input: 10, output: 5 })
  expect(cost(exchange, completed).usage).toEqual({ input: 10, output: 5, searches: 2 })
  noteUsage(meter, { input: 10, output: 5, searches: 3 })
  expect(cost(exchange, completed).usage).toMatchObject({ searches: 3 })
})

test('a call that found no route, or is free, costs nothing', () => {
  for (const route of [undefined, { price: undefined }]) {
    const found: unknown = cost(exchangeOf(route).exchange, completed)
    expect(found).toMatchObject({ amount: 0n, lines: [] })
  }
})

test('images of the input that are not reported are estimated at their own rate', () => {
  const imagePrice = parsePrice({ input: '5', inputImage: '10', output: '40' }, fail)
  const { exchange } = exchangeOf({ price: { ...priced, price: imagePrice } })
  Object.assign(exchange, { call: { inputBytes: 8_400, imageInputBytes: 8_000 } })
  const { usage, lines } = cost(exchange, completed)
  expect(usage).toMatchObject({ input: 100, inputImage: 2_000 })
  expect(lines).toContainEqual({ what: 'inputImage', count: 2_000, rate: 10_000_000_000n } as never)
})

test('images that are being made when a caller leaves are charged like those that are reported', () => {
  const imagePrice = parsePrice({ input: '5', output: '40' }, fail)
  const { exchange, meter } = exchangeOf({ price: { ...priced, price: imagePrice, serviceClass: undefined } })
  const asked = { stream: true, units: { images: 3 }, imageOrder: 'at_once', outputTokensGuess: 3 * 408 }
  Object.assign(exchange, { call: { inputBytes: 400, outputGuessKind: 'outputImage', ...asked } })
  const usage = { input: 9, output: 0, outputImage: 500 }
  noteFrame(meter, { kind: 'closing', outputBytes: 1, finishes: 1, usage, uses: { images: 1 } }, 1)
  const left: unknown = cost(exchange, { outcome: 'client_left', status: 499 })
  expect(left).toMatchObject({ rule: 'left_reading', source: 'estimated', usage: { input: 9, outputImage: 1_500 } })
  expect(cost(exchange, completed)).toMatchObject({ source: 'reported', usage: { input: 9, outputImage: 500 } })
})

test('returned text counts as seconds of speech, however short the file claims to be', () => {
  const { exchange, meter } = exchangeOf({ price: priced })
  const audioCall = (seconds: number, secondsMax = seconds): object => ({
    inputBytes: 400,
    units: { seconds: secondsMax },
    unitsGuess: { seconds },
    secondTextBytes: 20,
  })
  Object.assign(exchange, { call: audioCall(1) })
  meter.outputBytes = 40_000
  expect(cost(exchange, completed).usage.seconds).toBe(534)
  // The longest possible length of the file bounds slow speech only.
  Object.assign(exchange, { call: audioCall(1, 1_000) })
  expect(cost(exchange, completed).usage.seconds).toBe(1_000)
  Object.assign(exchange, { call: audioCall(3_000) })
  expect(cost(exchange, completed).usage.seconds).toBe(3_000)
  // Twenty characters of three bytes per second.
  Object.assign(exchange, { call: audioCall(10) })
  meter.outputBytes = 600
  expect(cost(exchange, completed).usage.seconds).toBe(10)
})

const waits: readonly (readonly [string, readonly (readonly [number, number])[], string])[] = [
  ['no wait', [], 'upstream_broke_off'],
  ['one short wait', [[98_000, 98_500]], 'upstream_broke_off'],
  ['a wait of two seconds', [[97_000, 99_000]], 'upstream_broke_off_slow'],
  [
    'several short waits',
    [
      [96_000, 96_600],
      [98_000, 98_600],
    ],
    'upstream_broke_off_slow',
  ],
  ['a long wait, long ago', [[1_000, 9_000]], 'upstream_broke_off'],
  [
    'a long wait, long ago, and a short one',
    [
      [1_000, 9_000],
      [98_000, 98_500],
    ],
    'upstream_broke_off',
  ],
]

test.each(waits)(
  'the charge for an upstream that breaks off after its caller kept it waiting: %s',
  (_name, spans, rule) => {
    const { exchange, meter } = exchangeOf({ price: priced })
    for (const [from, until] of spans) noteWait(meter, from, until)
    Object.assign(exchange, { settlement: { endedMs: 100_000 }, timings: { nowMs: () => 100_000 } })
    const { amount, ...charged } = cost(exchange, { outcome: 'upstream_failed', status: 502 })
    expect(charged.rule).toBe(rule)
    expect(amount > 0n).toBe(rule === 'upstream_broke_off_slow')
  },
)
