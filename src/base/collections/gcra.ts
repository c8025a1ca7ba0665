// Exact rate limiting by the generic cell rate algorithm (GCRA): a limit of n per span allows a burst of n and refills
// n per span. In any period W at most n + n·W/span are taken, so at most 2n in one span.
//
// A meter counts used units, and passing time refills them. Units are chosen so that both steps are integers: one tick
// of the clock refills n units, and one counted item (a request, a token) uses as many units as a span has ticks. There
// is no rounding.

import { assert } from '../assert.ts'

export const spansMs = { minute: 60_000, day: 86_400_000 } as const

/** With a larger amount, units would not be exact integers. */
export const AMOUNT_MAX = 10_000_000_000
/** A span this long ticks in seconds: in milliseconds, its units would not be exact integers. */
const COARSE_SPAN_MS = 3_600_000
/** Used units stop at this number, and the counter of refunds wraps around at it. */
const UNITS_MAX = Number.MAX_SAFE_INTEGER

export interface Rate {
  readonly amount: number
  readonly tickMs: number
  /** Units of one counted item. */
  readonly unitsEach: number
  /** Units of the whole amount. */
  readonly burstUnits: number
}

export function rateOf(amount: number, spanMs: number): Rate {
  assert(Number.isSafeInteger(amount) && amount > 0 && amount <= AMOUNT_MAX, 'a rate is a positive integer')
  const tickMs = spanMs < COARSE_SPAN_MS ? 1 : 1_000
  const each = spanMs / tickMs
  return { amount, tickMs, unitsEach: each, burstUnits: amount * each }
}

/** The used units that are left after `ticks` of refill. */
export function usedAfter({ amount }: Rate, used: number, ticks: number): number {
  const refilled = ticks * amount
  return refilled >= used ? 0 : used - refilled
}

/** The used units after taking `count` items, whether they fit or not. */
export const usedWith = ({ unitsEach }: Rate, used: number, count: number): number =>
  Math.min(used + count * unitsEach, UNITS_MAX)

/** The time until `count` items fit; 0 if they fit now. More than the whole burst never fits. */
export function waitMsFor({ burstUnits, unitsEach, amount, tickMs }: Rate, used: number, count: number): number {
  const over = used + count * unitsEach - burstUnits
  return over <= 0 ? 0 : Math.ceil(over / amount) * tickMs
}

/** How many more items fit now. */
export const remainingOf = ({ burstUnits, unitsEach }: Rate, used: number): number =>
  used >= burstUnits ? 0 : Math.floor((burstUnits - used) / unitsEach)

/** The time until everything is refilled. */
export const resetMsOf = ({ amount, tickMs }: Rate, used: number): number => Math.ceil(used / amount) * tickMs

/** Converts used units to another amount in the same span, so that the refill takes as long as before. */
export const convertUsed = (rate: Rate, used: number, before: Rate): number =>
  rate.amount === before.amount ? used : Math.ceil((used / before.amount) * rate.amount)

/** Items that were taken, and their position among all used units: units that were taken first are refilled first. */
export interface MeterPosition {
  readonly count: number
  /** All used units directly after this take, and all units that had ever been refunded by then. */
  readonly used: number
  readonly refunded: number
}

/**
 * The units to refund when a call used fewer items than it took. A refund never exceeds the units of this take that
 * time has not refilled yet: the refilled part was already available to other calls, and refunding it would admit them
 * twice. `ticks` have passed since the take. Refunds of other takes move this take forward only if those takes were
 * before it. It is not known which were, but takes before it cannot refund more than the units that were before it.
 */
export function refundOf(
  rate: Rate,
  taken: MeterPosition,
  now: { count: number; ticks: number; given: number },
): number {
  const refundedSince =
    now.given >= taken.refunded ? now.given - taken.refunded : UNITS_MAX - taken.refunded + now.given
  const before = taken.used - taken.count * rate.unitsEach
  const unfilled = taken.used - now.ticks * rate.amount - Math.min(refundedSince, before)
  return Math.max(0, Math.min((taken.count - now.count) * rate.unitsEach, unfilled))
}

/** All units that were ever refunded, this refund included. Wraps around at UNITS_MAX. */
export const refundedWith = (refunded: number, refund: number): number =>
  refunded > UNITS_MAX - refund ? refunded - (UNITS_MAX - refund) : refunded + refund

/** The use of one rate. Call `refill` first: every other method works with the time of the last refill. */
export class RateMeter {
  rate: Rate
  #used = 0
  #tick = 0
  #refunded = 0

  constructor(rate: Rate) {
    this.rate = rate
  }

  /** Used units. May exceed the burst, because a call can use more than it took at first. */
  get used(): number {
    return this.#used
  }

  /** A clock that goes back refills nothing until it has caught up. */
  refill(nowMs: number): void {
    const tick = Math.floor(nowMs / this.rate.tickMs)
    if (tick <= this.#tick) return
    this.#used = usedAfter(this.rate, this.#used, tick - this.#tick)
    this.#tick = tick
  }

  waitMs(count: number): number {
    return waitMsFor(this.rate, this.#used, count)
  }

  fits(count: number): boolean {
    return this.waitMs(count) === 0
  }

  get remaining(): number {
    return remainingOf(this.rate, this.#used)
  }

  get resetMs(): number {
    return resetMsOf(this.rate, this.#used)
  }

  /** Takes `count` items, whether they fit or not. */
  add(count: number): void {
    this.#used = usedWith(this.rate, this.#used, count)
  }

  /** Takes `count` items, and returns what `correct` needs. */
  take(count: number): MeterTake {
    this.add(count)
    return { rate: this.rate, count, used: this.#used, refunded: this.#refunded, tick: this.#tick }
  }

  /** Replaces the count of an earlier take by the real count. */
  correct(taken: MeterTake, count: number): void {
    if (count >= taken.count) return this.add(count - taken.count)
    if (taken.rate !== this.rate) return // the position of the take is unknown after a change of the rate
    const refund = refundOf(this.rate, taken, { count, ticks: this.#tick - taken.tick, given: this.#refunded })
    this.#used -= refund
    this.#refunded = refundedWith(this.#refunded, refund)
  }

  /** Changes the amount; the span must be the same. */
  change(rate: Rate): void {
    assert(rate.unitsEach === this.rate.unitsEach, 'the same span')
    this.#used = convertUsed(rate, this.#used, this.rate)
    this.rate = rate
  }
}

export interface MeterTake extends MeterPosition {
  readonly rate: Rate
  readonly tick: number
}
