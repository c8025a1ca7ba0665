// How long a channel takes to its first content. What was seen long ago counts for less and less, so that a channel
// that was slow once is tried again.

const HALF_LIFE_MS = 10_000
const USUAL_HALF_LIFE_MS = 60_000
const FORGET_HALF_LIFE_MS = 30_000
/** So much slower than usual, and that slow, is a sign that it has too much to do. */
const SURGE_TIMES = 4
const SURGE_MS = 2_000

const share = (ageMs: number, halfLifeMs: number): number => 1 - 2 ** (-Math.max(0, ageMs) / halfLifeMs)

export class FirstTimes {
  #lastMs = 0
  #usualMs = 0
  #atMs: number | undefined

  note(ms: number, nowMs: number): void {
    if (!(ms >= 0)) return
    if (this.#atMs === undefined) {
      this.#lastMs = this.#usualMs = ms
    } else {
      const ageMs = nowMs - this.#atMs
      this.#lastMs += (ms - this.#lastMs) * share(ageMs, HALF_LIFE_MS)
      this.#usualMs += (ms - this.#usualMs) * share(ageMs, USUAL_HALF_LIFE_MS)
    }
    this.#atMs = nowMs
  }

  /** As last seen, however long ago. */
  get lastMs(): number | undefined {
    return this.#atMs === undefined ? undefined : this.#lastMs
  }

  /** As good as it may have become since; 0 when nothing is known. */
  hopedMs(nowMs: number): number {
    if (this.#atMs === undefined) return 0
    return this.#lastMs * (1 - share(nowMs - this.#atMs, FORGET_HALF_LIFE_MS))
  }

  get surges(): boolean {
    return this.#lastMs > SURGE_MS && this.#lastMs > SURGE_TIMES * this.#usualMs
  }
}
