// Tests bills and bounds: exact, rounded up once, and a bill is never above its bound.

import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import type { Nanos, NanosPerMillion } from '../base/money/money.ts'
import type { Price } from '../base/money/price.ts'
import { fees, parsePrice } from '../base/money/price.ts'
import type { Bucket, Usage } from '../base/money/usage.ts'
import { buckets, inputBuckets, inputTokens, outputBuckets, units } from '../base/money/usage.ts'
import type { CallPrice, CallPriceOrFree, CallSize } from './price.ts'
import {
  affordableOutput,
  computeBill,
  estimateTokens,
  hasBasis,
  hasClass,
  inputBound,
  normalizeServiceClass,
  upperBound,
} from './price.ts'

const noon = Date.UTC(2026, 10, 15, 12)

function priceOf(fields: object): Price {
  return parsePrice({ input: '0.15', output: '0.60', ...fields }, problem => {
    throw new Error(problem)
  })
}

function pricedAs(fields: object, rest: Partial<CallPrice> = {}): CallPrice {
  return { price: priceOf(fields), version: 1, perMille: 1_000n, serviceClass: undefined, atMs: noon, ...rest }
}

const price = pricedAs({ cacheRead: '0.075' })

/** The cost as a plain bigint, so that it can be compared with one. */
const cost = (used: Partial<Usage>, each: CallPriceOrFree, served?: string): bigint =>
  computeBill({ input: 0, output: 0, ...used }, each, served).amount
const bound = (size: CallSize, each: CallPriceOrFree): bigint => upperBound(size, each)

describe('a bill', () => {
  test('is each kind of token at its own rate', () => {
    expect(cost({ input: 1 }, price)).toBe(150n)
    expect(cost({ cacheRead: 1 }, price)).toBe(75n)
    expect(cost({ output: 1 }, price)).toBe(600n)
    expect(cost({ input: 10, cacheRead: 20, output: 30 }, price)).toBe(1_500n + 1_500n + 18_000n)
  })

  test('lists its lines, and they add up to its amount', () => {
    const fees = pricedAs({ perRequest: '0.005', perSearch: '0.01' }, { perMille: 1_500n })
    const { amount, lines } = computeBill({ input: 10, cacheRead: 2, output: 3, searches: 4 }, fees)
    const found: unknown = lines
    expect(found).toEqual([
      { what: 'input', count: 10, rate: 150_000_000n },
      { what: 'cacheRead', count: 2, rate: 150_000_000n },
      { what: 'output', count: 3, rate: 600_000_000n },
      { what: 'search', count: 4, rate: 10_000_000_000_000n },
      { what: 'request', count: 1, rate: 5_000_000_000_000n },
    ])
    const sum = lines.reduce((all, { count, rate }) => all + BigInt(count) * rate, 0n)
    expect<bigint>(amount).toBe((sum * 1_500n + 999_999_999n) / 1_000_000_000n)
  })

  test('without usage is zero, without a fee, and so is that of a free provider', () => {
    expect(cost({}, pricedAs({ perRequest: '1' }))).toBe(0n)
    expect(cost({ input: 1e9, cacheRead: 1e9, output: 1e9 }, undefined)).toBe(0n)
  })

  test('is rounded up once as a whole', () => {
    const tiny = pricedAs({ input: '0.000000001', output: '0.000000001' })
    expect(cost({ input: 1 }, tiny)).toBe(1n)
    expect(cost({ input: 400_000, cacheRead: 300_000, output: 300_000 }, tiny)).toBe(1n)
    expect(cost({ input: 400_000, cacheRead: 300_000, output: 300_001 }, tiny)).toBe(2n)
  })

  test('is multiplied by the tier before it is rounded', () => {
    const half = { ...price, perMille: 500n }
    expect(cost({ input: 1 }, half)).toBe(75n)
    expect(cost({ cacheRead: 1 }, half)).toBe(38n)
    expect(cost({ input: 1, cacheRead: 1 }, half)).toBe(113n) // 112.5, and not 75 + 38
    expect(cost({ input: 1, output: 1 }, { ...price, perMille: 0n })).toBe(0n)
  })

  test('is exact where floating-point numbers are not', () => {
    expect(cost({ input: 1_200_001 }, pricedAs({ input: '15' }))).toBe(18_000_015_000n)
    expect(cost({ input: 999_999_999 }, pricedAs({ input: '0.001234567' }))).toBe(1_234_566_999n)
  })
})

