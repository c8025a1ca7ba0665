// Exact rate limiting by the generic cell rate algorithm: n in a span means a burst of n, refilled at n in a span, so
// that in any W at most n + n·W/span are taken: 2n in one span.
//
// What was taken is owed, and time pays it back. It is counted in units in which a tick of the clock pays back the
// integer n, and one of what is counted is the integer of ticks in a span: no rounding can creep in.

import { assert } from '../assert.ts'

export const spansMs = { minute: 60_000, day: 86_400_000 } as const

/** Beyond that, units would no longer be exact. */
export const AMOUNT_MAX = 10_000_000_000
/** Of a span this long, a second is fine enough, and a millisecond would be too fine for exact units. */
const COARSE_SPAN_MS = 3_600_000
/** Positions in line are counted around this, and nothing can be owed beyond it. */
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

/** What is still owed after so many ticks. */
export function owedAfter({ amount }: Rate, owed: number, ticks: number): number {
  const paid = ticks * amount
  return paid >= owed ? 0 : owed - paid
}

/** What is owed once this is taken as well, whether it fits or not. */
export const owedWith = ({ each }: Rate, owed: number, count: number): number => Math.min(owed + count * each, LINE)

/** Until it fits, which it may do now. What is more than the whole burst never does. */
export function waitMsFor({ burst, each, amount, tickMs }: Rate, owed: number, count: number): number {
  const over = owed + count * each - burst
  return over <= 0 ? 0 : Math.ceil(over / amount) * tickMs
}

/** How many more fit. */
export const leftOf = ({ burst, each }: Rate, owed: number): number =>
  owed >= burst ? 0 : Math.floor((burst - owed) / each)

/** Until nothing is owed. */
export const resetMsOf = ({ amount, tickMs }: Rate, owed: number): number => Math.ceil(owed / amount) * tickMs

/** What is owed of another amount in the same span. It is kept in time: it takes as long to pay as before. */
export const owedOf = (rate: Rate, owed: number, before: Rate): number =>
  rate.amount === before.amount ? owed : Math.ceil((owed / before.amount) * rate.amount)

/** Something that was taken, as it stood in line: what stands first is paid back first. */
export interface InLine {
  readonly count: number
  /** All that was owed with it, and all that had ever been given back. */
  readonly owed: number
  readonly given: number
}

/**
 * How much is given back of something that came to less, in units: no more than time has not yet paid. More would
 * let in now what was already let in meanwhile. `ticks` have passed since, and what others gave back moves up whoever
 * stands behind them: nobody knows who they were, but those before it had no more to give than what stood before it.
 */
export function givenBack(rate: Rate, taken: InLine, now: { count: number; ticks: number; given: number }): number {
  const sinceGiven = now.given >= taken.given ? now.given - taken.given : LINE - taken.given + now.given
  const before = taken.owed - taken.count * rate.each
  const unpaid = taken.owed - now.ticks * rate.amount - Math.min(sinceGiven, before)
  return Math.max(0, Math.min((taken.count - now.count) * rate.each, unpaid))
}

/** All that was ever given back, with this. */
export const givenWith = (given: number, back: number): number =>
  given > LINE - back ? given - (LINE - back) : given + back

/** What is owed of one rate. `pay` first: all else is of the time that it was told last. */
export class Debt {
  rate: Rate
  #owed = 0
  #tick = 0
  #given = 0

  constructor(rate: Rate) {
    this.rate = rate
  }

  /** In units; more than the burst where more was used than was taken for it. */
  get owed(): number {
    return this.#owed
  }

  /** A clock that goes back pays nothing until it has caught up. */
  pay(nowMs: number): void {
    const tick = Math.floor(nowMs / this.rate.tickMs)
    if (tick <= this.#tick) return
    this.#owed = owedAfter(this.rate, this.#owed, tick - this.#tick)
    this.#tick = tick
  }

  waitMs(count: number): number {
    return waitMsFor(this.rate, this.#owed, count)
  }

  fits(count: number): boolean {
    return this.waitMs(count) === 0
  }

  get remaining(): number {
    return leftOf(this.rate, this.#owed)
  }

  get resetMs(): number {
    return resetMsOf(this.rate, this.#owed)
  }

  /** Takes it, whether it fits or not. */
  add(count: number): void {
    this.#owed = owedWith(this.rate, this.#owed, count)
  }

  /** The same, of what may have to be corrected. */
  take(count: number): Taken {
    this.add(count)
    return { rate: this.rate, count, owed: this.#owed, given: this.#given, tick: this.#tick }
  }

  /** It was another count. */
  correct(taken: Taken, count: number): void {
    if (count >= taken.count) return this.add(count - taken.count)
    if (taken.rate !== this.rate) return // its place in line is not known any more
    const back = givenBack(this.rate, taken, { count, ticks: this.#tick - taken.tick, given: this.#given })
    this.#owed -= back
    this.#given = givenWith(this.#given, back)
  }

  /** Another amount in the same span. */
  change(rate: Rate): void {
    assert(rate.each === this.rate.each, 'the same span')
    this.#owed = owedOf(rate, this.#owed, this.rate)
    this.rate = rate
  }
}

export interface Taken extends InLine {
  readonly rate: Rate
  readonly tick: number
}
