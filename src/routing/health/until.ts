// How long something still holds. A clock that went back far ends it: to be too early once costs one attempt, to be
// late by a jump of the clock would cost many.

/** By so much a clock may be behind itself before that is taken for a jump. */
const JUMP_MS = 1_000

export class Until {
  #sinceMs = 0
  #untilMs = 0

  leftMs(nowMs: number): number {
    return nowMs > this.#sinceMs - JUMP_MS ? Math.max(0, this.#untilMs - nowMs) : 0
  }

  /** An end that is further off stays. */
  extend(forMs: number, nowMs: number): void {
    this.#untilMs = nowMs + Math.max(forMs, this.leftMs(nowMs))
    this.#sinceMs = nowMs
  }

  clear(): void {
    this.#untilMs = 0
  }
}