test('a bucket without a rate has the rate of its neighbour, so that an omission makes nothing free', () => {
  const rows: readonly (readonly [Bucket, object, bigint])[] = [
    ...inputBuckets.map(bucket => [bucket, {}, 150n] as const),
    ...outputBuckets.map(bucket => [bucket, {}, 600n] as const),
    ...buckets.map(bucket => [bucket, { [bucket]: '7' }, 7_000n] as const),
    ['cacheWrite1h', { cacheWrite: '2' }, 2_000n],
    ['cacheReadAudio', { inputAudio: '2', cacheRead: '0.10' }, 2_000n],
    ['cacheReadAudio', { cacheRead: '0.10' }, 100n],
    ['cacheReadImage', { inputImage: '2', cacheRead: '0.10' }, 2_000n],
    ['cacheReadImage', { cacheRead: '0.10' }, 100n],
  ]
  for (const [bucket, fields, expected] of rows) {
    expect([bucket, cost({ [bucket]: 1 }, pricedAs(fields))]).toEqual([bucket, expected])
  }
})

describe('a case', () => {
  test('of long input counts all input buckets together, and applies to the whole call', () => {
    const tiers = pricedAs({
      cases: [
        { inputAbove: 100, input: '1', output: '2' },
        { inputAbove: 200, input: '4' },
      ],
    })
    expect(cost({ input: 60, cacheRead: 40, output: 1 }, tiers)).toBe(100n * 150n + 600n)
    expect(cost({ input: 60, cacheRead: 41, output: 1 }, tiers)).toBe(101n * 1_000n + 2_000n)
    expect(cost({ input: 201, output: 1 }, tiers)).toBe(201n * 4_000n + 2_000n)
  })

  test('of a service class applies to calls that asked for it', () => {
    const classes = {
      cases: [
        { class: 'priority', input: '1', output: '2' },
        { class: 'flex', input: '0.05' },
      ],
    }
    expect(cost({ input: 1 }, pricedAs(classes))).toBe(150n)
    expect(cost({ input: 1 }, pricedAs(classes, { serviceClass: 'priority' }))).toBe(1_000n)
    expect(cost({ input: 1 }, pricedAs(classes, { serviceClass: 'flex' }))).toBe(50n)
    expect(cost({ input: 1 }, pricedAs(classes, { serviceClass: 'batch' }))).toBe(150n)
  })

  test('of hours may span midnight, and the time of admission decides', () => {
    const timeAt = (hour: number, minute: number): number => Date.UTC(2026, 10, 15, hour, minute)
    const night = { cases: [{ hours: ['16:30', '00:30'], input: '0.05' }] }
    const day = { cases: [{ hours: ['08:00', '16:00'], input: '0.05' }] }
    const rows = [
      [night, 16, 29, 150n],
      [night, 16, 30, 50n],
      [night, 0, 29, 50n],
      [night, 0, 30, 150n],
      [day, 7, 59, 150n],
      [day, 8, 0, 50n],
      [day, 15, 59, 50n],
      [day, 16, 0, 150n],
    ] as const
    for (const [fields, hour, minute, expected] of rows) {
      const found = cost({ input: 1 }, pricedAs(fields, { atMs: timeAt(hour, minute) }))
      expect([hour, minute, found]).toEqual([hour, minute, expected])
    }
  })

  test('of a future day begins on that day', () => {
    const futureCase = { cases: [{ from: '2027-01-01', input: '1' }] }
    expect(cost({ input: 1 }, pricedAs(futureCase, { atMs: Date.UTC(2027, 0, 1) - 1 }))).toBe(150n)
    expect(cost({ input: 1 }, pricedAs(futureCase, { atMs: Date.UTC(2027, 0, 1) }))).toBe(1_000n)
  })

  test('that is listed later wins, and does not change rates that it does not name', () => {
    const both = {
      cases: [
        { inputAbove: 0, input: '1', output: '2' },
        { class: 'flex', input: '3' },
      ],
    }
    expect(cost({ input: 1, output: 1 }, pricedAs(both, { serviceClass: 'flex' }))).toBe(3_000n + 2_000n)
  })
})

