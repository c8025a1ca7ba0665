// What an upstream is believed to have left of one of its limits, from what it last told: so much in so long, refilled
// evenly. An estimate in broken numbers, unlike the limits that operators lay down (base/collections/gcra.ts).

export class ToldBucket {
  #limit: number
  #periodMs: number
  /** When all of it is there again. */
  #fullMs = 0

  constructor(limit: number, periodMs: number) {
    this.#limit = limit
    this.#periodMs = periodMs
  }

  /** The debt is kept in time. */
  resize(limit: number, periodMs: number): void {
    this.#limit = limit
    this.#periodMs = periodMs
  }

  /** Until so much is there; 0 when it is. What is more than all of it waits until all of it is there. */
  waitMs(amount: number, nowMs: number): number {
    return Math.max(0, this.#aheadMs(nowMs) + this.#inMs(Math.min(amount, this.#limit)) - this.#periodMs)
  }

  /** Below zero is a debt, of one whole burst at most. */
  add(amount: number, nowMs: number): void {
    const aheadMs = this.#aheadMs(nowMs) + this.#inMs(amount)
    this.#fullMs = nowMs + Math.min(Math.max(0, aheadMs), 2 * this.#periodMs)
  }

  /** Somebody who knows says that it takes this long until all of it is there. */
  atLeast(untilFullMs: number, nowMs: number): void {
    this.#fullMs = nowMs + Math.max(this.#aheadMs(nowMs), untilFullMs)
  }

  /** A clock that went back far is not waited for. */
  #aheadMs(nowMs: number): number {
    return Math.min(Math.max(0, this.#fullMs - nowMs), 2 * this.#periodMs)
  }

  #inMs(amount: number): number {
    return (amount * this.#periodMs) / this.#limit
  }
}
