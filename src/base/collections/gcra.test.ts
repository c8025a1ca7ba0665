// Compares the arithmetic of limits with a model in bigints that remembers every take, on a clock that the test moves.

import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import type { MeterTake, Rate } from './gcra.ts'
import { AMOUNT_MAX, convertUsed, RateMeter, rateOf, resetMsOf, spansMs, waitMsFor } from './gcra.ts'

interface Entry {
  readonly tick: number
  /** The corrected count of a corrected take, and the taken count of another. */
  count: number
}

/** The used units if each take had had its corrected count from the beginning. */
function usedUnits(
  history: readonly Entry[],
  { amount, unitsEach, tick: now }: Rate & { readonly tick: number },
): bigint {
  let usedNow = 0n
  let tick = history[0]?.tick ?? now
  const refill = (until: number): void => {
    usedNow -= BigInt(until - tick) * BigInt(amount)
    if (usedNow < 0n) usedNow = 0n
    tick = until
  }
  for (const entry of history) {
    refill(entry.tick)
    usedNow += BigInt(entry.count) * BigInt(unitsEach)
  }
  refill(now)
  return usedNow
}

const amounts = fc.oneof(fc.integer({ min: 1, max: 100 }), fc.constantFrom(300, 40_000, 60_001, 1_000_000, AMOUNT_MAX))
const spans = fc.constantFrom(spansMs.minute, spansMs.day)
const rates = fc.tuple(amounts, spans).map(([amount, spanMs]) => rateOf(amount, spanMs))
/** Bursts, short waits, waits of about one interval, and long waits, in whole and fractional milliseconds. */
const wait = fc.oneof(
  fc.constant(0),
  fc.integer({ min: 0, max: 3 }),
  fc.double({ min: 0, max: 2, noNaN: true }),
  fc.integer({ min: 0, max: 70_000 }),
  fc.double({ min: 0, max: 2_000_000, noNaN: true }),
)
const starts = fc.double({ min: 0, max: 1e9, noNaN: true })

/** The largest excess of any window over its bound of B + r·W, in units; not positive if the bound holds. */
function excess(taken: readonly Entry[], { amount, unitsEach }: Rate): bigint {
  let worst = -1n
  for (let first = 0; first < taken.length; first++) {
    let sum = 0n
    for (let last = first; last < taken.length; last++) {
      sum += BigInt(taken[last]!.count) * BigInt(unitsEach)
      const bound = BigInt(amount) * BigInt(unitsEach + taken[last]!.tick - taken[first]!.tick)
      if (sum - bound > worst) worst = sum - bound
    }
  }
  return worst
}