describe('the class of service', () => {
  const priority = { cases: [{ class: 'priority', input: '1' }] }

  test('has a price if it is standard, never more expensive, or named', () => {
    for (const name of [undefined, 'auto', 'default', 'standard', 'on_demand', 'flex', 'batch']) {
      expect([name, hasClass(priceOf({}), name)]).toEqual([name, true])
    }
    expect(hasClass(priceOf({}), 'priority')).toBe(false)
    expect(hasClass(priceOf(priority), 'priority')).toBe(true)
    expect(hasClass(priceOf(priority), 'fast')).toBe(false)
    expect([normalizeServiceClass('default'), normalizeServiceClass('flex')]).toEqual([undefined, 'flex'])
  })

  test('that was served can only make a bill smaller', () => {
    const priorityCall = pricedAs(priority, { serviceClass: 'priority' })
    expect(cost({ input: 1 }, priorityCall, 'priority')).toBe(1_000n)
    expect(cost({ input: 1 }, priorityCall, 'default')).toBe(150n)
    expect(cost({ input: 1 }, priorityCall, 'never heard of')).toBe(1_000n)
    expect(cost({ input: 1 }, pricedAs(priority), 'priority')).toBe(150n)
    const flex = { cases: [{ class: 'flex', input: '0.05' }] }
    expect(cost({ input: 1 }, pricedAs(flex, { serviceClass: 'flex' }), 'default')).toBe(50n)
  })
})

describe('a unit', () => {
  const speechPrice = { input: '0', output: '0', perCharacter: '0.000015' }

  test('is billed at its own rate, and only where the price has one', () => {
    const each = pricedAs({ ...speechPrice, perImage: '0.04', perSecond: '0.0001' })
    const used = { input: 0, output: 0, images: 2, characters: 3, seconds: 5 }
    const found = computeBill(used, each).lines.map(line => `${line.count} ${line.what}`)
    expect(found).toEqual(['2 image', '3 character', '5 second'])
    expect(cost(used, each)).toBe(80_000_000n + 45_000n + 500_000n)
    expect(computeBill(used, pricedAs({})).lines).toEqual([])
  })

  test('is no basis for a call that is counted in other units', () => {
    const { price } = pricedAs(speechPrice)
    expect([hasBasis(price, { characters: 1 }), hasBasis(price, { images: 1 }), hasBasis(price, undefined)]).toEqual([
      ...[true, false, false],
    ])
    expect(hasBasis(pricedAs({}).price, undefined)).toBe(true)
  })
})

