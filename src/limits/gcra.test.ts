// The limiter against a model in whole numbers, on a clock that the test moves.

import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import type { Quota } from './gcra.ts'
import { RateLimiter } from './gcra.ts'

const MINUTE_MS = 60_000

/** The same algorithm without a name, a sweep or any rounding: bigints, in units of 1/n ms. */
class Model {
  #at = 0n

  take(perMinute: number, ms: number): Quota {
    const now = BigInt(Math.floor(ms)) * BigInt(perMinute)
    const earliest = this.#at > now ? this.#at : now
    const left = BigInt(MINUTE_MS) * BigInt(perMinute - 1) - (earliest - now)
    const inMs = (units: bigint): number => Number(units) / perMinute
    if (left < 0n) {
      const refused = { allowed: false, limit: perMinute, remaining: 0 }
      return { ...refused, retryAfterMs: inMs(-left), resetMs: inMs(earliest - now) }
    }
    this.#at = earliest + BigInt(MINUTE_MS)
    const allowed = { allowed: true, limit: perMinute, retryAfterMs: 0, resetMs: inMs(this.#at - now) }
    return { ...allowed, remaining: Number(left / BigInt(MINUTE_MS)) }
  }
}

const rates = fc.oneof(fc.integer({ min: 1, max: 100 }), fc.constantFrom(300, 3_000, 40_000, 60_001, 100_000))
/** Bursts, short waits, waits of about one interval, and long ones; whole and broken milliseconds. */
const waits = fc.array(
  fc.oneof(
    fc.constant(0),
    fc.integer({ min: 0, max: 3 }),
    fc.double({ min: 0, max: 2, noNaN: true }),
    fc.integer({ min: 0, max: 70_000 }),
    fc.double({ min: 0, max: 10_000, noNaN: true }),
  ),
  { maxLength: 200 },
)
const starts = fc.double({ min: 0, max: 1e9, noNaN: true })

describe('one name', () => {
  test('is treated as the model treats it, call for call', () => {
    fc.assert(
      fc.property(rates, starts, waits, (perMinute, start, gaps) => {
        const [limiter, model] = [new RateLimiter<string>(), new Model()]
        let ms = start
        for (const gap of gaps) {
          ms += gap
          expect(limiter.take('a', perMinute, ms)).toEqual(model.take(perMinute, ms))
        }
      }),
      { numRuns: 200 },
    )
  })

  test('in any window W at most n + n·W/60 are admitted', () => {
    fc.assert(
      fc.property(rates, starts, waits, (perMinute, start, gaps) => {
        const limiter = new RateLimiter<string>()
        let ms = start
        const admitted: number[] = []
        for (const gap of gaps) {
          ms += gap
          for (let tries = 0; tries < 3; tries++) {
            if (limiter.take('a', perMinute, ms).allowed) admitted.push(Math.floor(ms))
          }
        }
        const bound = (windowMs: number): number => perMinute + (perMinute * windowMs) / MINUTE_MS
        const over = admitted.some((from, first) =>
          admitted.slice(first).some((to, count) => count + 1 > bound(to - from)),
        )
        expect(over).toBe(false)
      }),
      { numRuns: 100 },
    )
  })

  test('a clock of broken milliseconds does not lift a limit above one call a millisecond', () => {
    const limiter = new RateLimiter<string>()
    let admitted = 0
    for (let call = 0; call < 150_000; call++) if (limiter.take('a', 100_000, 7.9).allowed) admitted++
    expect(admitted).toBe(100_000)
  })

  test('a refused call may come again after exactly the time it was told', () => {
    const low = rates.filter(rate => rate <= 300)
    fc.assert(
      fc.property(low, fc.nat(1_000_000), fc.nat(59_999), (perMinute, startMs, waitMs) => {
        const full = (): RateLimiter<string> => {
          const limiter = new RateLimiter<string>()
          for (let call = 0; call < perMinute; call++) limiter.take('a', perMinute, startMs)
          return limiter
        }
        const verdict = full().take('a', perMinute, startMs + waitMs)
        if (verdict.allowed) return
        const atMs = startMs + waitMs + Math.ceil(verdict.retryAfterMs)
        expect(verdict.retryAfterMs).toBeLessThanOrEqual(MINUTE_MS)
        expect(full().take('a', perMinute, atMs - 1).allowed).toBe(false)
        expect(full().take('a', perMinute, atMs).allowed).toBe(true)
      }),
    )
  })

  test('a refused call costs nothing', () => {
    const limiter = new RateLimiter<string>()
    limiter.take('a', 1, 0)
    for (let ms = 0; ms < MINUTE_MS; ms += 10) expect(limiter.take('a', 1, ms).allowed).toBe(false)
    expect(limiter.take('a', 1, MINUTE_MS).allowed).toBe(true)
  })

  test('after its reset the whole burst is there again', () => {
    const limiter = new RateLimiter<string>()
    let verdict = limiter.take('a', 7, 0)
    for (let call = 1; call < 5; call++) verdict = limiter.take('a', 7, 0)
    expect(verdict.remaining).toBe(2)
    expect(limiter.take('a', 7, Math.ceil(verdict.resetMs)).remaining).toBe(6)
  })

  test('a rate that is none is our own mistake', () => {
    for (const rate of [0, -1, 1.5, Number.NaN, Infinity]) {
      expect(() => new RateLimiter<string>().take('a', rate, 0)).toThrow('positive integer')
    }
  })
})

describe('a change of limit', () => {
  const spend = (limiter: RateLimiter<string>, perMinute: number): void => {
    for (let call = 0; call < perMinute; call++) expect(limiter.take('a', perMinute, 0).allowed).toBe(true)
  }

  test('downwards keeps the debt in time: a minute’s worth is spent for a minute', () => {
    const limiter = new RateLimiter<string>()
    spend(limiter, 60)
    const verdict = limiter.take('a', 6, 0)
    expect([verdict.allowed, verdict.retryAfterMs, verdict.resetMs]).toEqual([false, 10_000, MINUTE_MS])
    expect(limiter.take('a', 6, 9_999).allowed).toBe(false)
    expect(limiter.take('a', 6, 10_000).allowed).toBe(true)
  })

  test('upwards is felt at once', () => {
    const limiter = new RateLimiter<string>()
    spend(limiter, 6)
    expect(limiter.take('a', 600, 0).retryAfterMs).toBe(100)
    expect(limiter.take('a', 600, 100).allowed).toBe(true)
  })

  test('to and fro gains nothing', () => {
    const limiter = new RateLimiter<string>()
    spend(limiter, 7)
    for (let round = 0; round < 50; round++) {
      expect(limiter.take('a', 11, 0).allowed).toBe(false)
      expect(limiter.take('a', 7, 0).allowed).toBe(false)
    }
    expect(limiter.take('a', 7, 0).retryAfterMs).toBeCloseTo(MINUTE_MS / 7, 3)
  })
})

describe('many names', () => {
  test('do not see each other', () => {
    const limiter = new RateLimiter<number>()
    for (let name = 0; name < 1_000; name++) {
      expect(limiter.take(name, 1, 0).allowed).toBe(true)
      expect(limiter.take(name, 1, 0).allowed).toBe(false)
    }
  })

  test('are forgotten ten seconds after their debt is paid, and not before', () => {
    const limiter = new RateLimiter<number>()
    for (let name = 0; name < 1_000; name++) limiter.take(name, 1, 0)
    for (let round = 0; round < 2_000; round++) limiter.take(1_000, 100_000, MINUTE_MS + 9_999)
    expect(limiter.size).toBe(1_001)
    for (let round = 0; round < 2_000; round++) limiter.take(1_000, 100_000, MINUTE_MS + 10_000)
    expect(limiter.size).toBe(1)
  })

  test('that come once and never again do not pile up', () => {
    const limiter = new RateLimiter<number>()
    let most = 0
    // One new name a millisecond, each in debt for 100 ms and kept for ten seconds.
    for (let ms = 0; ms < 60_000; ms++) {
      limiter.take(ms, 600, ms)
      most = Math.max(most, limiter.size)
    }
    expect(most).toBeLessThan(25_000)
  })
})
