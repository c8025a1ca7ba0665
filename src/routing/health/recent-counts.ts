// Counts good and bad events of the last ten seconds, in slots of one second.

const SECONDS = 10

export class RecentCounts {
  readonly #counts = new Uint32Array(SECONDS * 2)
  /** The current second. */
  #second = -Infinity
  #good = 0
  #bad = 0

  note(isBad: boolean, nowMs: number): void {
    this.#advanceTo(nowMs)
    const slot = (Math.max(0, this.#second) % SECONDS) * 2
    if (isBad) {
      this.#counts[slot + 1]!++
      this.#bad++
    } else {
      this.#counts[slot]!++
      this.#good++
    }
  }

  good(nowMs: number): number {
    this.#advanceTo(nowMs)
    return this.#good
  }

  bad(nowMs: number): number {
    this.#advanceTo(nowMs)
    return this.#bad
  }

  clear(): void {
    this.#counts.fill(0)
    this.#good = this.#bad = 0
  }

  /** Moves on to the current second and forgets older ones. If the clock goes back a little, events count in #second. */
  #advanceTo(nowMs: number): void {
    const second = Math.floor(nowMs / 1_000)
    if (second <= this.#second && second > this.#second - SECONDS) return
    if (second < this.#second || second - this.#second >= SECONDS) {
      this.clear()
      this.#second = second
      return
    }
    while (this.#second < second) {
      const slot = (++this.#second % SECONDS) * 2
      this.#good -= this.#counts[slot]!
      this.#bad -= this.#counts[slot + 1]!
      this.#counts[slot] = this.#counts[slot + 1] = 0
    }
  }
}