const rate = fc.bigInt(0n, 1_000_000_000_000n).map(value => value as NanosPerMillion)
const fee = fc.bigInt(0n, 1_000_000_000n).map(value => value as Nanos)
const rateFields: Record<string, fc.Arbitrary<bigint>> = {
  ...Object.fromEntries(buckets.map(bucket => [bucket, rate])),
  ...Object.fromEntries(fees.map(name => [name, fee])),
}
const someRates = fc.record(rateFields, { requiredKeys: [] })
const conditions = fc.record(
  {
    class: fc.constantFrom('priority', 'flex'),
    inputAbove: fc.nat(2_000),
    hours: fc.tuple(fc.nat(1_439), fc.nat(1_439)),
    fromMs: fc.integer({ min: noon - 10, max: noon + 10 }),
  },
  { requiredKeys: [] },
)
const prices = fc.record({
  rates: fc.record(rateFields, { requiredKeys: ['input', 'output'] }),
  cases: fc.array(
    fc.tuple(conditions, someRates).map(([when, rates]) => ({ ...when, rates })),
    { maxLength: 3 },
  ),
}) as unknown as fc.Arbitrary<Price>
const callPrices: fc.Arbitrary<CallPrice> = fc.record({
  price: prices,
  version: fc.constant(1),
  perMille: fc.bigInt(0n, 5_000n),
  serviceClass: fc.constantFrom(undefined, 'priority', 'flex'),
  atMs: fc.integer({ min: noon - 10, max: noon + 10 }),
})
const flat = callPrices.map(each => ({ ...each, price: { ...each.price, cases: [] } }))
const counts = Object.fromEntries([...buckets, ...units].map(field => [field, fc.nat(1_000)]))
const usages = fc.record(counts, { requiredKeys: ['input', 'output'] }) as unknown as fc.Arbitrary<Usage>
const fields = [...buckets, ...units] as const

const plus = (one: Usage, other: Usage): Usage =>
  Object.fromEntries(fields.map(field => [field, (one[field] ?? 0) + (other[field] ?? 0)])) as unknown as Usage

const runs = (numRuns: number) => ({ numRuns })

describe('for every usage and price', () => {
  test('the parts of a bill add up, except for one rounding and one fee each', () => {
    fc.assert(
      fc.property(usages, usages, flat, (one, other, each) => {
        const [a, b, both] = [cost(one, each), cost(other, each), cost(plus(one, other), each)]
        const fees = ((each.price.rates.perRequest ?? 0n) * each.perMille) / 1_000n + 1n
        expect(a + b >= both && a + b - both <= fees + 1n).toBe(true)
      }),
      runs(3_000),
    )
  })

  test('more tokens at the same rates never cost less, and no bill is negative', () => {
    fc.assert(
      fc.property(usages, usages, flat, (one, other, each) => {
        const a = cost(one, each)
        expect(a >= 0n && cost(plus(one, other), each) >= a).toBe(true)
      }),
      runs(3_000),
    )
  })

  test('the amount is the exact sum of the lines, rounded up once', () => {
    fc.assert(
      fc.property(usages, callPrices, (used, each) => {
        const { amount, lines } = computeBill(used, each)
        const exact = lines.reduce((sum, line) => sum + BigInt(line.count) * line.rate, 0n) * each.perMille
        expect(amount * 1_000_000_000n >= exact && (amount - 1n) * 1_000_000_000n < exact).toBe(true)
      }),
      runs(4_000),
    )
  })

  test('the multiplier is applied before the rounding', () => {
    fc.assert(
      fc.property(usages, callPrices, fc.bigInt(1n, 10n), (used, each, times) => {
        const [once, often] = [cost(used, each), cost(used, { ...each, perMille: each.perMille * times })]
        expect(often <= once * times && often > (once - 1n) * times).toBe(true)
      }),
      runs(3_000),
    )
  })

  const served = fc.constantFrom(undefined, 'default', 'priority', 'flex', 'fast')
  const spare = fc.constantFrom(0, 0, 1, 500)
  const sizes = fc.record({ choices: fc.integer({ min: 1, max: 4 }), spare })

  /** The smallest size that covers a usage, and a little more. */
  function sizeOf(used: Usage, each: { choices: number; spare: number }): CallSize {
    const outputCount = outputBuckets.reduce((sum, bucket) => sum + (used[bucket] ?? 0), 0)
    return {
      inputTokensMax: inputTokens(used) + each.spare,
      outputTokensMax: Math.ceil(outputCount / each.choices),
      choices: each.choices,
      searchesMax: used.searches ?? 0,
      units: { ...used, searches: 0 },
      thoughtTokensMax: each.spare,
    }
  }

  test('the bound covers every usage within the size, whatever class was served', () => {
    fc.assert(
      fc.property(usages, callPrices, fc.tuple(sizes, served), (used, each, [sizing, named]) => {
        const size = sizeOf(used, sizing)
        const textOnly = !used.inputAudio && !used.inputImage && !used.cacheReadAudio && !used.cacheReadImage
        expect(cost(used, each, named) <= bound({ ...size, textOnly }, each)).toBe(true)
      }),
      runs(6_000),
    )
  })

  test('the affordable cap is the largest whose bound fits', () => {
    fc.assert(
      fc.property(
        usages,
        callPrices,
        fc.tuple(sizes, fc.bigInt(0n, 10_000_000_000n)),
        (used, each, [sizing, funds]) => {
          const size = sizeOf(used, sizing)
          const most = affordableOutput(size, each, funds as Nanos)
          const fits = (outputTokensMax: number): boolean => bound({ ...size, outputTokensMax }, each) <= funds
          if (most > 0) expect(fits(most)).toBe(true)
          expect(most === size.outputTokensMax || !fits(most + 1)).toBe(true)
        },
      ),
      runs(2_000),
    )
  })
})

