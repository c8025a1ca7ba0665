// Measures how long a channel takes until its first content. Old measurements lose weight with time, so that a channel
// that was slow once is tried again.

const HALF_LIFE_MS = 10_000
const USUAL_HALF_LIFE_MS = 60_000
const FORGET_HALF_LIFE_MS = 30_000
/** Slower than usual by this factor, and slower than this time, is a sign of overload. */
const SURGE_TIMES = 4
const SURGE_MS = 2_000

const decayOf = (ageMs: number, halfLifeMs: number): number => 1 - 2 ** (-Math.max(0, ageMs) / halfLifeMs)

export class FirstContentTimes {
  #lastMs = 0
  #usualMs = 0
  #atMs: number | undefined

  note(ms: number, nowMs: number): void {
    if (!(ms >= 0)) return
    if (this.#atMs === undefined) {
      this.#lastMs = this.#usualMs = ms
    } else {
      const ageMs = nowMs - this.#atMs
      this.#lastMs += (ms - this.#lastMs) * decayOf(ageMs, HALF_LIFE_MS)
      this.#usualMs += (ms - this.#usualMs) * decayOf(ageMs, USUAL_HALF_LIFE_MS)
    }
    this.#atMs = nowMs
  }

  /** The average as it was at the last measurement, however long ago that was. */
  get lastMs(): number | undefined {
    return this.#atMs === undefined ? undefined : this.#lastMs
  }

  /** An optimistic estimate: it falls with the time since the last measurement. 0 when nothing was measured. */
  optimisticMs(nowMs: number): number {
    if (this.#atMs === undefined) return 0
    return this.#lastMs * (1 - decayOf(nowMs - this.#atMs, FORGET_HALF_LIFE_MS))
  }

  get isSurging(): boolean {
    return this.#lastMs > SURGE_MS && this.#lastMs > SURGE_TIMES * this.#usualMs
  }
}
