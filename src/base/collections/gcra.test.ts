// The arithmetic of limits against a model in bigints that remembers everything, on a clock that the test moves.

import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import type { MeterTake, Rate } from './gcra.ts'
import { AMOUNT_MAX, convertUsed, RateMeter, rateOf, resetMsOf, spansMs, waitMsFor } from './gcra.ts'

interface Entry {
  readonly tick: number
  /** The real count of corrected takes, and the taken count of the others. */
  count: number
}

/** The used units if each take had had its real count from the beginning; computed anew each time. */
function owedBy(history: readonly Entry[], { amount, unitsEach, tick: now }: Rate & { readonly tick: number }): bigint {
  let owed = 0n
  let tick = history[0]?.tick ?? now
  const pay = (until: number): void => {
    owed -= BigInt(until - tick) * BigInt(amount)
    if (owed < 0n) owed = 0n
    tick = until
  }
  for (const entry of history) {
    pay(entry.tick)
    owed += BigInt(entry.count) * BigInt(unitsEach)
  }
  pay(now)
  return owed
}

const amounts = fc.oneof(fc.integer({ min: 1, max: 100 }), fc.constantFrom(300, 40_000, 60_001, 1_000_000, AMOUNT_MAX))
const spans = fc.constantFrom(spansMs.minute, spansMs.day)
const rates = fc.tuple(amounts, spans).map(([amount, spanMs]) => rateOf(amount, spanMs))
/** Bursts, short waits, waits of about one interval, and long ones; whole and broken milliseconds. */
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
        const debt = new RateMeter(rate)
        const taken: Entry[] = []
        let ms = start
        for (const { wait: gap, share } of steps) {
          ms += gap
          const tick = Math.floor(ms / rate.tickMs)
          const count = Math.max(1, Math.ceil((share * amount) / 3))
          debt.refill(ms)
          const owed = owedBy(taken, { ...rate, tick })
          expect(BigInt(debt.used)).toBe(owed)
          const fits = owed + BigInt(count) * BigInt(rate.unitsEach) <= BigInt(rate.burstUnits)
          expect(debt.fits(count)).toBe(fits)
          expect(debt.waitMs(count) === 0).toBe(fits)
          if (!fits) continue
          debt.take(count)
          taken.push({ tick, count })
          expect(debt.remaining).toBe(Number((BigInt(rate.burstUnits) - BigInt(debt.used)) / BigInt(rate.unitsEach)))
        }
        expect(excess(taken, rate)).toBeLessThanOrEqual(0n)
      }),
      { numRuns: 300 },
    )
  })

  test('admits a refused take after exactly the wait that it returned', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 300 }), spans, fc.nat(1_000_000), (amount, spanMs, startMs) => {
        const debt = new RateMeter(rateOf(amount, spanMs))
        const { tickMs } = debt.rate
        const from = startMs - (startMs % tickMs)
        debt.refill(from)
        debt.take(amount)
        const waitMs = debt.waitMs(1)
        expect(waitMs).toBeLessThanOrEqual(spanMs / amount + tickMs)
        debt.refill(from + waitMs - tickMs)
        expect(debt.fits(1)).toBe(false)
        debt.refill(from + waitMs)
        expect(debt.fits(1)).toBe(true)
      }),
    )
  })

  test('with fractional milliseconds does not exceed one call a millisecond', () => {
    const debt = new RateMeter(rateOf(100_000, spansMs.minute))
    let admitted = 0
    for (let call = 0; call < 150_000; call++) {
      debt.refill(7.9)
      if (!debt.fits(1)) continue
      debt.take(1)
      admitted++
    }
    expect(admitted).toBe(100_000)
  })

  test('is empty after its reset time, and not before', () => {
    const debt = new RateMeter(rateOf(7, spansMs.minute))
    debt.take(5)
    const { resetMs } = debt
    debt.refill(resetMs - 1)
    expect(debt.used).toBeGreaterThan(0)
    debt.refill(resetMs)
    expect([debt.used, debt.remaining]).toEqual([0, 7])
  })

  test('refills only for new time, however the clock jumps', () => {
    const jumps = fc.array(fc.integer({ min: -700_000, max: 700_000 }), { maxLength: 50 })
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 50 }), jumps, (amount, moves) => {
        const debt = new RateMeter(rateOf(amount, spansMs.minute))
        const taken: Entry[] = []
        let [ms, latestMs] = [10_000_000, 0]
        for (const move of moves) {
          ms = Math.max(0, ms + move)
          latestMs = Math.max(latestMs, ms)
          debt.refill(ms)
          while (debt.fits(1)) {
            debt.take(1)
            taken.push({ tick: latestMs, count: 1 })
          }
        }
        expect(excess(taken, debt.rate)).toBeLessThanOrEqual(0n)
      }),
    )
  })

  test('uses nothing up when the clock goes back, so that no call is refused for it', () => {
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
        const debt = new RateMeter(rate)
        const history: Entry[] = []
        const open: { readonly entry: Entry; readonly taken: MeterTake }[] = []
        let ms = 0
        for (const { wait: gap, take, which, used } of steps) {
          ms += gap
          debt.refill(ms)
          const tick = Math.floor(ms / rate.tickMs)
          const [corrected] = open.splice(which, 1)
          if (corrected !== undefined) {
            corrected.entry.count = Math.floor(corrected.entry.count * used)
            debt.correct(corrected.taken, corrected.entry.count)
          }
          expect(BigInt(debt.used)).toBeGreaterThanOrEqual(owedBy(history, { ...rate, tick }))
          const count = Math.max(1, Math.floor(take * amount))
          if (!debt.fits(count)) continue
          const entry = { tick, count }
          history.push(entry)
          open.push({ entry, taken: debt.take(count) })
        }
        expect(excess(history, rate)).toBeLessThanOrEqual(0n)
      }),
      { numRuns: 500 },
    )
  })

  test('refunds everything while nothing is refilled', () => {
    const debt = new RateMeter(rateOf(100, spansMs.minute))
    const [first, second] = [debt.take(60), debt.take(40)]
    debt.correct(first, 10)
    debt.correct(second, 0)
    expect(debt.remaining).toBe(90)
  })

  test('refunds nothing that time has refilled', () => {
    const debt = new RateMeter(rateOf(100, spansMs.minute))
    const early = debt.take(100)
    debt.refill(spansMs.minute)
    debt.take(100)
    debt.correct(early, 0)
    expect(debt.remaining).toBe(0)
  })

  test('of one take does not change the position of another', () => {
    const debt = new RateMeter(rateOf(100, spansMs.minute))
    const [first, second] = [debt.take(50), debt.take(50)]
    debt.correct(first, 0)
    debt.refill(spansMs.minute / 2) // pays for the second
    debt.take(100)
    debt.correct(second, 0)
    expect(debt.remaining).toBe(0)
  })

  test('to a higher count is used, also beyond the burst, and refilled before anything else fits', () => {
    const debt = new RateMeter(rateOf(100, spansMs.minute))
    debt.correct(debt.take(100), 250)
    expect([debt.remaining, debt.fits(1), debt.resetMs]).toEqual([0, false, 150_000])
    debt.refill(90_600)
    expect(debt.fits(1)).toBe(true)
  })

  test('finds its position however much was ever refunded', () => {
    const debt = new RateMeter(rateOf(AMOUNT_MAX, spansMs.minute))
    for (let ms = 0; ms < 100_000; ms += 1_000) {
      debt.refill(ms)
      for (let round = 0; round < 2; round++) debt.correct(debt.take(AMOUNT_MAX / 2), 0)
      expect(debt.used).toBe(0)
    }
  })
})

