// Exact rate limiting by the generic cell rate algorithm: n in a span means a burst of n, refilled at n in a span, so
// that in any W at most n + n·W/span are taken: 2n in one span.
//
// What was taken is owed, and time pays it back. It is counted in units in which a tick of the clock pays back the
// integer n, and one of what is counted is the integer of ticks in a span: no rounding can creep in.

import { assert } from './assert.ts'

export const spansMs = { minute: 60_000, day: 86_400_000 } as const

/** Beyond that, units would no longer be exact. */
export const AMOUNT_MAX = 10_000_000_000
/** Of a span this long, a second is fine enough, and a millisecond would be too fine for exact units. */
const COARSE_SPAN_MS = 3_600_000
/** Positions in line are counted around this. */
const LINE = Number.MAX_SAFE_INTEGER

export interface Rate {
  readonly amount: number
  readonly tickMs: number
  /** One of what is counted, in units. */
  readonly each: number
  /** All of it, in units. */
  readonly burst: number
}

export function rateOf(amount: number, spanMs: number): Rate {
  assert(Number.isSafeInteger(amount) && amount > 0 && amount <= AMOUNT_MAX, 'a rate is a positive integer')
  const tickMs = spanMs < COARSE_SPAN_MS ? 1 : 1_000
  const each = spanMs / tickMs
  return { amount, tickMs, each, burst: amount * each }
}

/** Something that was taken, and where it stood in line: what stands first is paid back first. */
export interface Taken {
  readonly rate: Rate
  readonly count: number
  readonly tick: number
  /** All that was owed with it, and all that had ever been given back. */
  readonly owed: number
  readonly given: number
}

/** What is owed of one rate. `pay` first: all else is of the time that it was told last. */
export class Debt {
  rate: Rate
  /** In units; more than the burst where more was used than was taken for it. */
  owed = 0
  #tick = 0
  #given = 0

  constructor(rate: Rate) {
    this.rate = rate
  }

  /** A clock that goes back pays nothing until it has caught up. */
  pay(nowMs: number): void {
    const tick = Math.floor(nowMs / this.rate.tickMs)
    if (tick <= this.#tick) return
    const paid = (tick - this.#tick) * this.rate.amount
    this.owed = paid >= this.owed ? 0 : this.owed - paid
    this.#tick = tick
  }

  fits(count: number): boolean {
    return this.owed + count * this.rate.each <= this.rate.burst
  }

  /** Until it fits, which it may do now. What is more than the whole burst never does. */
  waitMs(count: number): number {
    const { burst, each, amount, tickMs } = this.rate
    const over = this.owed + count * each - burst
    return over <= 0 ? 0 : Math.ceil(over / amount) * tickMs
  }

  /** How many more fit. */
  get remaining(): number {
    const { burst, each } = this.rate
    return this.owed >= burst ? 0 : Math.floor((burst - this.owed) / each)
  }

  /** Until nothing is owed. */
  get resetMs(): number {
    return Math.ceil(this.owed / this.rate.amount) * this.rate.tickMs
  }

  /** Takes it, whether it fits or not. */
  add(count: number): void {
    this.#owe(count * this.rate.each)
  }

  /** The same, of what may have to be corrected. */
  take(count: number): Taken {
    this.add(count)
    return { rate: this.rate, count, tick: this.#tick, owed: this.owed, given: this.#given }
  }

  /**
   * It was another count. Of what was too much, only that is given back which time has not yet paid: more would let
   * in now what was already let in meanwhile.
   */
  correct(taken: Taken, count: number): void {
    if (count >= taken.count) return this.add(count - taken.count)
    if (taken.rate !== this.rate) return // its place in line is not known any more
    const { each, amount } = this.rate
    const sinceGiven = this.#given >= taken.given ? this.#given - taken.given : LINE - taken.given + this.#given
    const left = taken.owed - (this.#tick - taken.tick) * amount - sinceGiven
    const back = Math.min((taken.count - count) * each, left)
    if (back <= 0) return
    this.owed -= back
    this.#given = this.#given > LINE - back ? this.#given - (LINE - back) : this.#given + back
  }

  /** Another amount in the same span. What is owed is kept in time: it takes as long to pay as before. */
  change(rate: Rate): void {
    assert(rate.each === this.rate.each, 'the same span')
    this.owed = Math.ceil((this.owed / this.rate.amount) * rate.amount)
    this.rate = rate
  }

  /** Owes as much as takes this long to pay. */
  oweFor(ms: number): void {
    this.#owe(Math.ceil(ms / this.rate.tickMs) * this.rate.amount)
  }

  #owe(units: number): void {
    this.owed = Math.min(this.owed + units, LINE)
  }
}