describe('the bound', () => {
  const size = { inputTokensMax: 100, outputTokensMax: 10, choices: 1, searchesMax: 0 }

  test('counts every byte as a token, and every token that may be written', () => {
    expect(bound(size, price)).toBe(100n * 150n + 10n * 600n)
    expect(bound({ ...size, choices: 3 }, price)).toBe(100n * 150n + 30n * 600n)
    expect<bigint>(inputBound(size, price)).toBe(100n * 150n)
    expect<bigint>(inputBound(size, { ...price, perMille: 3_000n })).toBe(3n * 100n * 150n)
  })

  test('includes the reasoning of every choice beyond its maximum, which no maximum reduces', () => {
    const thinking = { ...size, choices: 2, thoughtTokensMax: 50 }
    expect(bound(thinking, price)).toBe(100n * 150n + 2n * 60n * 600n)
    expect<bigint>(inputBound(thinking, price)).toBe(100n * 150n)
    expect(affordableOutput(thinking, price, (75_000n + 2n * 3n * 600n) as Nanos)).toBe(3)
    expect(affordableOutput(thinking, price, 75_000n as Nanos)).toBe(0)
  })

  test('takes the highest input rate, and the rates of audio and images only if there may be some', () => {
    const audio = pricedAs({ cacheWrite: '0.40', inputAudio: '2' })
    expect(bound(size, audio)).toBe(100n * 2_000n + 6_000n)
    expect(bound({ ...size, textOnly: true }, audio)).toBe(100n * 400n + 6_000n)
  })

  test('includes fees', () => {
    const fees = pricedAs({ perRequest: '0.005', perSearch: '0.01' })
    expect(bound({ ...size, searchesMax: 2 }, fees)).toBe(100n * 150n + 6_000n + 25_000_000n)
    expect<bigint>(inputBound({ ...size, searchesMax: 2 }, fees)).toBe(100n * 150n + 25_000_000n)
  })

  test('includes a case of long input only if the input can reach it', () => {
    const tiers = pricedAs({ cases: [{ inputAbove: 100, output: '2' }] })
    expect(bound(size, tiers)).toBe(100n * 150n + 6_000n)
    expect(bound({ ...size, inputTokensMax: 101 }, tiers)).toBe(101n * 150n + 20_000n)
  })

  test('of a free call is zero, and everything is affordable', () => {
    expect(bound(size, undefined)).toBe(0n)
    expect<bigint>(inputBound(size, undefined)).toBe(0n)
    expect(affordableOutput(size, undefined, 0n as Nanos)).toBe(10)
  })
})

test('an estimate counts four bytes as a token, rounded up', () => {
  expect([0, 1, 8, 401].map(estimateTokens)).toEqual([0, 1, 2, 101])
})