describe('a change of the amount', () => {
  const perMinute = (amount: number): Rate => rateOf(amount, spansMs.minute)

  test('downwards keeps the time of the refill: a full minute stays used for a minute', () => {
    const owed = convertUsed(perMinute(6), perMinute(60).burstUnits, perMinute(60))
    expect([waitMsFor(perMinute(6), owed, 1), resetMsOf(perMinute(6), owed)]).toEqual([10_000, spansMs.minute])
  })

  test('upwards has an immediate effect', () => {
    expect(waitMsFor(perMinute(600), convertUsed(perMinute(600), perMinute(6).burstUnits, perMinute(6)), 1)).toBe(100)
  })

  test('back and forth gains nothing', () => {
    let owed = perMinute(7).burstUnits
    for (let round = 0; round < 50; round++) {
      owed = convertUsed(perMinute(11), owed, perMinute(7))
      expect(waitMsFor(perMinute(11), owed, 1)).toBeGreaterThan(0)
      owed = convertUsed(perMinute(7), owed, perMinute(11))
      expect(owed).toBeGreaterThanOrEqual(perMinute(7).burstUnits)
    }
    expect(waitMsFor(perMinute(7), owed, 1)).toBeCloseTo(spansMs.minute / 7, -1)
  })

  test('refunds nothing that was taken before it', () => {
    const debt = new RateMeter(perMinute(100))
    const taken = debt.take(100)
    debt.change(perMinute(200))
    debt.correct(taken, 0)
    expect(debt.remaining).toBe(0)
  })
})