describe('a rate meter', () => {
  test('equals the model at each step, and no window exceeds B + r·W', () => {
    const step = fc.record({ wait, share: fc.double({ min: 0, max: 1, noNaN: true }) })
    fc.assert(
      fc.property(rates, starts, fc.array(step, { maxLength: 60 }), (rate, start, steps) => {
        const { amount } = rate
        const rateMeter = new RateMeter(rate)
        const taken: Entry[] = []
        let ms = start
        for (const { wait: gap, share } of steps) {
          ms += gap
          const tick = Math.floor(ms / rate.tickMs)
          const count = Math.max(1, Math.ceil((share * amount) / 3))
          rateMeter.refill(ms)
          const usedNow = usedUnits(taken, { ...rate, tick })
          expect(BigInt(rateMeter.used)).toBe(usedNow)
          const fits = usedNow + BigInt(count) * BigInt(rate.unitsEach) <= BigInt(rate.burstUnits)
          expect(rateMeter.fits(count)).toBe(fits)
          expect(rateMeter.waitMs(count) === 0).toBe(fits)
          if (!fits) continue
          rateMeter.take(count)
          taken.push({ tick, count })
          expect(rateMeter.remaining).toBe(
            Number((BigInt(rate.burstUnits) - BigInt(rateMeter.used)) / BigInt(rate.unitsEach)),
          )
        }
        expect(excess(taken, rate)).toBeLessThanOrEqual(0n)
      }),
      { numRuns: 300 },
    )
  })

  test('admits a refused take after exactly the wait that it returned', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 300 }), spans, fc.nat(1_000_000), (amount, spanMs, startMs) => {
        const rateMeter = new RateMeter(rateOf(amount, spanMs))
        const { tickMs } = rateMeter.rate
        const from = startMs - (startMs % tickMs)
        rateMeter.refill(from)
        rateMeter.take(amount)
        const waitMs = rateMeter.waitMs(1)
        expect(waitMs).toBeLessThanOrEqual(spanMs / amount + tickMs)
        rateMeter.refill(from + waitMs - tickMs)
        expect(rateMeter.fits(1)).toBe(false)
        rateMeter.refill(from + waitMs)
        expect(rateMeter.fits(1)).toBe(true)
      }),
    )
  })

  test('admits no more than its amount in one fractional millisecond', () => {
    const rateMeter = new RateMeter(rateOf(100_000, spansMs.minute))
    let admitted = 0
    for (let call = 0; call < 150_000; call++) {
      rateMeter.refill(7.9)
      if (!rateMeter.fits(1)) continue
      rateMeter.take(1)
      admitted++
    }
    expect(admitted).toBe(100_000)
  })

  test('is empty after its reset time, and not before', () => {
    const rateMeter = new RateMeter(rateOf(7, spansMs.minute))
    rateMeter.take(5)
    const { resetMs } = rateMeter
    rateMeter.refill(resetMs - 1)
    expect(rateMeter.used).toBeGreaterThan(0)
    rateMeter.refill(resetMs)
    expect([rateMeter.used, rateMeter.remaining]).toEqual([0, 7])
  })

  test('refills only for new time, however the clock jumps', () => {
    const jumps = fc.array(fc.integer({ min: -700_000, max: 700_000 }), { maxLength: 50 })
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 50 }), jumps, (amount, moves) => {
        const rateMeter = new RateMeter(rateOf(amount, spansMs.minute))
        const taken: Entry[] = []
        let [ms, latestMs] = [10_000_000, 0]
        for (const move of moves) {
          ms = Math.max(0, ms + move)
          latestMs = Math.max(latestMs, ms)
          rateMeter.refill(ms)
          while (rateMeter.fits(1)) {
            rateMeter.take(1)
            taken.push({ tick: latestMs, count: 1 })
          }
        }
        expect(excess(taken, rateMeter.rate)).toBeLessThanOrEqual(0n)
      }),
    )
  })

  test('uses no units when the clock goes back, so that no call is refused because of it', () => {
    const meter = new RateMeter(rateOf(2, spansMs.minute))
    meter.refill(10_000_000)
    meter.take(1)
    meter.refill(9_000_000)
    expect([meter.remaining, meter.fits(1)]).toEqual([1, true])
    meter.take(1)
    meter.refill(10_000_000)
    expect(meter.remaining).toBe(0)
  })

  test('refuses an invalid rate', () => {
    for (const amount of [0, -1, 1.5, Number.NaN, Infinity, AMOUNT_MAX + 1]) {
      expect(() => rateOf(amount, spansMs.minute)).toThrow('positive integer')
    }
  })
})

