// How often two things happened in the last ten seconds, by the second.

const SECONDS = 10

export class Recent {
  readonly #counts = new Uint32Array(SECONDS * 2)
  /** The second that was last written to. */
  #atS = -Infinity
  #good = 0
  #bad = 0

  note(isBad: boolean, nowMs: number): void {
    this.#turnTo(nowMs)
    const slot = (Math.max(0, this.#atS) % SECONDS) * 2
    if (isBad) {
      this.#counts[slot + 1]!++
      this.#bad++
    } else {
      this.#counts[slot]!++
      this.#good++
    }
  }

  good(nowMs: number): number {
    this.#turnTo(nowMs)
    return this.#good
  }

  bad(nowMs: number): number {
    this.#turnTo(nowMs)
    return this.#bad
  }

  clear(): void {
    this.#counts.fill(0)
    this.#good = this.#bad = 0
  }

  /** Forgets what is older. A clock that goes back adds to the second it was at. */
  #turnTo(nowMs: number): void {
    const second = Math.floor(nowMs / 1_000)
    if (second <= this.#atS && second > this.#atS - SECONDS) return
    if (second < this.#atS || second - this.#atS >= SECONDS) {
      this.clear()
      this.#atS = second
      return
    }
    while (this.#atS < second) {
      const slot = (++this.#atS % SECONDS) * 2
      this.#good -= this.#counts[slot]!
      this.#bad -= this.#counts[slot + 1]!
      this.#counts[slot] = this.#counts[slot + 1] = 0
    }
  }
}
