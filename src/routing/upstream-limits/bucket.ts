// Estimates what is left of one rate limit of an upstream, from its last headers: an amount per period, refilled evenly.
// The estimate uses fractions, unlike the limits that operators configure (base/collections/gcra.ts).

export class LimitBucket {
  #limit: number
  #periodMs: number
  /** When the bucket is full again. */
  #fullMs = 0

  constructor(limit: number, periodMs: number) {
    this.#limit = limit
    this.#periodMs = periodMs
  }

  /** Changes the limit. The time until the bucket is full stays. */
  resize(limit: number, periodMs: number): void {
    this.#limit = limit
    this.#periodMs = periodMs
  }

  /** The time until this amount is available; 0 when it is. An amount above the limit waits for a full bucket. */
  waitMs(amount: number, nowMs: number): number {
    return Math.max(0, this.#untilFullMs(nowMs) + this.#durationOf(Math.min(amount, this.#limit)) - this.#periodMs)
  }

  /** Takes an amount; a negative one is given back. The bucket may go below empty, by one whole limit at most. */
  take(amount: number, nowMs: number): void {
    const fullInMs = this.#untilFullMs(nowMs) + this.#durationOf(amount)
    this.#fullMs = nowMs + Math.min(Math.max(0, fullInMs), 2 * this.#periodMs)
  }

  /** The upstream says how long it takes until the bucket is full. */
  noteFullIn(untilFullMs: number, nowMs: number): void {
    this.#fullMs = nowMs + Math.max(this.#untilFullMs(nowMs), untilFullMs)
  }

  /** The time until the bucket is full, limited so that a clock that jumps back causes no long wait. */
  #untilFullMs(nowMs: number): number {
    return Math.min(Math.max(0, this.#fullMs - nowMs), 2 * this.#periodMs)
  }

  #durationOf(amount: number): number {
    return (amount * this.#periodMs) / this.#limit
  }
}