describe('a correction', () => {
  const step = fc.record({
    wait,
    take: fc.double({ min: 0, max: 1, noNaN: true }),
    /** Which open take is corrected, and to which share of its count. */
    which: fc.nat(5),
    used: fc.double({ min: 0, max: 1, noNaN: true }),
  })

  test('never refunds more than is unfilled, so that the real use stays within B + r·W in every window', () => {
    fc.assert(
      fc.property(rates, fc.array(step, { maxLength: 60 }), (rate, steps) => {
        const { amount } = rate
        const rateMeter = new RateMeter(rate)
        const history: Entry[] = []
        const open: { readonly entry: Entry; readonly taken: MeterTake }[] = []
        let ms = 0
        for (const { wait: gap, take, which, used } of steps) {
          ms += gap
          rateMeter.refill(ms)
          const tick = Math.floor(ms / rate.tickMs)
          const [corrected] = open.splice(which, 1)
          if (corrected !== undefined) {
            corrected.entry.count = Math.floor(corrected.entry.count * used)
            rateMeter.correct(corrected.taken, corrected.entry.count)
          }
          expect(BigInt(rateMeter.used)).toBeGreaterThanOrEqual(usedUnits(history, { ...rate, tick }))
          const count = Math.max(1, Math.floor(take * amount))
          if (!rateMeter.fits(count)) continue
          const entry = { tick, count }
          history.push(entry)
          open.push({ entry, taken: rateMeter.take(count) })
        }
        expect(excess(history, rate)).toBeLessThanOrEqual(0n)
      }),
      { numRuns: 500 },
    )
  })

  test('refunds everything while nothing is refilled', () => {
    const rateMeter = new RateMeter(rateOf(100, spansMs.minute))
    const [first, second] = [rateMeter.take(60), rateMeter.take(40)]
    rateMeter.correct(first, 10)
    rateMeter.correct(second, 0)
    expect(rateMeter.remaining).toBe(90)
  })

  test('refunds nothing that time has refilled', () => {
    const rateMeter = new RateMeter(rateOf(100, spansMs.minute))
    const early = rateMeter.take(100)
    rateMeter.refill(spansMs.minute)
    rateMeter.take(100)
    rateMeter.correct(early, 0)
    expect(rateMeter.remaining).toBe(0)
  })

  test('of one take does not change the position of another', () => {
    const rateMeter = new RateMeter(rateOf(100, spansMs.minute))
    const [first, second] = [rateMeter.take(50), rateMeter.take(50)]
    rateMeter.correct(first, 0)
    rateMeter.refill(spansMs.minute / 2) // refills the units of the second take
    rateMeter.take(100)
    rateMeter.correct(second, 0)
    expect(rateMeter.remaining).toBe(0)
  })

  test('to a higher count is used, also beyond the burst, and refilled before anything else fits', () => {
    const rateMeter = new RateMeter(rateOf(100, spansMs.minute))
    rateMeter.correct(rateMeter.take(100), 250)
    expect([rateMeter.remaining, rateMeter.fits(1), rateMeter.resetMs]).toEqual([0, false, 150_000])
    rateMeter.refill(90_600)
    expect(rateMeter.fits(1)).toBe(true)
  })

  test('finds its position however much was ever refunded', () => {
    const rateMeter = new RateMeter(rateOf(AMOUNT_MAX, spansMs.minute))
    for (let ms = 0; ms < 100_000; ms += 1_000) {
      rateMeter.refill(ms)
      for (let round = 0; round < 2; round++) rateMeter.correct(rateMeter.take(AMOUNT_MAX / 2), 0)
      expect(rateMeter.used).toBe(0)
    }
  })
})

describe('a change of the amount', () => {
  const perMinute = (amount: number): Rate => rateOf(amount, spansMs.minute)

  test('downwards keeps the time of the refill: a used-up minute stays used for a minute', () => {
    const usedNow = convertUsed(perMinute(6), perMinute(60).burstUnits, perMinute(60))
    expect([waitMsFor(perMinute(6), usedNow, 1), resetMsOf(perMinute(6), usedNow)]).toEqual([10_000, spansMs.minute])
  })

  test('upwards has an immediate effect', () => {
    expect(waitMsFor(perMinute(600), convertUsed(perMinute(600), perMinute(6).burstUnits, perMinute(6)), 1)).toBe(100)
  })

  test('back and forth refunds nothing', () => {
    let usedNow = perMinute(7).burstUnits
    for (let round = 0; round < 50; round++) {
      usedNow = convertUsed(perMinute(11), usedNow, perMinute(7))
      expect(waitMsFor(perMinute(11), usedNow, 1)).toBeGreaterThan(0)
      usedNow = convertUsed(perMinute(7), usedNow, perMinute(11))
      expect(usedNow).toBeGreaterThanOrEqual(perMinute(7).burstUnits)
    }
    expect(waitMsFor(perMinute(7), usedNow, 1)).toBeCloseTo(spansMs.minute / 7, -1)
  })

  test('refunds nothing that was taken before it', () => {
    const rateMeter = new RateMeter(perMinute(100))
    const taken = rateMeter.take(100)
    rateMeter.change(perMinute(200))
    rateMeter.correct(taken, 0)
    expect(rateMeter.remaining).toBe(0)
  })
})
